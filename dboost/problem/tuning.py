"""Sizes from which on an accelerator pays, as measured; a fit has them in ``FitSettings.tuning``.

They decide how fast a fit gets to its optimum and change neither the optimum nor its certificate. They are fields, not
constants, so that a small problem can be made to go the way of a large one.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Samples:
    """How many examples tell the curvature of a Newton step (``sample``)."""

    # tiny, small: The sample is everything while the margins are at most `tiny` numbers, and from a gap of `far` on
    # `small`.
    tiny: int = 100_000
    small: int = 1_000_000
    far: float = 0.7
    # Only where the values a sweep goes over, each for all outputs, are at most that many.
    small_sweep: int = 10_000_000
    # examples_per_row, values_per_row: A row of W asks for so many examples, and for fewer where so many values of its
    # column are among fewer.
    examples_per_row: float = 20
    values_per_row: float = 750
    share: float = 0.1  # Of all examples, at least.
    # A sample of a larger share saves little, and its steps never come to square what is left: it is made whole.
    mostly: float = 0.5
    # part, most_parts: Margins in one part for threads, and the most parts.
    part: int = 100_000
    most_parts: int = 8


@dataclass(frozen=True)
class Blocks:
    """How much curvature is formed to precondition conjugate gradients (``precondition``)."""

    heavy: int = 32  # Rows of a block.
    # wide, products: Where many rows are taken: numbers in the blocks of all outputs, and how many products with the
    # curvature it may cost to form them.
    wide: float = 2e6
    products: float = 15.0
    # examples, for_a_row: Examples that blocks are summed over: in all, and for each row of a block.
    examples: int = 2048
    for_a_row: int = 8

    def looked_at(self, t: int) -> int:
        """Examples that blocks of `t` rows are summed over."""
        return max(self.examples, self.for_a_row * t)


@dataclass(frozen=True)
class AllRows:
    """How much curvature is formed to precondition steps on all rows of a smooth penalty (``smooth``)."""

    numbers: float = 2e6  # In the blocks of all outputs.
    factors: float = 1e9  # Multiplications that factoring them may take.
    work: float = 1e9  # Multiplications that the sums may take, where that is enough examples for their size:
    examples: float = 10.0  # for each of the rows so many.


@dataclass(frozen=True)
class Groups:
    """When the curvature among groups of columns is formed (``group_curvature``)."""

    entries: int = 1000  # Entries of the model, at most: the table has their square, a million numbers.
    # Multiplications that the table takes, at most: about four seconds on one core. Hundreds of gradient steps over so
    # many columns take less than a few of such tables.
    work: float = 4e9


@dataclass(frozen=True)
class Tuning:
    """All of them."""

    samples: Samples = field(default_factory=Samples)
    blocks: Blocks = field(default_factory=Blocks)
    all_rows: AllRows = field(default_factory=AllRows)
    groups: Groups = field(default_factory=Groups)
