"""The problems of the benchmarks: data sets, each with a tiny made-up twin, and kinds of problems on them.

Covers: which data, loss, penalty and strength. Does not cover: peers (``peers``), measuring (``measure``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.process import store
from lab.datasets import arxiv, bibtex, imdb, libsvm, mnist, numbers, stackoverflow
from lab.datasets.base import Dataset, tfidf
from lab.oracle import plain
from lab.oracle.problems import Encoded, encode

RATIOS = (0.3, 0.1, 0.02)
"""Strengths, as shares of the smallest at which W = 0."""
WEAK = (0.5, 0.005, 0.001, 0.0005)
"""The strengths of text beyond those: a few words, and models that hold most columns."""
SMALL = (0.1, 0.01, 0.001)
"""The strengths of tables whose fit takes milliseconds."""
RIDGE = "l2_squared"
"""The penalty under which no strength empties the model: its strengths are shares of the largest of l1."""


@dataclass(frozen=True)
class Set:
    """A data set."""

    loss: str
    # Reads it from the folder of the data sets; labels as the losses take them.
    load: Callable[[], Encoded]
    # A tiny made-up set of the same shape of problem.
    twin: Callable[[], Encoded]


def _set(loss: str, load: Callable[[], Dataset], twin: Callable[[], Dataset], dense: bool = False) -> Set:
    def encoded(made: Callable[[], Dataset]) -> Callable[[], Encoded]:
        def read() -> Encoded:
            found = encode(made())
            return replace(found, X=found.X.toarray()) if dense and hasattr(found.X, "toarray") else found

        return read

    return Set(loss, encoded(load), encoded(twin))


def _table(name: str) -> Dataset:
    """A small table of numbers, each column in units of its deviation."""
    X, y = numbers.rows(name)
    columns = np.array([str(j) for j in range(X.shape[1])])
    return Dataset(name, X / X.std(axis=0), y, X[:0], y[:0], columns, "binary" if set(y) == {-1, 1} else "multiclass")


def _titles(rows: int = 200_000, seed: int = 20200101) -> Dataset:
    texts, primary = arxiv.titles()
    chosen = np.sort(np.random.default_rng(seed).permutation(len(texts))[:rows])
    labels = np.array([str(name).split(".")[0] for name in primary[chosen]], dtype=np.str_)
    X, X_test, names = tfidf([texts[i] for i in chosen], [])
    return Dataset("arxiv-titles", X, labels, X_test, labels[:0], names, "multiclass")


def _archives() -> Dataset:
    return arxiv.load(n_documents=60_000, n_test=0)


def _categories() -> Encoded:
    names, codes = np.unique(arxiv.primary_categories(), return_inverse=True)
    return replace(encode(_archives()), name=f"arxiv-categories ({len(names)})", y=codes.astype(np.int64))


def _categories_twin() -> Encoded:
    """The five topics of the twin, each cut in two."""
    data = encode(arxiv.synthetic())
    halves = np.random.default_rng(0).integers(0, 2, data.y.shape[0])
    return replace(data, y=np.unique(2 * data.y + halves, return_inverse=True)[1].astype(np.int64))


SETS: dict[str, Set] = {
    "imdb": _set("log", imdb.load, imdb.synthetic),
    "reuters-lasvm": _set("log", lambda: libsvm.load(name="reuters_lasvm"), libsvm.synthetic),
    "a9a": _set("log", lambda: libsvm.load(name="a9a"), libsvm.synthetic),
    "w8a": _set("log", lambda: libsvm.load(name="w8a"), libsvm.synthetic),
    "arxiv-archives": _set("multinomial", _archives, arxiv.synthetic),
    "arxiv-categories": Set("multinomial", _categories, _categories_twin),
    # 200,000 short rows, for what pays on many rows only; no kind below holds it, `lab ablation` does.
    "arxiv-titles": _set("multinomial", _titles, arxiv.synthetic),
    "stackoverflow20k": _set("multinomial", stackoverflow.load, stackoverflow.synthetic),
    # A third of the images: with all of them the dense problems alone would fill the hour of the whole benchmark.
    "mnist": _set("multinomial", lambda: mnist.load(n_train=20_000), mnist.synthetic, dense=True),
    "bibtex": _set("multitask", lambda: bibtex.load(name="bibtex"), bibtex.synthetic),
    "german": _set("log", lambda: _table("german"), libsvm.synthetic, dense=True),
    "ringnorm": _set("log", lambda: _table("ringnorm"), libsvm.synthetic, dense=True),
    "pendigits": _set("multinomial", lambda: _table("pendigits"), mnist.synthetic, dense=True),
    "yeast": _set("multitask", lambda: bibtex.load(name="yeast"), bibtex.synthetic),
    "delicious": _set("multitask", lambda: bibtex.load(name="delicious"), bibtex.synthetic),
}


@dataclass(frozen=True)
class Problem:
    """One data set, loss, penalty and strength; never an intercept."""

    # Names of its kind and of its data set; the penalty.
    kind: str
    data: str
    penalty: str
    # alpha / alpha_max.
    ratio: float

    @property
    def name(self) -> str:
        """As it is asked for and shown."""
        return f"{self.data} {self.penalty} {self.ratio:g}"

    @property
    def loss(self) -> str:
        """Loss of its data set."""
        return SETS[self.data].loss


@dataclass(frozen=True)
class Kind:
    """Problems whose ratios are averaged together."""

    name: str
    title: str
    data: tuple[str, ...]
    penalties: tuple[str, ...]
    # The geometric mean of the ratios to the fastest peer that is aimed at.
    goal: float
    ratios: tuple[float, ...] = RATIOS

    def problems(self) -> Iterator[Problem]:
        """All problems, those of one data set and penalty together."""
        for data in self.data:
            for penalty in self.penalties:
                for ratio in self.ratios:
                    yield Problem(self.name, data, penalty, ratio)


_TEXT = ("stackoverflow20k", "arxiv-archives", "mnist", "arxiv-categories")
_GROUPS = ("l1/l2", "l1/linf")
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("binary-l1", "binary, l1", ("imdb", "reuters-lasvm", "a9a", "w8a"), ("l1",), 2.0),
        Kind("multinomial-l1", "multinomial, l1", _TEXT, ("l1",), 8.0),
        Kind("multinomial-groups", "multinomial, l1/l2 and l1/linf", _TEXT, _GROUPS, 15.0),
        Kind("multitask-groups", "multitask, l1/l2 and l1/linf", ("bibtex", "delicious"), _GROUPS, 15.0),
        Kind("weak-l1", "binary text, l1, from 0.5 to 0.0005", ("imdb", "reuters-lasvm"), ("l1",), 2.0, WEAK),
        Kind("small-l1", "small tables of two classes, l1", ("german", "ringnorm"), ("l1",), 2.0, SMALL),
        Kind("small-classes", "a small table of ten classes, l1", ("pendigits",), ("l1",), 2.0, SMALL),
        Kind("small-tasks", "a small table of 14 tasks, l1/l2", ("yeast",), ("l1/l2",), 2.0, SMALL),
        Kind("elastic-net", "binary, elastic net", ("imdb", "german", "ringnorm"), ("elastic_net",), 2.0, SMALL),
        Kind("ridge", "binary and ten classes, ridge", ("imdb", "ringnorm", "pendigits"), (RIDGE,), 2.0, SMALL),
    )
}


def chosen(words: tuple[str, ...] = ()) -> list[Problem]:
    """Problems whose kind is one of the words, or whose name contains one; all of them for no words."""
    every = [problem for kind in KINDS.values() for problem in kind.problems()]
    return [p for p in every if not words or any(word == p.kind or word in p.name for word in words)]


@dataclass(frozen=True)
class Group:
    """All strengths that are asked for of one data set and penalty."""

    problems: tuple[Problem, ...]
    data: Encoded
    penalty: str
    # Where X and y are stored; also the place for what processes write.
    folder: Path

    def opening(self, threads: int) -> dict[str, Any]:
        """What a worker is told when it opens the problem; strengths are shares of its ``alpha_max``."""
        high = largest(self.data, self.penalty)
        return {"loss": self.data.loss, "penalty": self.penalty, "alpha_max": high, "threads": threads}


def largest(data: Encoded, penalty: str) -> float:
    """The least strength at which W = 0; under a ridge, which has none, that of l1."""
    return plain.alpha_max(data.X, data.y, "l1" if penalty == RIDGE else penalty, data.loss, False)


def laid_out(problems: Iterable[Problem], scratch: Path, twins: bool) -> Iterator[Group]:
    """The groups in the order of `problems`, each stored in a folder of `scratch` before it is yielded.

    `problems`: those of one data set follow on one another, and of them those of one penalty. `twins`: the tiny
    synthetic twin of each data set in its place.
    """
    for name, of_set in groupby(problems, key=lambda problem: problem.data):
        data = SETS[name].twin() if twins else SETS[name].load()
        if hasattr(data.X, "sort_indices"):
            # A vectoriser leaves the columns of a row in any order; everyone gets the canonical form.
            data.X.sort_indices()
        folder = scratch / name
        store(folder, data.X, data.y)
        for penalty, group in groupby(of_set, key=lambda problem: problem.penalty):
            yield Group(tuple(group), data, penalty, folder)
