"""What a person should know about the labels of a data set, though each of them is valid.

Covers: labels that differ by blanks only, and classes that one file alone has.
Does not cover: labels that are refused (``labels``, ``factorise``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# So many are named in a note; the rest are counted.
_NAMED = 3


def label_notes(count: Mapping[Any, int], where: Mapping[Any, str | None]) -> tuple[str, ...]:
    """Notes on the labels found in a data set.

    `count`: Rows of each label.
    `where`: The only file with that label, or None where several have it; empty where the data is in no files, or in
    one.
    """
    return tuple(note for note in (_on_blanks(count), _on_files(count, where)) if note)


def _on_blanks(count: Mapping[Any, int]) -> str:
    alike: dict[Any, list[Any]] = {}
    for label in count:
        if isinstance(label, str | bytes):
            blank: Any = " " if isinstance(label, str) else b" "
            alike.setdefault(blank.join(label.split()), []).append(label)
    groups = [sorted(group) for group in alike.values() if len(group) > 1]
    if not groups:
        return ""
    shown = "; ".join(" and ".join(_rows(label, count) for label in group) for group in groups[:_NAMED])
    more = f"; and {len(groups) - _NAMED} more groups" if len(groups) > _NAMED else ""
    return f"labels that differ by blanks only are different classes: {shown}{more}. Strip them if they mean the same"


def _on_files(count: Mapping[Any, int], where: Mapping[Any, str | None]) -> str:
    alone = [label for label in sorted(where) if where[label] is not None]
    # Where most classes are so, the rows are sorted by class, and the files say nothing about a single one.
    if not alone or 2 * len(alone) > len(where):
        return ""
    shown = ", ".join(f"{_rows(label, count)} in {where[label]}" for label in alone[:_NAMED])
    more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
    few = f"{len(alone)} of {len(where)} classes are in one file only"
    return f"{few}: {shown}{more}. Check that they are no misspelling"


def _rows(label: Any, count: Mapping[Any, int]) -> str:
    return f"{label!r} ({count[label]} {'row' if count[label] == 1 else 'rows'})"
