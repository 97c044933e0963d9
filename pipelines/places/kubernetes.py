"""Kind "kubernetes": a cluster of Dask's operator, and the run as a Job that goes on where its last pod stopped.

``manifests`` is all of it as plain objects: the run file (ConfigMap), the scheduler and workers (``DaskCluster`` of the
operator), who may speak to the scheduler (NetworkPolicy), and the Job. They are applied with ``kubectl``.

A pod that ends with exit code 2 or 3 (usage, data) would end so again, and fails the Job; any other is started anew and
goes on from the checkpoint in the shared folder.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dboost.errors import UsageError
from dboost.interop.extras import imported

from ..config import tables_to_toml
from ..runs.folder import RUN_FILE
from .place import Place, Request, called, client_of
from .security import FILES, TEMPORARY

API = "kubernetes.dask.org/v1"
# Where the claim with data and run folders is mounted, in all pods under the same path.
DATA = "/data"
_SETTINGS, _CERTIFICATES = "/etc/dboost", "/etc/dboost-tls"
# Memory of a worker that is not named, and what a pod has above the limit of its worker, so that Dask acts before the
# system kills the process unheard.
_MEMORY, _ABOVE = "4Gi", 0.85
_TRIES = 6


class Kubernetes(Place):
    """A ``DaskCluster`` and a Job."""

    takes = ("memory_limit", "tls", "options")

    def check_own(self, request: Request) -> None:
        """See ``check``."""
        check(request)

    @contextlib.contextmanager
    def cluster(self, request: Request) -> Iterator[Any]:
        """A cluster of the operator that ends with the run; for a run whose own process is elsewhere."""
        operator = imported("dask_kubernetes.operator", "kubernetes")
        name = str(request.options.get("name", "dboost"))
        spec = cluster_spec(name, request)
        with client_of("kubernetes", lambda: operator.KubeCluster(custom_cluster_spec=spec), 0) as client:
            yield client

    def shown(self, request: Request, folder: Path) -> str:
        """The manifests, which ``kubectl apply -f -`` takes."""
        yaml = imported("yaml", "kubernetes")
        text: str = yaml.safe_dump_all(manifests(request, folder), sort_keys=False, width=110)
        return text

    def start(self, request: Request, folder: Path) -> dict[str, Any]:
        """Apply the manifests."""
        _kubectl(["apply", "-f", "-"], {"apiVersion": "v1", "kind": "List", "items": manifests(request, folder)})
        return {"name": _name(request, folder), "namespace": request.options.get("namespace", "default")}

    def stop(self, started: dict[str, Any]) -> str:
        """Delete the Job, whose pod is asked to end, and the cluster; data and run folder stay."""
        name, where = started["name"], ["--namespace", started["namespace"]]
        for kind in (f"job/{name}", f"daskcluster.kubernetes.dask.org/{name}"):
            _kubectl(["delete", "--ignore-not-found", *where, kind])
        return f"job {name} and its cluster were deleted"


def manifests(request: Request, folder: Path) -> list[dict[str, Any]]:
    """Everything that is applied.

    `request`: of the options ``image`` and ``claim`` (a PersistentVolumeClaim that can be written from several nodes)
    are needed; ``namespace``, ``cores``, ``certificates`` (a Secret with ca.pem, cert.pem and key.pem) and ``tries``
    may be given.
    `folder`: the run folder here, whose run file goes along.
    """
    check(request)
    name = _name(request, folder)
    settings = _metadata(f"{name}-run", request)
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": settings, "data": {RUN_FILE: _run_file(folder, name)}},
        cluster_spec(name, request),
        _policy(name, request),
        _job(name, request),
    ]


def check(request: Request) -> None:
    """Refuse what cannot be applied (UsageError)."""
    request.number()
    options = request.options
    for needed, what in (("image", "the image of all pods"), ("claim", "the claim with the data")):
        if not options.get(needed):
            example = '--options \'{"image": "registry/dboost:0.1.0", "claim": "dboost-data"}\''
            raise UsageError(f"kind kubernetes needs options.{needed}, {what}", hint=f"as in {example}")
    if request.tls == TEMPORARY or (request.tls and not options.get("certificates")):
        raise UsageError(
            "certificates of this machine are not in the pods",
            hint=f"give options.certificates, a Secret with {', '.join(FILES.values())}",
        )


def cluster_spec(name: str, request: Request) -> dict[str, Any]:
    """The ``DaskCluster`` of the operator."""
    scheme = "tls" if request.options.get("certificates") else "tcp"
    scheduler = ["dask", "scheduler", "--host", "0.0.0.0", "--port", "8786", "--protocol", scheme]
    memory = _memory(request)
    worker = [
        "dask", "worker", "--name", "$(DASK_WORKER_NAME)", "--memory-limit", str(int(memory * _ABOVE)),
        "--nthreads", str(request.options.get("cores", 2)), "--death-timeout", "60", "--protocol", scheme,
    ]  # fmt: skip
    ports = [{"name": "tcp-comm", "containerPort": 8786, "protocol": "TCP"},
             {"name": "http-dashboard", "containerPort": 8787, "protocol": "TCP"}]  # fmt: skip
    ready = {"tcpSocket": {"port": "tcp-comm"}, "periodSeconds": 5}
    scheduler_pod = _pod(request, "scheduler", scheduler, cpu="500m", memory=2 << 30)
    scheduler_pod["containers"][0] |= {"ports": ports, "readinessProbe": ready}
    worker_pod = _pod(request, "worker", worker, cpu=str(request.options.get("cores", 2)), memory=memory, data=True)
    service = {
        # inside the cluster only: whoever reaches a Dask scheduler can run code on it
        "type": "ClusterIP",
        "selector": {"dask.org/cluster-name": name, "dask.org/component": "scheduler"},
        "ports": [
            {"name": "tcp-comm", "protocol": "TCP", "port": 8786, "targetPort": "tcp-comm"},
            {"name": "http-dashboard", "protocol": "TCP", "port": 8787, "targetPort": "http-dashboard"},
        ],
    }
    return {
        "apiVersion": API,
        "kind": "DaskCluster",
        "metadata": _metadata(name, request),
        "spec": {
            "worker": {"replicas": request.number(), "spec": worker_pod},
            "scheduler": {"spec": scheduler_pod, "service": service},
        },
    }


def _job(name: str, request: Request) -> dict[str, Any]:
    """The run: `dboost run` does what is not done yet, so every try goes on where the last one stopped."""
    scheme = "tls" if request.options.get("certificates") else "tcp"
    command = [
        "dboost", "run", f"{_SETTINGS}/{RUN_FILE}", "--out", f"{DATA}/runs/{name}", "--take-over", "--trust",
        "--log-format", "json",
    ]  # fmt: skip
    pod = _pod(request, "run", command, cpu="1", memory=2 << 30, data=True)
    pod["restartPolicy"] = "Never"
    pod["containers"][0]["env"].append({"name": "DASK_SCHEDULER_ADDRESS", "value": f"{scheme}://{name}-scheduler:8786"})
    pod["containers"][0]["volumeMounts"].append({"name": "run", "mountPath": _SETTINGS, "readOnly": True})
    pod["volumes"].append({"name": "run", "configMap": {"name": f"{name}-run"}})
    rules = [
        {"action": "FailJob", "onExitCodes": {"containerName": "run", "operator": "In", "values": [2, 3]}},
        # a node that goes away is nobody's fault, and counts as no try
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(name, request),
        "spec": {
            "backoffLimit": int(request.options.get("tries", _TRIES)),
            "podFailurePolicy": {"rules": rules},
            "template": {"metadata": {"labels": _labels(name)}, "spec": pod},
        },
    }


def _policy(name: str, request: Request) -> dict[str, Any]:
    """Nobody but the run and the cluster's own pods speaks to scheduler and workers."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(name, request),
        "spec": {
            "podSelector": {"matchLabels": {"dask.org/cluster-name": name}},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [
                        {"podSelector": {"matchLabels": {"dask.org/cluster-name": name}}},
                        {"podSelector": {"matchLabels": _labels(name)}},
                    ]
                }
            ],
        },
    }


def _pod(
    request: Request, container: str, command: list[str], *, cpu: str, memory: int, data: bool = False
) -> dict[str, Any]:
    """A pod with one container, without rights, with its memory as a limit."""
    one: dict[str, Any] = {
        "name": container,
        "image": request.options["image"],
        "args": command,
        "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
        "resources": {"requests": {"cpu": cpu, "memory": str(memory)}, "limits": {"memory": str(memory)}},
        "volumeMounts": [],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    volumes: list[dict[str, Any]] = []
    if data:
        one["volumeMounts"].append({"name": "data", "mountPath": DATA})
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": request.options["claim"]}})
    if request.options.get("certificates"):
        one["volumeMounts"].append({"name": "tls", "mountPath": _CERTIFICATES, "readOnly": True})
        volumes.append({"name": "tls", "secret": {"secretName": request.options["certificates"]}})
        one["env"] += _tls_variables()
    return {
        "containers": [one],
        "volumes": volumes,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
    }


def _tls_variables() -> list[dict[str, str]]:
    """Dask's settings of certificates, as variables."""
    ca, cert, key = (f"{_CERTIFICATES}/{name}" for name in FILES.values())
    found = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": ca, "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}
    for who in ("SCHEDULER", "WORKER", "CLIENT"):
        found |= {f"DASK_DISTRIBUTED__COMM__TLS__{who}__CERT": cert, f"DASK_DISTRIBUTED__COMM__TLS__{who}__KEY": key}
    return [{"name": name, "value": value} for name, value in found.items()]


def _run_file(folder: Path, name: str) -> str:
    """The run file without its cluster, which in the pods is the scheduler that a variable names."""
    import tomllib

    tables = tomllib.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    tables.pop("cluster", None)
    return tables_to_toml(tables)


def _metadata(name: str, request: Request) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": request.options.get("namespace", "default"),
        "labels": _labels(name.removesuffix("-run")),
    }


def _labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "dboost", "app.kubernetes.io/instance": name}


def _name(request: Request, folder: Path) -> str:
    """A name that Kubernetes takes, for the run of a folder."""
    name = str(request.options.get("name", f"dboost-{folder.name}")).lower()
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:50]


def _memory(request: Request) -> int:
    from dask.utils import parse_bytes

    try:
        return int(parse_bytes(request.memory_limit or _MEMORY))
    except ValueError:
        raise UsageError(f"memory_limit is {request.memory_limit!r}; expected a size such as '4GiB'") from None


def _kubectl(words: list[str], given: Any = None) -> None:
    called(["kubectl", *words], json.dumps(given) if given else "", 120, "--dry-run prints what it would apply")
