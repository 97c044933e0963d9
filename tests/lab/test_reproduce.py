"""Reproductions: the small Landsat run end to end, and the parts every reproduction is built from.

Covers: files, verdicts that follow from the CSV files, errors and exit codes, the index, the steps of ``measure``.
Does not cover: whether the paper's claims hold; that is what the full runs find out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import dboost
from dboost.errors import DataError
from lab.__main__ import main
from lab.datasets import landsat as landsat_data
from lab.datasets import mnist as mnist_data
from lab.reproduce import REGISTRY, Entry, claims, landsat, measure, mnist_kernel, output, rounds, rows, updates
from lab.reproduce.base import Report
from lab.reproduce.claims import Check, judged

pytest.importorskip("matplotlib")

HOME = os.environ.get("DBOOST_DATA_HOME")
KEPT = Path(__file__).resolve().parents[2] / "docs" / "papers"
needs_data = pytest.mark.skipif(
    not HOME or not Path(HOME, "landsat").is_dir(), reason="DBOOST_DATA_HOME does not name a folder with landsat"
)
OUTCOMES = {claims.HOLDS, claims.PART, claims.FAILS, claims.OPEN}


def check_folder(folder: Path, name: str) -> dict[str, Any]:
    """Judge the CSV files again, and compare with the page and the marker; returns the marker."""
    marker: dict[str, Any] = json.loads((folder / output.MARKER).read_text(encoding="utf-8"))
    tables = output.read_tables(folder)
    module = REGISTRY[name].load()
    page = (folder / f"{name}.md").read_text(encoding="utf-8")
    assert len(marker["claims"]) == len(module.CLAIMS)
    for claim, saved in zip(module.CLAIMS, marker["claims"], strict=True):
        verdict = claim.judge(tables)
        assert (saved["name"], saved["verdict"]) == (claim.name, verdict.outcome)
        assert verdict.outcome in OUTCOMES
        assert saved["checks"] == [{"said": check.said, "met": check.met} for check in verdict.checks]
        assert f"### {claim.name.replace('_', chr(92) + '_')}: {verdict.outcome}" in page
    for figure in module.FIGURES:
        drawn = (folder / f"{figure.name}.png").read_bytes()
        assert drawn.startswith(b"\x89PNG") and len(drawn) > 2_500
        assert f"{figure.name}.png" in page
    for table in tables:
        assert f"[{table}.csv]({table}.csv)" in page
    assert {path.suffix for path in folder.iterdir()} == {".csv", ".png", ".md", ".json"}
    return marker


def check_twice(table: rows.Rows) -> None:
    """Hypotheses that a fit makes are those of the matrix: both objectives are optimal to their gaps."""
    for line in table:
        apart = abs(line["objective"] - line["objective_explicit"])
        assert apart <= max(line["gap"] * line["objective"], line["gap_explicit"] * line["objective_explicit"])


@needs_data
@pytest.mark.full
@pytest.mark.timeout(400)
def test_landsat_quick_leaves_a_page_whose_verdicts_follow_from_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # so wide that the words of a claim stand in one line
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "landsat"
    assert main(["reproduce", "landsat", "--quick", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    marker = check_folder(out, "landsat")
    assert marker["quick"] and output.SMALL in (out / "landsat.md").read_text(encoding="utf-8")
    for claim in marker["claims"]:
        assert claim["name"] in printed and claim["verdict"] in printed
    paths = output.read_tables(out)["paths"]
    # Of each path the first model is empty, and each is within its certificate.
    empty = rows.Rows(r for r in paths if r["ratio"] == 1.0)
    assert len(empty) == 6 and set(empty.column("features")) == {0.0} and set(empty.column("zero_rows")) == {1.0}
    assert paths.column("gap").max() <= landsat.SMALL.tol
    check_twice(output.read_tables(out)["induced"])
    # A second run is refused before any work; with --force it may replace the first.
    assert main(["reproduce", "landsat", "--quick", "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err


@pytest.mark.full
def test_mnist_kernel_on_its_synthetic_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(n_train: int) -> Any:
        return mnist_data.synthetic()

    monkeypatch.setattr(mnist_data, "load", load)
    monkeypatch.setattr(
        mnist_kernel, "SMALL", mnist_kernel.Sizes(300, 60, 30, 100, (5, 10), 2, 4, 0.05, 5e-3, 10, 12, 5.0)
    )
    assert main(["reproduce", "mnist-kernel", "--quick", "--out", str(tmp_path / "out"), "--log-format", "json"]) == 0
    check_folder(tmp_path / "out", "mnist-kernel")
    tables = output.read_tables(tmp_path / "out")
    check_twice(tables["lazy"])
    # Validation chooses by its own images, not by the test images.
    for line in tables["chosen"]:
        path = tables["paths"].where(**{name: line[name] for name in ("per_class", "draw", "penalty")})
        assert line["validation_coverage"] == path.column("validation_coverage").min()


# ---- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reproduce"], "which experiment?"),
        (["reproduce", "landsatt"], "did you mean 'landsat'?"),
        (["reproduce", "landsat", "--qick"], "did you mean '--quick'?"),
    ],
)
def test_usage_is_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    line = capsys.readouterr().err
    assert line.startswith("dboost: error[usage]: ") and said in line and line.count("\n") == 1


def test_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list"]) == 0
    printed = capsys.readouterr().out
    for name, entry in REGISTRY.items():
        assert name in printed and entry.figures in printed


def test_missing_data_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DBOOST_DATA_HOME", str(tmp_path / "nowhere"))
    assert main(["reproduce", "landsat", "--quick", "--out", str(tmp_path / "out")]) == 3
    assert "DBOOST_DATA_HOME" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


class Stub(Entry):
    """An experiment that measures nothing and claims that one is above zero."""

    def run(self, context: Any) -> Report:
        def judge(tables: rows.Tables) -> claims.Verdict:
            value = tables["numbers"].column("value")[0]
            return judged(Check(f"the value is {value:g}", bool(value > 0)))

        claim = claims.Claim("above zero", "Fig. 0", "One is above zero.", "It is above zero.", judge)
        return Report("Stub", "Nothing.", (claim,), ("One.",), ("All.",), {"numbers": rows.Rows([{"value": 1.0}])}, ())


class Absent(Entry):
    """An experiment without data."""

    def run(self, context: Any) -> Report:
        raise DataError("no such data")


@pytest.fixture
def three_experiments() -> Iterator[None]:
    """A registry with one experiment that fails, one that runs and one that takes hours; its order comes back."""
    stubs = {
        "absent": Absent("landsat", "Fig. 0", "never runs"),
        "stub": Stub("landsat", "Fig. 0", "runs"),
        "hours": Stub("landsat", "Fig. 0", "takes hours", long=True),
    }
    with mock.patch.dict(REGISTRY, stubs, clear=True):
        yield


@pytest.mark.usefixtures("three_experiments")
def test_all_runs_every_experiment_and_the_index_names_the_one_that_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "all", "--out", str(tmp_path)]) == 3
    assert "no such data" in capsys.readouterr().err
    index = (tmp_path / output.INDEX).read_text(encoding="utf-8")
    assert "| absent |  | not run | no such data |" in index
    assert "| [stub](stub/stub.md) | above zero (Fig. 0) | **holds** | the value is 1 |" in index
    assert not (tmp_path / "absent").exists()
    assert not (tmp_path / "hours").exists() and "hours" not in index
    # What has run is not overwritten by chance, and is with --force.
    del REGISTRY["absent"]
    assert main(["reproduce", "all", "--out", str(tmp_path)]) == 2
    assert main(["reproduce", "all", "--out", str(tmp_path), "--force"]) == 0


@pytest.mark.parametrize("name", sorted(path.parent.name for path in KEPT.glob(f"*/{output.MARKER}")))
def test_verdicts_that_the_documentation_keeps_follow_from_the_files_beside_them(name: str) -> None:
    tables, found = output.read_tables(KEPT / name), json.loads((KEPT / name / output.MARKER).read_text("utf-8"))
    verdicts = [(claim.name, claim.judge(tables)) for claim in REGISTRY[name].load().CLAIMS]
    assert found["name"] == name and not found["quick"]
    assert [(claim["name"], claim["verdict"]) for claim in found["claims"]] == [(n, v.outcome) for n, v in verdicts]
    said = [[check["said"] for check in claim["checks"]] for claim in found["claims"]]
    assert said == [[check.said for check in verdict.checks] for _, verdict in verdicts]


def test_the_documentation_keeps_what_no_series_runs() -> None:
    assert all((KEPT / name / output.MARKER).exists() for name, entry in REGISTRY.items() if entry.long)


# ---- the parts -----------------------------------------------------------------------------------------------------


def test_rows_come_back_from_csv_to_the_last_bit() -> None:
    table = rows.Rows([{"a": 1 / 3, "b": "l1/l2", "c": None}, {"a": 1e-300, "b": "x, y", "c": True, "d": 7}])
    again = rows.Rows.from_csv(table.to_csv())
    assert [dict(r) for r in again] == [
        {"a": 1 / 3, "b": "l1/l2", "c": None, "d": None},
        {"a": 1e-300, "b": "x, y", "c": True, "d": 7},
    ]
    with pytest.raises(TypeError, match="holds list"):
        rows.Rows([{"a": [1]}])
    with pytest.raises(KeyError, match="no column 'z'"):
        table.column("z")


def test_means_have_the_standard_error_of_the_mean() -> None:
    table = rows.Rows([{"p": "l1", "e": 1.0}, {"p": "l1", "e": 3.0}, {"p": "l2", "e": 5.0}])
    first, second = table.means(("p",), ("e",))
    assert (first["repeats"], first["e"], first["e_se"]) == (2, 2.0, 1.0)
    assert (second["repeats"], second["e"], second["e_se"]) == (1, 5.0, None)


@pytest.mark.parametrize(
    ("met", "outcome"),
    [
        ((True, True), claims.HOLDS),
        ((True, None), claims.HOLDS),
        ((True, None, None), claims.PART),
        ((False, None, None), claims.FAILS),
        ((True, True, None, None), claims.HOLDS),
        ((True, False), claims.PART),
        ((False, None), claims.FAILS),
        ((None,), claims.OPEN),
        ((), claims.OPEN),
    ],
)
def test_the_outcome_follows_from_the_checks(met: tuple[bool | None, ...], outcome: str) -> None:
    assert judged(*(Check("", one) for one in met)).outcome == outcome


@pytest.mark.parametrize(
    ("level", "cost"), [(0.5, 2.0), (0.35, 5.0), (0.45, 2.5), (0.1, None), (0.9, None), (0.3, 6.0)]
)
def test_interpolation_reads_the_cost_of_a_level(level: float, cost: float | None) -> None:
    # The point at 4 is worse than the one before it: more cost does not take away what was reached.
    found = measure.interpolated([1, 2, 3, 4, 6], [0.8, 0.5, 0.4, 0.6, 0.3], level)
    assert found == (None if cost is None else pytest.approx(cost))


def test_draws_hold_equally_many_of_each_class_and_smaller_ones_are_nested() -> None:
    y = np.repeat(["a", "b", "c"], [40, 30, 5])
    small = measure.draw_per_class(y, 10, np.random.default_rng(3))
    large = measure.draw_per_class(y, 20, np.random.default_rng(3))
    assert np.unique(y[small], return_counts=True)[1].tolist() == [10, 10, 5]
    assert set(small) < set(large) and len(set(large)) == len(large) == 45


def test_jobs_keep_their_order_and_an_error_ends_them() -> None:
    def job(number: int) -> Callable[[], int]:
        return lambda: 1 // (3 - number)

    assert measure.in_parallel([job(2), job(1)]) == [1, 0]
    with pytest.raises(ZeroDivisionError):
        measure.in_parallel([job(2), job(3), job(1)])


def test_staged_follows_a_fit_to_its_end() -> None:
    data = landsat_data.synthetic()
    X, X_test = data.X / 157.0, data.X_test / 157.0
    staged = measure.Staged(lambda model: measure.judge_classes(model, X_test, data.y_test), update="newton")
    model = dboost.BoostedClassifier(penalty="l1/l2", alpha=0.01, tol=1e-3)
    measure.followed(model, staged, X, data.y)
    found = staged.rows
    assert [r["round"] for r in found] == list(range(1, model.n_iter_ + 1))
    assert np.all(np.diff(found.column("seconds")) > 0)
    last = found[-1]
    assert last["active_rows"] == len(model.active_features_) and last["objective"] == model.objective_
    assert last["error"] == pytest.approx(1.0 - model.score(X_test, data.y_test))


@pytest.mark.parametrize("update", updates.UPDATES)
def test_the_papers_loop_adds_one_row_a_round_and_never_raises_the_objective(update: str) -> None:
    data = landsat_data.synthetic()
    X = data.X / 157.0
    asked = rounds.Rounds(update, "template", "l1/linf", alpha=0.02, rounds=15, seconds=60.0)
    found = rounds.follow(X, data.y, asked, lambda active, W, intercept: {"largest": float(np.abs(W).max(initial=0.0))})
    assert [r["round"] for r in found] == list(range(1, 16))
    assert np.all(np.diff(np.concatenate([[0.0], found.column("active_rows")])) <= 1)
    assert np.all(np.diff(found.column("objective")) <= 1e-12)
    assert found[-1]["largest"] > 0


def test_shares_count_a_product_of_two_values_twice() -> None:
    W = np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0]])
    found = landsat.shares(W, np.array([1, 2, 2]))
    assert found == {"features": 2, "zero_entries": pytest.approx(0.5), "zero_rows": pytest.approx(0.4)}
