"""Secrets never reach an output."""

from __future__ import annotations

import io
from typing import Any

import pytest

from pipelines.console import Console
from pipelines.redact import redact, redact_value, secret_values

HIDDEN = [
    ("s3://AKIA123:hunter22@bucket/key", "s3://***@bucket/key"),
    ("tls://user:p@ss@host:8786", "tls://***@host:8786"),
    ("https://token123@host/x?y=1", "https://***@host/x?y=1"),
    ("https://host/x?sig=abc%2Fdef&y=1", "https://host/x?sig=***&y=1"),
    ("https://host/x?X-Amz-Signature=deadbeef", "https://host/x?X-Amz-Signature=***"),
    ("{'secret': 'hunter22', 'region': 'x'}", "{'secret': '***', 'region': 'x'}"),
    ('{"aws_secret_access_key": "hunter22"}', '{"aws_secret_access_key": "***"}'),
    ("password=hunter22 retries=3", "password=*** retries=3"),
    ("api-key: hunter22", "api-key: ***"),
]


@pytest.mark.parametrize(("text", "shown"), HIDDEN)
def test_secrets_are_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "tcp://127.0.0.1:8786",
        "file /data/part-0.parquet; column 'text'; row group 3",
        "4 tokens in 2 files",
        "mail to a@b.org",
        "certified gap 1e-3",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


def test_known_values_are_hidden_wherever_they_occur() -> None:
    values = secret_values({"storage_options": {"secret": "hunter22", "region": "north"}, "auth": ["abcd1234"]})
    assert values == {"hunter22", "abcd1234"}
    assert redact("could not use hunter22 in north", values) == "could not use *** in north"


def test_nested_values_are_hidden_by_their_key() -> None:
    value: Any = {"options": {"token": "abc", "retries": 3}, "urls": ["s3://a:b@c/d"], "password": None}
    assert redact_value(value) == {
        "options": {"token": "***", "retries": 3},
        "urls": ["s3://***@c/d"],
        "password": None,
    }


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
    shown = out.getvalue() + err.getvalue()
    assert "hunter22" not in shown and "other@" not in shown
    assert "***" in shown
