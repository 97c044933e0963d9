"""Certificates of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dboost.errors import DataError
from dboost.interop.extras import imported

TEMPORARY = "temporary"
FILES = {"tls_ca_file": "ca.pem", "cert": "cert.pem", "key": "key.pem"}


def security_of(tls: str | None) -> Any:
    """What Dask takes as ``security=`` for "temporary" certificates or those of a folder; None for no TLS."""
    if tls is None:
        return None
    from distributed import Security

    if tls == TEMPORARY:
        imported("cryptography", "tls")
        return Security.temporary()
    ca, cert, key = _files(tls)
    return Security(
        tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, tls_scheduler_cert=cert, tls_scheduler_key=key,
        tls_worker_cert=cert, tls_worker_key=key, require_encryption=True,
    )  # fmt: skip


def settings_of(tls: str | None) -> dict[str, Any]:
    """The same as settings of Dask, for processes that take these; of a folder."""
    if tls is None:
        return {}
    ca, cert, key = _files(tls)
    found: dict[str, Any] = {"distributed.comm.tls.ca-file": ca, "distributed.comm.require-encryption": True}
    for who in ("scheduler", "worker", "client"):
        found |= {f"distributed.comm.tls.{who}.cert": cert, f"distributed.comm.tls.{who}.key": key}
    return found


def _files(tls: str) -> tuple[str, ...]:
    """The files of a folder of certificates, in the order of ``FILES``."""
    folder = Path(tls).resolve()
    for name in FILES.values():
        if not (folder / name).is_file():
            expected = f"a folder of certificates holds {', '.join(FILES.values())}"
            raise DataError(f"is not there; {expected}", file=str(folder / name))
    return tuple(str(folder / name) for name in FILES.values())
