"""A retraining as an asset of Dagster: the champion, with its decision as metadata, and a schedule.

``dagster dev -f dagster_job.py`` shows it; the file of the retraining is named in its configuration, or in the variable
``DBOOST_RETRAIN`` of the environment. ``pip install dagster dagster-webserver``.
"""

import os

import dagster

from dboost_pipelines import retrain


class Night(dagster.Config):
    """What a run takes."""

    file: str = os.environ.get("DBOOST_RETRAIN", "nightly.toml")


@dagster.asset(retry_policy=dagster.RetryPolicy(max_retries=3, delay=600))
def champion(config: Night) -> dagster.MaterializeResult:
    """The model that is in use; where a challenger was promoted, a new one."""
    decision = retrain(config.file)
    return dagster.MaterializeResult(
        metadata={
            "outcome": decision.outcome,
            "champion": decision.champion or "none",
            "reasons": dagster.MetadataValue.json(decision.reasons),
        }
    )


nightly = dagster.define_asset_job("nightly", selection=[champion])
defs = dagster.Definitions(
    assets=[champion],
    jobs=[nightly],
    schedules=[dagster.ScheduleDefinition(job=nightly, cron_schedule="17 2 * * *")],
)
