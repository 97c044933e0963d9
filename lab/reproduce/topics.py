"""Fig. 4: documents and their four largest topics; when induction stops, and whether boosting overfits.

Covers: the data (Reuters-21578 and arXiv abstracts in place of RCV1), the three learners, what is measured.
Does not cover: claims and the figure (``topics_page``).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from lab.datasets import arxiv, reuters
from lab.datasets.base import random_split, text_rows
from lab.reproduce.base import Context, Report
from lab.reproduce.measure import Staged, followed, in_parallel
from lab.reproduce.rows import Rows
from lab.reproduce.topics_page import CLAIMS, FIGURES, L1, L2, SMOOTH, differences, findings, protocol

Array = NDArray[np.float64]
SEED = 20090614
WEAKEST = 3e-2


@dataclass(frozen=True)
class Sizes:
    """Sizes and settings of a run; the page states them.

    Parameters
    ----------
    documents : int
        Of a corpus, drawn at random; all where it has fewer.
    test_share : float
    min_df : int
    folds : int
    n_alphas : int
        How many strengths the l1 booster has on offer.
    eps : mapping of corpus to float
        The weakest of them, as a share of alpha_max; where a fit takes longer they end earlier.
    smooth : tuple of float
        Strengths of the smooth-l1 booster.
    smooth_rounds, trial_rounds : int
    chosen : tuple of int
        Numbers of features chosen by mutual information for l2.
    inverse : tuple of float
        C of scikit-learn's logistic regression.
    """

    documents: int = 30_000
    test_share: float = 0.3
    min_df: int = 5
    folds: int = 5
    n_alphas: int = 9
    eps: Mapping[str, float] = field(default_factory=lambda: {"Reuters": 1e-3, "arXiv": 5e-3})
    smooth: tuple[float, ...] = (1e-6, 1e-5, 1e-4)
    smooth_rounds: int = 400
    trial_rounds: int = 60
    chosen: tuple[int, ...] = (100, 1000)
    inverse: tuple[float, ...] = (1.0, 10.0, 100.0)


QUICK = Sizes(
    documents=2500, folds=3, n_alphas=4, eps={}, smooth=(1e-5,), smooth_rounds=30, trial_rounds=10, inverse=(10.0,)
)


@dataclass(frozen=True)
class Corpus:
    """Documents as rows, with the labels of four topics."""

    name: str
    X: Any
    Y: NDArray[np.int8]
    X_test: Any
    Y_test: NDArray[np.int8]
    topics: tuple[str, ...]


def newswire(sizes: Sizes) -> Corpus:
    """The documents of Reuters-21578's ModApte split, both parts together, and the four topics most of them list."""
    found = [document for document in reuters.documents() if document.split != "unused"]
    topics = reuters.largest_topics(found, 4)
    return _corpus("Reuters", [d.text for d in found], reuters.indicator(found, topics), topics, sizes)


def abstracts(sizes: Sizes) -> Corpus:
    """Abstracts of arXiv and the four archives that most of them list."""
    texts, Y, names = arxiv.abstracts()
    return _corpus("arXiv", texts, Y, names.tolist(), sizes)


def _corpus(name: str, texts: Sequence[str], Y: NDArray[np.int8], topics: Sequence[str], sizes: Sizes) -> Corpus:
    drawn = np.sort(np.random.default_rng(SEED).permutation(len(texts))[: sizes.documents])
    train, test = (drawn[part] for part in random_split(len(drawn), sizes.test_share, SEED + 1))
    X, X_test, _ = text_rows([texts[i] for i in train], [texts[i] for i in test], min_df=sizes.min_df)
    return Corpus(name, X, Y[train], X_test, Y[test], tuple(map(str, topics)))


CORPORA: tuple[Callable[[Sizes], Corpus], ...] = (newswire, abstracts)


@dataclass(frozen=True)
class Task:
    """One topic against the rest."""

    corpus: str
    topic: str
    X: Any
    y: NDArray[np.int8]
    X_test: Any
    y_test: NDArray[np.int8]

    def losses(self, scores: Any) -> Array:
        """Logistic loss of each test document."""
        return np.logaddexp(0.0, -self.y_test * np.asarray(scores, dtype=np.float64))

    def judge(self, model: Any) -> dict[str, float]:
        """Mean logistic loss on both parts, and the share of test documents labelled wrongly."""
        train = np.logaddexp(0.0, -self.y * np.asarray(model.decision_function(self.X), dtype=np.float64))
        scores = np.asarray(model.decision_function(self.X_test), dtype=np.float64)
        return {
            "train_loss": float(train.mean()),
            "test_loss": float(self.losses(scores).mean()),
            "test_error": float(np.mean(np.where(scores > 0, 1, -1) != self.y_test)),
        }


def tasks(corpus: Corpus) -> list[Task]:
    """The four binary problems of a corpus."""
    return [
        Task(corpus.name, topic, corpus.X, corpus.Y[:, r], corpus.X_test, corpus.Y_test[:, r])
        for r, topic in enumerate(corpus.topics)
    ]


# ---- the learners --------------------------------------------------------------------------------------------------


def l1_boosting(task: Task, sizes: Sizes) -> tuple[Rows, dict[str, Any]]:
    """Totally corrective boosting with 30 new features a round; strength by cross-validation."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dboost.ConvergenceWarning)
        choice = dboost.BoostedClassifierCV(
            penalty="l1", cv=sizes.folds, n_alphas=sizes.n_alphas, eps=sizes.eps.get(task.corpus, WEAKEST), tol=1e-3,
            rule="best",
        ).fit(task.X, task.y)  # fmt: skip
    choosing = time.perf_counter() - began
    staged = Staged(task.judge, corpus=task.corpus, topic=task.topic, method=L1)
    model = dboost.BoostedClassifier(penalty="l1", alpha=float(choice.alpha_best_), rows_per_round=30, tol=1e-3)
    followed(model, staged, task.X, task.y)
    entered = [int(record["rows_in"]) for record in model.history_]
    return staged.rows, line(task, L1, model, staged, choosing) | {
        "entered": sum(entered),
        "induction_ended": max((i + 1 for i, count in enumerate(entered) if count), default=0),
        "gap": float(model.duality_gap_),
        "at_edge": bool(choice.alpha_best_ <= min(choice.alphas_)),
    }


def smooth_boosting(task: Task, sizes: Sizes) -> tuple[Rows, dict[str, Any]]:
    """The best feature of each round, then all weights again, under the smooth l1 penalty.

    The strength with the lowest loss in any round on one fold is taken.
    """
    began = time.perf_counter()
    order = np.random.default_rng(SEED + 2).permutation(len(task.y))
    held_out, kept = np.sort(order[: len(order) // sizes.folds]), np.sort(order[len(order) // sizes.folds :])
    part = Task(task.corpus, task.topic, task.X[kept], task.y[kept], task.X[held_out], task.y[held_out])
    lowest = {}
    for strength in sizes.smooth:
        trial = Staged(part.judge, every=5)
        followed(_smooth(strength, sizes.trial_rounds), trial, part.X, part.y)
        lowest[strength] = float(np.min(trial.rows.column("test_loss")))
    chosen = min(lowest, key=lambda strength: lowest[strength])
    choosing = time.perf_counter() - began
    kept_losses: list[Array] = []

    def judge(model: Any) -> dict[str, float]:
        kept_losses.append(task.losses(model.decision_function(task.X_test)))
        return task.judge(model)

    staged = Staged(judge, every=10, corpus=task.corpus, topic=task.topic, method=SMOOTH)
    model = _smooth(chosen, sizes.smooth_rounds)
    followed(model, staged, task.X, task.y)
    best = int(np.argmin([losses.mean() for losses in kept_losses]))
    rise = kept_losses[-1] - kept_losses[best]
    train = staged.rows.column("train_loss")
    return staged.rows, line(task, SMOOTH, model, staged, choosing) | {
        "best_round": int(staged.rows[best]["round"]),
        "best_test_loss": float(kept_losses[best].mean()),
        "rise": float(rise.mean()),
        "rise_se": float(rise.std(ddof=1) / np.sqrt(len(rise))),
        "train_fall": float(train[best] - train[-1]),
    }


def _smooth(strength: float, rounds: int) -> Any:
    return dboost.BoostedClassifier(penalty="smooth_l1", alpha=strength, rows_per_round=1, tol=1e-3, max_rounds=rounds)


def line(task: Task, name: str, model: Any, staged: Staged, choosing: float) -> dict[str, Any]:
    """One line of results."""
    return {
        "corpus": task.corpus,
        "topic": task.topic,
        "method": name,
        **task.judge(model),
        "features": len(model.active_features_),
        "rounds": int(model.n_iter_),
        "stop": str(model.stop_reason_),
        "strength": float(model.alpha_),
        "seconds": float(staged.rows[-1]["seconds"]),
        "choosing": choosing,
    }


def mutual_information(X: Any, y: NDArray[np.int8]) -> Array:
    """Mutual information of each term's presence with the label, in nats, shape (n,)."""
    m = len(y)
    present = (X != 0).astype(np.float64).tocsr()
    joint_yes = np.asarray(present.T @ (y > 0).astype(np.float64)).ravel()
    df = np.asarray(present.sum(axis=0)).ravel()
    yes = float(np.sum(y > 0))
    found = np.zeros(X.shape[1])
    for joint, term, label in (
        (joint_yes, df, yes),
        (df - joint_yes, df, m - yes),
        (yes - joint_yes, m - df, yes),
        (m - yes - df + joint_yes, m - df, m - yes),
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            part = joint / m * np.log(joint * m / (term * label))
        found += np.where(joint > 0, part, 0.0)
    return found


def l2_logistic(task: Task, sizes: Sizes) -> tuple[Rows, dict[str, Any]]:
    """scikit-learn's l2-penalised logistic regression on the terms of largest mutual information with the label.

    Number of terms and strength by cross-validation; within it the terms are chosen on the kept rows.
    """
    from sklearn.linear_model import LogisticRegression

    def fitted(rows: NDArray[np.int64], count: int, inverse: float) -> tuple[Any, NDArray[np.int64]]:
        X, y = task.X[rows], task.y[rows]
        terms = np.sort(np.argsort(-mutual_information(X, y), kind="stable")[:count])
        return LogisticRegression(C=inverse, max_iter=300).fit(X[:, terms], y), terms

    began = time.perf_counter()
    offers = [(count, inverse) for count in sizes.chosen for inverse in sizes.inverse]
    order = np.random.default_rng(SEED + 3).permutation(len(task.y))
    losses = np.zeros(len(offers))
    for held_out in np.array_split(order, sizes.folds):
        kept = np.setdiff1d(np.arange(len(task.y)), held_out)
        for place, offer in enumerate(offers):
            model, terms = fitted(kept, *offer)
            scores = model.decision_function(task.X[held_out][:, terms])
            losses[place] += float(np.mean(np.logaddexp(0.0, -task.y[held_out] * scores)))
    choosing = time.perf_counter() - began
    began = time.perf_counter()
    count, inverse = offers[int(np.argmin(losses))]
    model, terms = fitted(np.arange(len(task.y)), count, inverse)
    seconds = time.perf_counter() - began
    train = np.logaddexp(0.0, -task.y * model.decision_function(task.X[:, terms]))
    scores = model.decision_function(task.X_test[:, terms])
    return Rows(), {
        "corpus": task.corpus,
        "topic": task.topic,
        "method": L2,
        "train_loss": float(train.mean()),
        "test_loss": float(task.losses(scores).mean()),
        "test_error": float(np.mean(np.where(scores > 0, 1, -1) != task.y_test)),
        "features": count,
        "strength": 1.0 / inverse,
        "seconds": seconds,
        "choosing": choosing,
    }


LEARNERS = (l1_boosting, smooth_boosting, l2_logistic)


# ---- the run -------------------------------------------------------------------------------------------------------


def run(context: Context) -> Report:
    """Measure the learners on both corpora."""
    sizes = QUICK if context.quick else Sizes()
    curves, results, corpora = Rows(), Rows(), []
    for load in CORPORA:
        with context.stage("reading"):
            corpus = load(sizes)
        corpora.append(
            {
                "corpus": corpus.name,
                "train": corpus.X.shape[0],
                "test": corpus.X_test.shape[0],
                "terms": corpus.X.shape[1],
                "weakest": sizes.eps.get(corpus.name, WEAKEST),
                "topics": ", ".join(
                    f"{topic} ({100 * share:.0f} %)"
                    for topic, share in zip(corpus.topics, (corpus.Y > 0).mean(axis=0).tolist(), strict=True)
                ),
            }
        )
        jobs = [partial(learner, task, sizes) for task in tasks(corpus) for learner in LEARNERS]
        with context.stage(corpus.name), warnings.catch_warnings():
            # filters of warnings are not a thread's own: this one holds for all of them
            warnings.simplefilter("ignore", dboost.ConvergenceWarning)
            for rounds, found in in_parallel(jobs):
                curves += rounds
                results += Rows([found])
                context.say(_sentence(found))
    tables = {"curves": curves, "results": results, "corpora": Rows(corpora)}
    return Report(
        "Topics: when induction stops, and overfitting",
        "Newswire (Reuters-21578) and abstracts (arXiv), the four largest topics of each against the rest. Does "
        "l1-penalised boosting stop inducing features by itself, and does smooth-l1 boosting overfit?",
        CLAIMS,
        protocol(sizes, tables["corpora"]),
        differences(sizes),
        tables,
        FIGURES,
        findings(results),
    )


def _sentence(found: dict[str, Any]) -> str:
    return (
        f"{found['corpus']} {found['topic']}: {found['method']}: train {found['train_loss']:.4f}, test "
        f"{found['test_loss']:.4f}, {found['features']} features, {found['seconds']:.1f} s + {found['choosing']:.1f} s"
    )
