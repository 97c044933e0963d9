"""One retraining: nothing to do, a promotion, or a refusal with its reasons.

Covers: ``retrain`` and ``rollback``, for the command line and an orchestrator alike.
Does not cover: the run of a challenger (``runs``), figures (``judge``), gates, the pointer (``home``).

Every step stands by itself: a challenger is a run folder, which goes on where it was broken off; its decision is a file
in it; and the pointer changes last. A call after a kill finds what is done and does the rest.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dboost import notebook_html as page_of
from dboost.data import load_manifest
from dboost.errors import UsageError
from dboost.estimators.transform_files import read_beside
from dboost.files.paths import local_path
from dboost.files.storage import sha256_json, write_file

from ..cluster import engine_on
from ..config import DataSettings
from ..console import Console, finite
from ..inputs import read_model
from ..runs import fingerprints
from ..runs import folder as names
from ..runs.execute import run as execute
from ..runs.lock import held
from ..runs.run_file import RunFile, read_run_file
from .config import Retraining, checked, read_retraining
from .gates import Figures, as_values, verdicts
from .home import DECISION, Home
from .judge import Comparison, compare, label_drift, term_drift
from .page import html

NOTHING_NEW, PROMOTED, DECLINED = "nothing new", "promoted", "declined"
PAGE = "decision.html"


@dataclass(frozen=True)
class Decision:
    """What came of a retraining.

    Parameters
    ----------
    outcome : {"nothing new", "promoted", "declined"}
    version : str or None
        That was judged; None where there was nothing new.
    champion : str or None
        That is in use now.
    reasons : list of str
        Gates that were not passed, in words.
    values : dict
        Everything that was found, as in ``decision.json``.
    """

    outcome: str
    version: str | None
    champion: str | None
    reasons: list[str]
    values: dict[str, Any]

    def _repr_html_(self) -> str:
        judged = "nothing was judged" if self.version is None else f"{self.version} was judged"
        head = f"{self.outcome}: {judged}, the champion is {self.champion}"
        gates = self.values.get("gates") if self.version is not None else None
        if not gates:
            return page_of.block(page_of.lines([head]))
        verdict = {True: "passed", False: "not passed"}
        rows = [[one["gate"], *map(page_of.words, (verdict[one["passed"]], one["words"]))] for one in gates]
        return page_of.block(page_of.lines([head]), page_of.table(["gate", "", "found"], rows))


def retrain(
    config: str | os.PathLike[str] | Mapping[str, Any], *, client: Any = None, console: Console | None = None
) -> Decision:
    """Make a challenger where there is new data, judge it, and promote it or say why not.

    Parameters
    ----------
    config : path or mapping
        A file with the tables [retrain] and [gates], or these tables; paths in a mapping are relative to the working
        folder.
    client : distributed.Client, optional
        Where the work runs, in place of what the run file says.
    console : Console, optional

    Returns
    -------
    Decision

    Raises
    ------
    UsageError
        A file without meaning, or another process retrains here.
    DataError, ClusterError, StorageError, KeyboardInterrupt
        During it; the next call goes on.
    """
    plan = checked(config, Path.cwd()) if isinstance(config, Mapping) else read_retraining(os.fspath(config))
    quiet = open(os.devnull, "w", encoding="utf-8") if console is None else None
    try:
        console = console or Console("plain", out=quiet)
        plan.home.mkdir(parents=True, exist_ok=True)
        with held(plan.home):
            return _retrain(plan, Home(plan.home), client, console)
    finally:
        if quiet is not None:
            quiet.close()


def rollback(home: str | os.PathLike[str]) -> tuple[str, str]:
    """Make the champion before this one the champion again; returns both versions.

    Raises
    ------
    UsageError
        There is none, or another process retrains here.
    """
    path = local_path(home, "home")
    if Home(path).champion is None:
        raise UsageError("the folder holds no champion", file=str(path), hint="name the home of a retraining")
    with held(path):
        return Home(path).go_back()


def _retrain(plan: Retraining, home: Home, client: Any, console: Console) -> Decision:
    run = read_run_file(str(plan.run))
    data, label = _held_out(run, plan)
    state = _state(run, plan)
    finish(home)
    latest, version = home.latest(), home.next()
    if latest is not None and latest["state"] == state and home.decision(version) is None:
        console.say("nothing new: the data, the run file and the gates are those of the last decision")
        console.event("retrained", outcome=NOTHING_NEW, champion=home.champion)
        return Decision(NOTHING_NEW, None, home.champion, [], latest)
    champion = home.model()
    overrides = [] if champion is None or plan.begin == "nothing" else [f"model.start={champion}"]
    started = time.perf_counter()
    result = execute(str(plan.run), out=home.folder(version), overrides=overrides, client=client, console=console)
    seconds = time.perf_counter() - started
    with console.stage("judge"), tempfile.TemporaryDirectory() as staging, engine_on(client) as engine:
        comparison = compare(str(result.folder / names.MODEL), None if champion is None else str(champion), data, label,
                             Path(staging), engine)  # fmt: skip
    figures, moved = _figures(comparison, result.folder, None if champion is None else champion.parent)
    found = verdicts(figures, plan.gates)
    # the first of its kind is judged by itself: there is nothing that it could be worse than
    outcome = PROMOTED if all(one.passed for one in found) else DECLINED
    reasons = [f"{one.gate}: {one.words}" for one in found if not one.passed]
    values = finite(
        {
            "outcome": outcome,
            "version": version,
            "before": home.champion,
            "reasons": reasons,
            "gates": as_values(found),
            "classes": comparison.by_class(),
            "difference": dict(zip(("mean", "standard_error"), comparison.difference())),
            "terms": moved,
            "rows": len(comparison.labels),
            "passes": read_model(str(result.folder / names.MODEL)).certificate.passes,
            "seconds": round(seconds, 3),
            "state": state,
            "decided": time.time(),
        }
    )
    page = html(values, str(result.folder / names.MODEL), None if champion is None else str(champion))
    write_file(result.folder / PAGE, page.encode("utf-8", "backslashreplace"))
    write_file(result.folder / DECISION, (json.dumps(values, indent=1, default=str) + "\n").encode())
    if outcome == PROMOTED:
        home.promote(version)
    console.event("retrained", outcome=outcome, version=version, champion=home.champion, reasons=reasons)
    console.say(f"{outcome}: {version}; the champion is {home.champion}   {result.folder / PAGE}")
    for reason in reasons:
        console.say(f"  {reason}")
    gone = [] if plan.keep is None else home.prune(plan.keep)
    if gone:
        console.event("versions_deleted", versions=gone)
        console.say(f"keep = {plan.keep}: deleted {', '.join(gone)}")
    return Decision(outcome, version, home.champion, reasons, values)


def finish(home: Home) -> None:
    """Promote what was decided and not yet pointed to, as a kill between the two leaves it."""
    latest = home.latest()
    if latest is not None and latest["outcome"] == PROMOTED and latest["before"] == home.champion:
        home.promote(str(latest["version"]))


def _held_out(run: RunFile, plan: Retraining) -> tuple[DataSettings, str]:
    """The raw documents that both models are judged on, and their label column."""
    data = run.table("data")
    if "prepare" not in run.tables or data.get("test") is None or not data.get("label"):
        raise UsageError(
            "a retraining needs documents: a table [prepare], data.label, and data.test to judge on", file=str(plan.run)
        )
    return DataSettings(data=str(data["test"])), str(data["label"][0])


def _state(run: RunFile, plan: Retraining) -> str:
    """What a decision depends on, as one digest."""
    data = run.table("data")
    inputs = [fingerprints.of_input(str(data[name])) for name in ("data", "test")]
    settings = {table: {k: v for k, v in values.items() if table != "cluster"} for table, values in run.values.items()}
    return sha256_json(json.loads(json.dumps([inputs, settings, vars(plan.gates), plan.begin], default=str)))


def _figures(comparison: Comparison, mine: Path, theirs: Path | None) -> tuple[Figures, list[dict[str, Any]]]:
    """What the gates look at; the first champion is compared with itself."""
    theirs = mine if theirs is None else theirs
    now, before = _about(mine), _about(theirs)
    drift, moved = term_drift(before.terms, now.terms)
    rows, features = (now.rows, before.rows), (now.features, before.features)
    return Figures(comparison, rows, features, label_drift(before.labels, now.labels), drift), moved


class _About(NamedTuple):
    """Training rows, features in use, counts of labels, and of documents by term, of a version."""

    rows: int
    features: int
    labels: dict[str, float]
    terms: dict[str, float]


def _about(folder: Path) -> _About:
    """A version, from its prepared folder and its model."""
    manifest = load_manifest(folder / names.PREPARED)
    split = manifest.splits[manifest.settings["vocabulary_split"]]
    model, transform = read_model(str(folder / names.MODEL)), read_beside(str(folder / names.MODEL))
    assert transform is not None, "a version that was judged has one"
    labels = {str(label): float(count) for label, count in split.get("classes") or []}
    rows = int(split["rows"])
    # idf = ln((1 + documents) / (1 + document frequency)) + 1
    counts = (1.0 + rows) / np.exp(np.asarray(transform.idf) - 1.0) - 1.0
    return _About(rows, len(model.inputs), labels, dict(zip(transform.terms, counts.tolist())))
