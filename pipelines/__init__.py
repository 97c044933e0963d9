"""Runs: the command line, run files, the demo, and what they share. Installed as ``dboost_pipelines``.

Owns paths, settings, printing and exit codes; owns no algorithm. It uses the public names of ``dboost``; nothing in
``dboost`` imports it. For a notebook or an orchestrator: ``prepare``, ``train``, ``evaluate`` and ``predict`` do what
the commands of these names do, with ``client=`` and the flags as arguments; ``run("run.toml")`` does what `dboost run`
does and returns a ``RunResult``, ``resume(folder)`` goes on with a run, ``list_runs(folder)`` says how each stands, and
``retrain("retrain.toml")`` does what `dboost retrain` does and returns a ``Decision``; ``preflight(data)`` says what a
training will take, before it begins.

The way of `dboost run`: ``cli.main`` finds the command and its settings (``config``), ``commands.run.do_run`` calls
``runs.execute.run``, which reads the file (``runs.run_file``), refuses what cannot work (``runs.foresight``), locks the
folder (``runs.lock``) and does each of ``runs.stages.STAGES`` that its inputs (``runs.fingerprints``) say is not done:
what a stage does is a function of the command of its name, on a cluster of ``cluster`` and ``places``. ``console`` and
``pages`` print it. `dboost retrain` (``retraining``) is such a run, judged beside the champion.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Decision": "retraining.retrain",
    "RunResult": "runs.execute",
    "StageResult": "functions",
    "evaluate": "functions",
    "list_runs": "runs.listing",
    "predict": "functions",
    "preflight": "before_training",
    "prepare": "functions",
    "resume": "runs.execute",
    "retrain": "retraining.retrain",
    "rollback": "retraining.retrain",
    "run": "runs.execute",
    "train": "functions",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
