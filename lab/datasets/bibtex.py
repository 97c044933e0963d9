"""Multi-label sets of the Mulan collection: bibtex, delicious and their kin.

Covers: the sparse and dense ARFF form with its XML list of labels, ``load`` by name, the synthetic twin.
Does not cover: regression targets, dates, relations and text attributes of ARFF.

Sources: Katakis, Tsoumakas, Vlahavas 2008 (bibtex); Tsoumakas, Katakis, Vlahavas 2008 (delicious); the Mulan
collection (Tsoumakas et al., JMLR 12, 2011) for the others.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dboost.errors import DataError, UsageError
from lab.datasets.base import Dataset, data_file, open_text, read_bytes

# name -> (folder, list of labels, training file, test file)
SOURCES = {
    "bibtex": ("multilabel_bibtex", "bibtex.xml", "bibtex-train.arff", "bibtex-test.arff"),
    "delicious": ("multilabel_delicious", "delicious.xml", "delicious-train.arff", "delicious-test.arff"),
    "yeast": ("multilabel_yeast", "yeast.xml", "yeast-train.arff", "yeast-test.arff"),
    "emotions": ("multilabel_emotions", "emotions.xml", "emotions-train.arff", "emotions-test.arff"),
    "scene": ("multilabel_scene", "scene.xml", "scene-train.arff", "scene-test.arff"),
    "enron": ("multilabel_enron", "enron.xml", "enron-train.arff", "enron-test.arff"),
    "medical": ("multilabel_medical", "medical.xml", "medical-train.arff", "medical-test.arff"),
    "tmc2007": ("multilabel_tmc2007", "tmc2007-500.xml", "tmc2007-500-train.arff", "tmc2007-500-test.arff"),
}
_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'((?:[^'\\]|\\.)*)'|"([^"]*)"|(\S+))\s+(.+?)\s*$""", re.IGNORECASE)


@dataclass(frozen=True)
class Attribute:
    """One column of an ARFF file."""

    name: str
    # The number each nominal value stands for; None for a numeric column.
    codes: dict[str, float] | None
    # What a sparse row means by leaving the column out: 0, or the first nominal value.
    default: float


def _attribute(line: str, file: str) -> Attribute:
    match = _ATTRIBUTE.match(line)
    if match is None:
        raise DataError(f"not an attribute: {line.strip()[:80]!r}", file=file)
    name = next(group for group in match.groups()[:3] if group is not None).replace("\\", "")
    kind = match.group(4)
    if kind.lower() in ("numeric", "real", "integer"):
        return Attribute(name, None, 0.0)
    if not (kind.startswith("{") and kind.endswith("}")):
        raise DataError(f"attribute of type {kind[:40]!r}, expected numeric or nominal", file=file, column=name)
    values = [value.strip().strip("'\"") for value in kind[1:-1].split(",")]
    try:
        codes = {value: float(value) for value in values}
    except ValueError:
        if {value.lower() for value in values} != {"yes", "no"}:
            raise DataError(
                f"nominal values {values[:4]}, expected numbers or YES/NO", file=file, column=name
            ) from None
        codes = {value: float(value.lower() == "yes") for value in values}
    return Attribute(name, codes, codes[values[0]])


def _pairs(text: str, attributes: list[Attribute]) -> Iterator[tuple[int, float]]:
    """Yield (column, value) of one row, sparse (in braces) or dense."""
    if text.startswith("{"):
        items = [item.split() for item in text[1 : text.rindex("}")].split(",") if item.strip()]
        cells = [(int(index), value) for index, value in items]
    else:
        fields = text.split(",")
        if len(fields) != len(attributes):
            raise ValueError(f"{len(fields)} values for {len(attributes)} attributes")
        cells = list(enumerate(fields))
    for column, raw in cells:
        value = raw.strip().strip("'\"")
        codes = attributes[column].codes
        yield column, float(value) if codes is None else codes[value]


def parse_arff(lines: Iterable[str], file: str) -> tuple[list[str], Any]:
    """Read an ARFF file, sparse or dense.

    `file`: named in errors.
    """
    from scipy.sparse import csr_matrix

    attributes: list[Attribute] = []
    indptr, columns, values = [0], [], []
    in_data = False
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not line or line.startswith("%"):
            continue
        if not in_data:
            head = line.split(None, 1)[0].lower()
            if head == "@attribute":
                attributes.append(_attribute(line, file))
            in_data = head == "@data"
            continue
        if line.startswith("{") and len(indptr) == 1:
            odd = next((a for a in attributes if a.default != 0.0), None)
            if odd is not None:
                raise DataError(f"left out it would mean {odd.default}, expected 0", file=file, column=odd.name)
        try:
            for column, value in _pairs(line, attributes):
                if value != 0.0:
                    columns.append(column)
                    values.append(value)
        except (ValueError, KeyError, IndexError) as error:
            raise DataError(f"line {number} does not fit the attributes: {error!r}", file=file) from error
        indptr.append(len(columns))
    shape = (len(indptr) - 1, len(attributes))
    matrix = csr_matrix((np.asarray(values, dtype=np.float64), columns, indptr), shape=shape)
    matrix.sort_indices()
    return [attribute.name for attribute in attributes], matrix


def parse_labels(content: bytes, file: str) -> list[str]:
    """Return the names of the labels in Mulan's XML list."""
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise DataError(f"not an XML list of labels: {error}", file=file) from error
    # Both files write an apostrophe as \', with one backslash more or less: names are compared without backslashes.
    return [str(node.get("name")).replace("\\", "") for node in root.iter() if node.tag.endswith("label")]


def split_labels(names: list[str], matrix: Any, labels: list[str], file: str) -> tuple[Any, Any, list[str]]:
    """Cut the label columns off: features (m, n), labels int8 (m, k) of -1 and +1, names of the features."""
    where = {name: j for j, name in enumerate(names)}
    missing = [label for label in labels if label not in where]
    if missing:
        raise DataError(f"{len(missing)} labels of the XML list are no column, the first {missing[0]!r}", file=file)
    chosen = np.asarray([where[label] for label in labels])
    kept = np.setdiff1d(np.arange(len(names)), chosen)
    Y = np.where(matrix[:, chosen].toarray() > 0, 1, -1).astype(np.int8)
    return matrix[:, kept], Y, [names[j] for j in kept]


def load(name: str = "bibtex") -> Dataset:
    """Load one of the sets in `SOURCES`, one task per label."""
    if name not in SOURCES:
        raise UsageError(f"unknown set {name!r}; expected one of {', '.join(sorted(SOURCES))}")
    folder, xml, train, test = SOURCES[name]
    xml_path = data_file(folder, xml)
    labels = parse_labels(read_bytes(xml_path), str(xml_path))

    def read(file: str) -> tuple[Any, Any, list[str]]:
        path = data_file(folder, file)
        with open_text(path) as lines:
            names, matrix = parse_arff(lines, str(path))
        return split_labels(names, matrix, labels, str(path))

    X, y, names = read(train)
    X_test, y_test, _ = read(test)
    return Dataset(
        name,
        X,
        y,
        X_test,
        y_test,
        np.asarray(names, dtype=np.str_),
        "multitask",
        np.asarray(labels, dtype=np.str_),
    )


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 220 + 80 rows of 50 zero-one columns and 4 labels that share features."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(seed)
    X = csr_matrix((rng.random((300, 50)) < 0.12).astype(np.float64))
    W = np.zeros((50, 4))
    W[[2, 7, 11, 30]] = 2.5 * rng.standard_normal((4, 4))
    scores = X @ W - 0.5 + 0.5 * rng.standard_normal((300, 4))
    Y = np.where(scores > 0, 1, -1).astype(np.int8)
    names = np.asarray([f"term {j}" for j in range(50)], dtype=np.str_)
    tasks = np.asarray([f"tag {r}" for r in range(4)], dtype=np.str_)
    return Dataset("bibtex-synthetic", X[:220], Y[:220], X[220:], Y[220:], names, "multitask", tasks)
