"""Damage of a model's files: a change is refused or the model is the same; no more is read than was promised."""

from __future__ import annotations

import json
import os
import tracemalloc

import numpy as np
import pytest

from dboost.errors import ModelFormatError
from dboost.model.fitted import read_model
from tests.model.models import make, write_sealed

EDITS = 400


@pytest.fixture
def folder(tmp_path):
    make().save(tmp_path / "m")
    return tmp_path / "m"


def saved(model, tmp_path):
    """All that a model is, as bytes."""
    model.save(tmp_path / "again", force=True)
    return [(tmp_path / "again" / name).read_bytes() for name in ("model.json", "arrays.safetensors")]


def edits(text):
    """Every change of one character: others of its kind, another kind, left out, or one more."""
    for at, sign in enumerate(text):
        others = {"7" if sign != "7" else "3", "x", " ", '"', chr(ord(sign) ^ 1), ""} - {sign}
        yield from ((at, text[:at] + other + text[at + 1 :]) for other in sorted(others))
        yield at, text[:at] + sign + text[at:]


def test_one_changed_character_of_the_document_is_refused_or_changes_nothing(folder, tmp_path):
    file, text = folder / "model.json", (folder / "model.json").read_text()
    expected = saved(read_model(folder), tmp_path)
    every = list(edits(text))
    chosen = np.random.default_rng(0).choice(len(every), EDITS, replace=False)
    outcomes = {"refused": 0, "equal": 0}
    for at, changed in (every[i] for i in chosen.tolist()):
        file.write_text(changed)
        try:
            model = read_model(folder)
        except ModelFormatError:
            outcomes["refused"] += 1
            continue
        outcomes["equal"] += 1
        assert saved(model, tmp_path) == expected, f"character {at}: {text[at - 20 : at + 20]!r}"
    # Blanks between the fields are the only thing that may change.
    assert outcomes["refused"] > 0.7 * EDITS


def test_another_order_of_fields_or_layout_is_the_same_document(folder, tmp_path):
    file, expected = folder / "model.json", saved(read_model(folder), tmp_path)
    document = json.loads(file.read_text())
    file.write_text(json.dumps(dict(reversed(document.items())), separators=(",", ":")))
    assert saved(read_model(folder), tmp_path) == expected


def test_an_array_file_of_another_size_is_not_read(folder):
    """Before, the whole of a sparse file of two gigabytes was read when the document claimed more than that."""
    document = json.loads((folder / "model.json").read_text())
    document["arrays"]["bytes"] = 1 << 33
    write_sealed(folder / "model.json", document)
    os.truncate(folder / "arrays.safetensors", 2 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFormatError, match=f"has {2 << 30} bytes, expected {1 << 33}"):
            read_model(folder)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()
