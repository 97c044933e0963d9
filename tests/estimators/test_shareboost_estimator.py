"""``ShareBoostClassifier``: the path from one run, every kind of input, what outlives a fit, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from dboost import Products, ShareBoostClassifier, UsageError, load_model


@pytest.fixture
def fitted(multiclass):
    X, y = multiclass
    return ShareBoostClassifier(max_rounds=5).fit(X, y), X, y


def test_stages_are_refits_to_the_bit(fitted):
    model, X, y = fitted
    labels, chances = list(model.staged_predict(X)), list(model.staged_predict_proba(X))
    scores = list(model.staged_decision_function(X))
    assert len(labels) == len(chances) == len(scores) == 5
    for t in range(5):
        alone = ShareBoostClassifier(max_rounds=t + 1).fit(X, y)
        assert scores[t].tobytes() == alone.decision_function(X).tobytes()
        assert chances[t].tobytes() == alone.predict_proba(X).tobytes()
        assert labels[t].tolist() == alone.predict(X).tolist()
    assert labels[-1].tolist() == model.predict(X).tolist()


def test_the_path_says_what_each_round_added(fitted):
    model, X, y = fitted
    path = model.path_
    assert path.column("features").tolist() == [1, 2, 3, 4, 5]
    assert sorted(record["entered"] for record in path) == sorted(model.active_features_)
    errors = [(labels != y).mean() for labels in model.staged_predict(X)]
    np.testing.assert_allclose(path.column("error"), errors, atol=1e-12)
    assert np.all(np.diff(path.column("objective")) < 0)
    assert model.coef_.shape == (3, 12) and np.count_nonzero(model.coef_.any(axis=0)) == 5
    assert model.score(X, y) == pytest.approx(1 - errors[-1])


def test_predictions_know_no_margin(fitted):
    """Softmax and argmax of X W + b; training sees one more on every other class."""
    model, X, y = fitted
    F = X @ model.coef_.T + model.intercept_
    e = np.exp(F - F.max(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), e / e.sum(axis=1, keepdims=True), rtol=1e-12)
    assert model.predict(X).tolist() == model.classes_[F.argmax(axis=1)].tolist()
    code = np.searchsorted(model.classes_, y)
    seen = F + 1 - np.eye(3)[code]
    loss = np.log(np.exp(seen).sum(axis=1)) - F[np.arange(len(y)), code]
    assert model.path_[-1]["loss"] == pytest.approx(loss.mean(), rel=1e-10)


@pytest.mark.parametrize("loss", ["margin_softmax", "log"])
def test_two_classes_have_one_score(binary, loss):
    X, y = binary
    model = ShareBoostClassifier(max_rounds=3, loss=loss).fit(X, y)
    scores, chances = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == (len(y),)
    np.testing.assert_allclose(scores, np.log(chances[:, 1] / chances[:, 0]), rtol=1e-6, atol=1e-9)
    assert (model.predict(X) == (scores > 0)).all()
    assert [s.shape for s in model.staged_decision_function(X)] == [(len(y),)] * 3


def test_a_declared_class_without_examples_is_never_predicted(multiclass):
    X, y = multiclass
    model = ShareBoostClassifier(max_rounds=3, classes=["ant", "bee", "cat", "dog"]).fit(X, y)
    assert model.classes_.tolist() == ["ant", "bee", "cat", "dog"]
    for chances in model.staged_predict_proba(X):
        assert chances.shape == (len(y), 4) and chances[:, 3].max() < 1e-200


@pytest.mark.full
def test_features_are_taken_out_again(multiclass, tmp_path):
    X, y = multiclass
    file = tmp_path / "state"
    params = {"max_rounds": 6, "keep": 4, "hypotheses": Products(max_degree=2)}
    model = ShareBoostClassifier(**params).fit(X, y)
    assert model.stop_reason_ == "kept" and len(model.active_features_) == 4 and model.n_iter_ == 11
    path = model.path_
    assert path.column("features").tolist() == [1, 2, 3, 4] and path.column("round").tolist() == [11, 10, 9, 8]
    assert sorted(", ".join(record["entered"] for record in path).split(", ")) == sorted(model.active_features_)
    labels = list(model.staged_predict(X))
    np.testing.assert_allclose(path.column("error"), [(one != y).mean() for one in labels], atol=1e-12)
    assert labels[-1].tolist() == model.predict(X).tolist()
    model.save(tmp_path / "m")
    back = load_model(tmp_path / "m")
    assert list(back.path_) == list(path) and back.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    for one, other in zip(back.staged_predict_proba(X), model.staged_predict_proba(X), strict=True):
        assert one.tobytes() == other.tobytes()
    # killed on its way up, at the top and on its way back
    for rounds in (3, 6, 8):
        stop = ShareBoostClassifier(**params, checkpoint=file, callbacks=[lambda r, n=rounds: r["round"] == n])
        assert stop.fit(X, y).stop_reason_ == "callback"
        rest = ShareBoostClassifier(**params, checkpoint=file).fit(X, y)
        assert rest.coef_.tobytes() == model.coef_.tobytes() and list(rest.path_) == list(path)
        file.unlink()
    ShareBoostClassifier(**params, checkpoint=file).fit(X, y)
    again = ShareBoostClassifier(**params, checkpoint=file).fit(X, y)
    assert again.coef_.tobytes() == model.coef_.tobytes() and again.n_iter_ == 11


def test_groups_of_columns_enter_together(multiclass):
    X, y = multiclass
    model = ShareBoostClassifier(max_rounds=2, groups=np.arange(12) // 3).fit(X, y)
    assert model.path_.column("features").tolist() == [3, 6]
    firsts = {name for record in model.path_ for name in [record["entered"].split(", ")[0]]}
    assert firsts <= {"x0", "x3", "x6", "x9"}


@pytest.mark.parametrize(
    "params,said",
    [
        ({"loss": None}, "loss=None"),
        ({"loss": "exp"}, "loss='exp'"),
        ({"penalty": "l1"}, "puts rows to zero"),
        ({"penalty": "none", "alpha": 0.1}, "has no strength"),
        ({"groups": [0.5] * 12}, "expected an integer for each column"),
        ({"groups": [0, 1]}, "groups has 2 entries for 12 columns"),
        ({"groups": [0] * 12, "hypotheses": Products(max_degree=1)}, "groups= are groups of raw columns"),
        ({"shortlist": 0}, "shortlist=0"),
        ({"rule": "best"}, "rule='best'"),
        ({"bound": 0.0}, "bound=0.0"),
        ({"keep": 0}, "keep=0"),
        ({"keep": 2.5}, "keep=2.5"),
        ({"hypotheses": Products(), "standardize": True}, "set standardize=False"),
        ({"hypotheses": Products(), "standardize": False, "bound": 1.0}, "finite number of candidates"),
    ],
)
def test_what_has_no_meaning_is_refused(multiclass, params, said):
    X, y = multiclass
    with pytest.raises(UsageError, match=said):
        ShareBoostClassifier(**params).fit(X, y)


def test_a_class_without_end_grows_from_the_model(multiclass):
    X, y = multiclass
    model = ShareBoostClassifier(max_rounds=4, hypotheses=Products(), standardize=False).fit(X, y)
    assert len(model.active_features_) == 4 and model.score(X, y) > 0.6
