"""What runs a retraining every night: text for cron, systemd, Kubernetes, Prefect and Airflow."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dboost.errors import UsageError

from ..templates import text_of

# At night, when nobody looks at dashboards, not at a full hour, at which everything else begins, and at a time that
# every day has once: where clocks change, in all time zones since 2024, they do so before four o'clock.
_HOUR, _MINUTE = 4, 17
# Kubernetes adds 11 characters to the name of a CronJob, for a label of 63.
_LONGEST = 52
# Seconds within which a night that was missed is made up for; a CronJob without them ends for good after 100 misses.
_LATE = 6 * 3600
# What follows the path where the files were consented to, and where a night that was declined is to be seen as failed.
_TRUST, _SEEN = ["--trust"], ["--fail-declined"]
# Exit codes after which the next try would end so too: a file without meaning, data, a challenger that was declined.
_NO_TRY = [2, 3, 10]


def _command(file: str, trust: bool = False) -> list[str]:
    """What is run."""
    path = str(Path(file).resolve())
    if re.search(r"[\x00-\x1f\x7f]", path + sys.executable):
        raise UsageError(f"the path {path!r} holds a line break or another control character", hint="rename it")
    return [sys.executable, "-m", "dboost_pipelines", "retrain", path, *_TRUST[: int(trust)], "--log-format", "json"]


def name_of(file: str) -> str:
    """A name that every scheduler takes (RFC 1123); a digest keeps names apart that would be one."""
    stem = Path(file).stem
    name = re.sub(r"[^a-z0-9]+", "-", f"retrain-{stem}".lower()).strip("-")
    if name == f"retrain-{stem}" and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(stem.encode("utf-8", "surrogateescape")).hexdigest()[:6]
    return f"{name[: _LONGEST - 7].rstrip('-')}-{digest}"


def cron(file: str, trust: bool = False) -> str:
    """A line for ``crontab -e``; percent signs end a command there, and are escaped."""
    return f"{_MINUTE} {_HOUR} * * * {shlex.join(_command(file, trust))}".replace("%", r"\%")


def _from_template(template: str, file: str, trust: bool, **values: Any) -> str:
    """A template with what all of them say: the time, the name and the path, also as Python writes them."""
    path, name = str(Path(file).resolve()), name_of(file)
    written: dict[str, Any] = {
        "quoted_path": repr(path),
        "quoted_name": repr(name),
        "trusted": ", trust=True" if trust else "",
    }
    return text_of(__package__, template, name=name, hour=_HOUR, minute=_MINUTE, **written, **values)


def systemd(file: str, trust: bool = False) -> str:
    """A service and its timer, as two files."""
    command, *arguments = (_quoted(one) for one in [*_command(file, trust), *_SEEN])
    # A variable begins with a dollar sign, but for the program itself.
    line = " ".join([command, *(one.replace("$", "$$") for one in arguments)])
    about, folder = f"dboost retraining of {_unit(Path(file).name)}", _unit(str(Path(file).resolve().parent))
    return _from_template("systemd.j2", file, trust, about=about, folder=folder, line=line).rstrip("\n")


def _unit(text: str) -> str:
    """Text of a unit of systemd, where a percent sign begins a specifier, and not every end of a line is kept."""
    return text.replace("%", "%%") + ("/." if text.endswith(("\\", " ")) else "")


def _quoted(word: str) -> str:
    """A word of a command line of systemd, whose quotes and escapes are those of C and not those of a shell."""
    text = word.replace("\\", r"\\").replace('"', r"\"").replace("%", "%%")
    return text if re.fullmatch(r"[\w./%:=@,+-]+", text) else f'"{text}"'


def cronjob(file: str, trust: bool = False) -> str:
    """A CronJob; image and claim are to be put in. Two never run at once, and no decision is tried again."""
    # $(NAME) is a variable there, and a second dollar sign says that it is none.
    path = f"/data/{Path(_command(file, trust)[4]).name}".replace("$(", "$$(")
    args = json.dumps(["dboost", "retrain", path, *_TRUST[: int(trust)], *_SEEN], ensure_ascii=False)
    return _from_template("cronjob.yaml.j2", file, trust, args=args, late=_LATE, no_try=_NO_TRY)


def prefect(file: str, trust: bool = False) -> str:
    """A flow of Prefect that calls the function, with retries."""
    return _from_template("prefect.py.j2", file, trust)


def airflow(file: str, trust: bool = False) -> str:
    """A DAG of Airflow that calls the function."""
    return _from_template("airflow.py.j2", file, trust)


SCHEDULES: dict[str, Callable[[str, bool], str]] = {
    "cron": cron, "systemd": systemd, "cronjob": cronjob, "prefect": prefect, "airflow": airflow,
}  # fmt: skip
