"""The fuzz of fits: some cases of it, its oracle against what is known, and that it sees a lie.

Covers: ``lab.fuzz`` from the draw of a case to the judgement. Does not cover: the whole run (``lab fuzz``).
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lab.fuzz import judge, objective, paths, workers
from lab.fuzz.campaign import main, table
from lab.fuzz.cases import CERTIFIED, FAR, draw
from lab.fuzz.descent import improved
from lab.fuzz.judge import BAD, Outcome

RNG = np.random.default_rng(0)
# Cases that ended in a false certificate, a foreign error or a warning of NumPy's, or open at an optimum, when found.
FOUND = (
    5, 10, 41, 43, 57, 98, 117, 131, 137, 152, 167, 174, 193, 251, 262, 306, 307, 538, 585, 840, 943, 1035, 1389, 3212,
    4185, 4722,
)  # fmt: skip
OTHERS = tuple(range(600, 640))
# Data far from zero: those that ended in a false certificate, another objective or no number, and some.
FAR_FOUND = tuple(FAR + seed for seed in (5, 8, 576, 68, 73, 79, 85, 124, 145, 163, 1455, 3985, 4848, 5014, 5667, 6697))
FAR_OTHERS = tuple(range(FAR + 408, FAR + 428))
# Paths and folds whose fits once warned of NumPy's, beyond the first of the campaign.
PATHS_FOUND = (4843,)
SECONDS = 5.0


@pytest.fixture(scope="module")
def outcomes() -> dict[int, Outcome]:
    return {o.seed: o for o in workers.outcomes((*FOUND, *OTHERS), 2, SECONDS)}


@pytest.mark.full
def test_what_the_fuzz_once_found_is_no_defect_any_more(outcomes: dict[int, Outcome]) -> None:
    for seed in FOUND:
        outcome = outcomes[seed]
        assert outcome.kind not in BAD, outcome
        assert "at an optimum" not in outcome.detail, outcome


@pytest.mark.full
def test_no_certificate_is_false_and_no_error_or_warning_foreign(outcomes: dict[int, Outcome]) -> None:
    bad = [outcome for outcome in outcomes.values() if outcome.kind in BAD]
    assert len(outcomes) == len(FOUND) + len(OTHERS) and not bad, table(bad)


@pytest.mark.full
def test_fits_far_from_zero_are_what_they_say() -> None:
    found = [judge.run(seed) for seed in (*FAR_FOUND, *FAR_OTHERS)]
    bad = [outcome for outcome in found if outcome.kind in BAD]
    assert not bad, table(bad)
    assert sum(outcome.kind == "certified" for outcome in found) > len(found) // 3


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_two_thousand_fits_far_from_zero_are_what_they_say() -> None:
    # Ten thousand take half an hour of processor; what the others of them found stands in FAR_FOUND.
    assert main(["--far", "--fits", "2000"]) == 0


@pytest.mark.full
def test_a_fit_that_does_not_end_is_ended_and_the_next_is_run() -> None:
    found = list(workers.outcomes([1, 7], 1, -59.0))
    assert [outcome.kind for outcome in found] == ["out of time", "out of time"]


def test_a_case_is_the_same_whenever_it_is_drawn() -> None:
    a, b = draw(17), draw(17)
    np.testing.assert_array_equal(a.dense, b.dense)
    assert a.params == b.params and a.words == b.words


def _signs(m: int, k: int) -> np.ndarray:
    return np.where(RNG.random((m, k)) < 0.5, -1.0, 1.0)


LABELS = {
    "log": _signs(9, 1),
    "exp": _signs(9, 1),
    "multitask": np.where(RNG.random((9, 3)) < 0.2, 0.0, _signs(9, 3)),
    "multinomial": np.eye(3)[np.arange(9) % 3],
    "margin_softmax": np.eye(3)[np.arange(9) % 3],
    "squared": RNG.standard_normal((9, 1)),
    "multitarget": np.where(RNG.random((9, 3)) < 0.2, np.nan, RNG.standard_normal((9, 3))),
    "epsilon_insensitive": RNG.standard_normal((9, 1)),
    "poisson": np.arange(9.0)[:, None] % 4,
    "huber": 3.0 * RNG.standard_normal((9, 1)),
    "quantile": RNG.standard_normal((9, 1)),
}


def test_the_oracle_knows_the_slope_of_each_loss() -> None:
    for loss in LABELS:
        y = objective.long(LABELS[loss])
        F = objective.long(RNG.standard_normal(y.shape))
        step = np.longdouble(1e-7)
        value, slope = objective.LOSSES[loss](y, F)
        assert np.all(value >= 0)
        for r in range(y.shape[1]):
            moved = np.zeros_like(F)
            moved[:, r] = step
            rise = (objective.LOSSES[loss](y, F + moved)[0] - objective.LOSSES[loss](y, F - moved)[0]) / (2 * step)
            np.testing.assert_allclose(rise.astype(float), slope[:, r].astype(float), atol=1e-9)


@pytest.mark.parametrize("penalty", CERTIFIED)
def test_the_oracle_knows_the_prox_of_each_penalty(penalty: str) -> None:
    Z, t = objective.long(RNG.standard_normal((4, 3))), objective.long([0.1, 0.5, 1.0, 3.0])

    def value(V: np.ndarray) -> np.longdouble:
        return ((V - Z) ** 2).sum() / 2 + objective.omega(penalty, V, t)

    V = objective.prox(penalty, Z, t)
    least = value(V)
    for _ in range(200):
        assert value(V + 1e-3 * RNG.standard_normal(V.shape)) >= least
        assert value(V * (1 + 1e-3 * RNG.standard_normal(V.shape))) >= least


@pytest.mark.full
def test_the_oracle_finds_the_optimum_of_a_small_problem() -> None:
    for penalty in CERTIFIED:
        for loss in LABELS:
            X = RNG.standard_normal((9, 3))
            problem = objective.Objective.of(loss, penalty, X, LABELS[loss], None, 0.05, True, False)
            k = LABELS[loss].shape[1]
            best, W, b = improved(problem, np.zeros((3, k)), np.zeros(k))
            # at a minimum no small step in any direction gains to first order
            for _ in range(100):
                step = 1e-4 * RNG.standard_normal(W.shape)
                assert problem.value(W + step, b + 1e-4 * RNG.standard_normal(b.shape)) >= best * (1 - 1e-12)
            assert problem.value(W, b) == best


def test_a_certificate_of_a_model_that_is_no_optimum_is_seen() -> None:
    case = next(c for c in map(draw, range(300)) if not c.words and c.params["penalty"] == "l1")
    k = case.encoded.shape[1]
    alpha = 1e-3
    zero = SimpleNamespace(
        coef_=np.zeros((k, case.dense.shape[1])),
        intercept_=np.zeros(k),
        duality_gap_=0.0,
        stop_reason_="tol",
        objective_=float(case.objective(alpha).value(np.zeros((case.dense.shape[1], k)), np.zeros(k))),
        alpha_=alpha,
        n_iter_=1,
    )

    def outcome(kind: str, detail: str, note: str = "", gap: float = np.nan, true: float = np.nan) -> Outcome:
        return Outcome(case.seed, kind, detail, note, 0.0, gap, true)

    assert judge.judged(case, zero, [], outcome).detail == "a better model exists"
    zero.duality_gap_ = 1.0
    zero.stop_reason_ = "precision"
    assert judge.judged(case, zero, [], outcome).detail == "no warning"
    assert judge.judged(case, zero, ["it warned"], outcome).kind == "honest end"
    zero.objective_ *= 1.001
    assert judge.judged(case, zero, ["it warned"], outcome).kind == "FALSE certificate"


@pytest.mark.full
def test_a_single_case_is_shown_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "1"]) == 0
    shown = capsys.readouterr().out
    assert "case 1:" in shown and "BoostedRegressor(loss='squared'" in shown and "certified" in shown


@pytest.mark.full
def test_paths_of_tables_of_any_unit_end_in_numbers_or_in_an_error_of_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paths, "STRENGTHS", (1, 2))
    monkeypatch.setattr(paths, "FOLDS", (2,))
    found = [paths.run(seed) for seed in range(50)]
    assert not [one for one in found if one.kind in BAD], table(found)
    assert sum(one.kind.startswith("fitted") for one in found) >= 35


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_five_hundred_paths_of_tables_of_any_unit_at_their_full_length() -> None:
    """The campaign has 5,000: ``python -m lab fuzz --paths --fits 5000``."""
    found = list(workers.outcomes((*range(500), *PATHS_FOUND), 2, 120.0, paths.run))
    assert len(found) == 500 + len(PATHS_FOUND) and not [one for one in found if one.kind in BAD], table(found)


def test_no_number_in_what_was_fitted_is_seen() -> None:
    X = np.ones((3, 1))
    assert paths.no_numbers(SimpleNamespace(coef_=np.array([np.nan])), X) == "coef_"
    assert paths.no_numbers(SimpleNamespace(coef_=X, predict=lambda rows: rows[:, 0] * np.inf), X) == "predict"
    assert not paths.no_numbers(SimpleNamespace(coef_=X, predict=lambda rows: np.array(["a"])), X)
