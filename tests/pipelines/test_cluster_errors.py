"""A cluster that is not there, is lost, or cannot be started: one line each, and nothing of Dask's around it."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.engine.dask.cluster import embedded_cluster
from dboost.errors import UsageError
from pipelines.cli import main

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Data that a fit to a tiny tolerance is busy with for some seconds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 100))
    y = np.argmax(X[:, :5] + 3 * rng.standard_normal((20_000, 5)), axis=1)
    path = tmp_path_factory.mktemp("data") / "table.parquet"
    columns = {f"f{i}": X[:, i] for i in range(X.shape[1])}
    pq.write_table(pa.table({**columns, "label": y}), path, row_group_size=2_000, write_page_checksum=True)
    return str(path)


def arguments(table, out, *more):
    return ["train", table, "--label", "label", "--out", str(out), "--alpha", "1e-4", "--tol", "1e-12", *more]


@pytest.fixture(scope="module")
def chatty():
    """A port where something answers as a web server does."""
    server = socket.create_server(("127.0.0.1", 0))
    callers: list[socket.socket] = []

    def chat():
        while True:
            try:
                callers.append(server.accept()[0])
                callers[-1].sendall(b"HTTP/1.1 400 Bad Request\r\n" * 20)
            except OSError:
                return

    thread = threading.Thread(target=chat, daemon=True)
    thread.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    for one in (server, *callers):
        one.close()


@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        ("tcp://127.0.0.1:1", 4, "refused"),
        ("tcp://nosuchhost.invalid:8786", 4, "no Dask scheduler answers"),
        ("tcp://[::1]:1", 4, "no Dask scheduler answers"),
        ("tls://127.0.0.1:1", 4, "TLS"),
        ("tcp://127.0.0.1:{chatty}", 4, "does not speak Dask's protocol"),
        ("foo://127.0.0.1:8786", 2, "PROTOCOL://HOST:PORT"),
        ("127.0.0.1", 2, "PROTOCOL://HOST:PORT"),
        ("tcp://127.0.0.1", 2, "PROTOCOL://HOST:PORT"),
        ("::1", 2, "PROTOCOL://HOST:PORT"),
        ("nosuch", 2, "PROTOCOL://HOST:PORT"),
    ],
)
def test_a_scheduler_that_cannot_be_reached_is_one_line(address, code, words, chatty, table, tmp_path, capfd):
    # An answer in another protocol was told as lack of memory, and a failed Client's end as a traceback.
    more = ["--scheduler", address.format(chatty=chatty), "--connect-timeout", "1.5"]
    assert main(arguments(table, tmp_path / "out", *more)) == code
    error = capfd.readouterr().err
    assert len(error.splitlines()) == 1 and words in error and "memory" not in error, error


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--workers", "500"], "500 workers were asked for; this machine has"),
        (["--memory-limit=2XiB"], "--memory-limit is '2XiB'"),
        (["--memory-limit=-1"], "--memory-limit is '-1'"),
        (["--memory-limit", "1000"], "--memory-limit is '1000'"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_before_anything_starts(given, words, table, tmp_path, capfd):
    assert main(arguments(table, tmp_path / "out", *given)) == 2
    error = capfd.readouterr().err
    assert len(error.splitlines()) == 1 and words in error, error


def start(table, out, *more):
    """Run the command in a group of processes of its own, as a shell does."""
    command = [sys.executable, "-m", "pipelines", *arguments(table, out, "--log-format", "json", *more)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def until(process, word):
    """Read what the command prints up to a line that holds `word`."""
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    raise AssertionError(f"{word!r} never came: {process.communicate()}")


@pytest.mark.full
@pytest.mark.parametrize("moment", ["stage_start", '"round"'])
def test_ctrl_c_is_one_line(moment, table, tmp_path):
    # A terminal sends it to the workers too, each of which printed a traceback, even while it was starting.
    process = start(table, tmp_path / "out", "--workers", "2")
    until(process, moment)
    time.sleep(0.7 if moment == "stage_start" else 0.0)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, len(error.splitlines())) == (130, 1), error
    assert "stopped by Ctrl-C" in error


def test_a_daemonic_process_is_told_what_it_may_do(table, tmp_path, monkeypatch, capsys):
    """A task of Celery, or of a multiprocessing pool: multiprocessing lets it have no children."""
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # type: ignore[attr-defined]
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    # small data takes no cluster
    assert main(arguments(table, tmp_path / "small")) == 0
    monkeypatch.setattr("pipelines.cluster.SMALL_BYTES", 0)
    for more in ((), ("--workers", "1"), ("--workers", "2", "--to", "local")):
        assert main(arguments(table, tmp_path / "model", *more)) == 2
        told = capsys.readouterr().err
        assert "this process is daemonic" in told and "--workers 0" in told and told.count("error[") == 1
        assert "Traceback" not in told and "awaited" not in told and not (tmp_path / "model").exists()
    with pytest.raises(UsageError, match="this process is daemonic"):
        embedded_cluster(1)
