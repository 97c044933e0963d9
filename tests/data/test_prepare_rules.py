"""How documents become terms and weights in ``prepare``: every option beside scikit-learn's vectoriser.

Covers: the features, their names, the transform that a model keeps, settings without meaning.
Does not cover: the passes (test_prepare.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

import dboost
from dboost.data import load_manifest, prepare_text
from dboost.errors import UsageError
from dboost.estimators.text_features import DocumentFeatures
from pipelines.cli import main
from pipelines.commands.prepare import stop_words

RNG = np.random.default_rng(0)
WORDS = ["the", "sea", "sky", "Sand", "wind", "and", "rain", "élan", "is", "waves"]
TEXTS = [" ".join(RNG.choice(WORDS, 12)) for _ in range(80)]
LABELS = ["wet" if text.count("rain") + text.count("sea") > 2 else "dry" for text in TEXTS]

OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {"sublinear_tf": True}),
    "pairs": ({"ngrams": 2}, {"sublinear_tf": True, "ngram_range": (1, 2)}),
    "stop words": ({"stop_words": ["the", "and"]}, {"sublinear_tf": True, "stop_words": ["the", "and"]}),
    "english": ({"stop_words": stop_words(("english",))}, {"sublinear_tf": True, "stop_words": "english"}),
    "counts": ({"sublinear_tf": False}, {}),
    "binary": ({"binary": True, "sublinear_tf": False}, {"binary": True}),
    "all": (
        {"ngrams": 3, "stop_words": ["is"], "binary": True},
        {"ngram_range": (1, 3), "stop_words": ["is"], "binary": True},
    ),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "documents.parquet"
    pq.write_table(pa.table({"text": TEXTS, "label": LABELS}), path, row_group_size=30)
    return path


@pytest.mark.parametrize("name", OPTIONS)
def test_features_are_those_of_scikit_learn(name: str, file: Path, tmp_path: Path) -> None:
    ours, theirs = OPTIONS[name]
    manifest = prepare_text(file, tmp_path / "out", text="text", label="label", min_df=1, max_df=1.0, **ours)
    vectoriser = TfidfVectorizer(**theirs)
    wanted = vectoriser.fit_transform(TEXTS)
    assert manifest.feature_names() == tuple(vectoriser.get_feature_names_out())
    table = pq.read_table(tmp_path / "out" / "train")
    columns = (table["values"].combine_chunks(), table["indices"].combine_chunks())
    values, indices = (column.flatten().to_numpy() for column in columns)
    found = sparse.csr_array((values, indices, columns[0].offsets.to_numpy()), shape=wanted.shape)
    assert abs(found - wanted).max() < 1e-6
    transform = DocumentFeatures.of_prepared(load_manifest(tmp_path / "out"))
    assert transform is not None and (transform.transform(TEXTS) != found).nnz == 0


def test_a_model_reads_raw_documents_by_its_rule(file: Path, tmp_path: Path) -> None:
    prepare = (
        f"prepare {file} --text text --label label --min-df 1 --max-df 1.0 --ngrams 2 --stop-words the,and --binary"
    )
    assert main([*prepare.split(), "--out", str(tmp_path / "p"), "--workers", "0"]) == 0
    assert main(["train", str(tmp_path / "p"), "--alpha", "0.02", "--out", str(tmp_path / "m"), "--workers", "0"]) == 0
    model = dboost.load_pipeline(tmp_path / "m")
    assert any(" " in name for name in model[-1].active_features_ + list(model[0].get_feature_names_out()))
    known = dboost.load_model(tmp_path / "m").predict(model[0].transform(TEXTS))
    assert model.predict(TEXTS).tolist() == known.tolist()
    assert model[0].rule.about()["stop_words"] == ["the", "and"] and model[0].rule.binary


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ngrams": 0}, "ngrams=0"),
        ({"ngrams": 2, "tokenizer": "identifiers"}, "ngrams beside tokenizer='identifiers'"),
        ({"stop_words": ["a"], "tokenizer": "identifiers"}, "stop_words beside tokenizer='identifiers'"),
        ({"tokenizer": "letters"}, "tokenizer='letters'"),
        ({"stop_words": "english"}, "names a language"),
    ],
)
def test_rules_without_meaning_are_refused(given: dict[str, Any], said: str, file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        prepare_text(file, tmp_path / "out", text="text", **given)
    assert not (tmp_path / "out").exists()
