"""Digits by ShareBoost: the quick runs on small twins, the judges on made-up paths, deformations.

Covers: files and verdicts that follow from the CSV files. Does not cover: whether the paper's claims hold.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dboost
from lab.__main__ import main
from lab.datasets import deform
from lab.datasets import mnist as mnist_data
from lab.datasets.base import Dataset
from lab.reproduce import (
    claims,
    output,
    rows,
    shareboost_deformed,
    shareboost_digits,
    shareboost_digits_claims,
    shareboost_drawn,
    shareboost_piecewise,
    shareboost_piecewise_all,
)
from tests.lab.test_reproduce import check_folder

pytest.importorskip("matplotlib")


def strokes(n_train: int = 300) -> Dataset:
    """Images of 12 x 12 pixels with one of three strokes somewhere in the middle."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    images = np.zeros((400, 12, 12))
    for image, code in zip(images, y, strict=True):
        a, b = rng.integers(2, 6, 2)
        patch = [np.eye(5), np.eye(5)[::-1], np.outer(np.ones(5), np.eye(5)[2])][code]
        image[a : a + 5, b : b + 5] = patch * rng.uniform(0.5, 1.0)
    X = csr_matrix(images.reshape(400, -1))
    names = np.asarray([f"pixel {i}" for i in range(144)])
    return Dataset("strokes", X[:n_train], y[:n_train], X[300:], y[300:], names, "multiclass")


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist_data, "load", strokes)
    small = shareboost_digits.Sizes(300, 5, 12, 2, 1, 80)
    monkeypatch.setattr(shareboost_digits, "SMALL", small)
    monkeypatch.setattr(shareboost_deformed, "SMALL", replace(small, images=100, validation=30))
    piecewise = shareboost_piecewise.Sizes(200, 8, 6, 4, 3, 80, tried=3, tuned_on=200)
    monkeypatch.setattr(shareboost_piecewise, "SMALL", piecewise)
    monkeypatch.setattr(shareboost_piecewise_all, "SMALL", replace(piecewise, tried=2, tuned_on=120))
    monkeypatch.setattr(shareboost_digits, "RIDGES", (1e-5, 1e-4, 1e-3))
    few = {"pyramid": shareboost_digits.PYRAMID, "narrow": {"masks": 4, "spread": 0.5}}
    monkeypatch.setattr(shareboost_digits, "KINDS", few)


def test_digits(tmp_path: Path, twin: None) -> None:
    assert main(["reproduce", "shareboost-digits", "--quick", "--out", str(tmp_path / "out")]) == 0
    check_folder(tmp_path / "out", "shareboost-digits")
    tables = output.read_tables(tmp_path / "out")
    assert tables["path"].column("features").tolist() == [1, 2, 3, 4, 5]
    assert tables["path"][-1]["test_error"] < tables["path"][0]["test_error"]
    assert tables["path"][-1]["test_error"] < 0.1
    assert tables["cost"][0]["feature_bytes"] == 300 * 12 * 16
    assert len(tables["features"]) == 5 and tables["features"][0]["name"] == tables["path"][0]["entered"]
    assert len(tables["wrong"]) == round(100 * tables["path"][-1]["test_error"])
    # 6 x 6 positions of a template of 7 x 7, each template once, three classes
    assert 0 < tables["cost"][0]["operations"] <= 5 * (36 * 49 + 36 + 3)
    tried = tables["validation"]
    assert [row["kind"] for row in tried][:2] == ["pyramid", "narrow"]
    assert {1e-5, 1e-4, 1e-3} == set(tried.column("ridge"))


@pytest.mark.full
def test_the_same_command_goes_on_from_its_checkpoints(
    tmp_path: Path, twin: None, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reproduce", "shareboost-digits", "--quick", "--checkpoint", str(tmp_path / "kept")]
    assert main([*command, "--out", str(tmp_path / "first")]) == 0
    # As if the run had been stopped in the fit that follows the validation.
    (tmp_path / "kept" / "whole").unlink()
    assert main([*command, "--out", str(tmp_path / "second")]) == 0
    assert main([*command, "--out", str(tmp_path / "third")]) == 0
    first, second, third = (output.read_tables(tmp_path / name) for name in ("first", "second", "third"))
    for name in ("validation", "features", "wrong"):
        assert list(first[name]) == list(second[name]) == list(third[name])
    without_time = [[{**row, "seconds": None} for row in tables["path"]] for tables in (first, second, third)]
    assert without_time[0] == without_time[1] == without_time[2]
    # Seconds never come twice, so that equal ones were read from the checkpoint.
    assert list(first["path"].column("seconds")) != list(second["path"].column("seconds"))
    assert list(third["path"].column("seconds")) == list(second["path"].column("seconds"))


@pytest.mark.parametrize("name", ["shareboost-sharing", "seeds"])
def test_a_checkpoint_that_would_be_ignored_is_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = str(tmp_path / "kept")
    assert main(["reproduce", name, "--quick", "--checkpoint", kept, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert f"{name} keeps no checkpoints" in said and "those that do: shareboost-digits" in said
    assert not (tmp_path / "out").exists()


def test_every_kind_has_the_masks_of_the_paper() -> None:
    for kind in shareboost_digits.KINDS.values():
        assert sum(lattice.side**2 for lattice in dboost.Patches(**kind).lattices) == 16
    assert shareboost_digits.told("lattice") == "masks 4 x 4 of 1 spacings"
    assert shareboost_digits.told("lattice of cosines") == "masks 4 x 4 of 1 spacings, contrast 0.5"


def test_deformed_digits(tmp_path: Path, twin: None) -> None:
    assert main(["reproduce", "shareboost-deformed", "--quick", "--out", str(tmp_path / "out")]) == 0
    check_folder(tmp_path / "out", "shareboost-deformed")
    assert output.read_tables(tmp_path / "out")["cost"][0]["images"] == 600


def test_pieces(tmp_path: Path, twin: None) -> None:
    assert main(["reproduce", "shareboost-piecewise", "--quick", "--out", str(tmp_path / "out")]) == 0
    check_folder(tmp_path / "out", "shareboost-piecewise")
    tables = output.read_tables(tmp_path / "out")
    assert tables["path"].column("pieces").tolist() == [1, 2, 3]
    (chosen,) = tables["machine"].where(chosen=True)
    assert chosen["error"] == tables["machine"].column("error").min() and chosen["different_vectors"] <= 200


def test_pieces_whose_ridge_smaller_fits_choose(
    tmp_path: Path, twin: None, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    command = ["reproduce", "shareboost-piecewise-all", "--quick", "--checkpoint", str(kept)]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    check_folder(tmp_path / "out", "shareboost-piecewise-all")
    tables = output.read_tables(tmp_path / "out")
    assert tables["path"].column("pieces").tolist() == [1, 2, 3]
    # Every ridge that was tried has a fit of its own, and the fit that is shown is none of them.
    tried = {f"ridge {ridge:g}" for ridge in tables["validation"].column("ridge")}
    assert {path.name for path in kept.iterdir() if path.suffix != ".previous"} == {"whole", *tried}
    page = (tmp_path / "out" / "shareboost-piecewise-all.md").read_text(encoding="utf-8")
    assert "by validation of fits of 2 rounds" in page and "of machines of 120 training images" in page


def path_of(errors: dict[int, float]) -> Any:
    path = rows.Rows({"features": t, "test_error": e} for t, e in errors.items())
    return {"path": path, "cost": rows.Rows([{"operations": 1e8 * min(errors.values()), "predict_seconds": 1e-5}])}


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({75: 0.0099, 266: 0.0071}, [claims.HOLDS, claims.HOLDS, claims.HOLDS, claims.HOLDS]),
        ({75: 0.0100, 266: 0.0072}, [claims.FAILS, claims.FAILS, claims.HOLDS, claims.HOLDS]),
        ({75: 0.0300, 266: 0.0060}, [claims.FAILS, claims.HOLDS, claims.FAILS, claims.HOLDS]),
        ({10: 0.1}, [claims.OPEN, claims.OPEN, claims.OPEN, claims.FAILS]),
    ],
)
def test_judges(errors: dict[int, float], expected: list[str]) -> None:
    assert [c.judge(path_of(errors)).outcome for c in shareboost_digits_claims.CLAIMS] == expected


def test_pictures_of_numbers_are_read_again() -> None:
    values = np.linspace(-1.0, 1.0, 12)
    again = shareboost_drawn.unpacked(shareboost_drawn.packed(values, -1.0, 1.0), 4)
    assert again.shape == (3, 4)
    np.testing.assert_allclose(2.0 * again.ravel() - 1.0, values, atol=1.0 / 255.0)


def test_operations_are_counted_once_for_each_template() -> None:
    X, y = strokes().X, strokes().y
    patches = dboost.Patches(templates=6, masks=2, spread=0.3)
    model = dboost.ShareBoostClassifier(hypotheses=patches, max_rounds=4).fit(X, y).model_
    sees = model.hypotheses.bank.gains > 0.0
    pairs = list(zip(model.hypotheses.slots.tolist(), model.hypotheses.masks.tolist(), strict=True))
    places = {(slot, p) for slot, mask in pairs for p in np.flatnonzero(sees[mask]).tolist()}
    masked = sum(int(sees[mask].sum()) for _, mask in pairs)
    assert shareboost_drawn.operations(model) == 49 * len(places) + masked + 3 * len(pairs)


def test_deformations_are_those_of_the_seed_and_move_pixels_a_little() -> None:
    images = strokes().X[:6].toarray().reshape(-1, 12, 12)
    one = deform.deformed(images, 3)
    assert np.array_equal(deform.deformed(images[:2], 3), one[:2])
    assert not np.array_equal(deform.deformed(images, 4), one)
    assert one.min() >= 0.0 and one.max() <= images.max() + 1e-12
    assert np.abs(one - images).max() > 0.1
    assert 0.4 < one.sum() / images.sum() < 2.0
