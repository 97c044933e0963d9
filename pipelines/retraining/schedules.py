"""What runs a retraining every night: text for cron, systemd, Kubernetes, Prefect and Airflow."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from dboost.errors import UsageError

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


def systemd(file: str, trust: bool = False) -> str:
    """A service and its timer, as two files."""
    name, about = name_of(file), f"dboost retraining of {_unit(Path(file).name)}"
    command, *arguments = (_quoted(one) for one in [*_command(file, trust), *_SEEN])
    # A variable begins with a dollar sign, but for the program itself.
    line = " ".join([command, *(one.replace("$", "$$") for one in arguments)])
    return (
        f"# {name}.service\n[Unit]\nDescription={about}\n\n[Service]\nType=oneshot\n"
        f"WorkingDirectory={_unit(str(Path(file).resolve().parent))}\nExecStart={line}\n\n"
        f"# {name}.timer\n[Unit]\nDescription={about}, every night\n\n[Timer]\n"
        f"OnCalendar=*-*-* {_HOUR:02d}:{_MINUTE:02d}:00\nPersistent=true\n\n[Install]\nWantedBy=timers.target"
    )


def _unit(text: str) -> str:
    """Text of a unit of systemd, where a percent sign begins a specifier, and not every end of a line is kept."""
    return text.replace("%", "%%") + ("/." if text.endswith(("\\", " ")) else "")


def _quoted(word: str) -> str:
    """A word of a command line of systemd, whose quotes and escapes are those of C and not those of a shell."""
    text = word.replace("\\", r"\\").replace('"', r"\"").replace("%", "%%")
    return text if re.fullmatch(r"[\w./%:=@,+-]+", text) else f'"{text}"'


def cronjob(file: str, trust: bool = False) -> str:
    """A CronJob; image and claim are to be put in. Two never run at once, and no decision is tried again."""
    import yaml

    # $(NAME) is a variable there, and a second dollar sign says that it is none.
    path = f"/data/{Path(_command(file, trust)[4]).name}".replace("$(", "$$(")
    container = {
        "name": "retrain", "image": "dboost:0.1.0", "args": ["dboost", "retrain", path, *_TRUST[: int(trust)], *_SEEN],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }  # fmt: skip
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "dboost-data"}}
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "retrain", "operator": "In", "values": _NO_TRY}}
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": [volume]}
    job = {"spec": {"backoffLimit": 6, "podFailurePolicy": {"rules": [rule]}, "template": {"spec": pod}}}
    when = {"schedule": f"{_MINUTE} {_HOUR} * * *", "timeZone": "Etc/UTC", "startingDeadlineSeconds": _LATE}
    text: str = yaml.safe_dump(
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": name_of(file)},
            "spec": {**when, "concurrencyPolicy": "Forbid", "jobTemplate": job},
        },
        sort_keys=False,
        allow_unicode=True,
    )
    return text


def prefect(file: str, trust: bool = False) -> str:
    """A flow of Prefect that calls the function, with retries."""
    return f'''"""Retraining as a flow: `python FILE` serves it every night."""

from prefect import flow, task

from dboost_pipelines import retrain


@task(retries=3, retry_delay_seconds=600)
def challenge(file: str) -> dict:
    decision = retrain(file{", trust=True" if trust else ""})
    return {{"outcome": decision.outcome, "champion": decision.champion, "reasons": decision.reasons}}


@flow(log_prints=True)
def nightly(file: str = {str(Path(file).resolve())!r}) -> dict:
    found = challenge(file)
    print(found)
    return found


if __name__ == "__main__":
    nightly.serve(name={name_of(file)!r}, cron="{_MINUTE} {_HOUR} * * *")
'''


def airflow(file: str, trust: bool = False) -> str:
    """A DAG of Airflow that calls the function."""
    return f'''"""Retraining as a DAG."""

import datetime

from airflow.sdk import dag, task


@dag(
    dag_id={name_of(file)!r}, schedule="{_MINUTE} {_HOUR} * * *", catchup=False, max_active_runs=1,
    start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
)
def nightly():
    @task(retries=3, retry_delay=datetime.timedelta(minutes=10))
    def challenge() -> dict:
        from dboost_pipelines import retrain

        decision = retrain({str(Path(file).resolve())!r}{", trust=True" if trust else ""})
        return {{"outcome": decision.outcome, "champion": decision.champion, "reasons": decision.reasons}}

    challenge()


nightly()
'''


SCHEDULES: dict[str, Callable[[str, bool], str]] = {
    "cron": cron, "systemd": systemd, "cronjob": cronjob, "prefect": prefect, "airflow": airflow,
}  # fmt: skip
