"""Fig. 5, left: house values in Boston from products of the 13 columns."""

from __future__ import annotations

import time
from dataclasses import replace

import dboost
from lab.datasets import boston
from lab.reproduce.base import Context, Report
from lab.reproduce.regression import degree, study_tables
from lab.reproduce.regression_page import claims, differences, page_figures, protocol
from lab.reproduce.regression_parts import Study, booster, quietly
from lab.reproduce.rows import Rows

STUDY = Study(
    name="housing",
    table=boston.table,
    unit=1.0,
    unit_name="1,000 dollars",
    epsilon=1.0,
    test_share=0.2,
    splits=3,
    # half of the unit interval: the powers of the columns that are 1 in many rows fade, so that the search ends
    family=dboost.Products(scale="range", decay=0.5, max_opened=50_000),
    bounded=dboost.Products(scale="range", max_degree=3),
    ratios=(0.1, 0.05, 0.025, 0.0125, 0.006, 0.003, 0.0015),
    smooth=(1e-4, 1e-3, 1e-2),
    smooth_rounds=200,
    folds=3,
)
SHARES = (0.1, 0.03, 0.01)
CLAIMS = claims()
FIGURES = page_figures(STUDY)


def run(context: Context) -> Report:
    """Measure the five learners, and certify fits against every monomial."""
    study: Study = STUDY
    shares: tuple[float, ...] = SHARES
    if context.quick:
        study = replace(
            STUDY, splits=2, ratios=STUDY.ratios[1:3], smooth=STUDY.smooth[1:2], forward_rounds=1000,
            unbounded_rounds=60, smooth_rounds=40, trial_rounds=20,
        )  # fmt: skip
        shares = SHARES[:2]
    tables = study_tables(study, context)
    with context.stage("certificates"):
        tables["certificates"] = certificates(study, shares, tol=1e-4)
    return Report(
        "Housing: products of columns under the eps-insensitive loss",
        "Values of 506 homes in the suburbs of Boston from 13 columns. Does l1-penalised boosting over all products "
        "stop by itself with few of them, and how do classical AdaBoost, smooth-l1 boosting and linear models compare?",
        CLAIMS,
        protocol(study, 506, 13),
        differences(study),
        tables,
        FIGURES,
        findings(tables),
    )


def certificates(study: Study, shares: tuple[float, ...], tol: float) -> Rows:
    """Fits to all rows, each certified against every monomial: the gap, and the subtrees opened for it."""
    X, y, _ = study.table()
    y = y / study.unit
    found = []
    for share in shares:
        first = quietly(booster(study, penalty="l1", alpha=1e6, tol=tol).fit, X, y)
        alpha = share * first.alpha_max_
        began = time.perf_counter()
        model = booster(study, penalty="l1", alpha=alpha, tol=tol, rows_per_round=30, max_rounds=100)
        quietly(model.fit, X, y)
        found.append(
            {
                "share_of_alpha_max": share,
                "alpha": alpha,
                "gap": float(model.duality_gap_),
                "stop": str(model.stop_reason_),
                "subtrees_last": max(int(record.get("subtrees") or 0) for record in model.history_),
                "subtrees": sum(int(record.get("subtrees") or 0) for record in model.history_),
                "features": len(model.active_features_),
                "degree": degree(model),
                "rounds": int(model.n_iter_),
                "seconds": time.perf_counter() - began,
            }
        )
    return Rows(found)


def findings(tables: dict[str, Rows]) -> tuple[str, ...]:
    """What the certificates say, and whether the strengths on offer were enough."""
    said = [
        f"Certified against every monomial of every degree, on all rows: at {100 * r['share_of_alpha_max']:g} % of "
        f"alpha_max the gap is {r['gap']:.1e} ({r['stop']}) with {r['features']} features of degree up to "
        f"{r['degree']}; the last certificate opened {r['subtrees_last']:,} subtrees, all of the fit "
        f"{r['subtrees']:,}, in {r['seconds']:.1f} s."
        for r in tables["certificates"]
    ]
    return (*said, edge_sentence(tables["results"]))


def edge_sentence(results: Rows) -> str:
    """How often cross-validation took the weakest strength on offer."""
    edges = [bool(record["at_edge"]) for record in results.where(method="l1 boosting")]
    gaps = results.where(method="l1 boosting").column("gap")
    return (
        f"Cross-validation took the weakest strength on offer in {sum(edges)} of {len(edges)} splits. The final fits "
        f"of l1 boosting reached certified gaps up to {gaps.max():.1e}."
    )
