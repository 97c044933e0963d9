"""Kind "kubernetes": a cluster of Dask's operator, and the run as a Job that goes on where its last pod stopped.

``templates/kubernetes.yaml.j2`` is all of it: the run file (ConfigMap), scheduler and workers (``DaskCluster`` of the
operator), who may speak to the scheduler (NetworkPolicy), and the Job. They are applied with ``kubectl``.

A pod that ends with exit code 2 or 3 (usage, data) would end so again, and fails the Job; any other is started anew and
goes on from the checkpoint in the shared folder.
"""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dboost.errors import UsageError
from dboost.interop.extras import imported

from ..config import ClusterSettings, tables_to_toml
from ..runs.folder import RUN_FILE
from ..templates import text_of
from .place import ClusterKind, called, client_of, number_of, options_of
from .security import FILES, TEMPORARY

# Where the claim with data and run folders is mounted, in all pods under the same path.
DATA = "/data"
_SETTINGS, _CERTIFICATES = "/etc/dboost", "/etc/dboost-tls"
# Memory of a worker that is not named, and what a pod has above the limit of its worker, so that Dask acts before the
# system kills the process unheard.
_MEMORY, _ABOVE = "4Gi", 0.85
_TRIES = 6


class Kubernetes(ClusterKind):
    """A ``DaskCluster`` and a Job."""

    takes = ("memory_limit", "tls", "options")

    def check_own(self, settings: ClusterSettings) -> None:
        """See ``check``."""
        check(settings)

    @contextlib.contextmanager
    def cluster(self, settings: ClusterSettings) -> Iterator[Any]:
        """A cluster of the operator that ends with the run; for a run whose own process is elsewhere."""
        operator = imported("dask_kubernetes.operator", "kubernetes")
        name = str(options_of(settings).get("name", "dboost"))
        (spec,) = (one for one in _rendered(name, settings) if one["kind"] == "DaskCluster")
        with client_of("kubernetes", lambda: operator.KubeCluster(custom_cluster_spec=spec), 0) as client:
            yield client

    def shown(self, settings: ClusterSettings, folder: Path) -> str:
        """The manifests, which ``kubectl apply -f -`` takes."""
        text: str = yaml.safe_dump_all(manifests(settings, folder), sort_keys=False, width=110)
        return text

    def start(self, settings: ClusterSettings, folder: Path) -> dict[str, Any]:
        """Apply the manifests."""
        _kubectl(["apply", "-f", "-"], {"apiVersion": "v1", "kind": "List", "items": manifests(settings, folder)})
        return {"name": _name(settings, folder), "namespace": options_of(settings).get("namespace", "default")}

    def stop(self, started: dict[str, Any]) -> str:
        """Delete the Job, whose pod is asked to end, and the cluster; data and run folder stay."""
        name, where = started["name"], ["--namespace", started["namespace"]]
        for kind in (f"job/{name}", f"daskcluster.kubernetes.dask.org/{name}"):
            _kubectl(["delete", "--ignore-not-found", *where, kind])
        return f"job {name} and its cluster were deleted"


def manifests(settings: ClusterSettings, folder: Path) -> list[dict[str, Any]]:
    """Everything that is applied.

    `settings`: of the options ``image`` and ``claim`` (a PersistentVolumeClaim that can be written from several nodes)
    are needed; ``namespace``, ``cores``, ``certificates`` (a Secret with ca.pem, cert.pem and key.pem) and ``tries``
    may be given.
    `folder`: the run folder here, whose run file goes along.
    """
    check(settings)
    return _rendered(_name(settings, folder), settings, _run_file(folder))


def check(settings: ClusterSettings) -> None:
    """Refuse what cannot be applied (UsageError)."""
    number_of(settings)
    options = options_of(settings)
    for needed, what in (("image", "the image of all pods"), ("claim", "the claim with the data")):
        if not options.get(needed):
            example = '--options \'{"image": "registry/dboost:0.1.0", "claim": "dboost-data"}\''
            raise UsageError(f"kind kubernetes needs options.{needed}, {what}", hint=f"as in {example}")
    if settings.tls == TEMPORARY or (settings.tls and not options.get("certificates")):
        raise UsageError(
            "certificates of this machine are not in the pods",
            hint=f"give options.certificates, a Secret with {', '.join(FILES.values())}",
        )


def _rendered(name: str, settings: ClusterSettings, run_file: str = "") -> list[dict[str, Any]]:
    """The template with what is asked for."""
    options, memory = options_of(settings), _memory(settings)
    certificates, cores = options.get("certificates"), options.get("cores", 2)
    scheme = "tls" if certificates else "tcp"
    text = text_of(
        __package__,
        "kubernetes.yaml.j2",
        name=name,
        options=options,
        certificates=certificates,
        scheme=scheme,
        tls_variables=_tls_variables() if certificates else (),
        paths={"data": DATA, "settings": _SETTINGS, "tls": _CERTIFICATES},
        run_file_name=RUN_FILE,
        run_file=run_file,
        workers=number_of(settings),
        cores=cores,
        worker_memory=memory,
        small_memory=2 << 30,
        tries=_TRIES,
        scheduler=["dask", "scheduler", "--host", "0.0.0.0", "--port", "8786", "--protocol", scheme],
        worker=[
            "dask", "worker", "--name", "$(DASK_WORKER_NAME)", "--memory-limit", str(int(memory * _ABOVE)),
            "--nthreads", str(cores), "--death-timeout", "60", "--protocol", scheme,
        ],
        run=[
            "dboost", "run", f"{_SETTINGS}/{RUN_FILE}", "--out", f"{DATA}/runs/{name}", "--take-over", "--trust",
            "--log-format", "json",
        ],
    )  # fmt: skip
    return list(yaml.safe_load_all(text))


def _tls_variables() -> list[tuple[str, str]]:
    """Dask's settings of certificates, as variables."""
    ca, cert, key = (f"{_CERTIFICATES}/{name}" for name in FILES.values())
    found = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": ca, "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}
    for who in ("SCHEDULER", "WORKER", "CLIENT"):
        found |= {f"DASK_DISTRIBUTED__COMM__TLS__{who}__CERT": cert, f"DASK_DISTRIBUTED__COMM__TLS__{who}__KEY": key}
    return list(found.items())


def _run_file(folder: Path) -> str:
    """The run file without its cluster, which in the pods is the scheduler that a variable names."""
    tables = tomllib.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    tables.pop("cluster", None)
    return tables_to_toml(tables)


def _name(settings: ClusterSettings, folder: Path) -> str:
    """A name that Kubernetes takes, for the run of a folder."""
    name = str(options_of(settings).get("name", f"dboost-{folder.name}")).lower()
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:50]


def _memory(settings: ClusterSettings) -> int:
    from dask.utils import parse_bytes

    try:
        return int(parse_bytes(settings.memory_limit or _MEMORY))
    except ValueError:
        raise UsageError(f"memory_limit is {settings.memory_limit!r}; expected a size such as '4GiB'") from None


def _kubectl(words: list[str], given: Any = None) -> None:
    called(["kubectl", *words], json.dumps(given) if given else "", 120, "--dry-run prints what it would apply")
