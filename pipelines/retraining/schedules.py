"""What runs a retraining every night, for those who schedule: text for cron, systemd, Kubernetes, Prefect and Airflow.

Covers: one function for each. Does not cover: installing it, which the scheduler's own tools do.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

# At night, when nobody looks at dashboards, and not at a full hour, at which everything else begins.
_HOUR, _MINUTE = 2, 17


def _command(file: str) -> list[str]:
    return [sys.executable, "-m", "dboost_pipelines", "retrain", str(Path(file).resolve()), "--log-format", "json"]


def cron(file: str) -> str:
    """A line for ``crontab -e``; percent signs end a command there, and are escaped."""
    return f"{_MINUTE} {_HOUR} * * * {shlex.join(_command(file))}".replace("%", r"\%")


def systemd(file: str) -> str:
    """A service and its timer, as two files."""
    name = Path(file).stem
    return (
        f"# {name}.service\n[Unit]\nDescription=dboost retraining of {name}\n\n[Service]\nType=oneshot\n"
        f"WorkingDirectory={Path(file).resolve().parent}\nExecStart={shlex.join(_command(file))}\n\n"
        f"# {name}.timer\n[Unit]\nDescription=dboost retraining of {name}, every night\n\n[Timer]\n"
        f"OnCalendar=*-*-* {_HOUR:02d}:{_MINUTE:02d}:00\nPersistent=true\n\n[Install]\nWantedBy=timers.target"
    )


def cronjob(file: str) -> str:
    """A CronJob of Kubernetes; image and claim are to be put in. Two never run at once."""
    import yaml

    container = {
        "name": "retrain", "image": "dboost:0.1.0", "args": ["dboost", "retrain", f"/data/{Path(file).name}"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }  # fmt: skip
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "dboost-data"}}
    pod = {"restartPolicy": "OnFailure", "containers": [container], "volumes": [volume]}
    job = {"spec": {"backoffLimit": 6, "template": {"spec": pod}}}
    schedule = f"{_MINUTE} {_HOUR} * * *"
    text: str = yaml.safe_dump(
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": f"retrain-{Path(file).stem}".lower()},
            "spec": {"schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": job},
        },
        sort_keys=False,
    )
    return text


def prefect(file: str) -> str:
    """A flow of Prefect that calls the function, with retries."""
    return f'''"""Retraining as a flow: `python FILE` serves it every night."""

from prefect import flow, task

from dboost_pipelines import retrain


@task(retries=3, retry_delay_seconds=600)
def challenge(file: str) -> dict:
    decision = retrain(file)
    return {{"outcome": decision.outcome, "champion": decision.champion, "reasons": decision.reasons}}


@flow(log_prints=True)
def nightly(file: str = {str(Path(file).resolve())!r}) -> dict:
    found = challenge(file)
    print(found)
    return found


if __name__ == "__main__":
    nightly.serve(name={Path(file).stem!r}, cron="{_MINUTE} {_HOUR} * * *")
'''


def airflow(file: str) -> str:
    """A DAG of Airflow that calls the function."""
    return f'''"""Retraining as a DAG."""

import datetime

from airflow.sdk import dag, task


@dag(
    dag_id={f"retrain_{Path(file).stem}"!r}, schedule="{_MINUTE} {_HOUR} * * *", catchup=False, max_active_runs=1,
    start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
)
def nightly():
    @task(retries=3, retry_delay=datetime.timedelta(minutes=10))
    def challenge() -> dict:
        from dboost_pipelines import retrain

        decision = retrain({str(Path(file).resolve())!r})
        return {{"outcome": decision.outcome, "champion": decision.champion, "reasons": decision.reasons}}

    challenge()


nightly()
'''


SCHEDULES: dict[str, Callable[[str], str]] = {
    "cron": cron, "systemd": systemd, "cronjob": cronjob, "prefect": prefect, "airflow": airflow,
}  # fmt: skip
