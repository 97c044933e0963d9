"""The direction of imports: each part of dboost knows only the parts below it.

Covers: imports among the parts of ``dboost`` and of heavy third-party packages, and who warns, read from the source.
Does not cover: what ``import dboost`` loads (``test_import.py``), or what the functions do.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "dboost"

# part -> the parts of dboost it may import. A file that is not listed belongs to its folder; a folder that is not
# listed fails, so that new parts state their place.
ALLOWED: dict[str, set[str]] = {
    "redact": set(),
    "errors": {"redact"},
    "notices": {"errors"},
    "former_names": {"notices"},
    "interruption": set(),
    "partition": set(),
    "notebook_html": set(),
    "progress": set(),
    "files": {"errors", "former_names", "notices", "redact"},
    "kernel_cache": {"errors", "files"},
    "compiled": set(),
    "capability": set(),
    "first_compile": {"compiled", "kernel_cache", "engine.machine"},
    "bounds": {"errors"},
    "columns": {"errors", "partition"},
    "losses": {"errors", "compiled", "capability"},
    "penalties": {"errors", "bounds", "columns", "compiled", "capability"},
    # What an engine is, without those there are: all that mathematics may know of where it runs.
    "engine.machine": {"errors"},
    "engine.base": {"errors", "partition"},
    "engine.views": {"partition", "engine.base"},
    "engine": {"errors", "notices", "partition", "interruption", "progress", "engine.base",
               "engine.machine", "engine.views"},
    "hypotheses": {"capability", "errors", "files", "partition", "compiled", "hypotheses.clusters", "engine.base"},
    "hypotheses.clusters": {"errors"},
    "passes": {"errors", "partition", "losses", "hypotheses", "compiled", "engine.views"},
    "data": {"errors", "notices", "partition", "compiled", "files", "redact", "notebook_html", "engine.machine"},
    "data.daskml": {"errors"},
    "metrics": {"errors", "partition", "compiled"},
    "plots": {"errors", "former_names"},
    "model.stages": {"errors"},
    "model": {"errors", "files", "partition", "compiled", "losses", "hypotheses", "metrics", "notebook_html",
              "model.stages"},
    "problem": {
        "errors", "partition", "losses", "bounds", "penalties", "hypotheses", "passes", "compiled", "columns",
        "engine.base",
    },
    "certificate": {"losses", "passes", "penalties", "compiled", "problem"},
    "solvers": {
        "partition", "losses", "bounds", "penalties", "hypotheses", "passes", "compiled",
        "problem", "certificate", "first_compile",
    },
    "boosting": {
        "errors", "notices", "interruption", "partition", "losses", "bounds", "penalties", "hypotheses", "passes",
        "compiled", "columns", "problem", "certificate", "solvers", "engine.base", "first_compile", "model.stages",
    },
    "estimators": {
        "errors", "former_names", "notices", "files", "redact", "partition", "losses", "penalties", "hypotheses",
        "passes", "engine", "engine.base", "data", "model", "metrics", "columns", "problem", "boosting",
        "model.stages", "first_compile", "interop.linear", "notebook_html", "interruption", "progress",
    },
    "interop.extras": {"errors"},
    "interop.linear": {"errors", "losses", "notices"},
    "interop": {"errors", "files", "partition", "losses", "model", "estimators", "interop.extras", "interop.linear"},
    # names of the two for users
    "mlflow": {"interop"},
    "onnx": {"interop"},
    "warm": {
        "errors", "partition", "kernel_cache", "compiled", "losses", "hypotheses", "passes", "engine", "engine.machine",
        "data", "problem", "boosting", "estimators", "first_compile",
    },
}  # fmt: skip
# The lazy front (PEP 562) names everything and is named by nothing.
ALLOWED["__init__"] = set(ALLOWED)

# package -> files or folders of dboost that may import it at all, even inside a function.
HOMES = {
    "dask": ("engine", "data", "estimators"),
    "distributed": ("engine", "data", "estimators"),
    "sklearn": ("errors", "estimators", "interop", "hypotheses.clusters", "data.daskml"),
    "pandas": ("data", "estimators", "interop"),
    "pyarrow": ("data", "files", "model", "estimators"),
    "numba": ("compiled", "first_compile", "penalties", "losses", "hypotheses", "data", "estimators"),
    "rich": (),
    "matplotlib": ("plots",),
    "IPython": ("estimators",),
}
# Nothing of dboost may load these before it needs them, but the files that are loaded for them only.
LATE = {"dask", "distributed", "pandas", "matplotlib", "IPython"}
LOADED_LATE = {path.relative_to(PACKAGE).as_posix() for path in (PACKAGE / "engine" / "dask").glob("*.py")}


def part_of(path: Path) -> str:
    """The part of a file: 'losses', 'errors', 'compiled.fused'."""
    return part_named(".".join(path.relative_to(PACKAGE).parts).removesuffix(".py"))


def part_named(module: str) -> str:
    """The longest prefix of a module's name (without 'dboost.') that is a part, else its first component."""
    pieces = module.split(".")
    prefixes = [".".join(pieces[:length]) for length in range(len(pieces), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in ALLOWED), pieces[0])


@cache
def tree(path: Path) -> ast.Module:
    """A file as a program."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[tuple[str, bool, int]]:
    """Absolute module names imported by a file, whether at import time, and the line."""
    found: list[tuple[str, bool, int]] = []
    package = ("dboost", *path.relative_to(PACKAGE).parts[:-1])

    def visit(node: ast.AST, eager: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend((alias.name, eager, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(name for name in (base, node.module) if name)
            found.append((module, eager, node.lineno))
            # `from dboost import losses` names a part in the list of names.
            if module.split(".")[0] == "dboost":
                found.extend((f"{module}.{alias.name}", eager, node.lineno) for alias in node.names)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(node)
        for child in ast.iter_child_nodes(node):
            visit(child, eager and not inside)

    visit(tree(path), True)
    return found


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_imports_point_downwards() -> None:
    assert not [line for path in sources() for line in against_the_layers(path)]


def against_the_layers(path: Path) -> list[str]:
    """What a file imports and must not, one line each."""
    part = part_of(path)
    if part not in ALLOWED:
        return [f"{part} has no place in the layer table: add it to ALLOWED with the parts it may import"]
    wrong = []
    folders = {name.split(".")[0] for name in ALLOWED}
    for module, eager, line in imports(path):
        top, *rest = module.split(".")
        if top == "dboost" and rest and rest[0] in folders:
            if part_named(".".join(rest)) not in ALLOWED[part] | {part}:
                wrong.append(f"line {line}: {part} must not import {module}")
        elif top in HOMES and not {part, part.split(".")[0]} & set(HOMES[top]):
            wrong.append(f"line {line}: {part} must not import {top}")
        elif top in LATE and eager and path.relative_to(PACKAGE).as_posix() not in LOADED_LATE:
            wrong.append(f"line {line}: {top} may be imported inside functions only")
        elif top in {"pipelines", "dboost_pipelines", "lab"}:
            wrong.append(f"line {line}: nothing in dboost may import {top}")
    return [f"{path.relative_to(ROOT)}, {one}" for one in wrong]


def test_the_table_is_a_direction() -> None:
    """No two parts may import each other, however long the way round."""
    done: set[str] = set()
    while len(done) < len(ALLOWED):
        free = {part for part, below in ALLOWED.items() if part not in done and below - {"__init__"} <= done}
        assert free, f"a cycle among {sorted(set(ALLOWED) - done)}"
        done |= free


@cache
def for_types(path: Path) -> set[int]:
    """Lines of imports that only a reader of types follows."""
    blocks = [node for node in ast.walk(tree(path)) if is_type_checking(node)]
    return {
        node.lineno for block in blocks for node in ast.walk(block) if isinstance(node, ast.Import | ast.ImportFrom)
    }


def needs(types: bool) -> dict[str, set[str]]:
    """Module -> modules of dboost that it imports, inside functions too; with `types` those for its types alone too."""
    parts = {path: path.relative_to(ROOT).with_suffix("").parts for path in sources()}
    names = {".".join(words).removesuffix(".__init__"): path for path, words in parts.items()}
    found: dict[str, set[str]] = {}
    for name, path in names.items():
        named = {module for module, _, line in imports(path) if types or line not in for_types(path)}
        found[name] = {module for module in named if module in names} - {name}
    return found


def test_no_modules_import_each_other() -> None:
    """However long the way round is: a module is understood, and tested, with those below it and no other."""
    left = needs(types=False)
    assert len(left) > 200 and sum(map(len, left.values())) > 500
    while free := {name for name, below in left.items() if not below & left.keys()}:
        left = {name: below for name, below in left.items() if name not in free}
    assert not left, f"a cycle among {sorted(left)}"


def test_no_two_modules_name_each_other_in_types() -> None:
    found = needs(types=True)
    pairs = [(a, b) for a in sorted(found) for b in sorted(found[a]) if a < b and a in found[b]]
    assert not pairs


def test_the_reader_sees_every_form_of_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    folder = tmp_path / "losses"
    folder.mkdir()
    file = folder / "log.py"
    file.write_text("from ..engine import base\nfrom . import softmax\ndef f():\n    import dask.array\n")
    assert imports(file) == [
        ("dboost.engine", True, 1),
        ("dboost.engine.base", True, 1),
        ("dboost.losses", True, 2),
        ("dboost.losses.softmax", True, 2),
        ("dask.array", False, 4),
    ]


@cache
def packages_named(path: Path) -> set[str]:
    """The first components of all imports of a file, those inside functions too; "" for one without a name."""
    named: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            named |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            named.add("" if node.level else (node.module or "").split(".")[0])
    return named


# The second runs before the package is there, for the line that imports it.
WARNERS = {"notices.py", "kernel_cache.py"}


def warns(path: Path) -> list[int]:
    """Lines of a file that name ``warnings.warn`` or ``warn_explicit``, by whatever way."""
    found: list[int] = []
    for node in ast.walk(tree(path)) if "warnings" in path.read_text(encoding="utf-8") else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "warnings":
            found += [node.lineno] if node.attr in ("warn", "warn_explicit") else []
        elif isinstance(node, ast.ImportFrom) and node.module == "warnings":
            found += [node.lineno for alias in node.names if alias.name in ("warn", "warn_explicit")]
        elif isinstance(node, ast.Import):
            found += [node.lineno for alias in node.names if alias.name == "warnings" and alias.asname]
    return found


def test_one_module_warns_so_that_every_warning_points_at_the_users_line() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): warns(path) for path in sources()}
    others = {path: lines for path, lines in found.items() if lines and path not in WARNERS}
    assert not others, f"use dboost.notices.warn_user: {others}"
    assert all(found[path] for path in WARNERS)


def test_pipelines_use_relative_imports_and_nothing_that_a_wheel_does_not_hold() -> None:
    """The folder runs as `python -m pipelines` and installs as dboost_pipelines: it may not name itself."""
    for path in sorted((ROOT / "pipelines").rglob("*.py")):
        assert not {"dboost_pipelines", "pipelines", "lab", "tests"} & packages_named(path), path


def test_lab_names_what_it_imports_as_a_checkout_does() -> None:
    """Its own modules and those of the command line have one name each, so that none is loaded twice."""
    # The peers are also read in environments without this project, as a package of another name.
    peers = ROOT / "lab" / "benchmarks" / "peers"
    for path in sorted((ROOT / "lab").rglob("*.py")):
        assert not {"dboost_pipelines", "tests"} & packages_named(path), f"{path}: names another package than pipelines"
        assert "" not in packages_named(path) or peers in path.parents, f"{path}: imports without a name"


# What is imported -> the distribution it is from, where the names differ.
DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "distributed": "dask",
    "dask_jobqueue": "dask-jobqueue",
    "dask_kubernetes": "dask-kubernetes",
    "dask_ml": "dask-ml",
    "dask_gateway": "dask-gateway",
}
# What is used only where somebody else has brought it: tables of pandas and polars, the shell of a notebook.
BROUGHT = {"pandas", "polars", "IPython", "onnx"}


def test_everything_that_is_imported_is_declared() -> None:
    """An import that works because another package happens to need the same one fails when that changes its mind."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [bound for name, bounds in project["optional-dependencies"].items() if name != "test" for bound in bounds]
    declared = {re.split(r"[>=\[]", bound)[0].lower() for bound in [*project["dependencies"], *extras]}
    known = {*sys.stdlib_module_names, *BROUGHT, "", "dboost", "dboost_pipelines", "pipelines", "lab"}
    lacking = {
        top: path.relative_to(ROOT).as_posix()
        for path in [*sources(), *(ROOT / "pipelines").rglob("*.py")]
        for top in packages_named(path) - known
        if DISTRIBUTIONS.get(top, top).lower() not in declared
    }
    assert not lacking
