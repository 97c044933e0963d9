"""Inputs that have no meaning, through the command line and through Python: one line, and nothing is changed.

Covers: commands that are refused with exit code 2 or 3, one line on stderr that names what is wrong, no traceback,
and files as they were; calls that raise an error of ours of one line that names it, or, of arrays in memory, the
ValueError of scikit-learn's own checks in scikit-learn's words.
Does not cover: faults of the system in the middle of work (``torn_writes``, ``hangs``).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

import dboost
from dboost.errors import DboostError
from lab.campaign.tally import Tally
from lab.run_kills import write_documents
from pipelines.cli import main as command

LONGEST = 300
"""Characters of a line that is still read."""

USAGE, DATA = 2, 3
ON_CLUSTERS = ("train", "prepare", "path", "predict", "evaluate")
LOCAL = ("--workers", "0")
NAN, INF = float("nan"), float("inf")
Trial = Callable[[Tally], None]

COMMANDS: tuple[tuple[str, int, str], ...] = (
    ("", USAGE, "which command"),
    ("trian", USAGE, "did you mean 'train'"),
    ("train", USAGE, "data is missing"),
    ("train {numbers}", USAGE, "out is missing"),
    ("train {numbers} --label y --alhpa 1", USAGE, "did you mean '--alpha'"),
    ("train {numbers} --label y --out {out} --alpha -1", USAGE, "--alpha: found '-1'"),
    ("train {numbers} --label y --out {out} --alpha nan", USAGE, "--alpha: found 'nan'"),
    ("train {numbers} --label y --out {out} --alpha", USAGE, "expected one argument"),
    ("train {numbers} --label y --out {out} --penalty l1/l3", USAGE, "l1/l3"),
    ("train {numbers} --label y --out {out} --loss hinge", USAGE, "hinge"),
    ("train {numbers} --label y --out {out} --update sgd", USAGE, "sgd"),
    ("train {numbers} --label y --out {out} --tol 0", USAGE, "tol"),
    ("train {numbers} --label y --out {out} --max-rounds 0", USAGE, "max-rounds"),
    ("train {numbers} --label y --out {out} --penalty none --alpha 1", USAGE, "none"),
    ("train {numbers} --label y --out {out} --gamma 1", USAGE, "--gamma"),
    ("train {numbers} --label z --out {out}", DATA, "'z'"),
    ("train {numbers} --label y --weight w --out {out}", DATA, "'w'"),
    ("train {numbers} --label y --features a,c --out {out}", DATA, "'c'"),
    ("train {numbers} --label y --out {numbers}", USAGE, "exists"),
    ("train {missing} --label y --out {out}", DATA, "missing"),
    ("train {documents} --label label --out {out}", DATA, "text"),
    ("inspect {model} --top 0", USAGE, "top"),
    ("train {numbers} --label y --out {out} --scheduler tcp://u:p@h:1", USAGE, "names a user"),
    ("train {prepared} --split valid --out {out}", USAGE, "valid"),
    ("prepare {documents} --label label", USAGE, "out is missing"),
    ("prepare {documents} --label kind --out {out}", DATA, "'kind'"),
    ("prepare {documents} --text body --label label --out {out}", DATA, "'body'"),
    ("prepare {documents} --label label --tokenizer word --out {out}", USAGE, "did you mean 'words'"),
    ("prepare {documents} --label label --min-df 100000 --out {out}", DATA, "--min-df"),
    ("prepare {documents} --label label --max-df 0 --out {out}", DATA, "--max-df"),
    ("prepare {numbers} --label y --text a --out {out}", DATA, "'a'"),
    ("prepare {documents} --label label --where word= --out {out}", USAGE, "where"),
    ("prepare {documents} --label label --expect {missing} --out {out}", USAGE, "no such contract"),
    ("prepare {documents} --label label --on-bad-rows drop --out {out}", USAGE, "drop"),
    ("evaluate", USAGE, "model is missing"),
    ("evaluate {missing} {prepared}", DATA, "missing"),
    ("evaluate {model} {numbers}", DATA, "numbers"),
    ("evaluate {prepared} {prepared}", DATA, "model"),
    ("predict {model} {prepared}", USAGE, "out is missing"),
    ("predict {model} {missing} --out {out}", DATA, "missing"),
    ("predict {model} {documents} --text body --out {out}", USAGE, "--text"),
    ("predict {model} {numbers} --out {out}", DATA, "numbers"),
    ("predict {model} {documents} --keep nothing --out {out}", DATA, "nothing"),
    ("inspect", USAGE, "model is missing"),
    ("inspect {documents}", DATA, "documents"),
    ("explain {model}", USAGE, "what is to be explained"),
    ("path {numbers} --label y --out {out} --n-alphas 0", USAGE, "n-alphas"),
    ("run {missing}", USAGE, "missing"),
    ("run {broken}", USAGE, "TOML"),
    ("run {unknown}", USAGE, "did you mean"),
    ("resume {missing}", DATA, "missing"),
    ("retrain {broken}", USAGE, "cannot be read"),
    ("rollback {missing}", USAGE, "no champion"),
    ("report {missing}", DATA, "missing"),
    ("submit {broken} --to local", USAGE, "TOML"),
    ("demo --data imdb --out {out}", USAGE, "one of"),
)  # fmt: skip
"""What is typed, the exit code, and a word of the line."""


def rows(**columns: Any) -> pa.Table:
    """40 rows of two features and a label of three classes, with some columns replaced or, with None, left out."""
    rng = np.random.default_rng(0)
    default = {"a": rng.standard_normal(40), "b": rng.standard_normal(40), "y": [i % 3 for i in range(40)]}
    return pa.table({name: value for name, value in {**default, **columns}.items() if value is not None})


TABLES: tuple[tuple[str, tuple[pa.Table, ...], str], ...] = (
    ("NaN", (rows(a=[1.0] * 39 + [NAN]),), "'a'"),
    ("infinity", (rows(b=[1.0] * 39 + [-INF]),), "'b'"),
    ("a null", (rows(a=[1.0] * 39 + [None]),), "'a'"),
    ("text for numbers", (rows(a=["word"] * 40),), "'a'"),
    ("one class", (rows(y=[1] * 40),), "class"),
    ("no rows", (rows().slice(0, 0),), "row"),
    ("no label", (rows(y=None),), "'y'"),
    ("a null label", (rows(y=[None, *[1, 2, 0] * 13]),), "'y'"),
    ("a NaN label", (rows(y=[NAN, *[1.0, 2.0, 0.0] * 13]),), "'y'"),
    ("a label of lists", (rows(y=[[i % 3, 1] for i in range(40)]),), "'y'"),
    ("two types", (rows(), rows(a=["1"] * 40)), "'a'"),
    ("a column less", (rows(), rows(b=None)), "'b'"),
    ("labels of two types", (rows(), rows(y=["x", "y"] * 20)), "'y'"),
    ("a struct", (rows(a=[{"v": 1.0}] * 40),), "'a'"),
)
"""Kind, the files of a folder, and a word of the line."""


def X_y(n: int = 60) -> tuple[Any, Any]:
    """A small data set in memory."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 4)), np.arange(n) % 3


def with_value(value: float) -> Any:
    """The features with one value replaced."""
    X, _ = X_y()
    X[7, 2] = value
    return X


def classifier(**options: Any) -> Callable[[], Any]:
    """A fit with these parameters on sound data."""
    return lambda: dboost.BoostedClassifier(**options).fit(*X_y())


def fitted_on(X: Any, y: Any = None, **more: Any) -> Callable[[], Any]:
    """A fit with sound parameters on this data."""
    return lambda: dboost.BoostedClassifier(alpha=0.05).fit(X, X_y()[1] if y is None else y, **more)


def predicts(X: Any) -> Callable[[], Any]:
    """Predictions of a sound model for this."""
    return lambda: dboost.BoostedClassifier(alpha=0.05).fit(*X_y()).predict(X)


_X, _Y = X_y()
CALLS: tuple[tuple[str, Callable[[], Any], str], ...] = (
    ("alpha below zero", classifier(alpha=-1.0), "alpha"),
    ("alpha NaN", classifier(alpha=NAN), "alpha"),
    ("alpha of text", classifier(alpha="small"), "alpha"),
    ("tol below zero", classifier(tol=-1.0), "tol"),
    ("tol infinite", classifier(tol=INF), "tol"),
    ("max_rounds zero", classifier(max_rounds=0), "max_rounds"),
    ("max_rounds half", classifier(max_rounds=2.5), "max_rounds"),
    ("max_seconds zero", classifier(max_seconds=0.0), "max_seconds"),
    ("penalty unknown", classifier(penalty="l3"), "l3"),
    ("loss unknown", classifier(loss="hinge"), "hinge"),
    ("loss of numbers", classifier(loss="squared"), "squared"),
    ("update unknown", classifier(update="sgd"), "sgd"),
    ("select unknown", classifier(select="best"), "best"),
    ("seed of text", classifier(random_state="x"), "random_state"),
    ("class weights of unknown classes", classifier(class_weight={7: 1.0}), "class_weight"),
    ("class weights below zero", classifier(class_weight={0: -1.0, 1: 1.0, 2: 1.0}), "class_weight"),
    ("penalty factors too few", classifier(penalty_factors=[1.0]), "penalty_factors"),
    ("penalty factors NaN", classifier(penalty_factors=[1.0, NAN, 1.0, 1.0]), "penalty_factors"),
    ("penalty factors below zero", classifier(penalty_factors=[1.0, -1.0, 1.0, 1.0]), "penalty_factors"),
    ("bounds that cross", classifier(penalty="l1", lower=0.0, upper=0.0), "lower and upper"),
    ("a bound that is not 0", classifier(penalty="l1", upper=1.0), "upper"),
    ("a client that is none", classifier(client=3), "client"),
    ("a checkpoint that is a number", classifier(checkpoint=3), "checkpoint"),
    ("features NaN", fitted_on(with_value(NAN)), "NaN"),
    ("features infinite", fitted_on(with_value(INF)), "inf"),
    ("features of text", fitted_on(np.array([["a"] * 4] * 60)), "strings"),
    ("features complex", fitted_on(_X + 1j), "omplex"),
    ("features of one dimension", fitted_on(_X[:, 0]), "2"),
    ("features of three dimensions", fitted_on(_X[:, :, None]), "dim"),
    ("no rows", fitted_on(_X[:0], _Y[:0]), "0"),
    ("no columns", fitted_on(_X[:, :0]), "0"),
    ("labels too few", fitted_on(_X, _Y[:-1]), "59"),
    ("labels of one class", fitted_on(_X, _Y * 0), "class"),
    ("labels NaN", fitted_on(_X, np.where(_Y == 0, NAN, _Y)), "NaN"),
    ("labels of fractions", fitted_on(_X, _Y + 0.5), "label"),
    ("labels of two columns", fitted_on(_X, np.stack([_Y, _Y], 1)), "y"),
    ("weights below zero", fitted_on(_X, _Y, sample_weight=-np.ones(60)), "weight"),
    ("weights NaN", fitted_on(_X, _Y, sample_weight=np.full(60, NAN)), "weight"),
    ("weights all zero", fitted_on(_X, _Y, sample_weight=np.zeros(60)), "weight"),
    ("weights too few", fitted_on(_X, _Y, sample_weight=np.ones(3)), "weight"),
    ("sparse features NaN", fitted_on(sparse.csr_array(with_value(NAN))), "NaN"),
    ("predicting another width", predicts(np.ones((2, 3))), "3"),
    ("predicting NaN", predicts(np.full((2, 4), NAN)), "NaN"),
    ("predicting text", predicts(np.array([["a"] * 4])), "strings"),
)  # fmt: skip
"""Kind, the call, and a word of the error."""


def cases(folder: Path) -> Iterator[tuple[str, Trial]]:
    """Every trial with its name, commands, tables and calls in turn."""
    places = {name: str(folder / name) for name in ("out", "model", "prepared", "missing", "numbers")}
    places |= {"documents": str(folder / "documents.parquet")}
    places |= {name: str(folder / f"{name}.toml") for name in ("broken", "unknown")}
    commands = [
        (line, partial(typed, folder, [part.format(**places) for part in line.split()], code, word, line))
        for line, code, word in COMMANDS
    ]
    tables = [(name, partial(trained_on, folder, name, files, word)) for name, files, word in TABLES]
    calls = [(name, partial(called, name, call, word)) for name, call, word in CALLS]
    lists: list[list[tuple[str, Trial]]] = [[*commands], [*tables], [*calls]]
    while any(lists):
        for some in lists:
            if some:
                yield some.pop(0)


def run(count: int, folder: Path, tally: Tally) -> None:
    """Type and call, on a small run that is sound."""
    os.environ.pop("DASK_SCHEDULER_ADDRESS", None)
    write_documents(folder / "documents.parquet", 200)
    (folder / "numbers").mkdir()
    pq.write_table(rows(), folder / "numbers" / "part-0.parquet", write_page_checksum=True)
    (folder / "broken.toml").write_text("[data\n")
    (folder / "unknown.toml").write_text('[data]\ndata = "documents.parquet"\n[model]\nalhpa = 1\n')
    quiet = ["--workers", "0", "--log-format", "json"]
    prepare = ["prepare", str(folder / "documents.parquet"), "--label", "label", "--split", "split"]
    for line in (
        [*prepare, "--out", str(folder / "prepared")],
        ["train", str(folder / "prepared"), "--out", str(folder / "model")],
    ):
        code, said = outcome([*line, *quiet])
        assert code == 0, said
    for _, trial in [*cases(folder)][:count]:
        trial(tally)


def outcome(words: list[str]) -> tuple[int, str]:
    """Type a command in this process; returns its exit code and what it wrote to stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(words)
    return code, err.getvalue()


def typed(folder: Path, words: list[str], code: int, word: str, line: str, tally: Tally) -> None:
    """A command that must be refused."""
    before = contents(folder)
    try:
        found, said = outcome([*words[:1], *(LOCAL if words and words[0] in ON_CLUSTERS else ()), *words[1:]])
    except Exception as error:
        tally.broke(f"dboost {line}: {type(error).__name__}: {error}")
        return
    lines = said.splitlines()
    good = found == code and len(lines) == 1 and len(lines[0]) <= LONGEST + len(str(folder)) and word in lines[0]
    if contents(folder) != before:
        tally.broke(f"dboost {line}: files were changed")
    else:
        tally.check(good, "refused by the command", f"dboost {line}: exit code {found}, expected {code}: {said}")


def trained_on(folder: Path, name: str, tables: tuple[pa.Table, ...], word: str, tally: Tally) -> None:
    """A training on data that must be refused."""
    target = folder / f"table-{name.replace(' ', '-')}"
    target.mkdir()
    for number, content in enumerate(tables):
        pq.write_table(content, target / f"part-{number}.parquet", write_page_checksum=True)
    typed(folder, ["train", str(target), "--label", "y", "--out", str(folder / "out")], DATA, word, name, tally)


def called(name: str, call: Callable[[], Any], word: str, tally: Tally) -> None:
    """A call that must raise an error of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            call()
        except DboostError as error:
            text = str(error)
            good = error.exit_code in (USAGE, DATA) and len(text.splitlines()) == 1 and len(text) <= LONGEST
            tally.check(good and word in text, "refused by the call", f"{name}: {type(error).__name__}: {error}")
        except Exception as error:
            theirs = isinstance(error, ValueError) and word in str(error) and _raised_in(error, "sklearn")
            tally.check(theirs, "refused by scikit-learn's checks", f"{name}: {type(error).__name__}: {error}")
        else:
            tally.broke(f"{name}: nothing was raised")


def _raised_in(error: Exception, package: str) -> bool:
    """Whether an error came from a package, by the file of its last frame."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return package in Path(last.filename).parts


def contents(folder: Path) -> str:
    """A digest of the names and contents of all files."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(str(path).encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()
