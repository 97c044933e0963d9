"""The kinds of clusters by name; a new kind is a class and a line here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dboost.engine.machine import refuse_daemonic
from dboost.errors import UsageError
from dboost.interop.extras import imported

from ..config import ClusterSettings
from .kubernetes import Kubernetes
from .place import ClusterKind, client_of, number_of, options_of
from .security import TEMPORARY, security_of, settings_of
from .slurm import Slurm


class Local(ClusterKind):
    """A cluster inside this machine; see ``dboost.engine.dask.cluster``."""

    takes = ("memory_limit", "tls")

    def check_own(self, settings: ClusterSettings) -> None:
        """A daemonic process may start no workers."""
        refuse_daemonic()

    @contextlib.contextmanager
    def cluster(self, settings: ClusterSettings) -> Iterator[Any]:
        """The embedded cluster."""
        from dboost.engine.dask.cluster import embedded_cluster

        with (
            embedded_cluster(settings.workers, settings.memory_limit, security=security_of(settings.tls)) as cluster,
            cluster.get_client() as client,
        ):
            yield client


class Gateway(ClusterKind):
    """A cluster that a Dask Gateway makes and encrypts, whose address and login are those of its own settings."""

    takes = ("options",)

    @contextlib.contextmanager
    def cluster(self, settings: ClusterSettings) -> Iterator[Any]:
        """A new cluster of the gateway."""
        gateway = imported("dask_gateway", "gateway")
        options = options_of(settings)
        address = options.pop("address", None)

        def make() -> Any:
            return gateway.Gateway(address).new_cluster(shutdown_on_close=True, **options)

        with client_of("gateway", make, number_of(settings)) as client:
            yield client

    def shown(self, settings: ClusterSettings, folder: Path) -> str:
        """The command of the run, and what the gateway is asked for."""
        asked = f"{number_of(settings)} workers of the gateway, {options_of(settings)}"
        return f"{super().shown(settings, folder)}\n# {asked}"


class Ssh(ClusterKind):
    """Machines that are reached by ssh: the first has the scheduler, all have the same environment and paths."""

    takes = ("memory_limit", "hosts", "tls", "options")
    says = {"worker_options.n_workers": "workers", "worker_options.memory_limit": "memory_limit", "hosts": "hosts"}

    def check_own(self, settings: ClusterSettings) -> None:
        """There are hosts, and no secret that would be shown on them."""
        _arguments(settings)
        if settings.tls == TEMPORARY:
            # Dask hands its settings to the hosts on a command line, where everybody there could read a private key.
            raise UsageError(
                "temporary certificates would be shown in the process lists of the hosts",
                hint="give a folder with certificates that all hosts see",
            )

    @contextlib.contextmanager
    def cluster(self, settings: ClusterSettings) -> Iterator[Any]:
        """A scheduler on the first host, workers on the others."""
        imported("asyncssh", "ssh")
        import dask
        from distributed import SSHCluster

        security = security_of(settings.tls)
        arguments = {**_arguments(settings), "security": security}
        # the hosts take Dask's settings of this process, in which files have names only
        with dask.config.set(settings_of(settings.tls)), client_of("ssh", lambda: SSHCluster(**arguments), 0) as client:
            yield client

    def shown(self, settings: ClusterSettings, folder: Path) -> str:
        """The command of the run, and where scheduler and workers go."""
        hosts = _arguments(settings)["hosts"]
        each = settings.workers or 1
        lines = [super().shown(settings, folder), f"# scheduler on {hosts[0]}"]
        return "\n".join([*lines, *(f"# {each} worker{'s' if each > 1 else ''} on {host}" for host in hosts[1:])])


def _arguments(settings: ClusterSettings) -> dict[str, Any]:
    hosts = settings.hosts or ()
    if len(hosts) < 2:
        raise UsageError(
            f"kind ssh has {len(hosts)} hosts; expected that of the scheduler and one or more of workers",
            hint="give hosts, such as node1,node2,node3; one name may be given twice",
        )
    worker: dict[str, Any] = {"n_workers": settings.workers or 1}
    scheduler: dict[str, Any] = {}
    if settings.memory_limit:
        worker["memory_limit"] = settings.memory_limit
    if settings.tls:
        worker["protocol"] = scheduler["protocol"] = "tls"
    given = options_of(settings)
    worker |= given.pop("worker_options", {})
    scheduler |= given.pop("scheduler_options", {})
    return {"hosts": list(hosts), "worker_options": worker, "scheduler_options": scheduler, **given}


PLACES: dict[str, ClusterKind] = {
    "local": Local(),
    "ssh": Ssh(),
    "slurm": Slurm(),
    "kubernetes": Kubernetes(),
    "gateway": Gateway(),
}
