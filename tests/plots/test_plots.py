"""Plots show the numbers they are given, name their axes, and refuse what they cannot draw."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

from dboost.errors import UsageError
from dboost.hypotheses.columns import ColumnSet
from tests.model.models import make

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from dboost import plots  # noqa: E402

RECORDS = [
    {"round": i + 1, "seconds": 0.5, "passes": 3 * i, "gap": g, "objective": 1.0 / (i + 1)}
    for i, g in enumerate([float("nan"), 0.5, 0.1, 0.0])
]
STAGES = [
    {"round": i, "seconds": 2.0 * i, "error": 0.5 / i, "sparsity": 0.9, "row_sparsity": 1 - i / 10, "coverage": 1 / i}
    for i in (1, 2, 3)
]


def model(W, names, alpha=0.1, task="multiclass"):
    made = make(task)
    held = ColumnSet(np.arange(len(names)), tuple(names))
    return replace(made, hypotheses=held, W=W, certificate=replace(made.certificate, alpha=alpha))


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def lines(ax):
    return [(line.get_label(), *(list(map(float, d)) for d in line.get_data())) for line in ax.get_lines()]


def drawn(ax, tmp_path):
    """Draw it, so that what only fails then fails here."""
    ax.figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 2000
    return ax


def test_progress_leaves_out_rounds_without_a_gap(tmp_path):
    ax = drawn(plots.plot_progress({"one": SimpleNamespace(history_=RECORDS), "two": RECORDS}), tmp_path)
    assert lines(ax) == [("one", [1.0, 1.5], [0.5, 0.1]), ("two", [1.0, 1.5], [0.5, 0.1])]
    assert ax.get_yscale() == "log" and ax.get_xlabel() == "Time [s]"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]


@pytest.mark.parametrize(
    ("against", "expected"), [("seconds", [0.5, 1.0, 1.5, 2.0]), ("rounds", [1, 2, 3, 4]), ("passes", [0, 3, 6, 9])]
)
def test_progress_against_time_rounds_and_passes(against, expected):
    ax = plots.plot_progress(RECORDS, quantity="objective", against=against)
    ((_, x, y),) = lines(ax)
    assert x == expected and y == [1.0, 0.5, 1 / 3, 0.25] and ax.get_legend() is None


def test_staged_measures(tmp_path):
    ax = drawn(plots.plot_staged({"l1": STAGES}, log_time=True), tmp_path)
    assert lines(ax) == [("l1", [2.0, 4.0, 6.0], [0.5, 0.25, 0.5 / 3])] and ax.get_xscale() == "log"
    ax = plots.plot_staged(STAGES, quantity="row_sparsity", against="rounds")
    assert lines(ax)[0][1] == [1, 2, 3] and ax.get_ylim()[1] > 0.9 and ax.get_xlabel() == "Round"


def test_coverage_is_drawn_from_left_to_right(tmp_path):
    ax = drawn(plots.plot_coverage({"l1": STAGES, "l1/linf": STAGES[:2]}), tmp_path)
    assert lines(ax)[0] == ("l1", [0.7, 0.8, 0.9], [1 / 3, 0.5, 1.0])
    assert "never computed" in ax.get_xlabel()


def make_path():
    rows = [np.zeros((0, 2)), np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [0.5, -3.0]])]
    names = [[], ["x1"], ["x1", "x2"]]
    return SimpleNamespace(models=[model(W, n, 0.1 / 2**i) for i, (W, n) in enumerate(zip(rows, names))])


@pytest.mark.parametrize(("quantity", "expected"), [("features", [0, 1, 2]), ("entries", [0, 1, 3])])
def test_a_path_counts_features_and_weights(quantity, expected, tmp_path):
    ax = drawn(plots.plot_path(make_path(), quantity=quantity), tmp_path)
    ((_, x, y),) = lines(ax)
    assert (x, y) == ([0.1, 0.05, 0.025], expected)
    left, right = ax.get_xlim()
    assert left > right and ax.get_xscale() == "log"


def test_a_path_names_its_largest_features(tmp_path):
    ax = drawn(plots.plot_path(make_path(), quantity="weights", top=1), tmp_path)
    found = {label: y for label, _, y in lines(ax)}
    assert found.pop("x2") == [0.0, 0.0, 3.0] and list(found.values()) == [[0.0, 1.0, 2.0]]


def test_the_map_shows_the_largest_features_and_leaves_zeros_blank(tmp_path):
    W = np.array([[0.0, 0.1, 0.0], [2.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    held = model(W, ["small", "large", "zero"])
    ax = drawn(plots.plot_sparsity_map(SimpleNamespace(model_=held)), tmp_path)
    shown = ax.collections[0].get_array()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["large", "small"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "ü"]
    np.testing.assert_array_equal(shown.mask, [[False, True, False], [True, False, True]])
    np.testing.assert_array_equal(shown.filled(0), W[[1, 0]])
    assert plots.plot_sparsity_map(held, top=1).get_ylabel() == "Feature, the largest 1 of 2"
    for task, said in (("binary", "yes"), ("regression", "target")):
        axes = plots.plot_sparsity_map(model(W[:, 1:2], ["small", "large", "zero"], task=task))
        assert [text.get_text() for text in axes.get_xticklabels()] == [said]


def test_nonsense_is_refused():
    for call, message in [
        (lambda: plots.plot_progress({}), "empty"),
        (lambda: plots.plot_progress([]), "no records"),
        (lambda: plots.plot_progress(3), "holds an int"),
        (lambda: plots.plot_progress(RECORDS, quantity="gaps"), "no record has 'gaps'"),
        (lambda: plots.plot_progress(RECORDS, against="days"), "against='days'"),
        (lambda: plots.plot_staged(STAGES, quantity="loss"), "no record has 'loss'"),
        (lambda: plots.plot_coverage(STAGES, against="zeros"), "against='zeros'"),
        (lambda: plots.plot_path(STAGES), "without models"),
        (lambda: plots.plot_path(make_path(), quantity="size"), "quantity='size'"),
        (lambda: plots.plot_sparsity_map(STAGES), "a list has no model"),
        (lambda: plots.plot_sparsity_map(model(np.zeros((0, 3)), [])), "no feature"),
        (lambda: plots.plot_progress(RECORDS, ax=3), "ax is an int"),
    ]:
        with pytest.raises(UsageError, match=message):
            call()


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(UsageError, match=r"dboost\[plots\]"):
        plots.plot_progress(RECORDS)


def test_a_confusion_shades_by_the_share_of_the_right_class_and_refuses_other_shapes() -> None:
    axes = plots.plot_confusion([[8, 2], [0, 0]], ["a", "b"])
    assert [text.get_text() for text in axes.texts] == ["8", "2"]
    np.testing.assert_allclose(np.ravel(axes.collections[0].get_array()), [0.8, 0.2, 0.0, 0.0])
    with pytest.raises(UsageError, match=r"shape \(2, 2\) for 3 labels"):
        plots.plot_confusion([[8, 2], [1, 9]], ["a", "b", "c"])


def test_the_life_of_features_is_that_of_the_history() -> None:
    records = [{"round": r, "features_in": 4 - r, "features_out": r - 1, "features": 2 + r} for r in (1, 2, 3)]
    axes = plots.plot_feature_life(records)
    assert [bar.get_height() for bar in axes.patches] == [3, 2, 1, 0, -1, -2]
    assert axes.lines[0].get_ydata().tolist() == [3, 4, 5]
    with pytest.raises(UsageError, match="no record has 'features_in'"):
        plots.plot_feature_life([{"round": 1}])


def test_calibration_counts_each_example_in_its_bin_and_its_interval_holds_the_share() -> None:
    rng = np.random.default_rng(0)
    said = rng.random(500)
    right = rng.random(500) < said
    axes = plots.plot_calibration(said, right, bins=5)
    shown = axes.lines[1]
    for b, (x, y) in enumerate(zip(shown.get_xdata(), shown.get_ydata(), strict=True)):
        mine = (said >= b / 5) & (said < (b + 1) / 5)
        assert x == pytest.approx(said[mine].mean()) and y == pytest.approx(right[mine].mean())
    # at 60 of 100 Wilson's interval is known: 0.502 to 0.691
    axes = plots.plot_calibration(np.full(100, 0.6), np.arange(100) < 60, bins=1)
    (_, low), (_, high) = axes.containers[0][2][0].get_segments()[0]
    assert (round(low, 3), round(high, 3)) == (0.502, 0.691)
    with pytest.raises(UsageError, match="outside"):
        plots.plot_calibration([1.5], [True])


def test_a_curve_of_cross_validation_shows_its_table_and_the_chosen_strength() -> None:
    def curve(table, quantity):
        return plots.plot_cv(SimpleNamespace(cv_results_=table, alpha_=0.1), quantity=quantity)

    table = [{"alpha": a, "mean_loss": a, "se_loss": 0.1, "mean_error": 2 * a, "se_error": 0.2} for a in (0.4, 0.1)]
    axes = curve(table, "error")
    assert axes.containers[0].lines[0].get_ydata().tolist() == [0.8, 0.2]
    assert axes.lines[-1].get_xdata() == [0.1, 0.1]
    with pytest.raises(UsageError, match="no record has 'mean_test_score'"):
        curve(table, "score")
    scored = [row | {"mean_test_score": 1.0 - row["alpha"], "se_test_score": 0.1} for row in table]
    axes = curve(scored, "score")
    assert axes.containers[0].lines[0].get_ydata().tolist() == [0.6, 0.9]
    with pytest.raises(UsageError, match="has no cv_results_"):
        plots.plot_cv(object())


def test_stability_shows_every_feature_and_names_the_selected_ones(tmp_path) -> None:
    selection = SimpleNamespace(
        alphas_=[0.4, 0.2, 0.1],
        frequencies_=[[0.5, 0.0, 0.0, 0.0], [1.0, 0.7, 0.1, 0.0], [1.0, 0.6, 0.9, 0.0]],
        stability_=[1.0, 0.7, 0.1, 0.0],
        n_strengths_=2,
        selected_=[0, 1],
        support_names_=["price", "area"],
        threshold=0.6,
    )
    ax = drawn(plots.plot_stability(selection), tmp_path)
    grey, price, area, threshold = lines(ax)
    # a feature that no half uses has no line, and one that comes with a strength that is not used is not selected
    assert grey[2] == [0.0, 0.1, 0.9]
    assert price == ("price", [0.4, 0.2, 0.1], [0.5, 1.0, 1.0]) and area[2] == [0.0, 0.7, 0.6]
    assert threshold[0] == "threshold 0.6" and threshold[2] == [0.6, 0.6]
    left, right = ax.get_xlim()
    (shade,) = ax.patches
    assert left > right and ax.get_xscale() == "log" and 0.1 < shade.get_x() < 0.2
    assert [text.get_text() for text in ax.get_legend().get_texts()][:2] == ["price", "area"]
    assert [label for label, *_ in lines(plots.plot_stability(selection, top=1)) if label[0] != "_"][0] == "price"
    selection.n_strengths_ = 3
    assert not plots.plot_stability(selection).patches
    with pytest.raises(UsageError, match="is an int without frequencies_"):
        plots.plot_stability(3)
