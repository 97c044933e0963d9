"""Paths are those of the process that was given them, wherever its workers stand."""

from distributed import LocalCluster

from pipelines.cli import main
from tests.pipelines.conftest import write_documents


def test_workers_that_stand_elsewhere_read_and_write_what_was_meant(tmp_path, monkeypatch, capsys):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    write_documents(tmp_path / "ours" / "documents.parquet", rows=300)
    monkeypatch.chdir(tmp_path / "theirs")
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        monkeypatch.chdir(tmp_path / "ours")
        for command in (
            "prepare documents.parquet --text text --label label --out prepared",
            "train prepared --tol 0.1 --out model",
            "evaluate model prepared",
            "predict model prepared --out of-features",
            "predict model documents.parquet --keep label --out of-documents",
        ):
            assert main(command.split()) == 0, capsys.readouterr().err
    assert not list((tmp_path / "theirs").iterdir())
    assert list((tmp_path / "ours" / "of-documents").glob("*.parquet"))
