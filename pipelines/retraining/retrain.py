"""One retraining: nothing to do, a promotion, or a refusal with its reasons.

Every step stands by itself: a challenger is a run folder, which goes on where it was broken off; its decision is a file
in it; and the pointer changes last. A call after a kill finds what is done and does the rest; a call that finds a
damaged champion goes on from the last sound one.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time as now
from typing import Any, NamedTuple

import numpy as np

from dboost import notebook_html as page_of
from dboost.data import load_manifest
from dboost.errors import DataError, UsageError
from dboost.estimators.transform_files import read_beside
from dboost.files.paths import local_path
from dboost.files.storage import write_file

from ..asynchronous import serves_asynchronous
from ..cluster import engine_on
from ..config import DataSettings
from ..console import Console, console_of_call, finite
from ..inputs import read_model
from ..runs import fingerprints
from ..runs import folder as names
from ..runs.execute import RunResult
from ..runs.execute import run as execute
from ..runs.lock import Lease, hold_lock
from ..runs.run_file import RunFile, read_run_file
from ..training import why_no_start
from .gates import Figures, Retraining, checked, read_retraining, verdicts
from .home import MODEL, PROMOTED, Home, like
from .judge import Comparison, by_chance, compare, html, label_drift, term_drift

NOTHING_NEW, DECLINED = "nothing new", "declined"
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


@serves_asynchronous
def retrain(
    config: str | os.PathLike[str] | Mapping[str, Any],
    *,
    client: Any = None,
    console: Console | None = None,
    trust: bool = False,
) -> Decision:
    """Make a challenger where there is new data, judge it, and promote it or say why not.

    Parameters
    ----------
    config : path or mapping
        A file with the tables [retrain] and [gates], or these tables; paths in a mapping are relative to the working
        folder.
    client : distributed.Client, optional
        Where the work runs; of an asynchronous one the call is awaited. In place of what the run file says.
    console : Console, optional
    trust : bool
        Whether the file, and its run file, may name hosts, programs and places to write outside of their folders.

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
    if not trust:
        plan.refuse_reaching()
    with contextlib.ExitStack() as opened:
        console = console or console_of_call(opened)
        plan.home.mkdir(parents=True, exist_ok=True)
        lease = opened.enter_context(hold_lock(plan.home, say=console.say))
        return _retrain(plan, Home(plan.home), client, console, lease)


def rollback(home: str | os.PathLike[str], *, reason: str = "", console: Console | None = None) -> tuple[str, str]:
    """Make the champion before this one the champion again; returns both versions.

    The one that is left is remembered: neither it nor one that is made of the same data and settings is promoted again.

    Parameters
    ----------
    home : path
    reason : str
        Why, for the pages of decisions.
    console : Console, optional

    Raises
    ------
    UsageError
        There is none, or another process retrains here.
    """
    path, say = local_path(home, "home"), str if console is None else console.say
    if Home(path).champion is None:
        raise UsageError("the folder holds no champion", file=str(path), hint="name the home of a retraining")
    with hold_lock(path, say=say):
        at = Home(path)
        left, now = at.go_back(reason)
        decided = at.decision(left)
        if decided is not None:
            _write_page(at, decided)
        return left, now


def _retrain(plan: Retraining, home: Home, client: Any, console: Console, lease: Lease) -> Decision:
    run = read_run_file(plan.run)
    data, label = _held_out(run, plan)
    no_start = why_no_start(run.model())
    if no_start and plan.begin == "champion":
        raise UsageError(
            f"begin = 'champion' has no meaning: {no_start}", file=str(plan.run), hint="leave begin out of [retrain]"
        )
    source, state = source_of(run), _state(run, plan)
    home.mend(console.say)
    latest, version = home.latest(), home.next()
    nothing = _nothing_new(home, latest, source, state)
    if nothing:
        console.say(f"nothing new: {nothing}; the champion is {home.champion}")
        console.event("retrained", outcome=NOTHING_NEW, champion=home.champion, why=nothing)
        return Decision(NOTHING_NEW, None, home.champion, [], latest or {})
    champion = home.model()
    begins = champion is not None and plan.begin != "nothing" and not no_start
    _readable(home.folder(version), console)
    started = time.perf_counter()
    result = _challenger(plan, home.folder(version), champion if begins else None, client, console)
    seconds = time.perf_counter() - started
    with console.stage("judge"), tempfile.TemporaryDirectory() as staging, engine_on(client) as engine:
        comparison = compare(str(result.folder / names.MODEL), None if champion is None else str(champion), data, label,
                             Path(staging), engine)  # fmt: skip
    mine = _about(result.folder, None)
    theirs = mine if champion is None else _about(champion.parent, home.decision(champion.parent.name))
    digests = {
        "source": source,
        "made": _made(result.folder, run),
        "model": fingerprints.of_model(result.folder / MODEL),
    }
    same = like(digests, home.rolled_back)
    again = "" if same is None else f"the same data and settings as {_rolled_back(same)}"
    figures, moved = _figures(comparison, mine, theirs, again)
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
            "gates": [dict(vars(one)) for one in found],
            "classes": comparison.by_class(),
            "difference": dict(zip(("mean", "standard_error"), comparison.difference())),
            "terms": moved,
            "rows": len(comparison.labels),
            "trained_rows": mine.rows,
            "labels": mine.labels,
            "passes": read_model(str(result.folder / names.MODEL)).certificate.passes,
            "seconds": round(seconds, 3),
            "state": state,
            **digests,
            "decided": now(),
        }
    )
    # Whoever has taken over meanwhile decides.
    lease.check()
    _write_page(home, values)
    home.decide(version, values)
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


def _challenger(plan: Retraining, out: Path, start: Path | None, client: Any, console: Console) -> RunResult:
    """Make a challenger; from nothing where its classes or features are such that it cannot begin at `start`."""
    overrides = [] if start is None else [f"model.start={start}"]
    try:
        return execute(str(plan.run), out=out, overrides=overrides, client=client, console=console, trust=True)
    except UsageError as error:
        if start is None or not error.what.startswith("warm_start: "):
            raise
        console.say(f"the challenger begins from nothing: {error.what.removeprefix('warm_start: ')}")
        return execute(str(plan.run), out=out, client=client, console=console, trust=True)


def _nothing_new(home: Home, latest: Mapping[str, Any] | None, source: str, state: str) -> str:
    """Why there is nothing to do; empty where a challenger is to be made."""
    made_of = "the data and the settings of the model are those of"
    same = like({"source": source}, home.rolled_back)
    if same is not None:
        return f"{made_of} {_rolled_back(same)}"
    # As where data changes for some nights and comes back.
    if home.champion is not None and (home.decision(home.champion) or {}).get("source") == source:
        return f"{made_of} the champion"
    if latest is None or latest["state"] != state:
        return ""
    # A decision about another champion than the present one, which was rolled back or damaged since, is made anew.
    stands = latest["version" if latest["outcome"] == PROMOTED else "before"] == home.champion
    return "the data, the run file and the gates are those of the last decision" if stands else ""


def _rolled_back(one: Mapping[str, Any]) -> str:
    return f"{one['version']}, which was rolled back on {one['when']}" + (f": {one['reason']}" if one["reason"] else "")


def _readable(folder: Path, console: Console) -> None:
    """Let a version that was broken off begin anew where its records of stages are damaged."""
    try:
        names.read_records(folder)
    except DataError as error:
        console.say(f"{error.file} is damaged; {folder.name} begins anew")
        (folder / names.STAGES).unlink()


def _write_page(home: Home, values: dict[str, Any]) -> None:
    """The page of a decision, beside the champion of then where that is still there."""
    version, before = str(values["version"]), values.get("before")
    models = [None if one is None or home.damage(one) else str(home.folder(one) / MODEL) for one in (version, before)]
    write_file(home.folder(version) / PAGE, html(values, *models).encode("utf-8", "backslashreplace"))


def _held_out(run: RunFile, plan: Retraining) -> tuple[DataSettings, str]:
    """The raw documents that both models are judged on, and their label column."""
    data = run.table("data")
    if "prepare" not in run.tables or data.get("test") is None or not data.get("label"):
        raise UsageError(
            "a retraining needs documents: a table [prepare], data.label, and data.test to judge on", file=str(plan.run)
        )
    return DataSettings(data=str(data["test"])), str(data["label"][0])


def source_of(run: RunFile) -> str:
    """What a model is made of, as one digest: the training data, and what is done with it."""
    data = {name: value for name, value in run.table("data").items() if name != "test"}
    tables = {"data": data, **{name: run.values.get(name, {}) for name in ("prepare", "model")}}
    return fingerprints.of_values([fingerprints.of_input(str(data["data"])), tables])


def _state(run: RunFile, plan: Retraining) -> str:
    """What a decision depends on, as one digest."""
    data = run.table("data")
    inputs = [fingerprints.of_input(str(data[name])) for name in ("data", "test")]
    settings = {table: {k: v for k, v in values.items() if table != "cluster"} for table, values in run.values.items()}
    return fingerprints.of_values([inputs, settings, vars(plan.gates), plan.begin])


def _made(folder: Path, run: RunFile) -> str:
    """What a model was made of, as one digest: the prepared rows, wherever they were, and the settings of the fit."""
    prepared = folder / names.PREPARED
    manifest = load_manifest(prepared)
    rows = fingerprints.of_output(prepared / manifest.settings["vocabulary_split"])
    words = "" if manifest.vocabulary is None else manifest.vocabulary["sha256"]
    return fingerprints.of_values([rows, words, run.values.get("model", {})])


def _figures(comparison: Comparison, now: _About, before: _About, same: str) -> tuple[Figures, list[dict[str, Any]]]:
    """What the gates look at; the first champion is compared with itself."""
    drift, moved = term_drift(before.terms, now.terms)
    shared = len(set(before.terms) & set(now.terms))
    figures = Figures(
        comparison,
        (now.rows, before.rows),
        (now.features, before.features),
        label_drift(before.labels, now.labels),
        drift,
        by_chance(before.labels, now.labels, len({*before.labels, *now.labels})),
        by_chance(before.terms, now.terms, shared),
        same,
    )
    return figures, moved


class _About(NamedTuple):
    """Training rows, features in use, counts of labels, and of documents by term, of a version."""

    rows: int
    features: int
    labels: dict[str, float]
    terms: dict[str, float]


def _about(folder: Path, decision: Mapping[str, Any] | None) -> _About:
    """A version, from its decision and its model, or its prepared folder where there is no decision yet."""
    model, transform = read_model(str(folder / MODEL)), read_beside(str(folder / MODEL))
    assert transform is not None, "a version that was judged has one"
    if decision is not None and "trained_rows" in decision:
        rows, labels = int(decision["trained_rows"]), dict(decision["labels"])
    else:
        manifest = load_manifest(folder / names.PREPARED)
        split = manifest.splits[manifest.settings["vocabulary_split"]]
        rows = int(split["rows"])
        labels = {str(label): float(count) for label, count in split.get("classes") or []}
    # idf = ln((1 + documents) / (1 + document frequency)) + 1
    counts = (1.0 + rows) / np.exp(np.asarray(transform.idf) - 1.0) - 1.0
    return _About(rows, len(model.inputs), labels, dict(zip(transform.terms, counts.tolist())))
