"""Folders that were damaged, changed or made up are refused with ModelFormatError, or the model is the same."""

from __future__ import annotations

import json
import os
import tracemalloc

import numpy as np
import pytest

from dboost.errors import ModelFormatError
from dboost.files.storage import pack_arrays, sha256_bytes
from dboost.model.fitted import read_model
from tests.model.models import make, write_sealed


@pytest.fixture
def folder(tmp_path):
    make().save(tmp_path / "m")
    return tmp_path / "m"


def edit(folder, change):
    """Change the document and give it the digest of what it then says: only the checks of content can refuse it."""
    document = json.loads((folder / "model.json").read_text())
    change(document)
    write_sealed(folder / "model.json", document)


def put(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(document):
        for key in keys:
            document = document[key]
        document[last] = value

    return change


CHANGES = {
    "format": put("format", "other"),
    "newer version": put("version", 4),
    "version text": put("version", "1"),
    "version bool": put("version", True),
    "task": put("task", "ranking"),
    "loss of another task": put("loss", "log"),
    "penalty type": put("penalty", 3),
    "family": put("hypotheses", "family", "pickle"),
    "indices out of range": put("hypotheses", "indices", [1, 4, 9]),
    "indices negative": put("hypotheses", "indices", [-1, 4, 7]),
    "indices unordered": put("hypotheses", "indices", [4, 1, 7]),
    "indices twice": put("hypotheses", "indices", [1, 1, 7]),
    "indices float": put("hypotheses", "indices", [1.0, 4, 7]),
    "indices huge": put("hypotheses", "indices", [1, 4, 1 << 70]),
    "indices fewer": put("hypotheses", "indices", [1, 4]),
    "names fewer": put("hypotheses", "names", ["a"]),
    "names disagree": put("hypotheses", "names", ["f1·", "f4·", "f8·"]),
    "classes fewer": put("classes", "values", ["a", "b"]),
    "class of an object": put("classes", "values", ["a", "b", {}]),
    "classes dtype": put("classes", "dtype", "O,V8"),
    "classes dtype python": put("classes", "dtype", "os.system"),
    "classes of another type": put("classes", "dtype", "<i8"),
    "classes twice": put("classes", "values", ["a", "b", "b"]),
    "classes twice as objects": put("classes", {"dtype": "O", "values": ["a", 1, True]}),
    "classes twice as bytes": put("classes", {"dtype": "S", "values": ["00", "01", "01"]}),
    "classes no bytes": put("classes", {"dtype": "bytes", "values": ["00", "01", "x"]}),
    "classes not a number": put("classes", {"dtype": "<f8", "values": [0, 1, "nan"]}),
    "classes no date": put("classes", {"dtype": "<M8[D]", "values": ["2020-01-01", "2020-01-02", "NaT"]}),
    "features": put("n_features", 8),
    "features beyond any table": put("n_features", 1 << 53),
    "features negative": put("n_features", -1),
    "outputs": put("n_outputs", 2),
    "certificate": put("certificate", {}),
    "certificate gap": put("certificate", "gap", "large"),
    "manifest": put("manifest", []),
    "history": put("history", [1]),
    "traversal": put("arrays", "file", "../m/arrays.safetensors"),
    "absolute": put("arrays", "file", "/etc/hostname"),
    "size": put("arrays", "bytes", 10),
    "size larger": put("arrays", "bytes", 1 << 40),
    "digest": put("arrays", "sha256", "0" * 64),
    "no arrays": put("arrays", None),
}


def test_changed_documents_are_refused(folder):
    sound = (folder / "model.json").read_text()
    for name, change in CHANGES.items():
        (folder / "model.json").write_text(sound)
        edit(folder, change)
        try:
            read_model(folder)
        except ModelFormatError:
            continue
        pytest.fail(f"{name}: it was read")


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": 1, "a": 2}', b'{"a": NaN}'],
)
def test_texts_that_are_no_document_are_refused(folder, text):
    (folder / "model.json").write_bytes(text)
    with pytest.raises(ModelFormatError):
        read_model(folder)


def test_every_flipped_bit_of_the_arrays_is_refused(folder):
    data = (folder / "arrays.safetensors").read_bytes()
    for position in range(0, len(data), 7):
        broken = bytearray(data)
        broken[position] ^= 1 << (position % 8)
        (folder / "arrays.safetensors").write_bytes(broken)
        with pytest.raises(ModelFormatError):
            read_model(folder)
    (folder / "arrays.safetensors").write_bytes(data[:-1])
    with pytest.raises(ModelFormatError, match="bytes"):
        read_model(folder)


def replace_arrays(folder, **arrays):
    """A consistent folder (size and digest agree) with other arrays: only the checks of content can refuse it."""
    model = make()
    whole = {"W": model.W, "intercept": model.intercept} | arrays
    data = pack_arrays({name: value for name, value in whole.items() if value is not None})
    (folder / "arrays.safetensors").write_bytes(data)
    edit(folder, put("arrays", "sha256", sha256_bytes(data)))
    edit(folder, put("arrays", "bytes", len(data)))


def test_consistent_folders_with_wrong_arrays_are_refused(folder):
    W = make().W
    replace_arrays(folder)
    assert read_model(folder).W.tobytes() == W.tobytes()
    spoiled = W.copy()
    spoiled[1, 1] = np.nan
    cases = [
        ({"W": spoiled}, "NaN"),
        ({"intercept": np.full(3, np.inf)}, "infinity"),
        ({"W": W.astype(np.float32)}, "float64"),
        ({"W": W[:2]}, "expected float64"),
        ({"W": None}, "nothing"),
        ({"names": np.zeros(3, np.uint8)}, "damaged"),
        ({"names": np.zeros(3, np.uint8), "name_ends": np.array([1, 2, 9] * 3)}, "damaged"),
        ({"names": np.full(9, 255, np.uint8), "name_ends": np.arange(1, 10)}, "UTF-8"),
    ]
    for arrays, message in cases:
        replace_arrays(folder, **arrays)
        with pytest.raises(ModelFormatError, match=message):
            read_model(folder)


@pytest.mark.parametrize("name", ["model.json", "arrays.safetensors"])
def test_links_and_missing_files_are_refused(folder, tmp_path, name):
    os.rename(folder / name, tmp_path / name)
    with pytest.raises(ModelFormatError, match="missing"):
        read_model(folder)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(ModelFormatError, match="symbolic link"):
        read_model(folder)


def test_a_path_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "nothing"):
        with pytest.raises(ModelFormatError):
            read_model(path)


# ---- damage of any kind ----------------------------------------------------------------------------------------------

EDITS = 400


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
