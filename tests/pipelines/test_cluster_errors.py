"""A cluster that is not there, or cannot be started: one line each, and nothing of Dask's around it."""

import multiprocessing

import pytest

from dboost.engine.dask.cluster import embedded_cluster
from dboost.errors import UsageError
from lab.campaign.addresses import listening, web
from pipelines.cli import main

pytestmark = pytest.mark.timeout(90)

ADDRESSES = [
    ("tcp://127.0.0.1:1", 4, "refused"),
    ("tcp://nosuchhost.invalid:8786", 4, "no Dask scheduler answers"),
    ("tcp://[::1]:1", 4, "no Dask scheduler answers"),
    ("tls://127.0.0.1:1", 4, "TLS"),
    ("foo://127.0.0.1:8786", 2, "PROTOCOL://HOST:PORT"),
    ("127.0.0.1", 2, "PROTOCOL://HOST:PORT"),
    ("tcp://127.0.0.1", 2, "PROTOCOL://HOST:PORT"),
    ("::1", 2, "PROTOCOL://HOST:PORT"),
    ("nosuch", 2, "PROTOCOL://HOST:PORT"),
]


def test_a_scheduler_that_cannot_be_reached_is_one_line(prepared, tmp_path, refused):
    # An answer in another protocol was told as lack of memory, and a failed Client's end as a traceback.
    with listening(web) as chatty:
        for address, code, words in (*ADDRESSES, (chatty, 4, "does not speak Dask's protocol")):
            asked = ["train", prepared, "--scheduler", address, "--connect-timeout", "1.5", "--out", tmp_path / "out"]
            error = refused(*asked, code=code)
            assert words in error and "memory" not in error, (address, error)


def test_a_daemonic_process_is_told_what_it_may_do(prepared, tmp_path, monkeypatch, capsys):
    """A task of Celery, or of a multiprocessing pool: multiprocessing lets it have no children."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    train = ["train", str(prepared), "--alpha", "0.01", "--out"]
    # small data takes no cluster
    assert main([*train, str(tmp_path / "small")]) == 0
    monkeypatch.setattr("pipelines.cluster.SMALL_BYTES", 0)
    for more in ((), ("--workers", "1"), ("--workers", "2", "--to", "local")):
        assert main([*train, str(tmp_path / "model"), *more]) == 2
        told = capsys.readouterr().err
        assert "this process is daemonic" in told and "--workers 0" in told and told.count("error[") == 1
        assert "Traceback" not in told and "awaited" not in told and not (tmp_path / "model").exists()
    with pytest.raises(UsageError, match="this process is daemonic"):
        embedded_cluster(1)
