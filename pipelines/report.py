"""One page, twice: Markdown for a file, rich renderables for a terminal or log.

Covers: headings, paragraphs, tables, commands. Does not cover: what is on the page (``demo``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.padding import Padding
from rich.text import Text

from .fitting_table import LEAST_WORDS, FittingTable


@dataclass(frozen=True)
class Heading:
    """A title of the page or of a part of it."""

    text: str
    level: int = 2

    def markdown(self) -> str:
        """The heading in Markdown."""
        return f"{'#' * self.level} {self.text}"

    def renderable(self) -> Any:
        """The heading for a terminal."""
        mark = "=" if self.level == 1 else "-"
        return Text(f"\n{self.text}\n{mark * len(self.text)}", style="bold")


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    text: str

    def markdown(self) -> str:
        """The sentences in Markdown, which gives no character a meaning that the text did not."""
        return escape(self.text)

    def renderable(self) -> Any:
        """The sentences for a terminal."""
        return Text(self.text)


@dataclass(frozen=True)
class Grid:
    """A table."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: frozenset[int] = frozenset({0})  # columns that are aligned to the left; numbers are aligned to the right
    widest: dict[int, int] = field(default_factory=dict)  # columns that are cut at so many characters on a terminal
    code: frozenset[int] = frozenset()  # columns set in a fixed width in Markdown, such as maps
    # Columns whose cells go on in the next line on a terminal, where they are too wide.
    sentences: frozenset[int] = frozenset()

    def markdown(self) -> str:
        """A pipe table."""
        lines = [self._line([escape(heading) for heading in self.headings])]
        lines.append(self._line(["---" if j in self.left else "---:" for j in range(len(self.headings))]))
        for row in self.rows:
            lines.append(self._line([f"`{c}`" if j in self.code and c else escape(c) for j, c in enumerate(row)]))
        return "\n".join(lines)

    @staticmethod
    def _line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    def renderable(self) -> Any:
        """A table without rules, which a log keeps readable."""
        table = FittingTable()
        for j, heading in enumerate(self.headings):
            # Numbers and maps are whole or of no use; words may be cut.
            words = j in self.left - self.code
            table.add_column(
                heading,
                right=j not in self.left,
                least=LEAST_WORDS if words else None,
                widest=self.widest.get(j),
                sentence=j in self.sentences,
            )
        for row in self.rows:
            table.add_row(*row)
        return table


@dataclass(frozen=True)
class Commands:
    """Lines to type, with what each does."""

    lines: list[tuple[str, str]]

    def markdown(self) -> str:
        """A code block."""
        width = max(len(command) for command, _ in self.lines)
        return "\n".join(["```", *(f"{command.ljust(width)}  # {what}" for command, what in self.lines), "```"])

    def renderable(self) -> Any:
        """One command a line, what it does above it where both do not fit beside each other."""
        text = Text()
        for command, what in self.lines:
            text.append(f"{what}:\n", style="dim").append(f"  {command}\n")
        return Padding(text, (0, 0, 0, 2))


Block = Heading | Paragraph | Grid | Commands


def to_markdown(blocks: Sequence[Block]) -> str:
    """The page as a Markdown document."""
    return "\n\n".join(block.markdown() for block in blocks) + "\n"


def to_rich(blocks: Sequence[Block]) -> list[Any]:
    """The page for a terminal or a log."""
    return [block.renderable() for block in blocks]


def escape(text: str) -> str:
    """Text in which Markdown finds no markup of its own."""
    for mark in ("\\", "|", "*", "_", "`", "<", "["):
        text = text.replace(mark, "\\" + mark)
    return text
