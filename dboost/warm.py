"""Compile every kernel once and keep it on disk: ``python -m dboost.warm``.

The first fit of a machine compiles the kernels it needs, some tens of seconds; they are cached beside the package, so
an installation or an image runs this once and no fit ever waits. Tiny fits of every loss, update and precision are
what is run, so a new kernel is warmed by being used.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dboost.boosting.checks import check_settings
from dboost.boosting.cross_validation import cross_validate
from dboost.boosting.fit import FitSettings, Fitting, fit
from dboost.boosting.leveraging.system import Leveraging
from dboost.boosting.rules import RankedL1
from dboost.boosting.shareboost.rounds import ShareBoost
from dboost.boosting.starts.from_sample import solved
from dboost.data.plan import build_plan
from dboost.data.prepared.mapper import InProcess
from dboost.data.prepared.text_arrow import documents
from dboost.data.prepared.text_terms import choose, count_piece, join, names_of, total_counts
from dboost.data.prepared.text_weights import Buckets, Columns, Weights, first_seen, present, rows
from dboost.data.prepared.text_words import WordRule, table_of
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning, UsageError
from dboost.hypotheses.kernels.family import Kernels
from dboost.hypotheses.products.family import Products
from dboost.hypotheses.products.occurring import Occurring
from dboost.hypotheses.stumps.family import Stumps
from dboost.kernel_cache import VARIABLE, lasting
from dboost.losses import LOSSES
from dboost.partition import NUMBERS
from dboost.passes.folds import Folds

PROCESSES = 4
"""At most so many compile side by side, each of which takes about 400 MB; more would mostly wait for one loop."""


class Part(NamedTuple):
    """Fits of one loss on stored values of one type; without a loss, the counting of words.

    Parameters
    ----------
    loss, task : str
        Of ``LOSSES``, and what it is given as labels.
    dtype : type
        Of the stored values.
    """

    loss: str
    task: str
    dtype: Any


def _compiled_apart() -> dict[str, str]:
    """Losses by name and their tasks, one for each kind of target: others of the kind run the same code."""
    found: dict[tuple[str, type], str] = {}
    for name, loss in LOSSES.items():
        found.setdefault((loss.task, type(loss.target(np.zeros((1, 1))))), name)
    return {name: task for (task, _), name in found.items()}


def _defined(loss: str, settings: FitSettings) -> bool:
    """Whether the loss has the bound that the settings need."""
    try:
        check_settings(replace(settings, loss=loss))
    except UsageError:
        return False
    return True


def _warm_text() -> None:
    """Count and weigh a few documents in every way that has a loop of its own."""
    texts = documents(["warm words, and warm again", "w\u00f6rter jenseits", "and a document more than two"])
    rule = WordRule(ngram_range=(1, 2), stop_words=frozenset({"and"}))
    counted = [count_piece(texts, one) for one in (rule, WordRule())]
    table, numbers, df = join(counted)
    total = total_counts(counted, numbers, table.number)
    chosen, names = choose(
        df, 6, min_df=1, max_df=1.0, max_features=5, total=lambda: total, names=lambda these: names_of(table, these)
    )
    known = table_of(names)
    again = count_piece(texts, rule, known)
    known.look_up(known.arena, known.offsets())
    whole = first_seen(chosen, table.number)
    fitted = (counted[0].counts[0], Columns(whole.column[numbers[0]], whole.features, whole.order))
    for computed, rounded in ((np.float64, np.float64), (np.float32, np.float32), (np.float64, np.float32)):
        weights = Weights(dtype=computed)
        for part in (fitted, present(again.counts[0], len(names))):
            rows([part], weights, weights.idf(df[chosen], 6), InProcess(), rounded)
    rows(Buckets(8).hashed(counted[1], binary=False), Weights(use_idf=False), np.ones(8), InProcess())


def _warm_sums_of_products() -> None:
    """Add up what occurs in two blocks of rows, which the fits below have one of."""
    one, other = (Occurring(("G",), np.array([place]), np.ones((1, 3)), np.ones(1)) for place in (0, 1))
    one + other


def warm() -> float:
    """Compile and cache all kernels in this process; return the seconds it took."""
    started = time.perf_counter()
    for part in _parts():
        _warm(part)
    return time.perf_counter() - started


def warm_in_processes(processes: int) -> float:
    """Compile and cache all kernels in several processes, which find what another one has kept."""
    started = time.perf_counter()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for _ in pool.map(_warm, _parts()):
            pass
    return time.perf_counter() - started


def _parts() -> list[Part]:
    """What can be compiled apart: text, and each kind of loss with each type of stored values."""
    fits = [Part(*one, dtype) for dtype in (np.float32, np.float64) for one in _compiled_apart().items()]
    return [*fits, Part("", "text", np.float64)]


def _warm(part: Part) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if part.loss:
            _warm_fits(part.loss, part.task, part.dtype)
        else:
            _warm_text()
            _warm_sums_of_products()


def _warm_fits(loss: str, task: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12)) * (rng.random((60, 12)) < 0.5)
    code = (X[:, :3] + rng.normal(size=(60, 3))).argmax(axis=1)
    # more entries in a few rounds than the curvature is formed among (``formed.pays``)
    many = rng.normal(size=(60, 300)) * (rng.random((60, 300)) < 0.5)
    labels = {"binary": code > 0, "multiclass": code, "multitask": np.eye(3)[code], "regression": code * 1.0}
    labels["multitarget"] = np.eye(3)[code]
    steps_on_values = [FitSettings("", penalty, alpha=1e-4, max_rounds=12) for penalty in ("l1", "l1/l2")]
    variants = [
        FitSettings("", "l1/l2"),
        FitSettings("", "l1/l2", sample=0.5),
        # residuals repaired for a free intercept, which other penalties ask for at the end of some fits only
        FitSettings("", "l2"),
        FitSettings("", "l1/linf", curvature="gram"),
        FitSettings("", "l1", update="adaboost", select="template"),
        FitSettings("", "l2", update="adaboost", select="template"),
        FitSettings("", "l2_squared", update="adaboost", select="template"),
        FitSettings("", "smooth_l1", curvature="gram"),
        FitSettings("", "smooth_l1", update="adaboost", select="template"),
        FitSettings("", RankedL1(), system=Leveraging()),
        FitSettings("", "l2_squared", system=ShareBoost("row")),
        FitSettings("", "l1", hypotheses=Products(scale="range", decay=0.5)),
        FitSettings("", "l1", update="adaboost", select="template", hypotheses=Products(max_degree=2)),
        FitSettings("", "l1", hypotheses=Stumps()),
        FitSettings("", "l1", hypotheses=Stumps(bins=4, max_listed=0)),
    ]
    for settings in variants:
        if not _defined(loss, settings):
            continue
        with LocalEngine(1) as engine:
            plan = build_plan(X.astype(dtype), labels[task], task=task, engine=engine)
            fit(plan, engine, replace(settings, loss=loss, alpha=0.02, max_rounds=6))
    for settings in steps_on_values if task == "multiclass" else ():
        with LocalEngine(1) as engine:
            plan = build_plan(many.astype(dtype), labels[task], task=task, engine=engine)
            fit(plan, engine, replace(settings, loss=loss))
    with LocalEngine(1) as engine:
        plan = build_plan(X.astype(dtype), labels[task], task=task, engine=engine)
        cross_validate(plan, engine, replace(variants[0], loss=loss), Folds(2), 1e-3, [0.05, 0.02], 2, 0.1)
    if task != "multiclass" and labels[task].ndim == 1 and not LOSSES[loss].shifted:
        # few data begin without a sample, which is therefore asked for; weights have loops of their own
        with LocalEngine(1) as engine:
            plan = build_plan(X.astype(dtype), labels[task], 1.0 + code, task=task, engine=engine)
            one = Fitting(plan, engine, FitSettings(loss, "l1"))
            lam_max = one.alpha_max() * one.problem.statistics.weight
            solved(one.problem, 0.1 * lam_max, lam_max, 0.5, 0, one.accelerators())
    if loss == next(iter(LOSSES)):
        # a column far from zero has loops of its own, which are the same for all losses
        with LocalEngine(1) as engine:
            plan = build_plan((X + 1e3).astype(dtype), labels[task], task=task, engine=engine)
            fit(plan, engine, FitSettings(loss, "l1", 0.02, max_rounds=3))
    support = 20 if task in NUMBERS else "perceptron"
    with LocalEngine(1) as engine:
        plan = build_plan(X.astype(dtype), labels[task], task=task, engine=engine)
        fit(plan, engine, FitSettings(loss, "l1/linf", 0.02, max_rounds=3, hypotheses=Kernels(support)))


def words(seconds: float) -> str:
    """What was done, in a line: whether another process will find the kernels, too."""
    if lasting():
        return f"compiled and cached the kernels in {seconds:.1f} s"
    return f"compiled the kernels in {seconds:.1f} s, for this process only; set {VARIABLE} to a folder it can write"


if __name__ == "__main__":
    side_by_side = min(PROCESSES, os.cpu_count() or 1)
    # What is kept for one process only is of no use to another one.
    print(words(warm_in_processes(side_by_side) if lasting() and side_by_side > 1 else warm()))
