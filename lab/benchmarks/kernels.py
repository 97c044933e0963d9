"""``python -m lab bench kernels``: each hot loop as a share of what binds it on this machine.

Ceilings, measured in the same run with as many threads: FMA (the matrix product of the linked BLAS, float64 and
float32), DRAM (a sum over 256 MB), and rows (whole rows of a table, as large as the loop's own, read in random order by
``gather``). A loop cannot be faster than its arithmetic at the first, its stored values once from memory at the second,
and the table rows it names at the third; the largest of these times binds it. Rows of real data repeat, and then lie
nearer than the random ones: a share above 1 of that ceiling says so.

Covers: the loops that a fit spends its time in, on the arXiv abstracts with the 400 and 1,800 most frequent words held.
Does not cover: whole fits (``peers``), loops of single losses.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dboost.compiled.examples import fused
from dboost.compiled.examples import loss_of_rows as rows
from dboost.compiled.kept import njit
from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.compiled.vectors.scaled_rows import gather, padded, width
from dboost.losses import get_loss
from lab import tables
from lab.datasets import arxiv
from lab.machine import processor

COLUMNS = ("kernel", "threads", "ms", "GF/s", "GB/s rows", "binds", "share")
HELD = (400, 1_800)


@dataclass(frozen=True)
class Work:
    """What one call of a loop cannot avoid.

    Parameters
    ----------
    flops : float
    stored : float
        Bytes of stored values, read once.
    row_bytes : float
        Bytes of table rows that are named.
    table : int
        Bytes of the table they lie in.
    dtype : str
        Of the arithmetic.
    rows : str, optional
        Of the table, where that is another one.
    """

    flops: float
    stored: float
    row_bytes: float
    table: int
    dtype: str
    rows: str = ""


@njit(nogil=True, fastmath=True)
def _sum(a: Any) -> Any:
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i]
    return total


@njit(nogil=True)
def _gather_all(index: Any, value: Any, table: Any, out: Any) -> None:
    gather(index, value, 0, index.shape[0], table, out, out)


def _milliseconds(calls: list[Callable[[], Any]], repeats: int) -> float:
    """Median of the time until all calls, one a thread, are done."""
    taken = []
    with ThreadPoolExecutor(len(calls)) as pool:
        for _ in range(repeats + 1):
            began = time.perf_counter()
            for future in [pool.submit(call) for call in calls]:
                future.result()
            taken.append(1e3 * (time.perf_counter() - began))
    return statistics.median(taken[1:])


class Ceilings:
    """What the machine reaches with some threads."""

    def __init__(self, threads: int, quick: bool) -> None:
        self.threads = threads
        self.repeats = 3 if quick else 7
        self._rows: dict[tuple[int, int, str], float] = {}
        self.fma = {dtype: self._product(dtype, 400 if quick else 1_500) for dtype in ("float64", "float32")}
        half = np.ones((2**20 if quick else 2**25) // threads)
        parts = [half.copy() for _ in range(threads)]
        spent = _milliseconds([partial(_sum, a) for a in parts], self.repeats)
        self.dram = threads * half.nbytes / spent * 1e3

    def _product(self, dtype: str, n: int) -> float:
        A = np.random.default_rng(0).random((n, n)).astype(dtype)
        with threadpool_limits(self.threads):
            return 2.0 * n**3 / _milliseconds([lambda: A @ A], self.repeats) * 1e3

    def rows(self, nbytes: int, k: int, dtype: str) -> float:
        """Bytes per second of whole rows read at random from a table of `nbytes`."""
        size = np.dtype(dtype).itemsize * width(k)
        count = 1 << max(6, int(nbytes // size).bit_length() - 1)
        key = (count, k, dtype)
        if key not in self._rows:
            rng = np.random.default_rng(1)
            table = np.ones((count, width(k)), dtype)
            value = np.ones(400_000 // self.threads, np.float32)
            calls: list[Callable[[], Any]] = []
            for _ in range(self.threads):
                index = rng.integers(0, count, value.shape[0]).astype(np.int32)
                out = np.zeros(width(k), dtype)
                calls.append(partial(_gather_all, index, value, table, out))
            spent = _milliseconds(calls, self.repeats)
            self._rows[key] = self.threads * value.shape[0] * size / spent * 1e3
        return self._rows[key]

    def judge(self, work: Work, spent: float, k: int) -> dict[str, Any]:
        """The ceiling that binds, and how near the loop comes."""
        least = {"FMA": work.flops / self.fma[work.dtype], "DRAM": work.stored / self.dram}
        if work.row_bytes:
            least["rows"] = work.row_bytes / self.rows(work.table, k, work.rows or work.dtype)
        binds = max(least, key=lambda name: least[name])
        return {
            "GF/s": 1e-6 * work.flops / spent,
            "GB/s rows": 1e-6 * work.row_bytes / spent,
            "binds": binds,
            "share": 1e3 * least[binds] / spent,
        }


class Case:
    """The loops on one data set with some columns held; each gives a call on a range of examples or columns."""

    def __init__(self, X: Any, y: NDArray[np.int32], k: int, held: int) -> None:
        rng = np.random.default_rng(0)
        self.m, self.k, self.w = X.shape[0], k, width(k)
        self.csc = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data.astype(np.float32))
        active = np.sort(np.argsort(-np.diff(X.indptr), kind="stable")[:held]).astype(np.int64)
        self.a = active.shape[0]
        self.cut = columns.cut_rows(*self.csc, active, self.m)
        self.by_column = columns.transpose(*self.cut, self.a)
        self.W = rng.normal(size=(self.a, k))
        self.b = np.zeros(k)
        self.weight = np.ones(self.m)
        self.target = get_loss("multinomial").target(y)
        self.h, self.rank_one = np.zeros((self.m, self.w), np.float32), np.zeros(self.m)
        at: Any = (*self.cut, self.W, self.b)
        examples: Any = (*at, self.target, self.weight)
        curvature: Any = (*examples, self.h, self.rank_one)
        fused.curvature(*curvature)
        residual: Any = (*examples, np.zeros(k))
        self.U = fused.residuals(*residual)[0]
        self.rounded = self.U.astype(np.float32)
        self.F = padded(fused.margins(*at))

    def _examples(self, part: int, parts: int) -> tuple[slice, Any]:
        """A range of examples, and their cut."""
        pointer, slots, values = self.cut
        some = slice(self.m * part // parts, self.m * (part + 1) // parts)
        begin, end = pointer[some.start], pointer[some.stop]
        return some, (pointer[some.start : some.stop + 1] - begin, slots[begin:end], values[begin:end])

    def calls(self, name: str, parts: int) -> list[Callable[[], Any]]:
        """The calls that together are one pass."""
        return [getattr(self, f"_{name}")(part, parts) for part in range(parts)]

    def _full_gradient(self, part: int, parts: int) -> Callable[[], Any]:
        return self._gradient(self.U, part, parts)

    def _rounded_gradient(self, part: int, parts: int) -> Callable[[], Any]:
        return self._gradient(self.rounded, part, parts)

    def _gradient(self, U: NDArray[Any], part: int, parts: int) -> Callable[[], Any]:
        pointer = self.csc[0]
        edges = np.searchsorted(pointer, np.linspace(0, pointer[-1], parts + 1))
        edges[0], edges[-1] = 0, pointer.shape[0] - 1
        chosen = np.arange(edges[part], edges[part + 1])
        out = np.empty((chosen.shape[0], self.k))
        arguments: Any = (*self.csc, U, chosen, out)
        return lambda: columns.column_gradient(*arguments)

    def _margins(self, part: int, parts: int) -> Callable[[], Any]:
        _, cut = self._examples(part, parts)
        arguments: Any = (*cut, self.W, self.b)
        return lambda: fused.margins(*arguments)

    def _residuals(self, part: int, parts: int) -> Callable[[], Any]:
        some, _ = self._examples(part, parts)
        F, total = self.F[some], np.zeros(self.k)
        U = np.zeros_like(F)
        target = self.target._replace(code=self.target.code[some])
        return lambda: rows.residuals(F, 0, self.k, target, self.weight[some], U, total)

    def _active_gradient(self, part: int, parts: int) -> Callable[[], Any]:
        some, cut = self._examples(part, parts)
        target = self.target._replace(code=self.target.code[some])
        G, total = np.zeros_like(self.W), np.zeros(self.k)
        arguments: Any = (*cut, self.W, self.b, target, self.weight[some], G, total)
        return lambda: fused.active_gradient(*arguments)

    def _hessian_product(self, part: int, parts: int) -> Callable[[], Any]:
        some, cut = self._examples(part, parts)
        out, total = np.zeros_like(self.W), np.zeros(self.k)
        arguments: Any = (*cut, self.h[some], self.rank_one[some], self.W, self.b, out, total)
        return lambda: fused.hessian_product(*arguments)

    def _descent_sweep(self, part: int, parts: int) -> Callable[[], Any]:
        G, lam = np.zeros_like(self.W), np.zeros(self.a)
        diagonal, D = np.ones_like(self.W), np.zeros_like(self.W)
        model = (self.h, self.rank_one, G + 1e-3, self.W, lam, diagonal, 1e-9 * diagonal)
        arguments: Any = (*self.by_column, *model, 0, 1.0, 0.0, 1, 0, D)
        return lambda: descent.newton_descent(*arguments)

    def work(self, name: str) -> Work:
        """What the whole pass cannot avoid."""
        k, w, cut, full = self.k, self.w, self.cut[1].shape[0], self.csc[1].shape[0]
        stored = 8.0
        return {
            "full_gradient": Work(2.0 * full * k, stored * full, 8.0 * w * full, 8 * w * self.m, "float64"),
            "rounded_gradient": Work(
                2.0 * full * k, stored * full, 4.0 * w * full, 4 * w * self.m, "float64", "float32"
            ),
            "margins": Work(2.0 * cut * k, stored * cut, 8.0 * w * cut, 8 * w * self.a, "float64"),
            "residuals": Work(30.0 * self.m * k, 16.0 * self.m * w, 0.0, 0, "float64"),
            "active_gradient": Work(
                4.0 * cut * k + 30.0 * self.m * k, stored * cut, 24.0 * w * cut, 8 * w * self.a, "float64"
            ),
            "hessian_product": Work(4.0 * cut * k, stored * cut, 12.0 * w * cut, 4 * w * self.a, "float32"),
            # a pull reads V; a push reads h and V and writes V
            "descent_sweep": Work(7.0 * cut * k, 2 * stored * cut, 16.0 * w * cut, 4 * w * self.m, "float32"),
        }[name]


OF_ALL = ("full_gradient", "rounded_gradient")
KERNELS = (*OF_ALL, "margins", "residuals", "active_gradient", "hessian_product", "descent_sweep")
SERIAL = ("descent_sweep",)


def run(out: Path, quick: bool) -> int:
    """Measure and write the page.

    Parameters
    ----------
    out : Path
        Folder for ``kernels.md`` and ``kernels.json``.
    quick : bool
        The made-up twin of the data, and few repeats.
    """
    data = arxiv.synthetic() if quick else arxiv.load(n_documents=60_000, n_test=0)
    X = data.X.tocsc()
    X.sort_indices()
    names, y = np.unique(data.y, return_inverse=True)
    k = names.shape[0]
    lines: list[dict[str, Any]] = []
    ceilings = {threads: Ceilings(threads, quick) for threads in (1, 2)}
    for held in HELD:
        case = Case(X, y.astype(np.int32), k, held)
        for name in KERNELS:
            if name in OF_ALL and held != HELD[0]:
                continue
            for threads, machine in ceilings.items():
                if threads > 1 and name in SERIAL:
                    continue
                spent = _milliseconds(case.calls(name, threads), machine.repeats)
                line = {"kernel": name if name in OF_ALL else f"{name}, {held:,} held", "threads": threads}
                lines.append({**line, "ms": spent, **machine.judge(case.work(name), spent, k)})
    about = (
        f"{data.name}: {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz:,} nonzeros, {k} classes. {processor()}. "
        + " ".join(
            f"With {threads} thread{'s' * (threads > 1)}: FMA {1e-9 * c.fma['float64']:.0f} GF/s float64, "
            f"{1e-9 * c.fma['float32']:.0f} float32; DRAM {1e-9 * c.dram:.1f} GB/s."
            for threads, c in ceilings.items()
        )
    )
    table = tables.markdown(lines, COLUMNS)
    print(f"{about}\n\n{table}", flush=True)
    what = " ".join((__doc__ or "").split("\n\n")[1].split())
    tables.write(out / "kernels.md", "Each loop against what binds it", [about, table, what])
    (out / "kernels.json").write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    return 0
