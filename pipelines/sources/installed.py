"""Real documents that every machine has: the functions and classes of the installed Python packages.

Nothing is imported or run: files are read as text and parsed. The same installation gives the same documents.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa

from dboost.engine.machine import available_cores
from dboost.errors import DataError

# Copies of other packages would put the same document under two labels.
VENDORED = {"_vendor", "vendor", "vendored", "_vendored", "externals", "_externals", "extern", "_distutils"}
# Our own code is what is being demonstrated, and would change its own figures.
OURS = ("dboost", "dboost_pipelines")
# A document of fewer characters says nothing; a longer one is cut, so that a generated table is not the corpus.
SHORTEST, LONGEST = 80, 6000
LARGEST_FILE = 600_000
# One file in five is held out.
HELD_OUT = 5

DEFINITION = re.compile(rb"^[ \t]*(?:async[ \t]+def|def|class)[ \t]", re.MULTILINE)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SUBWORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


@dataclass(frozen=True)
class Package:
    """One class of documents."""

    name: str  # the import name; the label
    root: str  # its folder
    files: tuple[str, ...]  # its Python files, relative to `root`, in the order in which they are read
    definitions: int  # functions, methods and classes by a count of lines, before anything is parsed


@dataclass(frozen=True)
class Document:
    """One function, method or class."""

    text: str  # source text without the identifiers that give the package away
    label: str  # the package
    module: str  # the file, relative to where packages lie
    name: str  # qualified name within the file
    split: str  # {"train", "test"}


def extract(*, classes: int = 12, per_class: int = 1200, at_least: int = 10_000) -> list[Document]:
    """Documents of the largest installed packages.

    `per_class`: largest number of documents of a package; raised where the total would stay below `at_least`.
    They are in a fixed order: by label, then by a hash of the file.
    """
    packages = choose(classes, at_least)
    # Some definitions are too short, duplicates or unparsable: ask for more than is needed.
    cap = per_class
    total = sum(package.definitions for package in packages)
    while cap < total and sum(min(cap, package.definitions) for package in packages) < 1.4 * at_least:
        cap = cap * 5 // 4
    hidden = give_aways(packages)
    workers = max(1, min(len(packages), available_cores()))
    # Spawned, not forked: this process may already run threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        largest_first = sorted(packages, key=lambda package: -package.definitions)
        found = pool.map(read_package, largest_first, [cap] * len(packages), [hidden] * len(packages))
        documents = [document for part in found for document in part]
    documents = without_duplicates(sorted(documents, key=lambda d: (d.label, _order(d.module), d.module)))
    labels = {document.label for document in documents}
    if len(documents) < at_least or len(labels) < 8:
        raise DataError(
            f"{len(documents)} documents in {len(labels)} installed packages; at least {at_least} in 8 are needed",
            hint="install more packages into this environment",
        )
    return documents


def choose(classes: int, at_least: int) -> list[Package]:
    """The largest installed packages; the standard library fills up where they are too few or too small."""
    site = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    installed: dict[str, Package] = {}
    for package in (package for root in sorted(site) for package in packages_in(Path(root))):
        installed.setdefault(package.name, package)
    chosen = sorted(installed.values(), key=lambda package: (-package.definitions, package.name))[:classes]
    rest = [package for package in packages_in(Path(sysconfig.get_path("stdlib"))) if package.name not in installed]
    # Seven tenths of the definitions become documents; a class of a few dozen is not worth a place.
    while rest and (len(chosen) < classes or 0.7 * sum(p.definitions for p in chosen) < at_least):
        chosen.append(rest.pop(0))
    return [package for package in chosen if package.definitions >= 100]


def packages_in(root: Path) -> list[Package]:
    """Packages of one folder, by falling number of definitions; neither our own nor copies inside of others."""
    found = []
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        name = folder.name
        if not (folder / "__init__.py").is_file() or not name.isidentifier() or name in OURS:
            continue
        files, definitions = [], 0
        for file in sorted(folder.rglob("*.py")):
            relative = file.relative_to(folder)
            if VENDORED.isdisjoint(relative.parts) and "site-packages" not in relative.parts:
                content = _bytes(file)
                definitions += len(DEFINITION.findall(content))
                files.append(relative.as_posix())
        if definitions:
            # The order of a hash, so that the cap takes a cross-section and not the first folders.
            files.sort(key=lambda file: _order(f"{name}/{file}"))
            found.append(Package(name, str(folder), tuple(files), definitions))
    return sorted(found, key=lambda package: (-package.definitions, package.name))


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.stat().st_size <= LARGEST_FILE else b""
    except OSError:  # a dangling link or a file without read permission is not a document
        return b""


def _order(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def part_of(module: str) -> str:
    """The part a file belongs to: by a hash of its path, so that no file is in both."""
    return "test" if int(_order(module)[:8], 16) % HELD_OUT == 0 else "train"


@dataclass(frozen=True)
class GiveAways:
    """Identifiers that name a package."""

    # Names of packages and their distributions, lower case, without separators. An identifier that contains one is
    # removed (a name of three letters or fewer only where it is a whole sub-word).
    names: frozenset[str]
    # Whole identifiers: names of modules that only one of the packages has, and what packages are imported as.
    words: frozenset[str]

    def names_package(self, identifier: str) -> bool:
        """Whether an identifier gives a package away."""
        if identifier in self.words:
            return True
        flat = identifier.lower().replace("_", "")
        if any(len(name) > 3 and name in flat for name in self.names):
            return True
        return any(part.lower() in self.names for part in SUBWORD.findall(identifier))


def give_aways(packages: Iterable[Package]) -> GiveAways:
    """What to remove from every document, whichever package it is from.

    From every document and not only from the package's own: a word that is missing in one class only would give that
    class away again.
    """
    packages = list(packages)
    names = {package.name.lower().replace("_", "") for package in packages}
    # "pyarrow" speaks of itself as "arrow".
    names |= {name[2:] for name in names if name.startswith("py") and len(name) > 5}
    by_module = metadata.packages_distributions()
    for package in packages:
        for distribution in by_module.get(package.name, ()):
            names.add(re.sub(r"[-_.]", "", distribution.lower()))
            # "scikit-learn" is also written with a space or a dash: its unusual half must go as well.
            names |= {part for part in re.split(r"[-_.]", distribution.lower()) if len(part) > 5}
    owners: Counter[str] = Counter()
    for package in packages:
        owners.update({part.removesuffix(".py") for file in package.files for part in Path(file).parts} - {"__init__"})
    modules = {word for word, count in owners.items() if count == 1}
    return GiveAways(frozenset(names), frozenset(modules | aliases(packages)))


def aliases(packages: Iterable[Package]) -> set[str]:
    """What the packages are imported as ("np"), by the imports of at least three files."""
    packages = list(packages)
    roots = "|".join(sorted(package.name for package in packages)).encode()
    pattern = re.compile(rb"\bimport[ \t]+(?:" + roots + rb")(?:\.\w+)*[ \t]+as[ \t]+(\w+)")
    seen: Counter[bytes] = Counter()
    for package in packages:
        for file in package.files:
            seen.update(set(pattern.findall(_bytes(Path(package.root, file)))))
    return {word.decode() for word, files in seen.items() if files >= 3}


def read_package(package: Package, cap: int, hidden: GiveAways) -> list[Document]:
    """At most `cap` documents of a package, without the names that would tell which it is."""
    known: dict[str, bool] = {}
    documents: list[Document] = []
    for file in package.files:
        if len(documents) >= cap:
            break
        module = f"{package.name}/{file}"
        part = part_of(module)
        for name, source in definitions(_bytes(Path(package.root, file))):
            text = clean(source[:LONGEST], hidden, known)
            if len(text) >= SHORTEST:
                documents.append(Document(text, package.name, module, name, part))
    return documents[:cap]


def definitions(content: bytes) -> Iterator[tuple[str, str]]:
    """Name and source of every function, method and class of a file; a class is its lines without its methods."""
    try:
        text = content.decode("utf-8")
        with warnings.catch_warnings():
            # Invalid escapes in other people's strings.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = text.splitlines(keepends=True)

    def source(node: ast.stmt) -> str:
        return "".join(lines[node.lineno - 1 : node.end_lineno])

    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, source(node)
        elif isinstance(node, ast.ClassDef):
            own, last = [], node.lineno - 1
            for child in node.body:
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    own.extend(lines[last : child.lineno - 1])
                    last = child.end_lineno or last
                    yield f"{node.name}.{child.name}", source(child)
            own.extend(lines[last : node.end_lineno])
            yield node.name, "".join(own)


def clean(text: str, hidden: GiveAways, known: dict[str, bool] | None = None) -> str:
    """Remove every identifier that gives a package away; `known` keeps answers between calls."""
    answers: dict[str, bool] = {} if known is None else known

    def keep(match: re.Match[str]) -> str:
        word = match[0]
        gone = answers.get(word)
        if gone is None:
            gone = answers[word] = hidden.names_package(word)
        return "" if gone else word

    return IDENTIFIER.sub(keep, text)


def without_duplicates(documents: list[Document]) -> list[Document]:
    """Keep one of several equal texts, and none where the labels differ (copied code has no one label)."""
    labels: dict[str, set[str]] = {}
    for document in documents:
        labels.setdefault(document.text, set()).add(document.label)
    seen: set[str] = set()
    kept = []
    for document in documents:
        if len(labels[document.text]) == 1 and document.text not in seen:
            seen.add(document.text)
            kept.append(document)
    return kept


def load() -> pa.Table:
    """The documents as a table: ``text``, ``label``, ``split``, ``source`` (the file), ``name``."""
    documents = extract()
    columns = {"text": "text", "label": "label", "split": "split", "source": "module", "name": "name"}
    return pa.table({name: [getattr(one, field) for one in documents] for name, field in columns.items()})
