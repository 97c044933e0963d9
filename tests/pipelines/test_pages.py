"""What a person reads: the sparsity map and the figures of an evaluation."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from dboost import metrics
from dboost.hypotheses.columns import ColumnSet
from dboost.model.fitted import Certificate, Model, read_model
from dboost.model.tasks import TASKS
from pipelines import pages
from pipelines.cli import main
from pipelines.commands import evaluate
from pipelines.console import Console

CERTIFICATE = Certificate(0.5, 1e-4, 0.49, "tol", 0.01, 0.2, 5, 20)


def model(W: np.ndarray, names: tuple[str, ...], classes: list[str], task: str = "multiclass") -> Model:
    return Model(
        task=task,
        loss=TASKS[task][0],
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


def text_of(parts: list[object], encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace")
    Console("plain", out=out).page("x", parts, {})
    out.flush()
    return raw.getvalue().decode(encoding)


def test_the_map_shows_who_shares_a_feature() -> None:
    assert pages.map_row(SMALL.W[0], pages.BLOCKS) == "█·-"
    assert pages.map_row(SMALL.W[2], pages.PLAIN_BLOCKS) == "-=+"
    assert pages.map_row(np.zeros(3), pages.BLOCKS) == "···"
    shown = text_of(pages.sparsity_map(SMALL, 10))
    lines = shown.splitlines()
    # The strongest feature first; names are text, never markup.
    assert lines[2].split()[:4] == ["c", "8", "3", "-=▄"]
    assert lines[3].startswith("price * area") and "█·-" in lines[3]
    assert "é[b]" in lines[4]
    assert "a=x  b=y  c=z" in shown


def test_two_classes_share_with_opposite_signs() -> None:
    binary = model(np.array([[2.0], [-1.0]]), ("good", "bad"), ["no", "yes"], task="binary")
    np.testing.assert_array_equal(pages.both_sides(binary), [[-2.0, 2.0], [1.0, -1.0]])
    assert "yes" in text_of(pages.sparsity_map(binary, 10)).splitlines()[2]


def test_the_counts_of_sharing_are_of_all_features() -> None:
    lines = text_of([pages.sharing(SMALL)]).splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [["1", "1"], ["2", "1"], ["3", "1"]]


def test_many_classes_are_counted_not_drawn() -> None:
    rng = np.random.default_rng(0)
    W = rng.normal(size=(60, 172)) * (rng.random((60, 172)) < 0.3)
    many = model(W, tuple(f"a_rather_long_feature_name_{j}" for j in range(60)), [f"class.{r:03d}" for r in range(172)])
    shown = text_of(pages.sparsity_map(many, 20))
    assert max(map(len, shown.splitlines())) <= 100
    assert "█" not in shown and "class." in shown
    total = sum(
        int(line.split()[1]) for line in shown.split("share a feature")[1].split("Classes")[0].split("\n")[2:-2]
    )
    assert total == 60


def test_pages_fit_a_stream_without_block_characters() -> None:
    blocks = pages.blocks_for("ascii")
    assert blocks == pages.PLAIN_BLOCKS and pages.blocks_for("utf-8") == pages.BLOCKS
    assert "#.-" in text_of(pages.sparsity_map(SMALL, 10, blocks), encoding="ascii")


def test_an_empty_model_says_so() -> None:
    empty = model(np.zeros((0, 3)), (), ["x", "y", "z"])
    assert "No feature is used" in text_of(pages.sparsity_map(empty, 10))
    assert "0 of 100" in text_of([pages.facts(pages.model_facts(empty))])


def test_inspect_prints_words_and_json_holds_every_weight(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(trained)]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    assert "\x1b" not in shown
    for word in ("orchard", "word_apple", "apple, birch", "l1/l2 penalty", "How many classes share a feature"):
        assert word in shown
    assert main(["inspect", str(trained), "--log-format", "json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found, saved = json.loads(line), read_model(trained)
    assert len(found["features"]) == len(saved.active) == found["features_used"]
    first = found["features"][0]
    j = saved.active.tolist().index(first["column"])
    assert first["name"] == saved.hypotheses.words()[j]
    assert first["weights"] == {str(c): w for c, w in zip(saved.classes.tolist(), saved.W[j].tolist()) if w}


def test_the_evaluation_page_has_the_figures() -> None:
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    found = metrics.summarise(metrics.partial(scores, np.array([0, 1, 2], dtype=np.int32)))
    shown = text_of(evaluate.page(found, SMALL, 10))
    assert "33.3 % of labels are wrong" in shown
    # Ranks above the right one: 0, 0, and one class above it and one tie.
    assert "0.5000 classes" in shown
    matrix = [line.split() for line in shown.splitlines()[-3:]]
    assert matrix == [["a", "x", "1", ".", "."], ["b", "y", ".", "1", "."], ["c", "z", ".", "1", "."]]


def test_many_classes_list_the_most_frequent_mistakes() -> None:
    k = 20
    y = np.repeat(np.arange(k), 3).astype(np.int32)
    scores = np.eye(k)[y]
    scores[:2] = np.eye(k)[1]
    wide = model(np.ones((1, k)), ("f",), [f"c{r}" for r in range(k)])
    found = metrics.summarise(metrics.partial(scores, y))
    lines = text_of([pages.confusion_table(found, wide, 5)]).splitlines()
    assert lines[2].split() == ["c0", "c1", "2", "66.7", "%"] and len(lines) == 3


def test_tasks_are_listed_with_the_worst_first() -> None:
    tasks = model(np.ones((1, 2)), ("f",), ["rain", "wind"], task="multitask")
    found = metrics.summarise(
        metrics.partial(np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([[1, -1], [1, 0]], np.int8))
    )
    lines = text_of(evaluate.page(found, tasks, 5)).splitlines()
    assert lines[-2].split()[:3] == ["wind", "100.0", "%"] and lines[-1].split()[:3] == ["rain", "0.0", "%"]


@pytest.mark.parametrize(("share", "shown"), [(0.0, "0.0 %"), (1.0, "100.0 %"), (0.5, "50.0 %"), (0.99991, "99.991 %")])
def test_percentages_do_not_round_to_all_or_nothing(share: float, shown: str) -> None:
    assert pages.percent(share) == shown
