"""Default folds and halves of rows of few values have no bias, beside those of scikit-learn."""

from __future__ import annotations

import warnings

import pytest

from lab import fold_study, tables


def test_folds_of_yes_no_columns_are_judged_as_those_of_scikit_learn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = fold_study.compared(fold_study.KINDS[0], 4)
    # copies of the held-out rows with the other label alone would cost 0.15; four draws differ by chance by 0.01
    assert abs(row["difference"]) < 0.05 and row["ours"] < 0.65 and not row["empty"]


def test_a_bias_and_an_empty_model_are_seen() -> None:
    assert fold_study.biased({"apart": -5.0}) and fold_study.biased({"apart": 0.0, "empty": 1})
    assert not fold_study.biased({"apart": 2.0, "empty": 0})


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_no_bias_over_two_hundred_draws_of_each_kind() -> None:
    rows = fold_study.study(200)
    assert len(rows) == 5 and not any(map(fold_study.biased, rows)), tables.markdown(rows, fold_study.COLUMNS)
