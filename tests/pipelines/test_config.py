"""Settings: keys, types, near misses, and which source wins."""

import dataclasses
from typing import Any

import pytest

from dboost.errors import UsageError
from pipelines import config
from pipelines.commands.prepare import PrepareSettings
from pipelines.commands.train import TrainSettings
from pipelines.model_settings import ModelSettings


def write(folder, text):
    file = folder / "run.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_flags_win_over_the_file(tmp_path):
    file = write(tmp_path, 'penalty = "l1"\nalpha = 0.5\nmax-rounds = 7\nfeatures = ["a", "b"]\n')
    settings = config.load(TrainSettings, file, {"alpha": "0.25"})
    assert (settings.penalty, settings.alpha, settings.max_rounds) == ("l1", 0.25, 7)
    assert settings.features == ("a", "b")
    assert config.given(settings, ModelSettings) == {"penalty": "l1", "alpha": 0.25, "max_rounds": 7}


def test_an_unknown_key_names_the_nearest(tmp_path):
    for key, nearest in (("penality", "penalty"), ("max_round", "max_rounds"), ("Alpha", "alpha")):
        with pytest.raises(UsageError, match=f"unknown key '{key}'; did you mean '{nearest}'") as caught:
            config.load(TrainSettings, write(tmp_path, f"{key} = 1\n"), {})
        assert caught.value.file == str(tmp_path / "run.toml")
    with pytest.raises(UsageError) as caught:
        config.load(TrainSettings, write(tmp_path, "zzz = 1\n"), {})
    assert "did you mean" not in str(caught.value)


BAD: list[tuple[str, Any, str]] = [
    ("alpha", -1.0, "a finite number of at least 0"),
    ("alpha", float("nan"), "a finite number of at least 0"),
    ("alpha", "nan", "a finite number of at least 0"),
    ("alpha", "inf", "a finite number of at least 0"),
    ("alpha", "automatic", '"auto"'),
    ("alpha", True, "a finite number"),
    ("tol", 0.0, "above 0"),
    ("tol", "small", "above 0"),
    ("max_rounds", 0, "an integer of at least 1"),
    ("max_rounds", 2.5, "an integer of at least 1"),
    ("max_rounds", True, "an integer of at least 1"),
    ("max_rounds", 5.0, "an integer of at least 1"),
    ("max_rounds", "5.0", "an integer of at least 1"),
    ("force", 1, "true or false"),
    ("label", [1], "column names"),
    ("classes", [1.5], "labels separated by commas"),
    ("hypotheses", {"max_degree": 2}, "a table {family"),
    ("bounds", "2,1", "the lower one first"),
    ("options", '{"a": [null]}', "without null"),
    ("force", "perhaps", "true or false"),
    ("features", [], "column names"),
    ("features", ["a", 3], "column names"),
    ("class_weight", "even", "balanced"),
    ("penalty_factors", "price", "a table {feature = factor}"),
    ("penalty_factors", {}, "a table {feature = factor}"),
    ("penalty_factors", {"price": -0.5}, "from 0 to inf"),
    ("penalty_factors", [1.0, float("nan")], "from 0 to inf"),
    ("lower", 1.0, "0 for every feature"),
    ("lower", {"price": "inf"}, "0 or -inf for each"),
    ("upper", "price", "as a flag in JSON"),
    ("class_weight", {"a": -1}, "a finite number of at least 0"),
    ("scheduler", "", "a text that is not empty"),
    ("log_format", "jsn", "did you mean 'json'"),
    ("workers", -1, "an integer of at least 0"),
]


def test_a_bad_value_is_named_with_what_is_expected():
    for key, value, expected in BAD:
        with pytest.raises(UsageError) as caught:
            config.load(TrainSettings, None, {key: value})
        message = str(caught.value)
        assert message.startswith("--" + key.replace("_", "-") + ": found "), (key, value)
        assert expected in message, (key, value)


GOOD: list[tuple[str, Any, Any]] = [
    ("alpha", "auto", "auto"),
    ("alpha", 0, 0.0),
    ("alpha", "1e-3", 1e-3),
    ("fit_intercept", "no", False),
    ("classes", "0,1,x", (0, 1, "x")),
    ("features", "indices,values", ("indices", "values")),
    ("class_weight", '{"spam": 2}', {"spam": 2.0}),
    ("class_weight", "balanced", "balanced"),
    ("penalty_factors", '{"price": 0.5, "id": "inf"}', {"price": 0.5, "id": "inf"}),
    ("penalty_factors", [0, float("inf")], (0.0, "inf")),
    ("positive", "yes", True),
    ("lower", "0", 0.0),
    ("lower", '{"price": 0, "id": "-inf"}', {"price": 0.0, "id": "-inf"}),
    ("upper", [0, float("inf")], (0.0, "inf")),
]


def test_text_and_typed_values_mean_the_same():
    for key, value, parsed in GOOD:
        assert getattr(config.load(TrainSettings, None, {key: value}), key) == parsed, (key, value)


def test_document_counts_and_shares_differ():
    for value, parsed in (("5", 5), (5, 5), ("0.5", 0.5), (0.5, 0.5), ("1.0", 1.0), (0, 0)):
        found = config.load(PrepareSettings, None, {"min_df": value}).min_df
        assert found == parsed and type(found) is type(parsed), value
    for value in ("many", "-1", 1.5, True, "nan"):
        with pytest.raises(UsageError, match="--min-df: found"):
            config.load(PrepareSettings, None, {"min_df": value})


def test_a_file_that_is_no_toml(tmp_path):
    with pytest.raises(UsageError, match="not valid TOML"):
        config.load(TrainSettings, write(tmp_path, "alpha ="), {})
    with pytest.raises(UsageError, match="no such settings file"):
        config.load(TrainSettings, str(tmp_path / "absent.toml"), {})


def test_what_is_needed_is_named():
    with pytest.raises(UsageError, match="out is missing: give --out"):
        config.needed(TrainSettings(data="x"), "data", "out")


@pytest.mark.parametrize("kind", [TrainSettings, PrepareSettings])
def test_every_key_has_a_help_text_and_words_for_what_it_takes(kind):
    for item in dataclasses.fields(kind):
        assert item.metadata["help"] and config.expected(config.hints(kind)[item.name], None), item.name


def test_a_key_under_its_former_name_is_taken_with_a_warning_and_never_beside_its_name():
    known = {"max_features": config.FromOne}
    with pytest.warns(FutureWarning, match="max_active_rows is called max_features now"):
        assert config.read_keys(known, {"max-active-rows": "2"}) == {"max_features": 2}
        with pytest.raises(UsageError, match="max_features is given twice"):
            config.read_keys(known, {"max_features": 3, "max_active_rows": 2})
