"""What a person reads: the sparsity map and the figures of an evaluation."""

import io

import numpy as np
import pytest

from dboost import metrics
from dboost.hypotheses.columns import ColumnSet
from dboost.losses import losses_of
from dboost.model.fitted import Certificate, Model, read_model
from pipelines import pages
from pipelines.commands import evaluate
from pipelines.console import Console
from pipelines.predicting.judged import UnseenLabels

CERTIFICATE = Certificate(0.5, 1e-4, 0.49, "tol", 0.01, 0.2, 5, 20)


def model(W, names, classes, task="multiclass"):
    return Model(
        task=task,
        loss=losses_of(task)[0],
        penalty="l1",
        hypotheses=ColumnSet(np.arange(len(W)) * 2, names),
        W=W,
        intercept=np.zeros(W.shape[1]),
        classes=np.array(classes),
        n_features=100,
        certificate=CERTIFICATE,
    )


SMALL = model(
    np.array([[4.0, 0.0, -1.0], [0.0, 1.0, 0.0], [-2.0, -8.0, 3.0]]), ("price * area", "é[b]", "c"), ["x", "y", "z"]
)


def text_of(parts):
    out = io.StringIO()
    Console("plain", out=out).page("x", parts, {})
    return out.getvalue()


def test_the_map_of_twenty_classes_splits_no_word_and_loses_no_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    W = np.random.default_rng(0).normal(size=(12, 20)) * 10 + 0.01
    words, classes = [[f"{name}_{j}" for j in range(n)] for name, n in (("a_characteristic_word", 12), ("talk.of", 20))]
    lines = text_of(pages.sparsity_map(model(W, tuple(words), classes), 12)).splitlines()
    assert max(map(len, lines)) <= 80
    start = next(i for i, line in enumerate(lines) if line.startswith("feature "))
    # One line a feature: what does not fit is cut with an ellipsis, never folded into the next line.
    rows = lines[start + 1 : start + 13]
    assert all(row.startswith("a_char") and row.split()[2] == "20" for row in rows)
    # Every class keeps its number of features, beside as much of the words as there is room for.
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("class ")) :]
    assert len(table) >= 21 and all(row.split()[1] == "12" for row in table[1:21])


def test_inspect_prints_words_and_json_holds_every_weight(trained, prints, tells):
    shown = prints("inspect", trained)
    assert max(map(len, shown.splitlines())) <= 100
    assert "\x1b" not in shown
    for word in ("orchard", "word_apple", "apple, birch", "l1/l2 penalty", "How many classes share a feature"):
        assert word in shown
    (found,), saved = tells("inspect", trained), read_model(trained)
    assert len(found["features"]) == len(saved.active) == found["features_used"]
    first = found["features"][0]
    j = saved.active.tolist().index(first["column"])
    assert first["name"] == saved.hypotheses.words()[j]
    assert first["weights"] == {str(c): w for c, w in zip(saved.classes.tolist(), saved.W[j].tolist()) if w}


def test_the_evaluation_page_has_the_figures():
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    found = metrics.summarise(metrics.partial(scores, np.array([0, 1, 2], dtype=np.int32)))
    shown = text_of(evaluate.page(found, SMALL, 10, UnseenLabels({})))
    assert "33.3 % of labels are wrong" in shown
    # Ranks above the right one: 0, 0, and one class above it and one tie.
    assert "0.5000 classes" in shown
    matrix = [line.split() for line in shown.splitlines()[-3:]]
    assert matrix == [["a", "x", "1", ".", "."], ["b", "y", ".", "1", "."], ["c", "z", ".", "1", "."]]


@pytest.mark.parametrize(("share", "shown"), [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.5, "50.0 %"), (0.99991, "99.991 %")])
def test_percentages_do_not_round_to_all_or_nothing(share, shown):
    assert pages.percent(share) == shown
