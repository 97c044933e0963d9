"""Claims of the paper, and verdicts that follow from measured numbers.

Covers: ``Claim`` with its judge, ``Check`` and ``judged``, the one place where a verdict's word is chosen.
Does not cover: measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.reproduce.rows import Tables

HOLDS, PART, FAILS, OPEN = "holds", "holds in part", "does not hold", "cannot be judged"


@dataclass(frozen=True)
class Check:
    """One sentence with measured figures, and whether it agrees with the claim.

    Parameters
    ----------
    said : str
        What was measured, with the figures. It must read right whether or not the claim is met.
    met : bool or None
        None when the numbers cannot say (curves that do not overlap, too few repeats).
    """

    said: str
    met: bool | None


@dataclass(frozen=True)
class Verdict:
    """What the numbers say about a claim.

    Parameters
    ----------
    outcome : {"holds", "holds in part", "does not hold", "cannot be judged"}
    checks : tuple of Check
    """

    outcome: str
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper that a reproduction puts to the test.

    Parameters
    ----------
    name : str
        A few words.
    where : str
        Figure or passage of the paper.
    statement : str
        What the paper says, in our words.
    test : str
        What is compared, and what counts as agreement; decided before the numbers were seen.
    judge : function of the tables
        Gives the verdict from nothing but the numbers.
    """

    name: str
    where: str
    statement: str
    test: str
    judge: Callable[[Tables], Verdict]


def judged(*checks: Check) -> Verdict:
    """The verdict of some checks: holds when all that could be decided are met, in part when some are.

    Where fewer could be decided than could not, what was decided is a part of the claim only.
    """
    decided = [check.met for check in checks if check.met is not None]
    if not decided:
        outcome = OPEN
    elif all(decided) and 2 * len(decided) >= len(checks):
        outcome = HOLDS
    else:
        outcome = PART if any(decided) else FAILS
    return Verdict(outcome, tuple(checks))


def grouped(met: Sequence[bool], told: Sequence[str], before: str) -> list[Check]:
    """One check for all measurements that agree and one for those that do not.

    Parameters
    ----------
    met : sequence of bool
    told : sequence of str
        What was measured, the same length.
    before : str
        What all of them are about.
    """
    checks = []
    for wanted in (True, False):
        parts = [text for text, is_met in zip(told, met, strict=True) if is_met is wanted]
        if parts:
            checks.append(Check(f"{before} {'; '.join(parts)}", wanted))
    return checks or [Check(f"{before} nothing could be compared", None)]


def plus_minus(error: float | None, digits: int) -> str:
    """The standard error as a text to follow a mean; nothing where there is none."""
    return "" if error is None else f" ± {error:.{digits}f}"
