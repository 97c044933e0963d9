"""Files that were changed at random: saved models and pipelines, manifests, run files, footers of Parquet.

Each trial changes one file of a sound folder and reads it. It is refused by an error of ours, or it is what it was; of
run files and of documents whose digest was made anew, which may well say something else, only that the error is ours.
Nothing is run, nothing written, and no more memory taken than the file and a fixed amount.
"""

from __future__ import annotations

import json
import resource
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dboost
from dboost.data.manifest import MANIFEST, VOCABULARY, load_manifest, read_vocabulary
from dboost.data.parquet.read import inspect_file
from dboost.data.prepared.prepare import prepare_text
from dboost.errors import DboostError
from dboost.files.documents import ARRAYS_FILE, DIGEST, MODEL_FILE, content_digest
from lab.campaign.command import Tally
from lab.campaign.watch import watched
from pipelines.runs.run_file import read_run_file

ROWS, COLUMNS = 120, 6
MORE_MEMORY = 200 << 20
"""Bytes that all trials together may add to the process beyond what sound files took."""

RUN_FILE = """
[data]
data = "documents.parquet"
label = "label"
[prepare]
min_df = 2
split = "split"
[model]
penalty = "l1/linf"
alpha = 0.001
tol = 1e-6
[predict]
probabilities = true
[cluster]
workers = 2
memory_limit = "1GiB"
"""


@dataclass(frozen=True)
class Subject:
    """Something that is read."""

    # What is changed.
    file: Path
    # Reads it and returns all that follows from it, as something that can be compared.
    read: Callable[[], Any]
    # Whether the changes are of values, under a digest made anew.
    sealed: bool = False
    # Whether it may say something else after a change.
    free: bool = False


def subjects(folder: Path) -> dict[str, Subject]:
    """Sound files of every kind, and how each is read."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    y = np.where(X[:, 0] > 0.5, 0, rng.integers(0, 3, ROWS))
    found: dict[str, Subject] = {}
    for name, hypotheses in (("columns", None), ("products", dboost.Products()), ("stumps", dboost.Stumps())):
        target = folder / name
        dboost.save_model(dboost.BoostedClassifier(alpha=0.02, hypotheses=hypotheses).fit(X, y), target)

        def scores(target: Path = target) -> bytes:
            return np.asarray(dboost.load_model(target).decision_function(X)).tobytes()

        found[f"model of {name}"] = Subject(target / MODEL_FILE, scores)
        found[f"weights of {name}"] = Subject(target / ARRAYS_FILE, scores)
        found[f"model of {name}, forged"] = Subject(target / MODEL_FILE, scores, sealed=True, free=True)
    return found | _of_text(folder, y) | _of_files(folder, X)


def _of_text(folder: Path, y: Any) -> dict[str, Subject]:
    from sklearn.pipeline import make_pipeline

    words = np.random.default_rng(1).choice([f"word{i}" for i in range(30)], (ROWS, 5))
    texts = [" ".join(row) + " stone" * int(label == 0) for row, label in zip(words.tolist(), y, strict=True)]
    target, prepared = folder / "pipeline", folder / "prepared"
    whole = make_pipeline(dboost.TextFeatures(min_df=1), dboost.BoostedClassifier(alpha=0.01)).fit(texts, y)
    dboost.save_model(whole, target)
    pq.write_table(pa.table({"text": texts, "label": [str(label) for label in y]}), folder / "documents.parquet")
    prepare_text(folder / "documents.parquet", prepared, text="text", label="label", min_df=1)

    def scores() -> bytes:
        return np.asarray(dboost.load_pipeline(target).decision_function(texts)).tobytes()

    def content() -> Any:
        manifest = load_manifest(prepared)
        terms, df, idf = read_vocabulary(prepared, manifest.vocabulary or {})
        return manifest.content(), terms, df.tobytes(), idf.tobytes()

    return {
        "pipeline": Subject(target / "pipeline.json", scores),
        "transform": Subject(target / "transform.safetensors", scores),
        "manifest": Subject(prepared / MANIFEST, content),
        "vocabulary": Subject(prepared / VOCABULARY, content),
    }


def _of_files(folder: Path, X: Any) -> dict[str, Subject]:
    run, numbers = folder / "trees.toml", folder / "numbers.parquet"
    run.write_text(RUN_FILE, encoding="utf-8")
    pq.write_table(pa.table({"x": X[:, 0], "lists": [[1.0, 2.0]] * ROWS, "label": ["a", "b"] * (ROWS // 2)}), numbers)
    return {
        "run file": Subject(run, lambda: read_run_file(str(run)), free=True),
        "footer": Subject(numbers, lambda: inspect_file((str(numbers), "numbers")), free=True),
    }


def changed(whole: bytes, rng: np.random.Generator) -> bytes:
    """A copy in which one to three places were changed, each in one of seven ways."""
    data = bytearray(whole)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(max(1, len(data))))
        to = min(len(data), at + int(rng.integers(1, 16)))
        part = bytes(data[at:to])
        way = int(rng.integers(7))
        if way == 0 and data:
            data[at] ^= 1 << int(rng.integers(8))
        elif way == 1:
            data[at:to] = rng.bytes(to - at)
        elif way == 2:
            data[at:at] = rng.bytes(to - at)
        elif way == 3:
            del data[at:to]
        elif way == 4:
            data[at:at] = part
        elif way == 5:
            del data[at:]
        else:
            digits = b"0123456789.-e"
            data[at:to] = bytes(digits[int(rng.integers(len(digits)))] for _ in part)
    return bytes(data)


ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1 << 40, 1 << 80, 1e308, "", "x", "../x", "/etc/passwd", "nan", "\0", [], {}, [[]], {"a": 1},
)  # fmt: skip
"""Values that a field of a document is given."""


def forged(whole: bytes, rng: np.random.Generator) -> bytes:
    """The document with one field changed, left out or added, under the digest of what it then says."""
    document = json.loads(whole)
    here: Any = document
    # Some steps down from the top; each place is one of a mapping or of a list.
    for _ in range(int(rng.integers(1, 5))):
        places: list[Any] = list(here) if isinstance(here, dict) else list(range(len(here)))
        places = [place for place in places if place != DIGEST]
        if not places:
            break
        place = places[int(rng.integers(len(places)))]
        if isinstance(here[place], dict | list) and here[place] and rng.random() < 0.7:
            here = here[place]
            continue
        way = int(rng.integers(4))
        if way == 0:
            del here[place]
        elif way == 1 and isinstance(here, dict):
            here["more"] = here[place]
        else:
            here[place] = ODD[int(rng.integers(len(ODD)))]
        break
    return json.dumps(document | {DIGEST: content_digest(document)}).encode()


def run(count: int, folder: Path, tally: Tally) -> None:
    """Change and read, each subject in turn."""
    rng = np.random.default_rng(0)
    kinds = subjects(folder)
    wholes = {name: subject.file.read_bytes() for name, subject in kinds.items()}
    # The second reading imports and compiles nothing any more.
    expected = {name: [subject.read(), subject.read()][1] for name, subject in kinds.items()}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for trial in range(count):
        name = list(kinds)[trial % len(kinds)]
        subject, whole = kinds[name], wholes[name]
        data = _mutant(name, subject, whole, rng)
        subject.file.write_bytes(data)
        try:
            judge(f"{name}, trial {trial}", subject, expected[name], tally)
        finally:
            subject.file.write_bytes(whole)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    tally.figures["more memory at most"] = f"{more >> 20} MiB"
    if more > MORE_MEMORY:
        tally.broke(f"the process grew by {more >> 20} MiB, at most {MORE_MEMORY >> 20} allowed")


def _mutant(name: str, subject: Subject, whole: bytes, rng: np.random.Generator) -> bytes:
    if subject.sealed:
        return forged(whole, rng)
    if name != "footer":
        return changed(whole, rng)
    # Pages are the matter of another part; here the footer is changed, and told with its length.
    length = int.from_bytes(whole[-8:-4], "little")
    footer = changed(whole[-8 - length : -8], rng)
    return whole[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def judge(what: str, subject: Subject, expected: Any, tally: Tally) -> None:
    """Count whether a changed file is refused in one line or read as before, and nothing is run or written."""
    with watched() as done, warnings.catch_warnings():
        warnings.simplefilter("ignore", dboost.DboostWarning)
        try:
            found: Any = subject.read()
        except DboostError as error:
            lines = len(str(error).splitlines())
            outcome, why = ("refused", "") if lines == 1 else ("", f"an error of {lines} lines: {error}")
        except Exception as error:
            outcome, why = "", f"{type(error).__name__}: {error}"
        else:
            same = found == expected
            outcome = "equal" if same else "says something else, as it may" if subject.free else ""
            why = "it was read as something else"
    if done:
        outcome, why = "", f"it did {done[0]}"
    tally.check(bool(outcome), outcome, f"{what}: {why}")
