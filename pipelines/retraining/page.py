"""The page of a decision: what was decided and why, and which words came and went between the two models.

Covers: the comparison of the two models, the page. Does not cover: the decision (``retrain``).
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from ..inputs import read_model
from ..pages import both_sides, labels_of, strength

MOST = 20


def html(values: dict[str, Any], challenger: str | None, champion: str | None) -> str:
    """The page.

    `challenger, champion`: folders of models; None for one that is not there. Words are compared where there are both.
    """
    environment = Environment(
        loader=PackageLoader(__package__, "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    written = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    both = challenger is not None and champion is not None
    change = changes(read_model(challenger), read_model(champion)) if both else None
    return environment.get_template("decision.html.j2").render(values=values, written=written, change=change)


def changes(mine: Any, theirs: Any) -> dict[str, Any]:
    """Features that came and went, and for each class those that it shares with before."""
    words = mine.hypotheses.words(), theirs.hypotheses.words()
    sides = both_sides(mine), both_sides(theirs)
    sizes = [dict(zip(w, strength(W).tolist())) for w, W in zip(words, sides)]
    came = sorted(set(sizes[0]) - set(sizes[1]), key=lambda word: (-sizes[0][word], word))
    went = sorted(set(sizes[1]) - set(sizes[0]), key=lambda word: (-sizes[1][word], word))
    by_class: list[dict[str, Any]] = []
    theirs_of = {label: r for r, label in enumerate(labels_of(theirs))}
    for r, label in enumerate(labels_of(mine)):
        now = {w for w, x in zip(words[0], sides[0][:, r].tolist()) if x > 0}
        if label not in theirs_of:
            by_class.append({"label": label, "new": True, "now": len(now), "shared": 0.0})
            continue
        before = {w for w, x in zip(words[1], sides[1][:, theirs_of[label]].tolist()) if x > 0}
        shared = len(now & before) / max(len(now | before), 1)
        by_class.append({"label": label, "new": False, "now": len(now), "shared": shared})
    order = np.argsort(np.array([float(one["shared"]) for one in by_class]), kind="stable")[:MOST].tolist()
    gone = [label for label in theirs_of if label not in set(labels_of(mine))]
    return {
        "came": came[:MOST], "came_all": len(came), "went": went[:MOST], "went_all": len(went),
        "classes": [by_class[j] for j in order], "gone": gone,
    }  # fmt: skip
