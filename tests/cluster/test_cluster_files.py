"""The deployment files: they parse, agree with each other and with the package.

Covers: YAML, settings that Dask knows, versions and names used in several files, the preload on a real worker.
Does not cover: building the image (no container runtime is assumed).
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import dboost

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "cluster"
VERSION = dboost.__version__


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


@pytest.fixture
def preload() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dboost_preload", CLUSTER / "preload.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {key: leaf for name, item in value.items() for key, leaf in leaves(item, f"{path}.{name}").items()}
    return {path.lstrip("."): value}


def test_every_setting_is_one_that_dask_knows_and_differs_from_its_default() -> None:
    import distributed

    folder = Path(distributed.__file__).parent
    known = leaves(yaml.safe_load((folder / "distributed.yaml").read_text(encoding="utf-8")))
    (ours,) = documents(CLUSTER / "dask.yaml")
    for key, value in leaves(ours).items():
        assert key in known, f"{key}: Dask has no such setting"
        assert value != known[key], f"{key}: the same as the default"


@pytest.mark.parametrize("path", sorted([*CLUSTER.glob("k8s/*.yaml"), CLUSTER / "compose.yaml"]), ids=lambda p: p.name)
def test_manifests_parse_and_name_the_image_of_this_version(path: Path) -> None:
    assert all(documents(path))
    for image in re.findall(r"image: ([^&\s]\S*)", path.read_text(encoding="utf-8")):
        assert image == f"dboost:{VERSION}"


def test_the_image_copies_what_exists() -> None:
    text = (CLUSTER / "Dockerfile").read_text(encoding="utf-8")
    copied = [name for line in re.findall(r"^COPY (.+)$", text, flags=re.M) for name in line.split()[:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)


def test_kubernetes_names_agree() -> None:
    found = {(doc["kind"], doc["metadata"]["name"]) for path in CLUSTER.glob("k8s/*.yaml") for doc in documents(path)}
    everything = "".join(path.read_text(encoding="utf-8") for path in CLUSTER.glob("k8s/*.yaml"))
    for service in re.findall(r"tcp://([\w-]+):8786", everything):
        assert ("Service", service) in found
    for claim in re.findall(r"claimName: ([\w-]+)", everything):
        assert ("PersistentVolumeClaim", claim) in found


def test_nothing_listens_to_the_world() -> None:
    (compose,) = documents(CLUSTER / "compose.yaml")
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)
    kinds = [doc["spec"].get("type") for path in CLUSTER.glob("k8s/*.yaml") for doc in documents(path)]
    assert "LoadBalancer" not in kinds and "NodePort" not in kinds


class Scheduler:
    def __init__(self, **versions: str) -> None:
        self.found = versions

    async def versions(self, packages: list[str]) -> dict[str, Any]:
        return {"packages": {name: self.found.get(name) for name in ["python", *packages]}}


class Worker:
    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler


def test_the_preload_warms_a_worker_of_equal_versions(preload: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    import dboost.warm

    warmed: list[float] = []
    monkeypatch.setattr(dboost.warm, "warm", lambda: warmed.append(1.0) or 1.0)
    mine = preload.own_versions()
    # A scheduler runs no task: it may lack what only workers need.
    asyncio.run(preload.dask_setup(Worker(Scheduler(**{**mine, "python": mine["python"] + ".99"}))))
    lean = {name: found for name, found in mine.items() if name not in ("numba", "pyarrow")}
    asyncio.run(preload.dask_setup(Worker(Scheduler(**lean))))
    assert warmed == [1.0, 1.0]


@pytest.mark.parametrize("name", ["numpy", "dboost", "python"])
def test_the_preload_refuses_other_versions(preload: ModuleType, name: str) -> None:
    import asyncio

    other = {**preload.own_versions(), name: "1.2"}
    with pytest.raises(SystemExit, match=f"{name} .* here, 1.2 there"):
        asyncio.run(preload.dask_setup(Worker(Scheduler(**other))))
