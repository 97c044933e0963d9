"""A signal ends a run with its exit code, wherever it arrives."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost import metrics, passes
from dboost.data.prepared import prepare
from pipelines.cli import main
from pipelines.commands import models
from pipelines.predicting import parts
from pipelines.signals import SIGNALS

ROOT = Path(__file__).resolve().parents[2]
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
    run("prepare", str(folder / "d.parquet"), "--out", str(folder / "p"), "--label", "label", "--workers", "0")
    return folder / "p"


def no_output(folder, name):
    """Whether nothing is there but the progress of a training that has done rounds."""
    return [path.name for path in folder.iterdir()] == [f"{name}.unfinished"]


def run(*arguments):
    assert main(list(arguments)) == 0


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


def heard():
    """A hangup is heard again in a process of tests that were started by ``nohup``, which ignores it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextlib.contextmanager
def started(*command):
    """A process of Python that does not outlive the test."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        preexec_fn=heard,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


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
    run("train", str(prepared), "--out", str(out), "--workers", "0", "--penalty", "l1", "--alpha", "0.01")
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


@pytest.fixture
def deaf():
    """It takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(60)
        yield listener


def test_a_run_that_waits_for_a_scheduler_ends_soon(prepared, tmp_path, deaf):
    address = f"tcp://127.0.0.1:{deaf.getsockname()[1]}"
    line = ["train", str(prepared), "--out", str(tmp_path / "out"), "--scheduler", address, "--log-format", "json"]
    with started("-m", "pipelines", *line, "--connect-timeout", "60") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"event": "stage_start", "stage": "cluster"}
        connection, _ = deaf.accept()
        seconds, errors = ended(process, signal.SIGINT)
    connection.close()
    assert seconds < SOON and list(tmp_path.iterdir()) == []
    assert errors.splitlines()[-1].startswith("dboost: error["), errors


def test_a_run_that_waits_for_workers_ends_soon(prepared, tmp_path):
    scheduler = """
import asyncio, sys
from distributed import Scheduler
from distributed.diagnostics.plugin import SchedulerPlugin
class Tells(SchedulerPlugin):
    def update_graph(self, *args, **kwargs):
        print("a task waits for a worker", flush=True)
async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        scheduler.add_plugin(Tells())
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""
    with started("-c", scheduler) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        line = ["train", str(prepared), "--out", str(tmp_path / "out"), "--scheduler", address]
        with started("-m", "pipelines", *line, "--log-format", "json") as process:
            assert process.stdout is not None
            for told in process.stdout:
                if json.loads(told) == {"event": "stage_start", "stage": "train"}:
                    break
            assert server.stdout.readline().strip() == "a task waits for a worker"
            seconds, errors = ended(process, signal.SIGTERM)
    assert seconds < SOON and list(tmp_path.iterdir()) == []
    assert errors.startswith("dboost: error[terminated]") and len(errors.splitlines()) == 1, errors


def test_a_run_under_nohup_goes_on(prepared, tmp_path):
    line = ["train", str(prepared), "--out", str(tmp_path / "out"), "--workers", "0", "--penalty", "l1"]
    code = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    with started("-c", code, sys.executable, "-m", "pipelines", *line) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert (tmp_path / "out" / "model.json").is_file()


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
