"""Hints of the library in the words of the command line."""

import ast
import dataclasses
import re
import warnings
from pathlib import Path

from dboost.errors import ConvergenceWarning, DataError
from pipelines import cli
from pipelines.cli import main
from pipelines.commands import models, train
from pipelines.commands.prepare import PrepareSettings
from pipelines.commands.train import TrainSettings
from pipelines.flags import speaker

PACKAGE = Path(cli.__file__).resolve().parents[1] / "dboost"
say = speaker(TrainSettings)


SENTENCES = [
    ("check the label column, or give classes=", "check the label column, or give --classes"),
    ("list every label in classes=, or drop these rows", "list every label in --classes, or drop these rows"),
    ("use split= one of test, train", "use --split one of test, train"),
    ("use update='gradboost' or leave it", "use --update gradboost or leave it"),
    ('use BoostedClassifier with loss="multinomial"', "use --loss multinomial"),
    ("set fit_intercept=False, or standardize=True", "set --no-fit-intercept, or --standardize True"),
    ("max_rounds=0", "--max-rounds 0"),
    ("alpha='very strong'", "--alpha 'very strong'"),
    ("choose another folder, or use --force (force=True)", "choose another folder, or use --force"),
    ("choose another path, or pass force=True (--force)", "choose another path, or pass --force"),
    ("name them: ParquetData(path, features=[...])", "name them: --features NAME,NAME"),
    ("leave class_weight out; sample_weight weighs rows", "leave --class-weight out; --weight weighs rows"),
    ("such as dboost.Products(max_degree=2)", """such as --hypotheses '{"family": "products", "max_degree": 2}'"""),
    (
        "alpha_best_=0.1 is the weakest of 5 strengths; give a smaller eps than 0.2",
        "the best alpha, 0.1, is the weakest of 5 strengths; give --eps smaller than 0.2",
    ),
    # What is no parameter stays, and so do names, values and paths of the user.
    ("penalty 'l2_squared' and loss 'log'", "penalty 'l2_squared' and loss 'log'"),
    ("label 'alpha=3' of data/label=1/part-0.parquet", "label 'alpha=3' of data/label=1/part-0.parquet"),
    ("give folds= for the rows", "give folds= for the rows"),
    ("Client(address) without asynchronous=True", "Client(address) without asynchronous=True"),
]


def test_a_sentence_of_the_library_is_one_of_the_command_line():
    for library, line in SENTENCES:
        assert say(library) == line


def sentences():
    """Every hint in the source of the library, with X for what is filled in."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "hint=" in text else ():
            if isinstance(node, ast.keyword) and node.arg == "hint":
                for part in ast.walk(node.value):
                    if isinstance(part, ast.JoinedStr):
                        words = (str(v.value) if isinstance(v, ast.Constant) else "X" for v in part.values)
                        yield str(path.relative_to(PACKAGE)), "".join(words)
                    elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield str(path.relative_to(PACKAGE)), part.value


def test_no_hint_of_the_library_speaks_python_of_what_is_a_flag():
    hints = list(sentences())
    assert len(hints) > 200
    for kind in (TrainSettings, PrepareSettings):
        names = "|".join([*(item.name for item in dataclasses.fields(kind)), "sample_weight"])
        python, say = re.compile(rf"""(?<![\w./'"=-])(?:{names})="""), speaker(kind)
        assert [(file, hint) for file, hint in hints if python.search(say(hint))] == []


def test_a_path_with_an_equals_sign_is_left_alone(monkeypatch, refused):
    def fail(*_):
        raise DataError("top=3", file="data/top=1/x", column="top=2", hint="give top=")

    monkeypatch.setitem(models.COMMANDS, "inspect", (models.InspectSettings, fail))
    assert refused("inspect", "model", code=3).endswith("--top 3; file data/top=1/x; column 'top=2'; give --top")


def test_a_warning_speaks_flags_too(monkeypatch, capsys):
    def warn(*_):
        warnings.warn(ConvergenceWarning("stopped; raise max_rounds=, or loosen tol="), stacklevel=1)
        return 6

    monkeypatch.setitem(train.COMMANDS, "train", (TrainSettings, warn))
    assert main(["train", "data", "--out", "x"]) == 6
    assert capsys.readouterr().err == "dboost: warning: stopped; raise --max-rounds, or loosen --tol\n"
