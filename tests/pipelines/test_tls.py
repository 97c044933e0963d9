"""A cluster whose parts speak TLS: who is let in, a whole run over it, and what listens where.

Covers: a scheduler and a worker with certificates of a folder; three clients that must not get in; a run with
``--scheduler tls://... --tls FOLDER``; the sockets of an embedded cluster.
Does not cover: certificates for the life of an embedded cluster (test_submit.py).
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from distributed import Client, LocalCluster, Security

from pipelines.cli import main
from pipelines.places.security import security_of
from pipelines.runs.fingerprints import of_model

pytest.importorskip("cryptography", reason="cryptography is not installed")


def folder_of(made: Security, path: Path) -> Path:
    """The certificate, the key and the authority of one that was made, as files."""
    path.mkdir()
    texts = {"ca.pem": made.tls_ca_file, "cert.pem": made.tls_client_cert, "key.pem": made.tls_client_key}
    for name, text in texts.items():
        (path / name).write_text(text)
    return path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(Security.temporary(), tmp_path_factory.mktemp("tls") / "ours")


def listening() -> set[tuple[str, int]]:
    """Addresses that this process and its children listen at."""
    me = psutil.Process()
    connections = [
        one for process in [me, *me.children(recursive=True)] for one in process.net_connections(kind="inet")
    ]
    return {(one.laddr.ip, one.laddr.port) for one in connections if one.status == psutil.CONN_LISTEN}


@pytest.fixture(scope="module")
def cluster(certificates: Path) -> Iterator[tuple[str, set[tuple[str, int]]]]:
    """The address of a cluster, and where it listens: what other tests of this process left open is not its own."""
    before = listening()
    security = security_of(str(certificates))
    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", protocol="tls", security=security,
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        yield cluster.scheduler_address, listening() - before


@pytest.fixture
def address(cluster: tuple[str, set[tuple[str, int]]]) -> str:
    return cluster[0]


def refused(address: str, security: Security | None) -> bool:
    try:
        with Client(address, security=security, timeout=2):
            return False
    except (OSError, TimeoutError, RuntimeError):
        return True


def refused_without_a_certificate(address: str, ca: Path) -> bool:
    """Dask's own client does not even try."""
    host, port = address.removeprefix("tls://").split(":")
    context = ssl.create_default_context(cafile=str(ca))
    context.check_hostname = False
    with socket.create_connection((host, int(port)), timeout=5) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=host) as wrapped:
                return wrapped.recv(1) == b""
        except ssl.SSLError as error:
            return "CERTIFICATE_REQUIRED" in str(error)


def test_a_client_of_ours_is_let_in(address: str, certificates: Path) -> None:
    with Client(address, security=security_of(str(certificates)), timeout=10) as client:
        assert client.submit(sum, (1, 2)).result(timeout=30) == 3


def test_who_has_no_certificate_of_ours_is_not(address: str, certificates: Path, tmp_path: Path) -> None:
    assert refused(address.replace("tls://", "tcp://"), None), "without encryption"
    assert refused_without_a_certificate(address, certificates / "ca.pem")
    # somebody who believes our authority, with a certificate of another one
    other = folder_of(Security.temporary(), tmp_path / "other")
    (other / "ca.pem").write_bytes((certificates / "ca.pem").read_bytes())
    assert refused(address, security_of(str(other)))


def test_a_run_over_it_has_the_model_of_a_run_without(
    address: str, certificates: Path, prepared: Path, tmp_path: Path
) -> None:
    command = ["train", str(prepared), "--alpha", "0.01", "--tol", "1e-3", "--log-format", "json"]
    over = ["--scheduler", address, "--tls", str(certificates)]
    assert main([*command, "--out", str(tmp_path / "tls"), *over]) == 0
    assert main([*command, "--out", str(tmp_path / "here"), "--workers", "0"]) == 0
    assert of_model(tmp_path / "tls") == of_model(tmp_path / "here")


def test_nothing_listens_beyond_loopback(cluster: tuple[str, set[tuple[str, int]]]) -> None:
    """Neither this process nor a worker that it has started."""
    found = [ip for ip, _ in cluster[1]]
    assert len(found) >= 3 and all(ipaddress.ip_address(ip).is_loopback for ip in found), found
