"""A scheduler that anybody on a network may send work to is told of, once."""

from __future__ import annotations

import warnings

import pytest

from dboost.engine.dask import encryption
from dboost.engine.dask.engine import DaskEngine
from dboost.errors import DboostWarning


def test_what_an_address_says() -> None:
    for address, found in [
        ("tcp://10.0.0.5:8786", "tcp://10.0.0.5"),
        ("tcp://[2001:db8::1]:8786", "tcp://2001:db8::1"),
        ("10.0.0.5:8786", "tcp://10.0.0.5"),
        ("ws://10.0.0.5:80", "ws://10.0.0.5"),
        ("tcp://no-such-host.invalid:8786", "tcp://no-such-host.invalid"),
        ("tls://10.0.0.5:8786", ""),
        ("wss://10.0.0.5:443", ""),
        ("gateway://10.0.0.5:8786/one", ""),
        ("tcp://127.0.0.1:8786", ""),
        ("tcp://[::1]:8786", ""),
        ("tcp://localhost:8786", ""),
        ("inproc://10.0.0.5/1/1", ""),
    ]:
        assert encryption.open_address(address) == found


def test_an_engine_warns_once(one_worker, monkeypatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DaskEngine(one_worker).close()
    monkeypatch.setattr(encryption, "open_address", lambda address: "tcp://10.0.0.5")
    with pytest.warns(DboostWarning, match=r"the scheduler at tcp://10\.0\.0\.5 is not encrypted.*TLS"):
        DaskEngine(one_worker).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DaskEngine(one_worker).close()
