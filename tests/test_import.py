"""What importing dboost costs: nothing heavy, and every public name resolves."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dboost


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_is_light():
    loaded = run("import sys, dboost; print(*sorted({m.split('.')[0] for m in sys.modules}))").split()
    assert not {"dask", "distributed", "sklearn", "numba", "pandas", "pyarrow", "scipy", "numpy"} & set(loaded)


def test_local_estimators_do_not_import_dask():
    loaded = run(
        "import sys, numpy, dboost; X = numpy.random.default_rng(0).normal(size=(60, 4)); y = X[:, 0] > 0\n"
        "dboost.BoostedClassifier().fit(X, y).predict(X)\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    ).split()
    assert "sklearn" in loaded
    assert not {"dask", "distributed"} & set(loaded)


def test_public_names_resolve():
    assert not [name for name in dboost.__all__ if getattr(dboost, name) is None or name not in dir(dboost)]


@pytest.mark.parametrize("part", ["hypotheses", "losses", "metrics", "penalties", "plots"])
def test_parts_are_attributes_that_are_loaded_on_first_use(part):
    code = f"import dboost, sys; print(dboost.{part}.__name__); print('matplotlib' in sys.modules)"
    assert run(code).split() == [f"dboost.{part}", "False"]


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'BoostedClasifier'"):
        dboost.BoostedClasifier  # noqa: B018


def test_parts_are_imported_as_the_documentation_names_them() -> None:
    """In both usual forms, where a page says `dboost.onnx.to_onnx`."""
    for part in ("hypotheses", "losses", "metrics", "mlflow", "onnx", "penalties", "plots"):
        names: dict[str, object] = {}
        exec(f"import dboost.{part}\nfrom dboost import {part} as other\nsame = dboost.{part} is other", names)
        assert names["same"], part
    exec("from dboost.onnx import to_onnx\nfrom dboost.mlflow import log_model, autolog", {})
