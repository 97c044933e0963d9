"""What `--help` says: what is required, for every command; completion; flags that are given twice."""

from __future__ import annotations

import importlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.data import load_manifest
from dboost.penalties import PENALTIES
from pipelines import cli
from pipelines.cli import main


def shown(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The help of a command with its line breaks folded."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([name, "--help", "all"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    return " ".join(out.split())


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_the_help_of_every_command_says_what_is_required(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("pipelines.demo" if name == "demo" else f"pipelines.commands.{name}")
    required = module.SETTINGS.required
    text = shown(name, capsys, monkeypatch)
    usage = text.split("[...]")[0]
    for key in required:
        assert key.upper() in usage
    assert text.count("(required)") >= len(required)
    if required:
        assert main([name]) == 2
        assert any(f"{key} is missing: give --" in capsys.readouterr().err for key in required)


def completions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    monkeypatch.setenv("_DBOOST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("dboost", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert main([]) == 0
    return [line.split(",", 1)[1] for line in capsys.readouterr().out.splitlines()]


def test_a_shell_completes_commands_flags_and_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completions(monkeypatch, capsys, "ru") == ["run", "runs"]
    assert completions(monkeypatch, capsys, "train", "--max-r") == ["--max-rounds"]
    assert completions(monkeypatch, capsys, "train", "--penalty", "l1/l") == [
        name for name in PENALTIES if name.startswith("l1/l")
    ]


def test_dask_has_the_commands_with_our_errors_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    import tomllib
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from click import Group
    from dask.cli import _register_command_ep

    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
    group = Group("dask")
    for name, value in project["entry-points"]["dask_cli"].items():
        _register_command_ep(group, EntryPoint(name, value, "dask_cli"))
    with pytest.raises(SystemExit) as left:
        group.main(["boost", "train", "--help"], prog_name="dask")
    assert left.value.code == 0 and "dask boost train DATA --out OUT [...]" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        group.main(["boost", "trian"], prog_name="dask")
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("dboost: error[usage]: unknown command 'trian'; did you mean 'train'?")


def test_a_flag_given_twice_is_both_or_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"text": ["sea wave", "sky wind"] * 10, "more": ["salt", "rain"] * 10, "id": range(20), "y": ["a", "b"] * 10}
    pq.write_table(pa.table({name: list(values) for name, values in rows.items()}), tmp_path / "d.parquet")
    documents, end = str(tmp_path / "d.parquet"), ["--min-df", "1", "--max-df", "1.0", "--workers", "0"]
    lists = ["--text", "text", "--text", "more", "--keep", "id,more", "--keep", "text", "--label", "y"]
    assert main(["prepare", documents, *lists, *end, "--out", str(tmp_path / "p")]) == 0
    found = pq.read_table(tmp_path / "p" / "train")
    assert {"id", "more", "text", "y"} <= set(found.column_names)
    assert load_manifest(tmp_path / "p").settings["text"] == ["text", "more"]
    model = ["train", str(tmp_path / "p"), "--out", str(tmp_path / "m"), "--workers", "0"]
    for more, said in (
        (["--alpha", "0.1", "--alpha", "0.1"], "--alpha is given twice"),
        (["--force", "--no-force"], "--force is given twice"),
        (["--data", str(tmp_path / "p")], "and with --data"),
        (["--path", "3", "--alphas", "0.2,0.1"], "beside --alphas"),
        (["--memory-limit", "2GiB"], "--memory-limit is of one"),
    ):
        assert main([*model, *more]) == 2
        assert said in capsys.readouterr().err, more
    assert main([*model, "--alpha", "0.01"]) == 0
    for words, said in (
        (
            ["predict", str(tmp_path / "m"), documents, "--label", "y", "--out", str(tmp_path / "o")],
            "--label has no effect",
        ),
        (["evaluate", str(tmp_path / "m"), str(tmp_path / "p"), "--force"], "--force without --out"),
        (
            ["prepare", documents, "--on-drift", "note", "--out", str(tmp_path / "q")],
            "--on-drift note without --expect",
        ),
    ):
        assert main([*words, "--workers", "0"]) == 2
        assert said in capsys.readouterr().err, words
