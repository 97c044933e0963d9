"""No text or table of scikit-learn shows a secret among the parameters of an estimator."""

from __future__ import annotations

import inspect
import json

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dboost
from dboost import BoostedClassifier, OneVsRestBoostedClassifier

SECRET = "hunter22"
URL = f"s3://me:{SECRET}@bucket/state"


class Client:
    def __repr__(self):
        return f"<Client: 'tcp://me:{SECRET}@host:8786'>"


def shown(estimator):
    """Everything that is shown of an estimator."""
    texts = [repr(estimator), str(estimator)]
    for name in ("_repr_html_", "_html_repr", "_repr_mimebundle_"):
        if hasattr(estimator, name):
            texts.append(str(getattr(estimator, name)()))
    return texts


def with_secrets():
    every = [getattr(dboost, name) for name in dir(dboost)]
    for kind in (kind for kind in every if inspect.isclass(kind) and issubclass(kind, BaseEstimator)):
        known = inspect.signature(kind).parameters
        for name, value in (("checkpoint", URL), ("client", Client()), ("callbacks", [URL])):
            if name in known:
                yield pytest.param(kind(**{name: value}), id=f"{kind.__name__}-{name}")
    yield pytest.param(OneVsRestBoostedClassifier(BoostedClassifier(checkpoint=URL)), id="one-vs-rest")
    yield pytest.param(BoostedClassifier(checkpoint=f"s3://me:{SECRET * 200}@bucket"), id="one too long to be shown")


AROUND = {
    "alone": lambda inner: inner,
    "pipeline": lambda inner: make_pipeline(StandardScaler(), inner),
    "search": lambda inner: GridSearchCV(make_pipeline(inner), {"memory": [None]}),
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("estimator", list(with_secrets()))
def test_no_text_or_table_shows_a_secret(estimator, around):
    texts = shown(around(estimator))
    assert not [text for text in texts if SECRET in text]
    assert "***" in texts[0]


def test_what_holds_no_secret_is_shown_as_it_is_and_clones_get_the_values():
    inner = BoostedClassifier(checkpoint=URL, alpha=0.25, class_weight={"a": 2})
    assert "alpha=0.25" in repr(make_pipeline(inner)) and "class_weight={'a': 2}" in repr(make_pipeline(inner))
    assert inner.get_params()["checkpoint"] is URL
    pipeline = make_pipeline(inner)
    assert pipeline.get_params()["boostedclassifier__checkpoint"] is URL
    assert clone(pipeline)[-1].checkpoint == URL
    assert json.dumps(pipeline[-1].get_params()["checkpoint"]) == json.dumps(URL)
