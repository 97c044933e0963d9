"""What `--help` says: defaults, what is allowed, what is required; for every command."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.data import load_manifest
from dboost.penalties import PENALTIES
from pipelines import cli
from pipelines.cli import main
from tests.pipelines.conftest import LOCAL, give


def shown(name, capsys, monkeypatch):
    """The help of a command with its line breaks folded."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([name, "--help", "all"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    return " ".join(out.split())


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_the_help_of_every_command_says_what_is_required(name, capsys, monkeypatch):
    required = cli.loaded(name)[0].required
    text = shown(name, capsys, monkeypatch)
    usage = text.split("[...]")[0]
    for key in required:
        assert key.upper() in usage
    assert text.count("(required)") >= len(required)
    if required:
        assert main([name]) == 2
        assert any(f"{key} is missing: give --" in capsys.readouterr().err for key in required)


def test_the_width_of_a_log_is_that_of_columns(capsys, monkeypatch):
    from pipelines.console import PLAIN_WIDTH, Console

    monkeypatch.setenv("COLUMNS", "80")
    assert Console().rich.width == 80
    monkeypatch.setenv("COLUMNS", "none")
    assert Console().rich.width == PLAIN_WIDTH


def test_a_key_that_a_command_states_anew_is_shown_once_with_its_own_default(capsys, monkeypatch):
    text = shown("demo", capsys, monkeypatch)
    assert text.count("--out ") == 1 and "(default: runs/demo)" in text


def test_what_most_need_comes_first_and_the_rest_by_its_topics(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("prepare", "train", "path", "evaluate", "predict"):
        kind = cli.loaded(name)[0]
        assert main([name, "--help"]) == 0
        text = capsys.readouterr().out
        keys = [line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  --")]
        assert keys == [f"--{key.replace('_', '-')}" for key in kind.first] + ["--config"] and len(kind.first) <= 10
        assert "-h, --help all" in text and max(map(len, text.splitlines())) <= 80
    assert main(["train", "--help"]) == 0
    order = ("--data ", "--label ", "--penalty ", "--alpha ", "--cv ", "--out ")
    text = capsys.readouterr().out
    assert [text.index(f"\n  {word}") for word in order] == sorted(text.index(f"\n  {word}") for word in order)
    (tmp_path / "r.toml").write_text('[data]\ndata = "d"\n[model]\n')
    assert main(["run", str(tmp_path / "r.toml"), "--print"]) == 0
    tables = capsys.readouterr().out.split("[model]")
    assert [line.split()[0 if line[0] != "#" else 1].rstrip(":") for line in tables[0].splitlines()[1:4]] == [
        "data", "test", "label",
    ]  # fmt: skip
    assert [line.split()[1].rstrip(":") for line in tables[1].splitlines()[1:4]] == ["penalty", "alpha", "cv"]


def test_the_commands_are_in_four_groups_of_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert len(cli.GROUPS) == 4 and all(f"\n{title}:\n" in text for title in cli.GROUPS)
    assert all(f"\n  {name}" in text for name in cli.COMMANDS)


def completions(monkeypatch, capsys, *words):
    monkeypatch.setenv("_DBOOST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("dboost", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert main([]) == 0
    return [line.split(",", 1)[1] for line in capsys.readouterr().out.splitlines()]


def test_a_shell_completes_commands_flags_and_values(capsys, monkeypatch):
    assert completions(monkeypatch, capsys, "ru") == ["run", "runs"]
    assert completions(monkeypatch, capsys, "train", "--max-r") == ["--max-rounds"]
    assert completions(monkeypatch, capsys, "train", "--penalty", "l1/l") == [
        name for name in PENALTIES if name.startswith("l1/l")
    ]


def test_dask_has_the_commands_with_our_errors_and_exit_codes(capsys):
    import tomllib
    from importlib.metadata import EntryPoint

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


def test_a_flag_given_twice_is_both_or_an_error(tmp_path, refused):
    rows = {"text": ["sea wave", "sky wind"] * 10, "more": ["salt", "rain"] * 10, "id": range(20), "y": ["a", "b"] * 10}
    pq.write_table(pa.table({name: list(values) for name, values in rows.items()}), tmp_path / "d.parquet")
    documents, end = tmp_path / "d.parquet", ["--min-df", "1", "--max-df", "1.0"]
    lists = ["--text", "text", "--text", "more", "--keep", "id,more", "--keep", "text", "--label", "y"]
    give("prepare", documents, *lists, *end, "--out", tmp_path / "p")
    found = pq.read_table(tmp_path / "p" / "train")
    assert {"id", "more", "text", "y"} <= set(found.column_names)
    assert load_manifest(tmp_path / "p").settings["text"] == ["text", "more"]
    model = ["train", tmp_path / "p", "--out", tmp_path / "m"]
    give(*model, "--alpha", "0.01")
    for words, said in (
        ([*model, "--alpha", "0.1", "--alpha", "0.1"], "--alpha is given twice"),
        ([*model, "--force", "--no-force"], "--force is given twice"),
        ([*model, "--data", tmp_path / "p"], "and with --data"),
        ([*model[:2], "--out", tmp_path / "n", "--path", "3", "--alphas", "0.2,0.1"], "beside --alphas"),
        ([*model[:2], "--out", tmp_path / "n", "--memory-limit", "2GiB"], "--memory-limit is of one"),
        (["predict", tmp_path / "m", documents, "--label", "y", "--out", tmp_path / "o"], "--label has no effect"),
        (["evaluate", tmp_path / "m", tmp_path / "p", "--force"], "--force without --out"),
        (["prepare", documents, "--on-drift", "note", "--out", tmp_path / "q"], "--on-drift note without --expect"),
    ):
        assert said in refused(*words, *LOCAL), words
