"""AdaBoost+L1 (Xi, Xiang, Ramadge & Schapire): Tables 1 and 2, Fig. 2: error, classifiers and margins beside AdaBoost.

Covers: the measurements, claims and figure. The reproductions' common parts are in ``base``, ``claims``, ``measure``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from lab.datasets import small_binary
from lab.reproduce import figures
from lab.reproduce.base import Context, Figure, Report
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.measure import Staged
from lab.reproduce.rows import Rows, Tables, mean_and_error

SEED = 20081205
ADABOOST, L1 = "AdaBoost", "AdaBoost+L1"
# Rows of each split that are trained on, and that choose the round; the rest is for testing. Together they are as many
# as in the benchmark of Raetsch that these tables come from, but for Ringnorm: of its 400, 100 leave AdaBoost with as
# many stumps as are printed.
TRAINING = {"ringnorm": (100, 25), "pima": (374, 94), "german": (560, 140)}
PRINTED = {
    # error of AdaBoost and AdaBoost+L1 in per cent, and their numbers of classifiers: the paper's Tables 1 and 2
    "ringnorm": (25.5, 25.3, 121.8, 55.0),
    "pima": (26.7, 26.6, 7.6, 11.9),
    "german": (26.9, 26.7, 22.1, 16.5),
}


@dataclass(frozen=True)
class Sizes:
    """Splits and rounds of a run, and every which of them is measured."""

    splits: int = 20
    rounds: int = 1000
    every: int = 20


QUICK = Sizes(splits=3, rounds=30, every=5)


def one_split(name: str, number: int, sizes: Sizes) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Both methods on one split: figures by round, and the round that the held-out part chooses."""
    X, y = small_binary.table(name)
    rng = np.random.default_rng([SEED, number, len(y)])
    order = rng.permutation(len(y))
    n_train, n_held = TRAINING[name]
    train, held, test = np.split(order, [n_train, n_train + n_held])
    S, S_held, S_test = small_binary.stump_columns(X[train], X[held], X[test])
    curves, chosen = [], []
    for method in (ADABOOST, L1):

        def measure(model: Any) -> dict[str, Any]:
            f = scores(model, S)
            size = float(np.abs(model.model_.W).sum())
            return {
                "held_error": _error(model, S_held, y[held]),
                "test_error": _error(model, S_test, y[test]),
                "margin": float((y[train] * f).min()) / size if size > 0 else float("nan"),
                "classifiers": model.model_.n_hypotheses,
                "l1_norm": size,
            }

        staged = Staged(measure, every=sizes.every, dataset=name, split=number, method=method)
        common: dict[str, Any] = {"tol": 0.0, "max_rounds": sizes.rounds, "callbacks": staged.hooks}
        kind = dboost.LeveragingClassifier if method == ADABOOST else dboost.AdaBoostL1Classifier
        model = kind(fit_intercept=False, **common).fit(S.astype(np.float64), y[train])
        keep = ("dataset", "split", "method", "round", "test_error", "held_error", "margin", "classifiers", "l1_norm")
        # a round that only certifies repeats the model before it
        records = [{key: r[key] for key in keep} for r in staged.rows if r["step"] != "certificate"]
        best = min(records, key=lambda r: (r["held_error"], r["round"]))
        last = records[-1]
        chosen.append(
            {key: best[key] for key in keep}
            | {"stop": str(model.stop_reason_), "rounds": int(model.n_iter_)}
            | {f"last_{key}": last[key] for key in ("test_error", "margin", "classifiers", "l1_norm")}
            | {"least_edge": least_edge(model), "gap": float(model.duality_gap_)}
        )
        curves += records
    theirs = [record for record in curves if record["method"] == ADABOOST]
    chosen[-1]["same_norm"] = at_norm(theirs, chosen[-1]["last_l1_norm"])
    return curves, chosen


def at_norm(records: Sequence[Mapping[str, Any]], size: float) -> float:
    """The margin in the first measured round whose weights sum to `size` at least; nan where there is none."""
    return next((float(record["margin"]) for record in records if record["l1_norm"] >= size), float("nan"))


def least_edge(model: Any) -> float:
    """The smallest of the rounds' largest edges, an upper bound on every margin; nan for AdaBoost, which has none."""
    if not isinstance(model, dboost.AdaBoostL1Classifier):
        return float("nan")
    return float(min(record["edge"] for record in model.history_))


def _error(model: Any, S: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.mean(np.where(scores(model, S) > 0, 1, -1) != y))


def scores(model: Any, S: NDArray[Any]) -> NDArray[np.float64]:
    """Scores from the columns that the model uses; the estimator would look at all of them first."""
    found: NDArray[np.float64] = model.model_.decision_function(S)[:, 0]
    return found


def run(context: Context) -> Report:
    """Measure both methods on every split of every table."""
    sizes = QUICK if context.quick else Sizes()
    curves: list[dict[str, Any]] = []
    chosen: list[dict[str, Any]] = []
    for name in TRAINING:
        with context.stage(name):
            for number in range(sizes.splits):
                rounds, best = one_split(name, number, sizes)
                curves += rounds
                chosen += best
    tables = {"splits": Rows(chosen), "rounds": averaged(curves, sizes)}
    return Report(
        "AdaBoost+L1: error, classifiers and margins beside AdaBoost",
        "Decision stumps on small two-class tables. Does solving all weights anew within an l1 budget that grows by "
        "AdaBoost's steps keep the error, need fewer classifiers, and reach larger margins?",
        CLAIMS,
        protocol(sizes),
        DIFFERENCES,
        tables,
        FIGURES,
        findings(tables),
    )


def averaged(curves: list[dict[str, Any]], sizes: Sizes) -> Rows:
    """Means over the splits by table, method and round, where every split has the round."""
    found = []
    every = Rows(curves)
    for name in TRAINING:
        for method in (ADABOOST, L1):
            rows = every.where(dataset=name, method=method)
            for number in sorted({int(r["round"]) for r in rows}):
                here = rows.where(round=number)
                if len(here) < sizes.splits:
                    continue
                record: dict[str, Any] = {"dataset": name, "method": method, "round": number}
                for key in ("test_error", "margin", "classifiers", "l1_norm"):
                    record[key], record[f"{key}_se"] = mean_and_error(here.column(key).tolist())
                found.append(record)
    return Rows(found)


# ---- claims --------------------------------------------------------------------------------------------------------


def _pairs(tables: Tables, name: str, key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rows = tables["splits"].where(dataset=name)
    return rows.where(method=ADABOOST).column(key), rows.where(method=L1).column(key)


def _names(tables: Tables) -> list[str]:
    return [name for name in TRAINING if len(tables["splits"].where(dataset=name))]


def judge_error(tables: Tables) -> Verdict:
    """Errors differ by no more than their noise, or a point."""
    checks = []
    for name in _names(tables):
        plain, ours = (100 * part for part in _pairs(tables, name, "test_error"))
        mean, error = mean_and_error((ours - plain).tolist())
        met = abs(mean) <= max(1.0, 2 * (error or 0.0))
        checks.append(
            Check(
                f"{name}: AdaBoost {plain.mean():.1f} %, AdaBoost+L1 {ours.mean():.1f} % (paired difference "
                f"{mean:+.2f} ± {error or 0.0:.2f}; the paper: {PRINTED[name][0]} and {PRINTED[name][1]} %)",
                met,
            )
        )
    return judged(*checks)


def judge_classifiers(tables: Tables) -> Verdict:
    """The mean number of classifiers moves in the paper's direction on each table."""
    checks = []
    for name in _names(tables):
        plain, ours = _pairs(tables, name, "classifiers")
        printed = PRINTED[name][2:]
        wanted = np.sign(printed[1] - printed[0])
        mean, error = mean_and_error((ours - plain).tolist())
        clear = error is not None and abs(mean) > 2 * error
        checks.append(
            Check(
                f"{name}: {plain.mean():.1f} with AdaBoost, {ours.mean():.1f} with AdaBoost+L1 (paired difference "
                f"{mean:+.1f} ± {error or 0.0:.1f}; the paper: {printed[0]} and {printed[1]})",
                bool(np.sign(mean) == wanted) if clear else None,
            )
        )
    return judged(*checks)


def judge_sparsity(tables: Tables) -> Verdict:
    """At the same, last round AdaBoost+L1 holds fewer distinct classifiers."""
    checks = []
    for name in _names(tables):
        plain, ours = _pairs(tables, name, "last_classifiers")
        checks.append(
            Check(f"{name}: {plain.mean():.1f} against {ours.mean():.1f} at the last round", ours.mean() < plain.mean())
        )
    return judged(*checks)


def larger(name: str, said: str, plain: NDArray[np.float64], ours: NDArray[np.float64]) -> Check:
    """Whether margins are larger than AdaBoost's in more than half of the splits that can be compared."""
    there = np.isfinite(plain)
    plain, ours = plain[there], ours[there]
    if not len(plain):
        return Check(f"{name}: AdaBoost's weights never summed to as much", None)
    more = int(np.count_nonzero(ours > plain))
    return Check(
        f"{name}: least margin {plain.mean():+.4f} with AdaBoost, {ours.mean():+.4f} with AdaBoost+L1{said}, larger in "
        f"{more} of {len(plain)} splits",
        more > len(plain) / 2,
    )


def judge_margin(tables: Tables) -> Verdict:
    """The least margin at the last round is larger."""
    return judged(*(larger(name, "", *_pairs(tables, name, "last_margin")) for name in _names(tables)))


def judge_margin_of_norm(tables: Tables) -> Verdict:
    """The least margin is larger than AdaBoost's where its weights sum to as much."""
    checks = []
    for name in _names(tables):
        rows = tables["splits"].where(dataset=name, method=L1)
        said = f" (weights of {rows.column('last_l1_norm').mean():.1f} in sum)"
        checks.append(larger(name, said, rows.column("same_norm"), rows.column("last_margin")))
    return judged(*checks)


def judge_certificate(tables: Tables) -> Verdict:
    """No margin exceeds the smallest of the largest edges."""
    rows = tables["splits"].where(method=L1)
    room = rows.column("least_edge") - rows.column("last_margin")
    return judged(
        Check(
            f"in {len(room)} fits the least margin stayed below the certified bound, by {room.min():.4f} at least "
            f"and {np.median(room):.4f} in the median",
            bool((room >= -1e-9).all()),
        )
    )


CLAIMS = (
    Claim(
        "Same error",
        "Table 1",
        "The error of AdaBoost+L1 is that of AdaBoost; it is unnecessary where only the error counts.",
        "The mean paired difference of the test errors, at the rounds chosen on held-out rows, is within two standard "
        "errors or one percentage point.",
        judge_error,
    ),
    Claim(
        "Number of classifiers chosen",
        "Table 2",
        "Fewer classifiers on Ringnorm (-55 %) and German (-25 %), more on Diabetes (+57 %).",
        "The mean paired difference, at the rounds chosen, has the paper's sign; it counts where it is beyond two "
        "standard errors.",
        judge_classifiers,
    ),
    Claim(
        "Sparser after the same rounds",
        "Table 2 and its discussion",
        "l1 regularisation gives a sparser ensemble.",
        "After the last round AdaBoost+L1 holds fewer distinct stumps on average.",
        judge_sparsity,
    ),
    Claim(
        "Larger margins after the same rounds",
        "Fig. 2, right; Theorem 2",
        "AdaBoost+L1 maximises the least margin of the training data.",
        "After the last round its least normalised margin is larger than AdaBoost's in more than half of the splits.",
        judge_margin,
    ),
    Claim(
        "Larger margins with the same sum of weights",
        "Theorems 1 and 2",
        "The weights of AdaBoost+L1 have the least loss of their sum, and its margin is near the best for that sum.",
        "In more than half of the splits its last margin is larger than AdaBoost's in the first measured round in "
        "which AdaBoost's weights sum to as much.",
        judge_margin_of_norm,
    ),
    Claim(
        "The bound on the best margin",
        "the minimax identity of the introduction",
        "No ensemble has a margin above the largest edge of any round.",
        "The margin reached is at most the smallest of the rounds' largest edges, in every fit.",
        judge_certificate,
    ),
)


def draw(tables: Tables) -> Any:
    """Fig. 2: test error and least margin by round, one row of panels per table."""
    names = _names(tables)
    figure, axes = figures.panels(2, len(names), height=2.9)
    looks = {ADABOOST: figures.STYLES["adaboost"], L1: figures.STYLES["l1"]}
    for row, name in enumerate(names):
        for column, (key, said) in enumerate((("test_error", "test error"), ("margin", "least margin"))):
            axis = axes[2 * row + column]
            for method, look in looks.items():
                rows = tables["rounds"].where(dataset=name, method=method)
                style = "adaboost" if method == ADABOOST else "l1"
                x, y, error = (rows.column(part) for part in ("round", key, f"{key}_se"))
                figures.curve(axis, style, x, y, error, text=method, dense=True, color=look["color"])
            figures.label(axis, "round", said, name)
            if key == "margin":
                floor = tables["rounds"].where(dataset=name).column("margin")
                axis.set_ylim(max(-0.6, float(np.nanmin(floor))), None)
            figures.legend(axis)
    return figure


FIGURES = (
    Figure(
        "margins",
        "Test error (left) and least normalised margin of the training rows (right) by round, means over the splits "
        "with one standard error; the paper's Fig. 2.",
        draw,
    ),
)


def protocol(sizes: Sizes) -> tuple[str, ...]:
    """What was done."""
    rows = ", ".join(f"{name} {train} and {held}" for name, (train, held) in TRAINING.items())
    return (
        f"{sizes.splits} random splits of each table; rows to train on and to choose the round by: {rows}; the rest is "
        "for testing.",
        "Hypotheses: all stumps of the training rows, one for each midpoint of two neighbouring values of a column, "
        "and the constant, with both signs; they are given to both methods as the same columns in {-1, +1}.",
        f"{sizes.rounds} rounds of each method, nu = 1, without intercept; AdaBoost is dboost.LeveragingClassifier.",
        "For both methods the first round of least error on the rows held out is chosen, and its test error and number "
        "of distinct stumps are reported.",
        f"Errors and margins are evaluated in the first ten rounds and in every {sizes.every}th.",
    )


DIFFERENCES = (
    "Spam and Ionosphere are not among the data sets at hand.",
    "The paper does not say how many rows were for training, nor how the number of rounds behind Tables 1 and 2 was "
    "chosen: sizes are those of Raetsch's benchmark, and a held-out part chooses. With its 400 rows of Ringnorm "
    "AdaBoost holds far more stumps than the 121.8 printed; 100 were taken after trials had shown them to give about "
    "as many, so that AdaBoost's count there is no finding, and the other one's is.",
    "Diabetes is the Pima table; German is its numeric form of 24 columns.",
)


def findings(tables: Tables) -> tuple[str, ...]:
    """How well the budget's problem was solved, and what more rounds bring."""
    rows = tables["splits"].where(method=L1)
    gaps = rows.column("gap")
    said = [
        f"After the last round the exponential loss of AdaBoost+L1 is certified to be within {np.median(gaps):.1e} "
        f"(median; at most {gaps.max():.1e}) of the least within its budget, over all stumps."
    ]
    for name in _names(tables):
        plain, ours = _pairs(tables, name, "last_classifiers")
        sums = _pairs(tables, name, "last_l1_norm")
        said.append(
            f"{name}, last round: {plain.mean():.1f} stumps with AdaBoost (weights of {sums[0].mean():.1f} in sum), "
            f"{ours.mean():.1f} with AdaBoost+L1 ({sums[1].mean():.1f})."
        )
    return tuple(said)
