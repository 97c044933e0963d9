"""Source code as documents: nothing gives a package away, and no file is in both parts."""

import re
from collections import Counter

import pytest

from pipelines.sources import installed
from pipelines.sources.installed import Document, GiveAways, clean, definitions

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

SOURCE = b'''import os

def top(x):
    """A function."""
    return x

class Thing(Base):
    """A class."""

    size = 3

    def method(self):
        return self.size

    async def later(self):
        pass

    after = 4
'''


def parts_are_apart(documents):
    """No file is in both parts, of which each has some."""
    parts: dict[str, set[str]] = {}
    for document in documents:
        parts.setdefault(document.module, set()).add(document.split)
    assert all(len(found) == 1 for found in parts.values())
    assert 0.05 < Counter(document.split for document in documents)["test"] / len(documents) < 0.45


@pytest.mark.full
def test_documents_of_this_installation_give_no_package_away():
    documents = installed.extract(classes=8, per_class=260, at_least=1400)
    chosen = installed.choose(8, 1400)
    parts_are_apart(documents)
    labels = {document.label for document in documents}
    assert labels == {package.name for package in chosen}
    assert labels == {document.label for document in documents if document.split == "train"}
    hidden = installed.give_aways(chosen)
    for document in documents:
        words = set(IDENTIFIER.findall(document.text))
        assert not words & hidden.words, document
        for word in words:
            flat = word.lower().replace("_", "")
            assert not any(label.lower().replace("_", "") in flat for label in labels), (document.module, word)


def test_no_file_is_in_both_parts(tmp_path):
    code = "".join(f"def {name}():\n    return 'a text that is long enough to be a document of its own: {name}'\n"
                   for name in ("first", "second"))  # fmt: skip
    package(tmp_path, "alpha", {f"m{number}.py": code for number in range(60)})
    documents = installed.read_package(*installed.packages_in(tmp_path), 110, GiveAways(frozenset(), frozenset()))
    assert len(documents) == 110
    parts_are_apart(documents)


def test_definitions_are_functions_methods_and_what_is_left_of_a_class():
    found = dict(definitions(SOURCE))
    assert list(found) == ["top", "Thing.method", "Thing.later", "Thing"]
    assert found["top"] == 'def top(x):\n    """A function."""\n    return x\n'
    assert found["Thing.later"] == "    async def later(self):\n        pass\n"
    assert "size = 3" in found["Thing"] and "after = 4" in found["Thing"]
    assert "self.size" not in found["Thing"] and "def" not in found["Thing"]


@pytest.mark.parametrize("content", [b"def f(:\n", b"\xff\xfe", b"x = '\x00'\n", b"(" * 5000])
def test_what_does_not_parse_is_left_out(content):
    assert list(definitions(content)) == []


HIDDEN = GiveAways(frozenset({"numpy", "rich", "pytest", "pip"}), frozenset({"np", "linalg"}))


def test_identifiers_that_name_a_package_are_removed():
    for gone in "numpy NumPy _numpy_array NumpyArray isnumpyarray np linalg rich Rich RichTable pip".split():
        assert clean(f"before {gone}(after)", HIDDEN) == "before (after)", gone


def package(root, name, files):
    for file, text in {"__init__.py": "", **files}.items():
        path = root / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_vendored_copies_and_our_own_code_are_no_documents(tmp_path):
    code = "def f():\n    return 1\n"
    package(tmp_path, "alpha", {"a.py": code, "_vendor/beta/b.py": code * 3})
    package(tmp_path, "dboost", {"a.py": code})
    (tmp_path / "loose.py").write_text(code)
    (tmp_path / "no_package").mkdir()
    (found,) = installed.packages_in(tmp_path)
    assert found.name == "alpha" and found.definitions == 1 and set(found.files) == {"__init__.py", "a.py"}


def test_what_gives_away_is_found_in_names_modules_and_imports(tmp_path):
    uses = "import alpha.core as ac\nimport beta\ndef f(): pass\n"
    package(tmp_path, "alpha", {"core.py": uses, "utils.py": uses, "own.py": uses})
    package(tmp_path, "beta", {"utils.py": "import alpha as once\ndef f(): pass\n"})
    hidden = installed.give_aways(installed.packages_in(tmp_path))
    assert hidden.names >= {"alpha", "beta"}
    # A module that both have names neither; a short name used in one file only is chance.
    assert hidden.words >= {"core", "own", "ac"} and not {"utils", "once"} & hidden.words


def test_copied_code_has_no_label():
    def document(text, label):
        return Document(text, label, f"{label}/x.py", "f", "train")

    kept = installed.without_duplicates(
        [document("same", "a"), document("same", "b"), document("twice", "a"), document("twice", "a")]
    )
    assert kept == [document("twice", "a")]
