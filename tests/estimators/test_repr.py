"""What a person sees."""

from __future__ import annotations

import html
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import config_context

from dboost import (
    BoostedClassifier,
    OneVsRestBoostedClassifier,
    ParquetData,
)
from dboost.estimators import repr as shown
from dboost.estimators.repr import sparsity_map
from dboost.estimators.rounds import Table


def test_repr_shows_certificate_features_and_who_shares_them(multiclass):
    X, y = multiclass
    names = ["<b>bold</b>", *(f"c{j}" for j in range(1, 12))]
    model = BoostedClassifier(penalty="l1", alpha=0.05).fit(pd.DataFrame(X, columns=names), y)
    text = repr(model)
    used = len(model.active_features_)
    assert text.startswith("BoostedClassifier(alpha=0.05, penalty='l1')\n")
    assert f"3 classes; {used} of 12 features used" in text
    assert "certified gap" in text and "stopped by tol" in text
    first = sparsity_map(model.model_)[0]
    assert first.size == np.abs(model.coef_).max()
    assert first.shared_by == np.count_nonzero(model.coef_[:, names.index(first.name)])
    assert f"{first.shared_by} of 3" in text
    page = model._repr_html_()
    assert "<b>bold</b>" not in page and "&lt;b&gt;bold&lt;/b&gt;" in page
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == text and numberless(bundle["text/html"]) == numberless(page)
    with config_context(display="text"):
        assert model._repr_mimebundle_() == {"text/plain": text} and not hasattr(model, "_repr_html_")


def numberless(page):
    """A page without the numbers that scikit-learn gives its elements, new ones each time."""
    return re.sub(r"sk-(container|estimator)-id-\d+", "", page)


@pytest.mark.skipif(not hasattr(BoostedClassifier, "_get_params_html"), reason="scikit-learn < 1.7 has no such table")
def test_a_notebook_shows_scikit_learns_table_and_the_map_below(multiclass):
    X, y = multiclass
    hostile = "<script>alert('x')</script>"
    y = np.where(y == "ant", hostile, y)
    model = BoostedClassifier(alpha=0.05)
    before = model._repr_html_()
    assert "parameters-table" in before and "max_rounds" in before and "dboost" not in before.split("<body>")[1][-200:]
    after = model.fit(X, y)._repr_html_()
    above, below = after.split("<div class='dboost'>")
    assert "parameters-table" in above and "stopped by tol" in below and "Fitted attributes" in above
    assert hostile not in below and html.escape(hostile) in below
    first = sparsity_map(model.model_)[0]
    assert f"<th title='{first.name}'>{first.name}</th>" in below and f"{first.weights[0][1]:+.2g}</td>" in below
    several = OneVsRestBoostedClassifier(BoostedClassifier(alpha=0.05)).fit(X, y)._repr_html_()
    assert "3 classifiers of two classes" in several and hostile not in several.split("class='dboost'")[1]


def test_a_notebook_does_not_build_weights_that_are_too_large_to_be_shown(multiclass, monkeypatch):
    model = BoostedClassifier(alpha=0.05).fit(*multiclass)
    assert "coef_" in model._repr_html_()
    monkeypatch.setattr(shown, "LARGE", 35)
    page = model._repr_html_()
    assert "coef_" not in page and "intercept_" in page and type(model) is BoostedClassifier


def test_data_in_parquet_tells_what_it_holds(tmp_path):
    label = pa.array(["<i>b</i>", "a", "a", None] * 5).dictionary_encode()
    table = pa.table({"x": np.arange(20.0), "z": np.arange(20), "label": label})
    for part in range(2):
        pq.write_table(table, tmp_path / f"{part}.parquet", write_page_checksum=True, row_group_size=7)
    page = ParquetData(tmp_path, label="label")._repr_html_()
    cells = re.findall(r"<tr>(.*?)</tr>", page)
    words = [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]
    assert words[:2] == ["rows 40", "features 2"] and words[3].startswith("partitions 1, about ")
    assert "in 2 files" in words[2] and words[4:] == [
        "classes 3 in label", "class rows", "a 20", "&lt;i&gt;b&lt;/i&gt; 10", "no label 10",
    ]  # fmt: skip
    assert "classes" not in ParquetData(tmp_path, label="x", features=["z"])._repr_html_()
    assert "no such file or folder" in ParquetData(tmp_path / "nowhere")._repr_html_()
    assert "column &#x27;lable&#x27;" in ParquetData(tmp_path, label="lable")._repr_html_()


def map_html(model):
    """What a notebook shows below scikit-learn's table."""
    return model._repr_html_().split("<div class='dboost'>")[1]


NOISE = ("nan", "1 of 1", "shared by", " 1 rounds", " 1 passes")


@pytest.mark.parametrize("params", [{}, {"penalty": "none"}, {"penalty": "l2_squared"}, {"penalty": "l1"}], ids=str)
def test_repr_of_two_classes_says_nothing_that_is_always_so(binary, params):
    X, y = binary
    model = BoostedClassifier(alpha="quick", **params).fit(X, np.array(["no", "yes"])[y])
    for text in (repr(model), map_html(model)):
        assert "weight for yes" in text
        assert not any(noise in text for noise in NOISE), text
    assert ("alpha_max" in repr(model)) == (params.get("penalty") in (None, "l1"))
    assert ("alpha " in repr(model)) == (params.get("penalty") != "none")
    first = sparsity_map(model.model_)[0]
    assert [first.name, f"{first.weights[0][1]:+.4g}"] in [line.split() for line in repr(model).splitlines()]


def test_table_behaves_as_a_sequence_and_a_frame():
    table = Table([{"a": 1, "b": 0.5}, {"a": 2, "c": "x"}])
    assert table.columns == ("a", "b", "c")
    assert len(table) == 2 and table[-1] == {"a": 2, "c": "x"}
    assert table[:1] == Table([{"a": 1, "b": 0.5}])
    assert table.column("a").tolist() == [1, 2]
    with pytest.raises(KeyError, match="no column 'z'"):
        table.column("z")
    frame = table.to_pandas()
    assert frame.shape == (2, 3) and frame["a"].tolist() == [1, 2]
    assert repr(table).splitlines()[0].split() == ["a", "b", "c"]
    assert len(repr(Table([{"a": i} for i in range(100)])).splitlines()) == 14
    assert "<td>0.5</td>" in table._repr_html_()
    assert repr(Table()) == "Table(no records)"
    table.records[0]["a"] = 9
    table[0]["a"] = 9
    assert table[0]["a"] == 1
