"""Secrets never reach an output, and ordinary words are never taken for secrets."""

from __future__ import annotations

import io
import logging
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dboost
from dboost.errors import ClusterError, DataError, DboostWarning, UsageError
from dboost.redact import is_secret_key, redact, redact_urls, redact_value, secret_values
from pipelines.console import Console

HIDDEN = [
    ("s3://AKIA123:hunter22@bucket/key", "s3://***@bucket/key"),
    ("s3:/AKIA123:hunter22@bucket/key", "s3:/***@bucket/key"),
    ("PosixPath('s3:/AKIA123:hunter22@bucket/key')", "PosixPath('s3:/***@bucket/key')"),
    ("s3://AKIA123:hunter/22+x@bucket/key", "s3://***@bucket/key"),
    ("tls://user:p@ss@host:8786", "tls://***@host:8786"),
    ("tcp://user:hunter22@[::1]:8786", "tcp://***@[::1]:8786"),
    ("simplecache::s3://user:hunter22@bucket", "simplecache::s3://***@bucket"),
    ("https://token123@host/x?y=1", "https://***@host/x?y=1"),
    ("https://host/x?sig=abc%2Fdef&y=1", "https://host/x?sig=***&y=1"),
    ("https://host/x?se=1&X-Amz-Signature=deadbeef", "https://host/x?se=1&X-Amz-Signature=***"),
    ("https://host/x?X-Amz-Credential=AKIA%2F1&AWSAccessKeyId=A1&y=2", "https://host/x?X-Amz-Credential=***&"
     "AWSAccessKeyId=***&y=2"),
    ("{'secret': 'hunter22', 'region': 'x'}", "{'secret': '***', 'region': 'x'}"),
    ("{'key': 'AKIA', 'token': None}", "{'key': '***', 'token': None}"),
    ('{"aws_secret_access_key": "hunter 22"}', '{"aws_secret_access_key": "***"}'),
    ("password=hunter22 retries=3", "password=*** retries=3"),
    ("connect('host=x password=1234')", "connect('host=x password=***')"),
    ("secret='hunter22'", "secret='***'"),
    ("api-key: hunter22", "api-key: ***"),
    ("Authorization: Bearer abc.def", "Authorization: ***"),
    ("x: password=hunter22", "x: password=***"),
]  # fmt: skip


ORDINARY = [
    "tcp://127.0.0.1:8786",
    "tcp://[::1]:8786 and user@host",
    "https://host/users/a@b.org?page=2",
    "s3://bucket/mail@home/x",
    "file:///home/me@work/x.parquet and file:/me@work",
    "C:/users/me@home",
    "file /data/part-0.parquet; column 'text'; row group 3",
    "file /data/token=red/secret=yes/password=x/part-0.parquet",
    "label 'token=red' is unknown; 'has_secret=yes' is not",
    "unexpected token: x; key: y; secret: none",
    "column 'password': found float, expected int",
    "passes: 12, passes=12, pass: 3, bypass=ok, compass: north",
    "tokenizer=words; tokenizer: identifiers; token=5; n_tokens=7; max_token=3e-4",
    "sorted(found, key=len) author=me monkey=x design=sig texas=hot",
    "prepared: words-prep   next: dboost train words-prep --out MODEL",
    "4 tokens in 2 files",
    "mail to a@b.org",
    "certified gap 1e-3",
]
ORDINARY_KEYS = """passes pass tokenizer tokens n_tokens bypass monkey keys signature_algorithm password_file assignment
sass id"""
SECRET_KEYS = """password PASSWORD db_password secret token key sas_token apiKey account_key AWSAccessKeyId
X-Amz-Security-Token sig Authorization client.secret connection-password aws_access_key_id"""


def test_secrets_are_hidden_and_ordinary_text_is_left_alone() -> None:
    for text, shown in HIDDEN:
        assert redact(text) == shown
        assert redact(shown) == shown
    for text in ORDINARY:
        assert redact(text) == text


def test_keys_of_storage_options_are_secrets_and_ordinary_ones_are_not() -> None:
    assert [key for key in ("", *ORDINARY_KEYS.split()) if is_secret_key(key)] == []
    assert [key for key in SECRET_KEYS.split() if not is_secret_key(key)] == []


def test_known_values_are_hidden_where_they_are_no_part_of_a_word() -> None:
    settings = {
        "storage_options": {"secret": "hunter22", "region": "north"},
        "auth": ["abcd"],
        "scheduler": "tls://user:p%40ssword@host:1",
        "data": "https://host/x?sig=feed%2Fbeef",
        "tokenizer": "words",
        "class_weight": {"pass": 2.0, "token": 3.0},
    }
    values = secret_values(settings)
    assert values == {"hunter22", "abcd", "p%40ssword", "p@ssword", "feed%2Fbeef", "feed/beef"}
    text = "could not use xhunter22 in north with abcd, p@ssword or abcdef"
    assert redact(text, values) == "could not use x*** in north with ***, *** or abcdef"
    assert redact_urls("1234 rows, ab", {"1234", "ab"}) == "1234 rows, ab"


def test_values_are_hidden_by_their_whole_key_and_numbers_never() -> None:
    value: Any = {
        "options": {"token": "abc", "retries": 3, "credentials": {"a": ["x", 5]}},
        "urls": ["s3://a:b@c/d"],
        "password": None,
        "passes": 12,
        "weights": {"pass": 0.25, "password": 0.5, "token": 2},
        "features": [{"name": "token=red"}, {"name": "secret"}],
        "tokenizer": "words",
    }
    assert redact_value(value) == {
        "options": {"token": "***", "retries": 3, "credentials": {"a": ["***", 5]}},
        "urls": ["s3://***@c/d"],
        "password": None,
        "passes": 12,
        "weights": {"pass": 0.25, "password": 0.5, "token": 2},
        "features": [{"name": "token=red"}, {"name": "secret"}],
        "tokenizer": "words",
    }


def test_errors_and_warnings_hold_no_secret() -> None:
    url = "s3://me:hunter22@b"
    error = UsageError(f"{url}, password=hunter22", file="s3:/me:hunter22@b/token=red", hint="not tcp://hunter22@h")
    assert "hunter22" not in f"{error} {error!r} {vars(error)}"
    assert "token=red" in str(error)
    assert "hunter22" not in str(DataError("x", column="https://hunter22@h"))
    assert str(DataError("x", column="token=red")) == "x; column 'token=red'"
    assert pickle.loads(pickle.dumps(error)).args == error.args
    assert str(DataError("x", file=Path("a/b"), column=3)) == "x; file a/b; column 3"  # type: ignore[arg-type]
    assert "hunter22" not in str(ClusterError("no answer from tcp://a:hunter22@h:1"))
    assert str(DboostWarning("s3://a:hunter22@b is slow")) == "s3://***@b is slow"


def test_long_texts_take_linear_time() -> None:
    start = time.perf_counter()
    texts = ["a" * 200_000, "s3://" + "a:" * 50_000, "s3:/" * 20_000, "password=" * 20_000, "@" * 100_000]
    for text in [*texts, "a://b@" * 20_000]:
        redact(text)
    assert time.perf_counter() - start < 10.0


@pytest.mark.parametrize("log_format", ["plain", "json", "table"])
def test_no_output_of_the_console_shows_a_secret(log_format: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    console = Console(log_format, debug=True, secrets=frozenset({"hunter22"}), out=out, err=err)
    console.say("opening s3://me:hunter22@bucket")
    console.warning("slow answer from s3://me:other@bucket with hunter22")
    try:
        raise ValueError("hunter22 was refused")
    except ValueError as error:
        console.error("data", error)
    console.event("settings", token="hunter22x")
    with console.rounds("training on s3://me:other@bucket") as show:
        show({"round": 1, "objective": 1.0, "gap": 0.5, "passes": 12, "url": "s3://me:other@bucket"})
    with console.stage("s3://me:other@bucket"):
        pass
    console.page("found", ["at s3://me:other@bucket"], {"at": "s3://me:other@bucket", "pass": 1.5})
    shown = out.getvalue() + err.getvalue()
    assert "hunter22" not in shown and "other@" not in shown
    assert "***" in shown
    if log_format == "json":
        assert '"passes": 12' in shown and '"pass": 1.5' in shown


def test_an_address_with_a_secret_is_refused_by_fit_and_shown_nowhere(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Alone, within others that fit it, and in a search, which fits clones of it: those get the value itself."""
    caplog.set_level(logging.DEBUG)
    url = "s3://me:hunter22@bucket/state"
    X, y = np.eye(12), np.arange(12) % 2
    inner = dboost.BoostedClassifier(alpha="quick", checkpoint=url)
    kinds = (dboost.BoostedRegressor, dboost.ShareBoostClassifier, dboost.BoostedClassifierCV)
    around = [inner, *(kind(checkpoint=url) for kind in kinds), make_pipeline(StandardScaler(), inner)]
    around += [dboost.OneVsRestBoostedClassifier(inner), dboost.StabilitySelection(inner)]
    around.append(GridSearchCV(inner, {"alpha": [0.1]}, cv=2, error_score="raise"))
    assert clone(inner).checkpoint == url == inner.get_params()["checkpoint"]
    for one in around:
        with pytest.raises(UsageError, match="checkpoint") as refused:
            one.fit(X, y)
        assert "hunter22" not in f"{refused.value} {refused.value!r}"
    for one in (*around[:4], around[5]):
        texts = [repr(one), str(one), f"{one._repr_mimebundle_()}"]
        assert not [text for text in texts if "hunter22" in text] and "***" in texts[0], texts
    assert "hunter22" not in caplog.text + "".join(capfd.readouterr())
