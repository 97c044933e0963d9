"""A table that fits the width there is without splitting a word or losing a column of numbers.

Where a table is too wide, its headings break at their spaces first, then columns of words are cut with an ellipsis down
to a least width, then the gaps between columns shrink, and at last columns that may be left out are left out. A number
is whole or of no use: such columns are never cut. (rich by itself folds words within a narrow column, and shrinks the
columns that must not be folded until one of them is gone.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

# Blanks between two columns, and where there is no room for them.
GAP, NARROW_GAP = 2, 1
# Characters of a name that are still of use where a terminal is narrow.
LEAST_WORDS = 10


@dataclass(frozen=True)
class Column:
    """A column."""

    heading: str
    right: bool = False  # aligned to the right
    least: int | None = None  # characters down to which it may be cut; None for a column that is whole or of no use
    widest: int | None = None  # characters beyond which it is always cut
    drop: int = 0  # columns above 0 may be left out, those of the largest number first
    cells: tuple[str, ...] = ()

    def natural(self, *, folded: bool) -> int:
        """Width at which nothing is cut; with `folded`, the heading may break at its spaces."""
        heading = max(map(cell_len, self.heading.split(" "))) if folded else cell_len(self.heading)
        found = max([heading, *map(cell_len, self.cells)])
        return found if self.widest is None else min(found, self.widest)

    def narrowest(self) -> int:
        """Width down to which it may be cut."""
        whole = self.natural(folded=True)
        return whole if self.least is None else min(self.least, whole)


class FittingTable:
    """Columns and rows, laid out when the width is known."""

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
        cells = list(zip(*rows)) or [()] * len(columns)
        self.columns = [replace(column, cells=given) for column, given in zip(columns, cells, strict=True)]

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Table]:
        yield self.fitted(options.max_width)

    def __rich_measure__(self, console: Any, options: Any) -> Measurement:
        widths = [column.natural(folded=False) for column in self.columns]
        return Measurement(1, min(options.max_width, sum(widths) + GAP * (len(widths) - 1)))

    def fitted(self, width: int) -> Table:
        """The table at a width."""
        shown, widths, gap = layout(self.columns, width)
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        for column, wide in zip(shown, widths, strict=True):
            how: Any = {"justify": "right" if column.right else "left", "width": wide}
            table.add_column(Text(folded(column.heading, wide)), no_wrap=True, overflow="ellipsis", **how)
        for row in zip(*(column.cells for column in shown), strict=True):
            table.add_row(*map(Text, row))
        return table


def layout(columns: Sequence[Column], width: int) -> tuple[list[Column], list[int], int]:
    """The columns that are shown at a width, the width of each, and the gap between them."""
    shown = list(columns)
    for fold in (False, True):
        widths = [column.natural(folded=fold) for column in shown]
        if sum(widths) + GAP * (len(shown) - 1) <= width:
            return shown, widths, GAP
    while True:
        for gap in (GAP, NARROW_GAP):
            widths = cut(shown, width - gap * (len(shown) - 1))
            if sum(widths) + gap * (len(shown) - 1) <= width:
                return shown, widths, gap
        spare = max(shown, key=lambda column: column.drop)
        if spare.drop == 0:
            return shown, widths, NARROW_GAP
        shown.remove(spare)


def cut(columns: Sequence[Column], room: int) -> list[int]:
    """Widths of columns in some room: the widest that may be cut is cut first, as far as it may."""
    widths = [column.natural(folded=True) for column in columns]
    while sum(widths) > room:
        free = [j for j, column in enumerate(columns) if widths[j] > column.narrowest()]
        if not free:
            break
        widths[max(free, key=lambda j: widths[j])] -= 1
    return widths


def folded(heading: str, width: int) -> str:
    """A heading with line breaks in place of spaces where it is wider than its column."""
    lines: list[str] = []
    for word in heading.split(" "):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def grid(
    headings: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,), widest: int | None = None
) -> FittingTable:
    """A table of these rows; columns of `left` are words, which may be cut, and others are numbers."""
    words: dict[str, Any] = {"least": LEAST_WORDS, "widest": widest}
    columns = [Column(heading, **(words if j in left else {"right": True})) for j, heading in enumerate(headings)]
    return FittingTable(columns, rows)
