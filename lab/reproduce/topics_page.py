"""Claims, figure and words of ``topics``."""

from __future__ import annotations

from typing import Any

import numpy as np

from lab.reproduce import figures
from lab.reproduce.base import Figure
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.rows import Rows, Tables, mean_and_error

L1, SMOOTH, L2 = "l1 boosting", "smooth-l1 boosting", "l2 on mutual information"
# "around iteration 30" and "about 700 features": within a factor of two
ROUND, FEATURES, FACTOR = 30, 700, 2.0
EARLY = 200
LOOKS = {L1: (figures.VERMILION, "-"), SMOOTH: (figures.GREEN, "-."), L2: (figures.BLACK, ":")}


def near(value: float, wanted: float) -> bool:
    """Within a factor of `FACTOR`."""
    return wanted / FACTOR <= value <= wanted * FACTOR


def judge_stop(tables: Tables) -> Verdict:
    """Induction ends by itself, about where the paper says."""
    mine = tables["results"].where(method=L1)
    ended = sum(record["induction_ended"] < record["rounds"] and record["stop"] == "tol" for record in mine)
    checks = [Check(f"{ended} of {len(mine)} fits end certified, with a last round in which nothing enters",
                    ended == len(mine))]  # fmt: skip
    for corpus in mine.values("corpus"):
        part = mine.where(corpus=corpus)
        rounds, features = part.column("induction_ended"), part.column("features")
        middle, held = float(rounds.mean()), float(features.mean())
        checks.append(
            Check(
                f"{corpus}: the last feature enters in round {middle:.0f} on average ({rounds.min():.0f} to "
                f"{rounds.max():.0f}), the paper says around {ROUND}",
                near(middle, ROUND),
            )
        )
        checks.append(
            Check(
                f"{corpus}: {held:.0f} nonzero features on average ({features.min():.0f} to {features.max():.0f}), the "
                f"paper says about {FEATURES}",
                near(held, FEATURES),
            )
        )
    return judged(*checks)


def judge_adding(tables: Tables) -> Verdict:
    """The smooth booster never stops adding."""
    mine = tables["results"].where(method=SMOOTH)
    full = sum(record["features"] == record["rounds"] for record in mine)
    at_limit = sum(record["stop"] == "max_rounds" for record in mine)
    most = int(np.max(mine.column("rounds")))
    return judged(
        Check(f"{full} of {len(mine)} fits hold a feature for every round", full == len(mine)),
        Check(f"{at_limit} of {len(mine)} fits go on to the limit of {most:,} rounds", at_limit == len(mine)),
    )


def judge_overfit(tables: Tables) -> Verdict:
    """Its test loss rises again while its training loss falls."""
    checks = []
    for record in tables["results"].where(method=SMOOTH):
        rise, error = record["rise"], record["rise_se"]
        said = (
            f"{record['corpus']} {record['topic']}: lowest test loss {record['best_test_loss']:.4f} in round "
            f"{record['best_round']}, {record['test_loss']:.4f} in round {record['rounds']} (rise {rise:.4f}, standard "
            f"error {error:.4f}; training loss fell by {record['train_fall']:.4f})"
        )
        clear = rise > 2.0 * error and record["train_fall"] > 0.0
        checks.append(Check(said, clear and record["best_round"] <= FACTOR * EARLY))
    return judged(*checks)


CLAIMS = (
    Claim(
        "induction stops by itself",
        "Fig. 4 and its text",
        f"The l1 booster ceases to add features around round {ROUND}, with about {FEATURES} nonzero ones.",
        "All fits end certified after a round in which nothing enters; per corpus, the mean round of the last entry "
        f"and the mean number of features are within a factor of {FACTOR:g} of the paper's.",
        judge_stop,
    ),
    Claim(
        "smooth l1 keeps adding",
        "Fig. 4 and its text",
        "The smooth-l1 booster keeps adding features.",
        "Every fit adds one feature in every round, up to the limit of rounds.",
        judge_adding,
    ),
    Claim(
        "smooth l1 overfits",
        "Fig. 4 and its text",
        f"The smooth-l1 booster starts overfitting to the training set as early as round {EARLY}.",
        "Per topic: the test loss of the last round is above the lowest by more than two standard errors (paired over "
        f"the test documents), the lowest comes by round {EARLY * FACTOR:g}, and the training loss fell on.",
        judge_overfit,
    ),
)


# ---- figure --------------------------------------------------------------------------------------------------------


def draw(tables: Tables) -> Any:
    """One panel per topic: test loss by round; the training loss of the smooth booster thin."""
    curves, results = tables["curves"], tables["results"]
    pairs = list(dict.fromkeys((r["corpus"], r["topic"]) for r in curves))
    figure, axes = figures.panels(max(1, -(-len(pairs) // 2)), 2, width=3.9, height=3.3)
    last = float(np.max(curves.column("round")))
    for axis, (corpus, topic) in zip(axes, pairs, strict=False):
        mine = curves.where(corpus=corpus, topic=topic)
        done = results.where(corpus=corpus, topic=topic)
        for method in (L1, SMOOTH):
            colour, dash = LOOKS[method]
            part = mine.where(method=method)
            axis.plot(part.column("round"), part.column("test_loss"), color=colour, linestyle=dash, label=method)
            if method == SMOOTH:
                axis.plot(
                    part.column("round"), part.column("train_loss"), color=colour, linewidth=0.8, alpha=0.7,
                    label=f"{method}, training",
                )  # fmt: skip
        end = done.where(method=L1)[0]
        level = end["test_loss"]
        axis.plot([end["rounds"]], [level], marker="*", markersize=11, color=LOOKS[L1][0])
        axis.plot([end["rounds"], last], [level, level], color=LOOKS[L1][0], linestyle=":", linewidth=1.2)
        other = done.where(method=L2)[0]["test_loss"]
        axis.axhline(other, color=LOOKS[L2][0], linestyle=LOOKS[L2][1], linewidth=1.2, label=L2)
        smooth = done.where(method=SMOOTH)[0]
        lowest = min(level, other, smooth["train_loss"], smooth["best_test_loss"])
        highest = max(level, other, smooth["test_loss"])
        axis.set_xlim(0, last)
        axis.set_ylim(max(0.0, lowest - 0.15 * highest), 1.9 * highest)
        figures.label(axis, "boosting round", "logistic loss", f"{corpus}: {topic}")
    figures.legend(axes[0])
    for axis in axes[len(pairs) :]:
        axis.set_visible(False)
    return figure


FIGURES = (
    Figure(
        "topics-fig4",
        "Beside Fig. 4: mean logistic loss of the test documents by boosting round, one topic against the rest in each "
        "panel. A star where l1 boosting ends, dotted its loss from there on; thin the training loss of smooth-l1 "
        "boosting; a level line for l2-penalised logistic regression.",
        draw,
    ),
)


# ---- words ---------------------------------------------------------------------------------------------------------


def protocol(sizes: Any, corpora: Rows) -> tuple[str, ...]:
    """What was done."""
    sets = [
        f"{r['corpus']}: {r['train']:,} training and {r['test']:,} test documents drawn at random, {r['terms']:,} "
        f"terms that occur in {sizes.min_df} training documents or more; topics {r['topics']}."
        for r in corpora
    ]
    return (
        *sets,
        "Rows are tf-idf of unit length, as `dboost prepare` makes them. Each topic is one binary problem against the "
        "rest; a document may belong to several.",
        f"l1 boosting: up to 30 features a round, then all weights again, to a certified gap of 1e-3; strength by "
        f"{sizes.folds}-fold cross-validation of the logistic loss among {sizes.n_alphas} from alpha_max to "
        f"{' or '.join(str(r['weakest']) + ' of it (' + r['corpus'] + ')' for r in corpora)}.",
        f"Smooth-l1 boosting: {sizes.smooth_rounds:,} rounds of one feature, all weights again after each; strength "
        f"among {', '.join(f'{s:g}' for s in sizes.smooth)} by the lowest loss in {sizes.trial_rounds} rounds on one "
        "held-out fold.",
        f"l2-penalised logistic regression (scikit-learn) on the {' or '.join(map(str, sizes.chosen))} terms whose "
        f"presence has the largest mutual information with the topic; number and strength (C of "
        f"{', '.join(f'{c:g}' for c in sizes.inverse)}) by {sizes.folds}-fold cross-validation.",
    )


def differences(sizes: Any) -> tuple[str, ...]:
    """What is not as in the paper."""
    return (
        "RCV1 cannot be redistributed; Reuters-21578 and arXiv abstracts stand in. Their topics are single subjects, "
        "not the four roots of a tree of subjects.",
        "Reuters has 12,902 documents with known topics, fewer than 30,000.",
        "The paper's weighting of terms and its number of repeats are not told; ours are tf-idf and one split.",
        "l1 boosting solves with second-order steps and begins at a larger strength that falls by half each round to "
        "the final one; rounds on the way may add fewer than 30 features. Its optimum is that of the paper's updates.",
        "The strength of smooth-l1 boosting is chosen on one fold and fewer rounds, for time.",
    )


def findings(results: Rows) -> tuple[str, ...]:
    """How the test losses compare, and whether the strengths on offer were enough."""
    said = []
    for corpus in results.values("corpus"):
        part = results.where(corpus=corpus)
        means = {m: mean_and_error(part.where(method=m).column("test_loss").tolist())[0] for m in (L1, SMOOTH, L2)}
        best = mean_and_error(part.where(method=SMOOTH).column("best_test_loss").tolist())[0]
        said.append(
            f"{corpus}, mean test loss of the four topics: l1 boosting {means[L1]:.4f}, smooth-l1 boosting "
            f"{means[SMOOTH]:.4f} in the last round and {best:.4f} in its best (chosen on the test documents), "
            f"{L2} {means[L2]:.4f}."
        )
    edges = [bool(record["at_edge"]) for record in results.where(method=L1)]
    said.append(f"Cross-validation took the weakest strength on offer in {sum(edges)} of {len(edges)} problems.")
    return tuple(said)
