"""The ShareBoost reproductions: their constructions, and verdicts that follow from the tables, without any data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dboost
from lab.__main__ import main
from lab.datasets import characters, pendigits, segmentation
from lab.reproduce import REGISTRY, claims, shareboost_sharing, shareboost_synthetic, shareboost_uci
from lab.reproduce import shareboost_uci_claims as uci_claims
from lab.reproduce.base import Context
from lab.reproduce.rows import Rows
from pipelines.console import Console
from tests.lab.test_reproduce import check_folder

pytest.importorskip("matplotlib")


def test_the_constructions_are_those_of_the_paper() -> None:
    X, y = shareboost_synthetic.first(3)
    assert X.shape == (16, 11) and set(y.tolist()) == set(range(8))
    assert set(np.abs(X[:, :3]).ravel().tolist()) == {1.0} and len(np.unique(X[:8, :3], axis=0)) == 8
    np.testing.assert_array_equal(X[:8, 3:], 6.0 * np.eye(8))
    X, y = shareboost_synthetic.second(2, 3, 10)
    assert X.shape == (40, 6)
    zero = (X.reshape(40, 3, 2) == 0).all(axis=2)
    assert zero.sum() == 8 and zero.sum(axis=1).max() == 1
    kept = X.reshape(40, 3, 2)[~zero]
    np.testing.assert_array_equal(kept, shareboost_synthetic.signs(2)[np.repeat(y, 3)[~zero.ravel()]])


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_synthetic_page_follows_from_its_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page"
    assert main(["reproduce", "shareboost-synthetic", "--quick", "--out", str(out)]) == 0
    marker = check_folder(out, "shareboost-synthetic")
    assert all(claim["name"] in capsys.readouterr().out for claim in marker["claims"][:1])
    assert marker["claims"][0]["verdict"] == claims.HOLDS


def shared(factor: float) -> Rows:
    """Curves on which one-vs-rest needs `factor` times the features of ShareBoost for each class added."""
    lines = []
    for k in (2, 4, 8):
        for method, need in (("ShareBoost", 4 + k), ("one-vs-rest", 4 + factor * k)):
            for features, error in ((need / 2, 0.5), (need, 0.05)):
                lines.append(
                    {"data": "digits", "order": 0, "classes": k, "method": method, "features": features, "error": error}
                )
    return Rows(lines)


@pytest.mark.parametrize("factor,outcome", [(5.0, claims.HOLDS), (1.0, claims.FAILS)])
def test_sharing_is_judged_by_what_is_needed(factor: float, outcome: str) -> None:
    curves = shared(factor)
    needed = shareboost_sharing.needed(curves)
    line = needed.where(level=0.2, classes=8, method="ShareBoost")[0]
    assert line["features"] == pytest.approx(6 + 6 * (0.5 - 0.2) / 0.45)
    assert shareboost_sharing.judge_fewer({"curves": curves, "needed": needed}).outcome == outcome


def test_printed_characters_are_shared_by_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(characters, "FACES", ("DejaVuSans", "cmr10"))
    data = characters.load(per_face=3)
    assert set(data.y) | set(data.y_test) == set(characters.CHARACTERS)
    assert data.X.shape[1] == 400 and len(data.y) + len(data.y_test) == 36 * 2 * 3
    # ink is in the middle, and two images of a character in a face differ
    assert data.X.reshape(-1, 20, 20)[:, 5:15, 5:15].mean() > 2.0 * data.X.mean()
    assert np.array_equal(characters.load(per_face=3).X, data.X)
    assert not np.array_equal(characters.load(per_face=3, seed=1).X, data.X)
    patches = dboost.Patches(templates=6, size=7)
    problem = shareboost_sharing.Problem("characters", data.X, data.y, data.X_test, data.y_test, (2, 3), 4, 3, patches)
    found = shareboost_sharing.measured(problem, 1, Context(Console("plain"), quick=True))
    for k in (2, 3):
        ours, theirs = (found.where(classes=k, method=method) for method in shareboost_sharing.METHODS)
        assert ours.column("features").tolist() == [1, 2, 3, 4] and theirs.column("features").max() <= 3 * k
        assert ours[-1]["error"] < 0.5


def curve(method: str, errors: dict[int, float], **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "data": "set", "draw": 0, "method": method, "features": count, "error": error, "test_rows": 10_000,
            "cpu_seconds": 1.0, "round": count, **more,
        }
        for count, error in errors.items()
    ]  # fmt: skip


def test_curves_are_judged_as_the_claims_say() -> None:
    plain = curve("ShareBoost, plain", {5: 0.3, 10: 0.2, 20: 0.1, 50: 0.2})
    ridge = curve("ShareBoost, ridge", {5: 0.3, 10: 0.2, 20: 0.11, 50: 0.1})
    path = curve("l1/linf", {0: 0.9, 5: 0.6, 10: 0.4, 20: 0.2, 50: 0.15})
    tables = {"curves": Rows(plain + ridge + path)}
    judges = uci_claims.judge_fast, uci_claims.judge_overfits, uci_claims.judge_ridge
    assert [judge(tables).outcome for judge in judges] == [claims.HOLDS] * 3
    worse = {"curves": Rows(curve("ShareBoost, plain", {5: 0.7, 10: 0.5, 20: 0.3, 50: 0.1}) + ridge + path)}
    assert [judge(worse).outcome for judge in judges] == [claims.FAILS] * 3
    assert uci_claims.at_most(tables["curves"].where(method="l1/linf"), 15) == 0.4
    stumps = curve("ShareBoost", {5: 0.2, 10: 0.1}) + curve("JointBoost", {5: 0.4, 10: 0.3}, cpu_seconds=5.0)
    assert uci_claims.judge_joint({"stumps": Rows(stumps)}).outcome == claims.HOLDS
    slow = curve("ShareBoost", {5: 0.5, 10: 0.4}, cpu_seconds=9.0) + stumps[2:]
    assert uci_claims.judge_joint({"stumps": Rows(slow)}).outcome == claims.FAILS


def test_products_leave_out_squares_and_constants() -> None:
    data = pendigits.synthetic(0)
    made = shareboost_uci.multiplied(data)
    assert made.X.shape[1] == 16 * 15 // 2 and np.abs(made.X).max() <= 1.0
    other = segmentation.synthetic(0)
    other.X[:, 3] = 5.0
    assert shareboost_uci.multiplied(other).X.shape[1] == 18 * 17 // 2


def test_the_pages_are_named() -> None:
    for name in ("shareboost-synthetic", "shareboost-sharing", "shareboost-uci"):
        module = REGISTRY[name].load()
        assert module.CLAIMS and module.FIGURES
