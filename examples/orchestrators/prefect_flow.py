"""A retraining as a flow of Prefect: two tasks that call functions of dboost, no shell.

``python prefect_flow.py nightly.toml`` runs it once, ``... --serve`` every night. ``pip install prefect``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prefect import flow, task

import dboost
from dboost_pipelines import retrain
from dboost_pipelines.retraining.home import Home


@task(retries=3, retry_delay_seconds=[60, 600, 3600])
def challenge(file: str) -> dict[str, Any]:
    """Make a challenger where there is new data, and judge it; a retry goes on where the last try was broken off."""
    decision = retrain(file)
    return {"outcome": decision.outcome, "champion": decision.champion, "reasons": decision.reasons}


@task
def try_champion(home: str, documents: list[str]) -> list[str]:
    """Label some documents with whoever is champion now."""
    model = dboost.load_pipeline(Home(Path(home)).model())
    return [str(label) for label in model.predict(documents)]


@flow(log_prints=True)
def nightly(file: str, home: str | None = None, documents: tuple[str, ...] = ()) -> dict[str, Any]:
    """One night."""
    found = challenge(file)
    print(f"{found['outcome']}: the champion is {found['champion']} {'; '.join(found['reasons'])}")
    if home is not None and documents:
        found["labels"] = try_champion(home, list(documents))
    return found


if __name__ == "__main__":
    if "--serve" in sys.argv:
        nightly.serve(name="retraining", cron="17 2 * * *", parameters={"file": sys.argv[1]})
    else:
        nightly(sys.argv[1])
