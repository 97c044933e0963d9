"""Reuters newswire of 1987: 21,578 documents of 135 topics, several or none a document.

Covers: the SGML of the 22 files, the ModApte split, ``documents`` (texts with their topics), ``load`` (tf-idf, one
task per topic).
Does not cover: the other splits (ModLewis, ModHayes), places, people, organisations and exchanges.

The files are not XML: they hold control characters as ``&#5;``, end tags that close nothing, and bytes of Latin-1.
They are read tag by tag.

Source: Reuters-21578 Distribution 1.0, D. Lewis 1997.
"""

from __future__ import annotations

import html
import io
import re
import tarfile
from collections import Counter
from dataclasses import dataclass

import numpy as np

from dboost.errors import DataError
from lab.datasets.base import Dataset, data_file, read_bytes, tfidf

ARCHIVE = ("reuters21578", "reuters21578_sgm.tar")
N_FILES = 22
_DOCUMENT = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TEXT = re.compile(r"<TEXT\b[^>]*>(.*?)</TEXT>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_TAG = re.compile(r"</?[A-Z]+[^>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|&#(?:\d{1,2}|127);")


@dataclass(frozen=True)
class Document:
    """One newswire document."""

    # NEWID, 1 to 21578.
    number: int
    # Title and body; the whole text where it has neither (type UNPROC).
    text: str
    topics: tuple[str, ...]
    # ``"train"`` and ``"test"`` of ModApte, or ``"unused"``.
    split: str


def _plain(fragment: str) -> str:
    return html.unescape(_CONTROL.sub(" ", fragment)).strip()


def _text(content: str) -> str:
    found = _TEXT.search(content)
    if found is None:
        return ""
    inner = found.group(1)
    parts = [match.group(1) for match in (_TITLE.search(inner), _BODY.search(inner)) if match is not None]
    # without a body the text follows the title bare (BRIEF), or there are no tags at all (UNPROC)
    if _BODY.search(inner) is None:
        parts.append(_TAG.sub(" ", _TITLE.sub(" ", inner)))
    return "\n".join(filter(None, map(_plain, parts)))


def _split(attributes: dict[str, str]) -> str:
    """ModApte: the documents with TOPICS="YES", parted by LEWISSPLIT."""
    if attributes.get("TOPICS") != "YES":
        return "unused"
    return {"TRAIN": "train", "TEST": "test"}.get(attributes.get("LEWISSPLIT", ""), "unused")


def parse(content: bytes, file: str) -> list[Document]:
    """Read the documents of one SGML file.

    `file`: named in errors.
    """
    text = content.decode("latin-1")
    found: list[Document] = []
    for match in _DOCUMENT.finditer(text):
        attributes = dict(_ATTRIBUTE.findall(match.group(1)))
        if not attributes.get("NEWID", "").isdigit():
            raise DataError(f"document {len(found) + 1} has no number NEWID", file=file)
        listed = _TOPICS.search(match.group(2))
        topics = tuple(map(_plain, _TOPIC.findall(listed.group(1)))) if listed is not None else ()
        found.append(Document(int(attributes["NEWID"]), _text(match.group(2)), topics, _split(attributes)))
    opened = len(re.findall(r"<REUTERS\b", text))
    if not found or opened != len(found):
        raise DataError(f"{opened} documents begin and {len(found)} end", file=file, hint="fetch the file again")
    return found


def documents() -> list[Document]:
    """Return all documents, by number."""
    path = data_file(*ARCHIVE)
    found: list[Document] = []
    names = set()
    try:
        with tarfile.open(fileobj=io.BytesIO(read_bytes(path))) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name.endswith(".sgm") else None
                if content is not None:
                    names.add(member.name)
                    found.extend(parse(content.read(), f"{path}: {member.name}"))
    except tarfile.TarError as error:
        raise DataError(f"not a tar archive: {error}", file=str(path), hint="fetch the file again") from error
    if len(names) != N_FILES:
        raise DataError(f"{len(names)} files of SGML, expected {N_FILES}", file=str(path))
    return sorted(found, key=lambda document: document.number)


def load() -> Dataset:
    """The ModApte split as tf-idf: a task for each topic that occurs in both parts, the one of most documents first."""
    found = documents()
    parts = [[document for document in found if document.split == split] for split in ("train", "test")]
    sizes, others = (Counter(topic for one in part for topic in set(one.topics)) for part in parts)
    topics = sorted(sizes.keys() & others.keys(), key=lambda topic: (-sizes[topic], topic))
    labels = [np.array([[1 if t in one.topics else -1 for t in topics] for one in part], np.int8) for part in parts]
    X, X_test, names = tfidf(*([one.text for one in part] for part in parts))
    kept = np.asarray(topics, dtype=np.str_)
    return Dataset("reuters21578", X, labels[0], X_test, labels[1], names, "multitask", kept)
