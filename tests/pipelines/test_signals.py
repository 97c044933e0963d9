"""A signal ends a run with its exit code, wherever it arrives."""

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

from dboost import metrics, passes
from dboost.data.prepared import prepare
from pipelines.cli import main
from pipelines.commands import models
from pipelines.predicting import parts
from pipelines.signals import SIGNALS
from tests.pipelines.conftest import ROOT, give, heard, started

# Seconds in which a busy machine has ended a process too; what is cut short would go on for 30 at least.
SOON = 20.0
HANGUP = getattr(signal, "SIGHUP", signal.SIGTERM)
# Without a penalty, on classes that words tell apart, the weights grow for ever.
ENDLESS = ["--workers", "0", "--tol", "1e-300", "--penalty", "none", "--max-rounds", "10000000"]
ENDLESS += ["--update", "gradboost", "--sweeps", "1", "--log-format", "json"]

# The first round is printed; then garbage is collected, and in the middle of that this process is told to end.
SWALLOWED = """
import gc, os, signal, sys
from pipelines.cli import main

def end_me():
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(100):
        pass

class Told:
    def __init__(self):
        self.me = self
    def __del__(self):
        end_me()

armed = False

def collecting(phase, info):
    global armed
    if armed and phase == "start":
        armed = False
        end_me()

class Out:
    def __init__(self, to):
        self.to, self.rounds = to, 0
    def write(self, text):
        global armed
        self.to.write(text)
        if '"round"' in text:
            self.rounds += 1
            if self.rounds == int(sys.argv[2]):
                if sys.argv[1] == "gc":
                    armed = True
                elif sys.argv[1] == "del":
                    Told()
                else:
                    try:
                        end_me()
                    except BaseException:
                        pass
                gc.collect()
    def __getattr__(self, name):
        return getattr(self.to, name)

gc.callbacks.append(collecting)
sys.stdout = Out(sys.stdout)
code = main(sys.argv[3:])
sys.stdout.flush()
os._exit(code)
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    words = ["red apple pie", "blue sky high", "green apple sky", "blue red green"]
    texts = [f"{words[i % 4]} {words[(i * 7) % 4]}" for i in range(200)]
    pq.write_table(
        pa.table({"text": texts, "label": [("a", "b")[i % 4 > 1] for i in range(200)]}), folder / "d.parquet"
    )
    give("prepare", folder / "d.parquet", "--out", folder / "p", "--label", "label")
    return folder / "p"


def no_output(folder, name):
    """Whether nothing is there but the progress of a training that has done rounds."""
    return [path.name for path in folder.iterdir()] == [f"{name}.unfinished"]


@pytest.mark.full
@pytest.mark.parametrize(("way", "after"), [("gc", 1), ("del", 1), ("except", 7)])
def test_a_signal_whose_exception_is_swallowed_ends_the_run(way, after, prepared, tmp_path):
    train = ["train", str(prepared), "--out", str(tmp_path / "model"), *ENDLESS]
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED, way, str(after), *train], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 143, done.stderr
    assert done.stderr.splitlines() == [line for line in done.stderr.splitlines() if line.startswith("dboost: error[")]
    assert len(done.stderr.splitlines()) == 1 and time.monotonic() - started < 30
    assert no_output(tmp_path, "model")


def ended(process, number):
    """Seconds from the signal to the end, and what was said."""
    started = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    return time.monotonic() - started, errors


@pytest.fixture(scope="module")
def trained(prepared):
    out = prepared.parent / "model"
    give("train", prepared, "--out", out, "--penalty", "l1", "--alpha", "0.01")
    return out


def test_every_command_ends_soon_and_leaves_nothing(prepared, trained, tmp_path, monkeypatch, capsys, given_back):
    split = [str(prepared), "--split", "train"]
    calls = {
        "train": (passes, "score", [str(prepared), "--update", "adaboost", "--penalty", "l1"]),
        "evaluate": (metrics, "partial", [str(trained), *split]),
        "predict": (parts, "label_part", [str(trained), *split]),
        "prepare": (prepare, "count_chunk", [str(prepared.parent / "d.parquet"), "--label", "label"]),
    }
    for (command, (module, name, arguments)), number in zip(calls.items(), 2 * [HANGUP, signal.SIGTERM], strict=True):
        begun, over = threading.Lock(), threading.Event()

        def slow(*args, begun=begun, over=over, number=number, **kwargs):
            """Works for a long time, in the main thread or beside it, and has the signal sent at its begin."""
            if begun.acquire(blocking=False):
                os.kill(os.getpid(), number)
            over.wait(60)

        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(module, name, slow)
            started = time.monotonic()
            code = main([command, *arguments, "--out", str(tmp_path / "out"), "--workers", "0"])
            seconds = time.monotonic() - started
        over.set()
        errors = capsys.readouterr().err
        assert (code, begun.locked()) == (128 + number, True), (command, errors)
        assert seconds < SOON and list(tmp_path.iterdir()) == [], command
        assert errors.startswith("dboost: error[") and len(errors.splitlines()) == 1, errors


@pytest.fixture
def given_back():
    """No signal of a test ends the tests, nor is one ignored, as by ``nohup``; after it all is as before."""
    before = {number: signal.signal(number, lambda *_: None) for number in SIGNALS if number != signal.SIGINT}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_that_waits_for_a_scheduler_ends_soon(prepared, tmp_path, capsys, given_back):
    """It takes the connection and never answers."""
    out = ["--out", str(tmp_path / "out"), "--connect-timeout", "60"]
    with socket.create_server(("127.0.0.1", 0)) as deaf:

        def stops():
            connection, _ = deaf.accept()
            os.kill(os.getpid(), signal.SIGINT)
            over.wait(60)
            connection.close()

        over, other = threading.Event(), threading.Thread(target=stops)
        other.start()
        began = time.monotonic()
        code = main(["train", str(prepared), "--scheduler", f"tcp://127.0.0.1:{deaf.getsockname()[1]}", *out])
        assert code == 130 and time.monotonic() - began < SOON and list(tmp_path.iterdir()) == []
        over.set()
        other.join()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dboost: error[")
    # Dask leaves a socket that it was connecting, which warns here and not in the next test
    gc.collect()


@pytest.mark.full
@pytest.mark.timeout(90)
@pytest.mark.parametrize("moment", ["stage_start", '"round"'])
def test_ctrl_c_is_one_line(moment, prepared, tmp_path):
    # A terminal sends it to the workers too, each of which printed a traceback, even while it was starting.
    line = ["train", str(prepared), "--out", str(tmp_path / "out"), "--workers", "2", *ENDLESS[2:]]
    with started("-m", "pipelines", *line, apart=True) as process:
        assert any(moment in told for told in process.stdout)
        time.sleep(0.7 if moment == "stage_start" else 0.0)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, len(error.splitlines())) == (130, 1), error
    assert "stopped by Ctrl-C" in error


@pytest.mark.full
def test_a_run_that_waits_for_workers_ends_soon(prepared, tmp_path):
    """In a process of its own, in which no thread of Dask may keep it from ending."""
    asked = threading.Event()

    class Tells(SchedulerPlugin):
        def update_graph(self, *args, **kwargs):
            asked.set()

    kind = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, **kind) as cluster:
        cluster.scheduler.add_plugin(Tells())
        line = ["train", str(prepared), "--out", str(tmp_path / "out"), "--scheduler", cluster.scheduler_address]
        with started("-m", "pipelines", *line, "--log-format", "json") as process:
            assert asked.wait(60)
            seconds, errors = ended(process, signal.SIGTERM)
    assert seconds < SOON and list(tmp_path.iterdir()) == []
    assert errors.startswith("dboost: error[terminated]") and len(errors.splitlines()) == 1, errors


def test_a_run_under_nohup_goes_on(prepared, tmp_path, monkeypatch, given_back):
    score, sent = passes.score, []

    def hangs_up(*args, **kwargs):
        if not sent:
            sent.append(os.kill(os.getpid(), signal.SIGHUP))
        return score(*args, **kwargs)

    monkeypatch.setattr(passes, "score", hangs_up)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    give("train", prepared, "--out", tmp_path / "out", "--penalty", "l1", "--update", "adaboost", "--alpha", "0.01")
    assert sent and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN and (tmp_path / "out" / "model.json").is_file()


def test_a_run_whose_terminal_is_closed_ends_with_its_code(prepared, tmp_path):
    """Nothing can be printed any more."""
    ours, theirs = os.openpty()
    code = (
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        "os.execv(sys.executable, [sys.executable, '-m', 'pipelines', *sys.argv[1:]])"
    )
    line = ["train", str(prepared), "--out", str(tmp_path / "out"), *ENDLESS[:-2]]
    command = [sys.executable, "-c", code, *line]
    with subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=heard) as p:
        try:
            os.close(theirs)
            shown = b""
            while b"certified gap" not in shown:
                shown += os.read(ours, 4096)
            os.close(ours)
            assert p.wait(SOON) == 129
        finally:
            p.kill()
    assert not (tmp_path / "out").exists()


def test_a_signal_that_was_swallowed_at_the_very_end_is_told(monkeypatch, capsys, trained):
    def done(settings, console):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        return 0

    before = [signal.getsignal(number) for number in SIGNALS]
    monkeypatch.setitem(models.COMMANDS, "inspect", (models.InspectSettings, done))
    assert main(["inspect", str(trained)]) == 143
    assert "stopped by SIGTERM; its work was done by then" in capsys.readouterr().err
    assert [signal.getsignal(number) for number in SIGNALS] == before and sys.unraisablehook is not None


def test_in_another_thread_no_handler_is_installed(monkeypatch, trained):
    before = [signal.getsignal(number) for number in SIGNALS]
    codes: list[Any] = []

    def run(settings, console):
        codes.append([signal.getsignal(number) for number in SIGNALS] == before)
        return 0

    monkeypatch.setitem(models.COMMANDS, "inspect", (models.InspectSettings, run))
    thread = threading.Thread(target=lambda: codes.append(main(["inspect", str(trained)])))
    thread.start()
    thread.join()
    assert codes == [True, 0]
