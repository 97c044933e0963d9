"""What happens when the compiled loops of a fit are not there yet: two processes share it, and a long wait is said.

Covers: the line on the logger "dboost", and a second process that compiles the longest loops of a fit, those of the
Newton steps of several outputs or of one, while this one compiles those that come before them. Does not cover: where
they are kept (``dboost.kernel_cache``), or compiling all there are (``dboost.warm``).

Numba compiles under a lock, so threads would wait for each other; two processes meet in the folder where compiled loops
are kept. What a loop is compiled for is the types of its arguments, so it is called with a row or two of them.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
from numba.core import event

from dboost.compiled.kept import kept
from dboost.compiled.solves import descent, one_output, positive, quadratic
from dboost.compiled.vectors.scaled_rows import padded
from dboost.engine.machine import available_cores
from dboost.kernel_cache import VARIABLE, lasting

# Nobody waits longer for the other process: by then, compiling here would have been done.
_PATIENCE = 30.0


# Seconds of compiling of which nothing is said: few notice so short a wait.
SILENT = 2.0


class Announcer(event.Listener):
    """Says once that loops of dboost are compiled, when that takes longer than nobody would notice."""

    def __init__(self) -> None:
        self.said = False
        self._spent = 0.0
        self._begun: list[float] = []

    def on_start(self, event: Any) -> None:
        """Numba begins to compile a function, which it has not found where compiled loops are kept."""
        ours = event.data["dispatcher"].py_func.__module__.startswith("dboost.")
        if self.said or not (self._begun or ours):
            return
        self._begun.append(monotonic())
        if self._spent + monotonic() - self._begun[0] >= SILENT:
            self._say()

    def on_end(self, event: Any) -> None:
        """Numba has compiled it; what it needed for it ended before."""
        if not self._begun:
            return
        begun = self._begun.pop()
        if not self._begun:
            self._spent += monotonic() - begun

    def _say(self) -> None:
        self.said = True
        self._begun.clear()
        kept = (
            f"once: later processes find them in {os.environ.get(VARIABLE) or Path(__file__).parent}"
            if lasting()
            else f"for this process only; set {VARIABLE} to a folder it can write"
        )
        # A warning, since the standard library shows no less to those who have set up no logging, and ten silent
        # seconds are what nobody expects of a small fit.
        logging.getLogger("dboost").warning("compiling the loops that this kind of fit runs, %s", kept)


_announcer = Announcer()


def announce() -> None:
    """From now on this process says when it begins to compile; any number of calls is as one."""
    if _announcer not in event._registered["numba:compile"]:
        event.register("numba:compile", _announcer)  # type: ignore[no-untyped-call]


def silence() -> None:
    """From now on this process says nothing: who called it knows that it compiles."""
    _announcer.said = True


def loaded(dispatcher: Any) -> bool:
    """Whether this process has a loop, compiled or from a file."""
    return bool(dispatcher.signatures)


class Beside:
    """The process that compiles beside this one, if there is one.

    Examples
    --------
    >>> from dboost.compiled.solves import descent
    >>> Beside().wait_for(descent._newton_descent)  # none was started, so nobody is waited for
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, outputs: int, values: str = "float32") -> None:
        """Begin, where compiled loops are kept for both processes, there is a core for it, and they are not there.

        Parameters
        ----------
        outputs : int
            Of the fit that comes.
        values : str
            The dtype of its stored values.
        """
        last = descent._newton_descent if outputs > 1 else one_output.descend
        if loaded(last):
            return  # it need not look for files, nor count cores, in each of a thousand fits
        if self._process is not None or not lasting() or available_cores() < 2 or kept(last):
            return
        call = "compile_several()" if outputs > 1 else f"compile_one({values!r})"
        what = f"import {__name__} as this; this.{call}"
        null = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen([sys.executable, "-c", what], stdin=null, stdout=null, stderr=null)
        except OSError:  # there is no room for another process, so this one compiles all by itself
            return

    def wait_for(self, dispatcher: Any) -> None:
        """Return when the process has compiled a function, or has ended; at once where there is none."""
        if self._process is None:
            return
        until = monotonic() + _PATIENCE
        while self._process.poll() is None and not kept(dispatcher) and monotonic() < until:
            sleep(0.02)
        if self._process.poll() is not None:
            self._process = None


beside = Beside()


def compile_several() -> None:
    """Compile the loops of the Newton step of several outputs, in the order in which a fit comes to them."""
    pointer, one = np.array([0, 1]), np.zeros(1, np.int32)
    values, ones = np.ones(1, np.float32), np.ones(1)
    h = padded(np.ones((1, 2), np.float32), np.float32)
    G, W, diagonal, damping, D = (np.zeros((1, 2)) for _ in range(5))
    model = (pointer, one, values, h, np.zeros(1), G, W, ones, diagonal, damping)
    descent.newton_descent(*model, 0, 0.0, 0.0, 0.0, 1, 0, D, 0.0, np.zeros(1, np.int8))
    factors = np.eye(2)[None].copy()
    positive.factor_blocks(factors, 1e-12)
    positive.solve_blocks(factors, np.zeros((1, 2), np.int64), np.zeros(2), np.zeros(2))


def compile_one(values: str) -> None:
    """Compile the loops of the Newton step of one output, in the order in which a default fit comes to them."""
    pointer, one, ones = np.array([0, 1]), np.zeros(1, np.int32), np.ones(1)
    places, single = np.zeros(1, np.int64), np.ones(1, np.float32)
    quadratic.gram(pointer, one, np.ones(1, values), places, ones, True)
    quadratic.minimise(np.eye(2), np.arange(2), np.ones(2), np.zeros(2), 0.0, 1, 0.0, np.zeros(2), np.zeros(2))
    step = places, single, np.zeros(1), np.zeros(1), ones, ones, ones
    one_output.descend(pointer, one, single, *step, False, 1, 0.0, 0, np.zeros(1), np.zeros(1, np.int8))
