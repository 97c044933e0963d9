"""Settings without meaning, alone or together, are refused before any data is read, with what to use instead.

Does not cover: parameters of the estimators (tests/estimators/test_refusals.py and those of each option).
"""

from __future__ import annotations

import re

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from dboost import Learned
from dboost.boosting.adaboost_l1 import AdaBoostL1
from dboost.boosting.checks import UPDATES
from dboost.boosting.fit import FitSettings, Fitting
from dboost.boosting.jointboost import JointBoost
from dboost.boosting.leveraging import Leveraging
from dboost.boosting.shareboost import ShareBoost
from dboost.boosting.systems import NormalisedEdges
from dboost.columns.given import PENALTY_FACTORS, ColumnGroups, Signs
from dboost.errors import UsageError
from dboost.hypotheses.columns import Columns
from dboost.hypotheses.products.family import Products
from dboost.hypotheses.stumps.family import Stumps
from dboost.losses import LOSSES
from dboost.losses.exponential import OneVsRestExponential
from dboost.penalties import L1
from dboost.solvers.row_updates import SELECTIONS, TEMPLATES
from tests.boosting import plain


class Other(L1):
    """A penalty of which nobody says that it looks at the sizes of weights alone."""

    name = "other"
    sizes_only = False


def leveraged(alpha=0.0, **own):
    system = Leveraging(**own)
    return {"alpha": alpha, "penalty": system.penalty(alpha), "system": system}


POSITIVE = Signs.given(positive=True)
FORWARD = {"update": "forward", "penalty": "none"}
GROUPS = {"penalty": "l1/l2", "column_groups": ColumnGroups.given([0, 0, 1])}
JOINT = {
    "loss": OneVsRestExponential(n_classes=3), "penalty": "none", "hypotheses": Stumps(), "system": JointBoost()
}  # fmt: skip
SHARE = {"penalty": "l2_squared", "loss": "multinomial"}
NO_CERTIFICATE = "with update='forward', which ends at no certified optimum"

REFUSED = [
    *(({"sample": value}, "sample") for value in ("all", 0.0, -0.5, 1.5, np.nan, None, True)),
    ({"penalty": "none", "alpha": 0.1}, "penalty 'none' has no strength.*alpha"),
    ({"alpha": 0.0}, "alpha is 0.*penalty='none'"),
    ({"select": "cyclic"}, "select='cyclic' chooses rows for the one-row updates"),
    ({"accelerators": ("null_sum",)}, "unknown accelerator 'null_sum'.*did you mean 'null_sums'"),
    # updates, what they have no bound for and no use for
    *(
        ({"loss": loss, "update": update, "penalty": "none"}, f"update='\\w+' needs .*{loss}.*use update='newton' or")
        for loss in LOSSES
        for update in (*UPDATES, "forward")
        if not plain.defined(loss, update)
    ),
    ({"loss": "squared", "update": "adaboost"}, "needs an exponential bound.*'newton' or 'gradboost'"),
    ({"loss": "exp", "update": "gradboost"}, "needs a bounded curvature.*'newton' or 'adaboost'"),
    ({"update": "forward", "penalty": "l1"}, "penalty='none'.*update='adaboost'"),
    (FORWARD | {"select": "cyclic"}, "select.*update='adaboost'"),
    (FORWARD | {"features_per_round": 30}, "features_per_round=30.*update='adaboost'"),
    ({"sweeps": 0, "update": "gradboost"}, "sweeps"),
    ({"sweeps": 1}, "sweeps=1 bounds the one-row updates of a round, which update 'newton' does not make"),
    (FORWARD | {"sweeps": 2}, "update 'forward' does not make"),
    ({"sweeps": 2, "update": "gradboost", "penalty": "l2_squared", "system": ShareBoost("scaled")}, "shareboost"),
    # a norm that ties all rows
    *(
        ({"penalty": "l2", "update": "gradboost", "select": select}, "no single row can leave.*select='template'")
        for select in SELECTIONS
        if select not in TEMPLATES
    ),
    ({"penalty": "l2", "features_per_round": 3}, "features_per_round.*'l2'"),
    ({"penalty": "l2", "max_features": 3}, "max_features.*'l2'"),
    # what is said of single columns
    (FORWARD | {"offset": (0,)}, NO_CERTIFICATE),
    (FORWARD | {"signs": POSITIVE}, NO_CERTIFICATE),
    ({"penalty": Other(), "signs": POSITIVE}, "'other' is not said to be one.*sizes_only"),
    (GROUPS | {"penalty": "l1"}, "'l1' is a sum over single weights, which groups change nothing of; use 'l1/l2'"),
    (GROUPS | {"penalty": "l2"}, "penalty 'l2' ties all features into one group already; use 'l1/l2'"),
    (GROUPS | {"penalty": "l2_squared"}, "penalty 'l2_squared' leaves no feature out, so that none enters with others"),
    (GROUPS | {"penalty": "l1/l2+l1"}, r"needs a norm of several rows, which penalty 'l1/l2\+l1' does not have"),
    (GROUPS | {"hypotheses": Products(max_degree=2)}, "made in the fit"),
    (GROUPS | {"update": "gradboost"}, "update='gradboost' moves one row at a time"),
    (GROUPS | {"update": "adaboost"}, "update='adaboost' moves one row at a time"),
    (GROUPS | {"features_per_round": 5}, "features_per_round=5 is about single rows"),
    (GROUPS | {"max_features": 5}, "max_features=5 is about single rows"),
    (GROUPS | {"sweeps": 2}, "sweeps=2"),
    (GROUPS | {"sample": 0.5}, "sample=0.5"),
    # systems of their own
    ({"loss": "exp", "penalty": NormalisedEdges(), "fit_intercept": False, "system": AdaBoostL1(1.5)}, "nu=1.5"),
    ({"loss": "exp", "penalty": "l1", "system": AdaBoostL1()}, "AdaBoostL1Classifier"),
    (SHARE | {"system": ShareBoost(corrective="fista")}, "corrective='fista'.*expected one of 'newton', 'nesterov'"),
    (SHARE | {"system": ShareBoost("row", "all")}, "shortlist='all'.*expected an integer >= 1, or None"),
    (leveraged(norm="linf"), "norm='linf'.*expected one of 'l1', 'l2'"),
    (leveraged(0.01, norm="l2"), "Algorithm 2 moves one hypothesis at a time"),
    (leveraged(norm="l2") | {"hypotheses": Learned(DecisionTreeClassifier(max_depth=1))}, "gives one at a time"),
    (leveraged(step=0.1, bounds=(0.0, 1.0)), "bounds need norm='l1', step='exact'"),
    (leveraged(norm="l2", bounds=(0.0, 1.0)), "bounds need norm='l1', step='exact'"),
    (leveraged(0.1) | {"penalty_factors": PENALTY_FACTORS.read([0.0, 1.0])}, "solves for the rows it chooses"),
    (JOINT | {"system": JointBoost("all")}, "search='all'.*expected one of 'greedy', 'exhaustive'"),
    (JOINT | {"hypotheses": None}, "JointBoost: hypotheses="),
    (JOINT | {"hypotheses": Stumps(signed=True)}, "JointBoost: hypotheses="),
    (JOINT | {"hypotheses": Columns() | Stumps()}, "JointBoost: hypotheses="),
    (JOINT | {"fit_intercept": False}, "JointBoost has no penalty"),
]


class NoData:
    """A plan and an engine that may not be touched."""

    def __getattr__(self, name):
        raise AssertionError(f"read {name} before the settings were checked")


def refusal(settings):
    try:
        Fitting(NoData(), NoData(), FitSettings(**{"loss": "log"} | settings))
    except (UsageError, AssertionError) as fault:
        return str(fault)


def test_settings_without_meaning_are_refused_before_any_data_is_read():
    found = [(settings, said, refusal(settings)) for settings, said in REFUSED]
    assert not [one for one in found if not re.search(one[1], one[2])]
