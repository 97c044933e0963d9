"""Compile loops before a fit needs them: what ``dboost warm`` and ``python -m dboost.warm`` do.

Covers: all loops, or those of the default fits; into the folder where this installation keeps them, or into one that is
carried to other machines, for a processor that these have, too. Does not cover: how they are kept (``compiled.kept``).

Tiny fits of every loss, update and precision are what is run, so a new loop is warmed by being used.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from dboost.boosting.checks import check_settings
from dboost.boosting.cross_validation import cross_validate
from dboost.boosting.fit import FitSettings, fit
from dboost.boosting.leveraging import Leveraging
from dboost.boosting.shareboost import ShareBoost
from dboost.boosting.systems import RankedL1
from dboost.compiled import kept
from dboost.data.plan import build_plan
from dboost.data.prepared.mapper import InProcess
from dboost.data.prepared.text_arrow import documents
from dboost.data.prepared.text_terms import choose, count_piece, join, names_of, total_counts
from dboost.data.prepared.text_weights import Buckets, Columns, Weights, first_seen, present, rows
from dboost.data.prepared.text_words import WordRule, table_of
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning, DboostError, UsageError
from dboost.estimators.classifier import BoostedClassifier
from dboost.estimators.regressor import BoostedRegressor
from dboost.first_compile import silence
from dboost.hypotheses.kernels.family import Kernels
from dboost.hypotheses.products.family import Occurring, Products
from dboost.hypotheses.stumps.family import Stumps
from dboost.kernel_cache import VARIABLE, lasting
from dboost.losses import LOSSES
from dboost.partition import NUMBERS
from dboost.passes.folds import Folds

FITS = ("all", "default")

# How seldom Python looks for what nothing holds any more, as thresholds of its three generations. Most of what
# compiling makes stays, and looking through it as often as usual took 10 of 136 s where nothing else ran.
_COLLECTS_AFTER = (20_000, 50, 50)


class Part(NamedTuple):
    """Fits of one loss on stored values of one type; without a loss, the counting of words.

    Parameters
    ----------
    loss, task : str
        Of ``LOSSES``, and what it is given as labels.
    dtype : type
        Of the stored values.
    default : bool
        Only what the defaults of the estimators run.
    """

    loss: str
    task: str
    dtype: Any
    default: bool = False

    def __str__(self) -> str:
        """In words."""
        return f"{self.loss}, {np.dtype(self.dtype)}" if self.loss else self.task


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


def warm(fits: str = "all", say: Callable[[str], None] | None = None) -> float:
    """Compile loops and keep them.

    In this process alone: two that compiled side by side took 109 s in place of 133, and 172 of processor, since each
    compiled the loops that all kinds of fits share.

    Parameters
    ----------
    fits : {"all", "default"}
        Whose loops: of every loss, penalty and hypothesis, or of the fits that the defaults of the estimators make.
    say : function of str, optional
        Is told what is done after each part.

    Returns
    -------
    float
        Seconds.
    """
    started = time.perf_counter()
    parts = _parts(fits)
    usual = gc.get_threshold()
    gc.set_threshold(*_COLLECTS_AFTER)
    try:
        for number, part in enumerate(parts, 1):
            warm_part(part)
            if say is not None:
                say(f"{number} of {len(parts)} kinds of fits after {time.perf_counter() - started:.0f} s: {part}")
    finally:
        gc.set_threshold(*usual)
    return time.perf_counter() - started


def warm_to(folder: Path, fits: str = "all") -> None:
    """Compile loops for any processor of this kind of machine, and keep them in a folder that can be carried.

    In a process of its own, since numba reads for which processor it compiles when it is imported.

    Parameters
    ----------
    folder : path
        Is made; what is in it stays.
    fits : {"all", "default"}

    Raises
    ------
    UsageError
        Where this machine cannot run what is made for all of its kind.
    DboostError
        When the process fails.
    """
    target = kept.portable()
    if target is None:
        raise UsageError(
            "--to makes loops for processors with AVX2 or NEON, which this one lacks; make them on a newer machine"
        )
    folder.mkdir(parents=True, exist_ok=True)
    name, features = target
    told = {VARIABLE: str(folder.resolve()), "NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
    done = subprocess.run([sys.executable, "-m", "dboost.warm", "--fits", fits], env={**os.environ, **told})
    if done.returncode:
        raise DboostError(f"the process that compiles loops into {folder} ended with {done.returncode}")


def _parts(fits: str) -> list[Part]:
    """What can be compiled apart: text, and each kind of loss with each type of stored values."""
    if fits == "default":
        tasks = {"multinomial": "multiclass", "log": "binary", "squared": "regression", "": "text"}
        return [Part(*one, np.float64, default=True) for one in tasks.items()]
    each = [Part(*one, dtype) for dtype in (np.float32, np.float64) for one in _compiled_apart().items()]
    return [*each, Part("", "text", np.float64)]


def warm_part(part: Part) -> None:
    """Compile and keep what one kind of fit runs."""
    silence()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if part.default and part.loss:
            _warm_defaults(part.task)
        elif part.loss:
            _warm_fits(part.loss, part.task, part.dtype)
        else:
            _warm_text()
            _warm_sums_of_products()


def _warm_defaults(task: str) -> None:
    """Fit what the defaults of the estimators are, to full tables and to sparse data, small and less small."""
    rng = np.random.default_rng(0)
    estimator = BoostedRegressor if task == "regression" else BoostedClassifier
    for m, columns, share in ((150, 4, 1.0), (1000, 20, 1.0), (600, 300, 0.2)):
        X = rng.normal(size=(m, columns)) * (rng.random((m, columns)) < share)
        classes = min(10 if task == "multiclass" else 2, columns)
        scores = X[:, :classes] + 0.3 * rng.normal(size=(m, classes))
        y = scores[:, 0] if task == "regression" else scores.argmax(axis=1)
        sparse = csr_array(X)
        # as libraries leave it that count words: columns in any order
        mixed = csr_array((sparse.data[::-1], sparse.indices[::-1], sparse.indptr[-1] - sparse.indptr[::-1]), X.shape)
        for data, labels in ((X, y), (sparse, y), (mixed, y[::-1])):
            estimator().fit(data, labels).predict(data[:2])


def _warm_fits(loss: str, task: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12)) * (rng.random((60, 12)) < 0.5)
    code = (X[:, :3] + rng.normal(size=(60, 3))).argmax(axis=1)
    # more entries in a few rounds than the curvature is formed among (``formed.affordable``)
    many = rng.normal(size=(60, 300)) * (rng.random((60, 300)) < 0.5)
    labels = {"binary": code > 0, "multiclass": code, "multitask": np.eye(3)[code], "regression": code * 1.0}
    labels["multitarget"] = np.eye(3)[code]
    steps_on_values = [FitSettings("", penalty, alpha=1e-4, max_rounds=12) for penalty in ("l1", "l1/l2")]
    variants = [
        FitSettings("", "l1/l2"),
        FitSettings("", "l1/l2", sample=0.5),
        # residuals repaired for a free intercept, which other penalties ask for at the end of some fits only
        FitSettings("", "l2"),
        FitSettings("", "l1", update="adaboost", select="template"),
        FitSettings("", "l2", update="adaboost", select="template"),
        FitSettings("", "l2_squared", update="adaboost", select="template"),
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


def main(arguments: list[str] | None = None) -> None:
    """``python -m dboost.warm``."""
    parser = argparse.ArgumentParser(prog="python -m dboost.warm", description="compile loops before fits need them")
    parser.add_argument("--fits", choices=FITS, default="all")
    fits = parser.parse_args(arguments).fits
    print(words(warm(fits, say=lambda line: print(line, file=sys.stderr, flush=True))))


if __name__ == "__main__":
    main()
