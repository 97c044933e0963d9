"""A cluster whose parts speak TLS: who is let in, a whole run over it, and what listens where."""

import datetime
import io
import ipaddress
import socket
import ssl

import psutil
import pytest
from distributed import Client, Security

from pipelines.cli import main
from pipelines.cluster import connect
from pipelines.config import ClusterSettings
from pipelines.console import Console
from pipelines.places.security import security_of
from pipelines.runs.fingerprints import of_model

x509 = pytest.importorskip("cryptography.x509")
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates, and writes folders of them."""

    def __init__(self):
        from cryptography.hazmat.primitives.asymmetric import ec

        self._curve = ec.SECP256R1()
        self._new = ec.generate_private_key
        self._key = self._new(self._curve)
        self.own = self._signed("authority", self._key, 30)

    def _signed(self, name, key, days):
        from cryptography.hazmat.primitives import hashes

        def named(name):
            return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)])

        builder = x509.CertificateBuilder().subject_name(named(name)).issuer_name(named("authority"))
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(NOW - 9 * DAY).not_valid_after(NOW + days * DAY)
        place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        basic = x509.BasicConstraints(ca=name == "authority", path_length=None)
        builder = builder.add_extension(place, critical=False).add_extension(basic, critical=True)
        return builder.sign(self._key, hashes.SHA256())

    def folder(self, path, *, days=1, trusted=None):
        """A certificate that ends so many days from now, beside the authority that its owner trusts."""
        from cryptography.hazmat.primitives import serialization

        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        mine = self._new(self._curve)
        path.mkdir()
        (path / "ca.pem").write_bytes((trusted or self).own.public_bytes(pem))
        (path / "cert.pem").write_bytes(self._signed("somebody", mine, days).public_bytes(pem))
        (path / "key.pem").write_bytes(mine.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        return path


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory, authority):
    return authority.folder(tmp_path_factory.mktemp("tls") / "ours")


def listening():
    """Addresses that this process and its children listen at."""
    me = psutil.Process()
    connections = [
        one for process in [me, *me.children(recursive=True)] for one in process.net_connections(kind="inet")
    ]
    return {(one.laddr.ip, one.laddr.port) for one in connections if one.status == psutil.CONN_LISTEN}


def local(tls):
    """A client of a cluster that is made here, with a worker."""
    settings = ClusterSettings(to="local", workers=1, tls=tls)
    return connect(settings, Console("plain", out=io.StringIO()))


@pytest.fixture(scope="module")
def cluster(certificates):
    """The address of a cluster, and where it listens: what other tests of this process left open is not its own."""
    before = listening()
    with local(str(certificates)) as client:
        yield client.scheduler.address, listening() - before


@pytest.fixture
def address(cluster):
    return cluster[0]


def refused(address, security):
    try:
        with Client(address, security=security, timeout=2):
            return False
    except (OSError, TimeoutError, RuntimeError):
        return True


def refused_without_a_certificate(address, ca):
    """Dask's own client does not even try."""
    host, port = address.removeprefix("tls://").split(":")
    context = ssl.create_default_context(cafile=str(ca))
    with socket.create_connection((host, int(port)), timeout=5) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=host) as wrapped:
                return wrapped.recv(1) == b""
        except ssl.SSLError as error:
            return "CERTIFICATE_REQUIRED" in str(error)


def test_who_has_no_certificate_of_ours_is_not_let_in(address, certificates, authority, tmp_path):
    assert refused(address.replace("tls://", "tcp://"), None)
    assert refused_without_a_certificate(address, certificates / "ca.pem")
    # another authority, and one of ours that has expired
    assert refused(address, security_of(str(Authority().folder(tmp_path / "other", trusted=authority))))
    assert refused(address, security_of(str(authority.folder(tmp_path / "late", days=-1))))


@pytest.mark.full
def test_temporary_certificates_refuse_whoever_has_none():
    with local("temporary") as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1")
        assert client.submit(lambda: 7).result() == 7
        with pytest.raises((OSError, ValueError, TypeError)):
            Client(address, security=Security.temporary(), timeout=2)


def test_a_run_over_it_has_the_model_of_a_run_without(address, certificates, prepared, tmp_path):
    command = ["train", str(prepared), "--alpha", "0.01", "--tol", "1e-3", "--log-format", "json"]
    over = ["--scheduler", address, "--tls", str(certificates)]
    assert main([*command, "--out", str(tmp_path / "tls"), *over]) == 0
    assert main([*command, "--out", str(tmp_path / "here"), "--workers", "0"]) == 0
    assert of_model(tmp_path / "tls") == of_model(tmp_path / "here")


def test_nothing_listens_beyond_loopback(cluster):
    """Neither this process nor a worker that it has started."""
    found = [ip for ip, _ in cluster[1]]
    assert len(found) >= 3 and all(ipaddress.ip_address(ip).is_loopback for ip in found), found
