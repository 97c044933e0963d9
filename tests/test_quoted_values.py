"""No error says what the data says: a document may be somebody's letter, and an error goes into logs."""

from __future__ import annotations

import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dboost
from dboost.errors import DboostError
from pipelines.cli import main

WORD = "zyxsecret"
DOCUMENTS = [f"{WORD} one two", "three, four"] * 5
Y = [0, 1] * 5
X = np.random.default_rng(0).normal(size=(10, 3))


def test_what_other_libraries_say_of_values_is_left_out():
    fitted = dboost.BoostedClassifier(alpha=0.1).fit(X, Y)
    objects = np.array(DOCUMENTS, dtype=object)
    mixed = pd.DataFrame({"a": [1.5, WORD, *range(8)]})
    wrong = {
        "a list": lambda: fitted.fit(DOCUMENTS, Y),
        "one column": lambda: fitted.fit(objects[:, None], Y),
        "predict": lambda: fitted.predict(objects),
        "predict three": lambda: fitted.predict(np.repeat(objects[:, None], 3, axis=1)),
        "score": lambda: fitted.score(DOCUMENTS, Y),
        "folds": lambda: dboost.BoostedClassifierCV(cv=2).fit(DOCUMENTS, Y),
        "one for each": lambda: dboost.OneVsRestBoostedClassifier().fit(DOCUMENTS, Y),
        "held out": lambda: dboost.BoostedClassifier(alpha="quick", callbacks=[dboost.EarlyStopping(DOCUMENTS, Y)]).fit(
            X, Y
        ),
        "kernels": lambda: dboost.Kernels(support=objects[:, None]),
        "mixed": lambda: dboost.TableFeatures().fit(mixed),
        "mixed object": lambda: dboost.TableFeatures().fit(mixed.to_numpy()),
        "a frame": lambda: fitted.fit(mixed, Y),
        "targets": lambda: dboost.BoostedRegressor(alpha="quick").fit(X, DOCUMENTS),
        "weights": lambda: fitted.fit(X, Y, DOCUMENTS),
        "bytes": lambda: dboost.TextFeatures().fit([WORD.encode() + b"\xff"]),
        "a number": lambda: dboost.TextFeatures().fit([WORD, 3]),
        "none left": lambda: dboost.TextFeatures(stop_words=[WORD]).fit([WORD]),
    }
    for name, call in wrong.items():
        with pytest.raises((DboostError, ValueError)) as caught:
            call()
        told = "".join(traceback.format_exception_only(caught.value)) + str(caught.value.__cause__)
        assert WORD not in told and len(str(caught.value)) > 20, name
    # scikit-learn's advice at the end of its message stays
    with pytest.raises(ValueError, match="(?s)got 1D array instead.*Reshape your data"):
        fitted.predict(X[0])


def test_rows_of_files_that_cannot_be_read_are_told_by_their_place(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = "text,label\n" + "".join(f'"{text}",{"ab"[i % 2]}\n' for i, text in enumerate(DOCUMENTS))
    lines = "".join(f'{{"text": "{text}", "label": "a"}}\n' for text in DOCUMENTS)
    wrong = {
        "more.csv": (table + f"{WORD} x,a,b,c\n", "Row #12: Expected 2 columns, got 4"),
        "open.csv": (table + f'"{WORD} is never closed,a\n', "Row #12: Expected 2 columns, got 1"),
        "text.jsonl": (lines + f'{{"text": "{WORD} x, "label": "a"}}\n', "line 11 is not JSON"),
        "list.jsonl": (lines + f'["{WORD}"]\n', "line 11 is a list"),
        "kind.jsonl": (lines + f'{{"text": ["{WORD}"], "label": "a"}}\n', "line 11 holds a list"),
    }
    for name, (content, said) in wrong.items():
        Path(name).write_text(content)
        command = ["prepare", name, "--text", "text", "--label", "label", "--out", "prepared", "--workers", "0"]
        assert main(command) == 3
        told = "".join(capsys.readouterr())
        assert WORD not in told and said in told, name
