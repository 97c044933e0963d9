"""A retraining as a DAG of Airflow: a task that calls a function of dboost, and one that tells whom it concerns.

Put it into the folder of DAGs, and name the file of the retraining in the environment's variable ``DBOOST_RETRAIN``.
"""

from __future__ import annotations

import datetime
import os
from typing import Any

from airflow.sdk import dag, task


@dag(
    dag_id="retraining",
    schedule="17 2 * * *",
    start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    catchup=False,
    # the second of two at once would be refused by the lock of the home
    max_active_runs=1,
)
def nightly() -> None:
    """Every night at seventeen minutes past two."""

    @task(retries=3, retry_delay=datetime.timedelta(minutes=10))
    def challenge() -> dict[str, Any]:
        """Make a challenger where there is new data, and judge it."""
        # imported by the worker that runs it: the scheduler only reads this file
        from dboost_pipelines import retrain

        decision = retrain(os.environ["DBOOST_RETRAIN"])
        return {"outcome": decision.outcome, "champion": decision.champion, "reasons": decision.reasons}

    @task
    def tell(found: dict[str, Any]) -> None:
        """What is to be read in the log of the task."""
        print(f"{found['outcome']}: the champion is {found['champion']} {'; '.join(found['reasons'])}")

    tell(challenge())


nightly()
