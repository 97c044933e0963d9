"""The commands as functions: what they give, what they refuse, and clients that are asynchronous."""

import asyncio
import inspect

import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

import pipelines
from dboost.data import load_manifest
from dboost.errors import UsageError
from pipelines.runs.fingerprints import of_model
from tests.pipelines.conftest import figures, give


def test_functions_do_what_the_commands_do(prepared, trained, tmp_path, capsys):
    documents = prepared.parent / "documents.parquet"
    made = pipelines.prepare(documents, out=tmp_path / "p", label="label", split="split", show=True)
    assert "prepare: " in capsys.readouterr().out
    assert load_manifest(made.folder).fingerprint == load_manifest(prepared).fingerprint
    assert made.figures["splits"] == {"test": 100, "train": 300}
    model = pipelines.train(made, out=tmp_path / "m", penalty="l1/l2", alpha=np.float64(0.005), show=True)
    assert "certified gap" in capsys.readouterr().out
    # The same bits, by the same code.
    assert of_model(model.folder) == of_model(trained)
    assert model.converged and model.figures["features_used"] == len(model.model.active_features_)
    judged = pipelines.evaluate(model, made)
    assert judged.folder is None and capsys.readouterr().out == ""
    give("evaluate", trained, prepared, "--out", tmp_path / "e")
    assert judged.figures == figures(tmp_path / "e")
    found = pipelines.predict(model, documents, out=tmp_path / "l", keep="label", top=2)
    rows = pq.read_table(found.folder)
    assert found.figures["rows"] == rows.num_rows == 400 and {"label", "top_classes"} <= set(rows.column_names)


def test_arguments_are_checked_by_the_code_of_the_flags(prepared, tmp_path):
    refused = {
        "unknown key 'min_dff'; did you mean 'min_df'": {"min_dff": 3},
        "min_df: found 'many', expected": {"min_df": "many"},
        "tokenizer: found 'letters', expected one of words, identifiers": {"tokenizer": "letters"},
        "debug is a key of the command line": {"debug": True},
        "client and workers name two clusters": {"client": object(), "workers": 2},
    }
    for said, keys in refused.items():
        with pytest.raises(UsageError, match=said):
            pipelines.prepare(prepared.parent / "documents.parquet", out=tmp_path / "o", label="label", **keys)
    with pytest.raises(UsageError, match="out is missing"):
        pipelines.predict("m", prepared, out=None)
    shown = inspect.signature(pipelines.train).parameters
    assert {"alpha", "cv", "weight", "client", "workers"} <= set(shown) and "log_format" not in shown
    assert not (tmp_path / "o").exists()


@pytest.mark.full
def test_an_asynchronous_client_is_served(prepared, tmp_path):
    expected = load_manifest(prepared).fingerprint

    async def work(address):
        async with Client(address, asynchronous=True) as client:
            ticks = asyncio.create_task(_count())
            made = await pipelines.prepare(
                prepared.parent / "documents.parquet", out=tmp_path / "p", label="label", split="split", client=client
            )
            model = await pipelines.train(made, out=tmp_path / "m", alpha=0.01, client=client)
            judged = await pipelines.evaluate(model, made, client=client)
            tables = {"data": {"data": str(made.folder)}, "model": {"alpha": 0.01}}
            run = await pipelines.run(tables, out=tmp_path / "run", client=client)
            ticks.cancel()
            return made, judged, run, counted[0]

    counted = [0]

    async def _count():
        while True:
            counted[0] += 1
            await asyncio.sleep(0.01)

    kind = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **kind) as cluster:
        made, judged, run, ticks = asyncio.run(work(cluster.scheduler_address))
    assert load_manifest(made.folder).fingerprint == expected
    assert judged.figures["error"] == run.evaluation["error"] < 0.3
    # The loop of the caller went on meanwhile.
    assert ticks > 10
