"""`dboost train --cv`, and what is said of the choice where alpha was left to the fit."""

import json

import numpy as np
import pytest

import dboost
from dboost.model.fitted import read_model
from pipelines.cli import main
from pipelines.console import Console
from pipelines.runs.fingerprints import of_model
from tests.pipelines.conftest import LOCAL


def test_cv_trains_the_model_of_the_strength_that_the_library_chooses(prepared, tmp_path, prints):
    page = prints("train", prepared, "--out", tmp_path / "m", "--cv", "3", "--n-alphas", "8")
    data = dboost.ParquetData(prepared, split="train")
    peer = dboost.BoostedClassifierCV(cv=3, n_alphas=8).fit(data)
    model = read_model(tmp_path / "m")
    assert model.certificate.alpha == peer.alpha_
    np.testing.assert_array_equal(model.W, peer.model_.W)
    for row in peer.cv_results_:
        assert f"{row['mean_loss']:.4f}" in page and f"{100 * row['mean_error']:.1f} %" in page
    assert "chosen" in page and "least loss" in page and "rule of thumb" not in page
    assert json.loads((tmp_path / "m" / "run.json").read_text())["settings"]["cv"] == 3


def test_cv_that_was_broken_off_is_resumed_to_the_same_model(prepared, tmp_path, monkeypatch):
    line = ["train", str(prepared), "--cv", "2", "--n-alphas", "3", "--eps", "0.3", *LOCAL, "--out"]
    out, told = tmp_path / "out", []

    def breaks_at(most):
        def told_of(console, strengths, folds=0):
            def record(one):
                told.append(one)
                if len(told) == most:
                    raise KeyboardInterrupt

            return record

        return told_of

    monkeypatch.setattr(Console, "several_fits", breaks_at(None))
    assert main([*line, str(tmp_path / "whole")]) == 0
    rounds = len(told)
    told.clear()
    monkeypatch.setattr(Console, "several_fits", breaks_at(rounds // 2))
    with pytest.raises(KeyboardInterrupt):
        main([*line, str(out)])
    assert not out.exists() and (tmp_path / "out.unfinished" / "several").is_dir()
    told.clear()
    monkeypatch.setattr(Console, "several_fits", breaks_at(None))
    assert main(["resume", str(out)]) == 0
    assert 0 < len(told) < rounds and of_model(out) == of_model(tmp_path / "whole")
    assert not (tmp_path / "out.unfinished").exists()


def test_the_best_at_the_end_of_the_grid_is_said_with_the_remedy(prepared, tmp_path, prints):
    short = ["train", prepared, "--cv", "3", "--n-alphas", "4"]
    page = prints(*short, "--eps", "0.3", "--out", tmp_path / "m")
    assert "the end of the grid" in page and "--eps 0.03" in page
    # The remedy is one.
    assert "the end of the grid" not in prints(*short, "--eps", "0.003", "--out", tmp_path / "n")


def test_a_scorer_chooses_by_its_name(prepared, tmp_path, prints, refused):
    short = ["train", prepared, "--cv", "3", "--n-alphas", "4"]
    page = prints(*short, "--scoring", "balanced_accuracy", "--out", tmp_path / "m")
    data = dboost.ParquetData(prepared, split="train")
    peer = dboost.BoostedClassifierCV(cv=3, n_alphas=4, scoring="balanced_accuracy").fit(data)
    assert read_model(tmp_path / "m").certificate.alpha == peer.alpha_
    # a narrow table breaks the line
    assert "greatest" in page and "least" not in page
    for row in peer.cv_results_:
        assert f"{row['mean_test_score']:.4f}" in page
    said = refused(*short, "--scoring", "balanced", "--out", tmp_path / "n", *LOCAL)
    assert "--scoring" in said and "roc_auc" in said and "neg_log_loss" in said


def test_what_alpha_auto_chose_is_said(prepared, tmp_path, prints):
    said = prints("train", prepared, "--out", tmp_path / "a", "--alpha", "auto", "--max-features", "5")
    assert "held-out score" in said and len(read_model(tmp_path / "a").W) <= 5
    assert "held-out score" not in prints("train", prepared, "--out", tmp_path / "b", "--alpha", "0.01")
