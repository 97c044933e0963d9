"""Pieces of HTML for notebooks: tables, bars and the style around them.

Covers: what estimators, tables and data sets share when a notebook shows them. Does not cover: what they say.

A notebook may be light or dark, may run no scripts, and removes style sheets from pages it does not trust. So text has
the colour of what is around it, colours behind it are half transparent, and all of it can be read without either.
Every text comes from users, names and labels among them, and is escaped here and nowhere else.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["Cell", "Left", "bar", "block", "escape", "lines", "pre", "shaded", "signed_bar", "table", "words"]

_STYLE = """
.dboost{color:inherit;font-size:13px;line-height:1.5;margin:.4em 0;max-width:100%;overflow-x:auto}
.dboost table{border-collapse:collapse;margin:.3em 0;border:0;font-size:inherit}
.dboost tr,.dboost thead,.dboost tbody{background:none!important;border:0}
.dboost th,.dboost td{color:inherit;padding:.1em .7em;text-align:right;border:0;vertical-align:middle;
border-bottom:1px solid rgba(128,128,128,.3);white-space:nowrap;font-variant-numeric:tabular-nums}
.dboost thead th{font-weight:600;border-bottom:1px solid rgba(128,128,128,.8);max-width:12em;overflow:hidden;
text-overflow:ellipsis;vertical-align:bottom}
.dboost tbody th{font-weight:normal;max-width:28em;overflow:hidden;text-overflow:ellipsis}
.dboost pre{color:inherit;background:none;margin:0;padding:0;white-space:pre-wrap}
.dboost p{margin:0}
.dboost tbody th,.dboost .dboost-left{text-align:left!important}
"""
# Blue speaks for a class and orange against it, here, in plots and on pages; what has no side is grey. The two are told
# apart with any colour vision (Okabe and Ito, 2008).
FOR, AGAINST, _NEUTRAL = "0,114,178", "213,94,0", "128,128,128"


class Cell(str):
    """A cell of a table that is HTML already."""


class Left(Cell):
    """A cell that begins on its left, and so does the heading above."""


def escape(text: object) -> str:
    """Any text as HTML."""
    return html.escape(str(text), quote=True)


def block(*parts: str) -> str:
    """Pieces of HTML under one another, with the style of all."""
    return f"<div class='dboost'><style>{_STYLE}</style>{''.join(parts)}</div>"


def pre(text: str) -> str:
    """Text with its spaces."""
    return f"<pre>{escape(text)}</pre>"


def lines(texts: Iterable[str]) -> str:
    """Sentences, one a line."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def shaded(weight: float, scale: float) -> Cell:
    """A weight over a colour that says its sign and size; empty for zero."""
    if weight == 0.0:
        return Cell("<td></td>")
    strength = 0.08 + 0.52 * min(1.0, abs(weight) / scale)
    colour = FOR if weight > 0 else AGAINST
    return Cell(f"<td style='background:rgba({colour},{strength:.2f})' title='{weight:+.6g}'>{weight:+.2g}</td>")


def words(text: str) -> Left:
    """A cell of words, which are not numbers to be held against those below."""
    return Left(f"<td class='dboost-left'>{escape(text)}</td>")


def bar(share: float, text: str) -> Left:
    """Text over a bar that is a share of the cell long."""
    end = f"{100.0 * min(1.0, max(0.0, share)):.0f}%"
    fill = f"linear-gradient(to right,rgba({_NEUTRAL},.3) {end},transparent {end})"
    return Left(f"<td class='dboost-left' style='min-width:9em;background:{fill}'>{escape(text)}</td>")


def signed_bar(part: float, scale: float) -> Left:
    """A number, and beside it a bar from one middle: to the right where it speaks for, to the left against."""
    middle, longest = 70.0, 30.0
    size = longest * min(1.0, abs(part) / scale) if scale > 0 else 0.0
    low, high = (middle, middle + size) if part > 0 else (middle - size, middle)
    colour = f"rgba({FOR if part > 0 else AGAINST},.55)"
    stops = f"transparent {low:.0f}%,{colour} {low:.0f}%,{colour} {high:.0f}%,transparent {high:.0f}%"
    fill = f";background:linear-gradient(to right,{stops})" if size else ""
    return Left(f"<td class='dboost-left' style='min-width:11em{fill}'>{part:+.3f}</td>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, named: bool = True) -> str:
    """A table.

    Parameters
    ----------
    head : sequence of str
        Headings; none leave the line of headings out.
    rows : sequences of str or Cell
    named : bool
        Whether the first of each row is its name.
    """
    body, left = [], {0} if named else set()
    for row in rows:
        left |= {place for place, cell in enumerate(row) if isinstance(cell, Left)}
        cells = [text if isinstance(text, Cell) else f"<td>{escape(text)}</td>" for text in row]
        if named and row and not isinstance(row[0], Cell):
            cells[0] = f"<th title='{escape(row[0])}'>{escape(row[0])}</th>"
        body.append(f"<tr>{''.join(cells)}</tr>")
    side = [" class='dboost-left'" if place in left else "" for place in range(len(head))]
    heads = "".join(f"<th{where} title='{escape(text)}'>{escape(text)}</th>" for where, text in zip(side, head))
    top = f"<thead><tr>{heads}</tr></thead>" if head else ""
    return f"<table>{top}<tbody>{''.join(body)}</tbody></table>"
