"""Labels and weights: the global class set, encodings, class weights.

Covers: what a scan of each block reports (``LabelStats``), merging the reports, the frozen recipe (``LabelCoder``) that
turns the labels of any block into the arrays of a ``Partition``, one label against all others, and what a person should
know of labels that are valid.
Does not cover: how labels are read from files (``parquet``) or cut into blocks (``memory``).

Conventions, global over the data:

- ``"binary"``: int8 (m, 1), -1 for the first class in sort order, +1 for the second.
- ``"multiclass"``: int32 (m,) codes into the sorted classes.
- ``"multitask"``: int8 (m, k). Labels are {0, 1}, {-1, +1} or booleans; NaN, None and null are missing labels (code 0).
  Data that holds both 0 and -1 is refused, because 0 could then be a label or a missing one.
  Labels may also be lists of tags: a task for each tag.
- ``"regression"``: float64 (m,), finite.
- ``"multitarget"``: float64 (m, k), NaN where a target is missing.

Rows of weight 0 leave no trace: they are dropped before classes are counted, so that a weight of 0 equals absence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.labels.factorise import Factorised, factorise, is_arrow, mixed_kinds, tallies
from dboost.data.labels.tags import MOST, TAGS, are_tags, count_tags, tag_signs
from dboost.data.labels.targets import many_targets, regression_targets, task_labels, task_values
from dboost.data.ranges import check_sum, check_target, scaled, weight_exponent
from dboost.errors import DataError, UsageError, type_name
from dboost.partition import NUMBERS

_SHOWN = 5
# More classes than these, of which most have one row, are no classes.
_MANY = 1_000


@dataclass
class LabelStats:
    """What one block, or several, say about labels and weights."""

    n_rows: int = 0  # n_rows, n_kept: Rows, and rows of positive weight.
    n_kept: int = 0
    kind: str = "none"  # Kind of the labels (see ``factorise``); ``"none"`` while no label was seen.
    weight: dict[Any, float] = field(default_factory=dict)  # Sum of the sample weights of each label.
    count: dict[Any, int] = field(default_factory=dict)
    # (k, 4): Multitask, where labels are no lists of tags: rows with label -1, 0, +1 and missing,
    # per task; several targets: 0, 0, observed and missing.
    tasks: NDArray[np.int64] | None = None
    sum_weight: float = 0.0
    dtype: str = ""  # NumPy type of the labels, wide enough for all blocks; ``"|O"`` for Python objects.
    # largest_weight, largest_target: The largest sample weight, and for regression the largest size of a target among
    # rows of positive weight.
    largest_weight: float = 0.0
    largest_target: float = 0.0
    # The only file with that label, None where there are several; empty where labels are not in files.
    where: dict[Any, str | None] = field(default_factory=dict)

    def merge(self, right: LabelStats) -> LabelStats:
        """Absorb the report of the next block, in place, and return self."""
        if "none" not in (self.kind, right.kind) and self.kind != right.kind:
            raise mixed_kinds(sorted({self.kind, right.kind}))
        if self.kind == "none":
            self.kind, self.dtype = right.kind, right.dtype
        elif right.kind != "none":
            joint = np.promote_types(self.dtype, right.dtype)
            self.dtype = joint.str if joint.kind in (np.dtype(self.dtype).kind, np.dtype(right.dtype).kind) else "|O"
        self.n_rows += right.n_rows
        self.n_kept += right.n_kept
        self.sum_weight += right.sum_weight
        self.largest_weight = max(self.largest_weight, right.largest_weight)
        self.largest_target = max(self.largest_target, right.largest_target)
        for label, value in right.weight.items():
            self.weight[label] = self.weight.get(label, 0.0) + value
            self.count[label] = self.count.get(label, 0) + right.count[label]
        for label, file in right.where.items():
            self.where[label] = file if self.where.get(label, file) == file else None
        if right.tasks is not None:
            if self.tasks is None:
                self.tasks = np.zeros_like(right.tasks)
            if self.tasks.shape != right.tasks.shape:
                raise DataError(
                    f"labels of {right.tasks.shape[0]} tasks after labels of {self.tasks.shape[0]} tasks",
                    hint="every partition needs the same label columns",
                )
            self.tasks = self.tasks + right.tasks
        return self


@dataclass(frozen=True)
class LabelCoder:
    """How labels become the arrays of a ``Partition``; small, picklable, the same for every block."""

    task: str
    # Array, shape (k,) or None. Sorted labels, or the tags of a multitask; None for regressions and tasks that are
    # columns.
    classes: NDArray[Any] | None = None
    kind: str = "none"  # Kind of the labels.
    # (number of classes,): Factor of each class on the sample weight.
    factors: NDArray[np.float64] | None = None
    # Every weight is multiplied by 2**exponent, which changes no objective and no digit (``ranges``).
    exponent: int = 0
    # What an observed label of a task that is not positive was called, 0 or -1: predictions call it so again.
    negative: int = 0

    def codes(self, labels: Any) -> NDArray[np.int64]:
        """Class numbers of labels, or of what ``factorise`` found, int64 (m,); unknown ones are a DataError."""
        assert self.classes is not None
        kind, distinct, codes = labels if isinstance(labels, Factorised) else factorise(labels)
        if kind == "none":
            return codes
        if kind != self.kind:
            raise mixed_kinds([kind, f"{self.kind} (the classes)"])
        number = {label: c for c, label in enumerate(self.classes.tolist())}
        try:
            table = np.array([number[label] for label in distinct.tolist()], dtype=np.int64)
        except KeyError:
            unseen = [label for label in distinct.tolist() if label not in number]
            raise DataError(
                f"labels not among the {len(number)} classes: {_some(unseen)}",
                hint="list every label in classes=, or drop these rows",
            ) from None
        return table[codes]

    def encode(self, labels: Any, weight: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Labels as in ``Partition``, and float64 weights in the plan's unit times class factors, of kept rows."""
        weight = scaled(weight, self.exponent)
        if self.task == "regression":
            return regression_targets(labels), weight
        if self.task == "multitarget":
            return many_targets(labels), weight
        if self.task == "multitask":
            signs = task_labels(labels) if self.classes is None else tag_signs(labels, self.classes.tolist())
            return signs, weight
        codes = self.codes(labels)
        if self.factors is not None:
            weight = weight * self.factors[codes]
        if self.task == "binary":
            return (2 * codes - 1).astype(np.int8).reshape(-1, 1), weight
        return codes.astype(np.int32), weight


def check_weight(weight: Any, n_rows: int, **where: Any) -> NDArray[np.float64]:
    """Sample weights of one block as float64 (m,): finite and not negative; None means 1 each."""
    if weight is None:
        return np.ones(n_rows, dtype=np.float64)
    if is_arrow(weight) and weight.null_count:
        raise DataError(f"{weight.null_count} sample weights are missing", hint="use 0 to leave a row out", **where)
    try:
        array = np.asarray(weight)
        array = np.broadcast_to(array, n_rows) if array.ndim == 0 else array
        found = array.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("sample weights are not numbers", **where) from None
    if found.ndim == 2 and found.shape[1] == 1 and n_rows == found.shape[0] and n_rows != 1:
        raise DataError("Sample weights must be 1D array or scalar", **where)
    if found.shape != (n_rows,):
        raise DataError(
            f"sample weights have shape {found.shape}, expected ({n_rows},): one weight per row",
            **where,
        )
    bad = ~np.isfinite(found) | (found < 0)
    if np.any(bad):
        row = int(np.argmax(bad))
        raise DataError(f"sample weight {found[row]} in row {row}, expected finite and >= 0", **where)
    return found


def scan(task: str, labels: Any, weight: NDArray[np.float64]) -> LabelStats:
    """Report on labels (or what ``factorise`` found) and weights of a block; rows of weight 0 are only counted."""
    keep = weight > 0
    with np.errstate(over="ignore"):
        # a sum without bound is refused once all blocks are known
        sum_weight = float(weight.sum())
    stats = LabelStats(weight.shape[0], int(np.count_nonzero(keep)), sum_weight=sum_weight)
    stats.largest_weight = float(weight.max(initial=0.0))
    if task in NUMBERS and stats.n_rows:
        stats.kind, stats.dtype = "float", "<f8"
    if task == "regression":
        target = regression_targets(labels)
        if target.shape == keep.shape:
            stats.largest_target = float(np.abs(target).max(initial=0.0, where=keep))
        return stats
    if task == "multitarget":
        targets = many_targets(labels)
        if targets.shape[0] == keep.shape[0]:
            targets = targets[keep]
            seen = np.count_nonzero(~np.isnan(targets), axis=0)
            none = np.zeros_like(seen)
            stats.tasks = np.stack([none, none, seen, stats.n_kept - seen], axis=1).astype(np.int64)
            stats.largest_target = float(np.nanmax(np.abs(targets), initial=0.0)) if targets.size else 0.0
        return stats
    if task == "multitask" and are_tags(labels):
        stats.kind, stats.dtype = TAGS, "|O"
        stats.count, stats.weight = count_tags(labels, weight)
        return stats
    if task == "multitask":
        values = task_values(labels)[keep]
        columns = [np.count_nonzero(values == v, axis=0) for v in (-1, 0, 1)]
        columns.append(stats.n_kept - sum(columns))
        stats.tasks = np.stack(columns, axis=1).astype(np.int64)
        return stats
    kind, distinct, codes = labels if isinstance(labels, Factorised) else factorise(labels)
    if codes.shape[0] != stats.n_rows:
        raise DataError(f"{codes.shape[0]} labels for {stats.n_rows} rows", hint="give one label per row")
    count = tallies(codes if stats.n_kept == stats.n_rows else codes[keep], len(distinct))
    # weights of one each are counted sooner than added
    plain = stats.n_kept == stats.n_rows == stats.sum_weight and stats.largest_weight in (0.0, 1.0)
    total = count.astype(float) if plain else np.bincount(codes, weights=weight, minlength=len(distinct))
    stats.kind = kind
    stats.dtype = distinct.dtype.str if kind != "none" else ""
    for label, c, w in zip(distinct.tolist(), count.tolist(), total.tolist(), strict=True):
        if c:
            stats.count[label], stats.weight[label] = c, w
    return stats


def plan_labels(
    stats: LabelStats,
    task: str,
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    task_names: Sequence[str] | None = None,
) -> LabelCoder:
    """Choose the encoding from the report on all rows; what cannot be learned is refused."""
    if stats.n_rows == 0:
        raise DataError("no rows: Found array with 0 sample(s) while a minimum of 1 is required")
    if stats.n_kept == 0:
        raise DataError("all sample weights are zero", hint="Sample weights must contain at least one non-zero number")
    check_sum(stats.sum_weight)
    exponent = weight_exponent((stats.largest_weight, 1.0))
    if task in NUMBERS:
        _refuse_for(task, classes=classes, class_weight=class_weight)
        check_target(stats.largest_target)
        if stats.tasks is not None:
            _check_targets(stats.tasks, task_names)
        return LabelCoder(task, kind="float", exponent=exponent)
    if task == "multitask" and stats.kind == TAGS:
        _refuse_for(task, class_weight=class_weight)
        return LabelCoder("multitask", _tags(stats, classes), TAGS, exponent=exponent)
    if task == "multitask":
        _refuse_for(task, classes=classes, class_weight=class_weight)
        _check_tasks(stats, task_names)
        assert stats.tasks is not None
        return LabelCoder("multitask", kind="int", exponent=exponent, negative=-1 if np.any(stats.tasks[:, 0]) else 0)
    kind, sorted_classes = _class_set(stats, classes)
    if len(sorted_classes) < 2:
        raise DataError(
            f"only one class: every label is {sorted_classes.tolist()[0]!r}, expected at least two classes",
            hint="check the label column, or give classes=",
        )
    if classes is None and len(sorted_classes) > max(_MANY, stats.n_kept / 2):
        raise DataError(
            f"{len(sorted_classes):,} different labels in {stats.n_kept:,} rows: the label column seems to be an "
            "identifier",
            hint="name another column, or all labels in classes=; a number to predict is learned by a regressor",
        )
    if task == "classification":
        task = "binary" if len(sorted_classes) == 2 else "multiclass"
    if task == "binary" and len(sorted_classes) != 2:
        raise DataError(
            f"Only binary classification is supported. There are {len(sorted_classes)} classes for a binary loss, "
            "expected 2",
            hint='use BoostedClassifier with loss="multinomial"',
        )
    coder = LabelCoder(task, sorted_classes, kind, exponent=exponent)
    if class_weight is None:
        return coder
    factors = _class_factors(class_weight, sorted_classes, stats)
    counted = [(stats.weight.get(label, 0.0) / max(stats.count.get(label, 0), 1)) for label in sorted_classes.tolist()]
    exponent = weight_exponent(*zip(counted, factors.tolist(), strict=True))
    return replace(coder, factors=factors, exponent=exponent)


def _refuse_for(task: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{name} has no meaning for {task}", hint=f"leave {name} out; sample_weight weighs rows")


def _check_tasks(stats: LabelStats, names: Sequence[str] | None) -> None:
    assert stats.tasks is not None
    minus, zero, plus, _ = stats.tasks.T
    if np.any(minus) and np.any(zero):
        raise DataError(
            "labels of several tasks hold both 0 and -1, so that 0 could mean a label or a missing one",
            hint="use 0/1 or -1/+1, and NaN where a label is missing",
        )
    bad = np.flatnonzero((plus == 0) | (minus + zero == 0))
    if bad.size:
        shown = [names[t] if names is not None else t for t in bad.tolist()]
        raise DataError(
            f"only one class in {bad.size} of {plus.size} tasks, which are called {_some(shown)}",
            hint="drop these tasks: nothing can be learned for them",
        )


def _tags(stats: LabelStats, chosen: Any) -> NDArray[Any]:
    """The tags that are learned: those that were chosen, or all."""
    if not stats.count:
        raise DataError("no row has a tag", hint="check the label column")
    names = sorted(stats.count) if chosen is None else list(chosen)
    unknown = [tag for tag in names if tag not in stats.count]
    if unknown or len(set(names)) < len(names):
        raise UsageError(f"classes names tags that no row has, or one twice: {_some(unknown or names)}")
    always = [tag for tag in names if stats.count[tag] == stats.n_kept]
    if always:
        raise DataError(
            f"{len(always)} of {len(names)} tags are in every row: {_some(always)}",
            hint="leave them out: nothing can be learned for them; classes= names the tags to learn",
        )
    if len(names) > MOST or (len(names) > _MANY and len(names) > stats.n_kept):
        raise DataError(
            f"{len(names):,} different tags in {stats.n_kept:,} rows, of at most {MOST:,}",
            hint="name those to learn in classes=, such as dboost.frequent_tags(y, 50)",
        )
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found


def _check_targets(tasks: NDArray[np.int64], names: Sequence[str] | None) -> None:
    empty = np.flatnonzero(tasks[:, 2] == 0).tolist()
    if empty:
        shown = [names[t] if names is not None else t for t in empty]
        raise DataError(
            f"{len(empty)} of {len(tasks)} targets are missing in every row: {_some(shown)}",
            hint="drop these targets: nothing can be learned for them",
        )


def _class_set(stats: LabelStats, classes: Any) -> tuple[str, NDArray[Any]]:
    """Kind and sorted classes, found or given."""
    if classes is None:
        found = np.empty(len(stats.count), dtype=object)
        found[:] = sorted(stats.count)
        return stats.kind, found if stats.dtype in ("", "|O") else np.array(found.tolist(), dtype=stats.dtype)
    kind, distinct, codes = factorise(classes)
    if len(distinct) != len(codes):
        raise UsageError(f"classes lists {len(codes) - len(distinct)} labels twice", hint="list every label once")
    if len(distinct) == 0:
        raise UsageError("classes is empty", hint="list every label, or leave classes out")
    if kind != stats.kind:
        raise UsageError(f"classes are of type {kind}, the labels of type {stats.kind}", hint="give both one type")
    given = np.array(sorted(distinct.tolist()), dtype=distinct.dtype)
    known = set(given.tolist())
    unseen = [label for label in sorted(stats.count) if label not in known]
    if unseen:
        raise DataError(
            f"labels not among the {len(given)} classes given: {_some(unseen)}",
            hint="list every label in classes=, or drop these rows",
        )
    return kind, given


def _class_factors(class_weight: Any, classes: NDArray[Any], stats: LabelStats) -> NDArray[np.float64]:
    """Factor of each class on the sample weights."""
    labels = classes.tolist()
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise UsageError(
                f"class_weight={class_weight!r}", hint='use "balanced", a dict of label to weight, or None'
            )
        weights = np.array([stats.weight.get(label, 0.0) for label in labels])
        present = weights > 0
        factors = np.ones(len(labels))
        factors[present] = stats.sum_weight / (np.count_nonzero(present) * weights[present])
        return factors
    if not isinstance(class_weight, Mapping):
        raise UsageError(
            f"class_weight is {type_name(class_weight)}",
            hint='use "balanced", a dict of label to weight, or None',
        )
    named = weights_by_label(class_weight, labels)
    unknown = [label for label in named if label not in set(labels)]
    if unknown:
        raise UsageError(f"class_weight names labels that are not classes: {_some(unknown)}")
    factors = np.array([named.get(label, 1.0) for label in labels], dtype=np.float64)
    if not np.all(np.isfinite(factors)) or np.any(factors < 0) or not np.any(factors > 0):
        raise UsageError(f"class_weight {dict(class_weight)!r}", hint="weights are finite, >= 0 and not all zero")
    return factors


def _some(values: Sequence[Any]) -> str:
    """A few of the values, and how many more there are."""
    shown = ", ".join(repr(value) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"


def weights_by_label(class_weight: Mapping[Any, float], labels: Iterable[Any]) -> dict[Any, float]:
    """The weights under the labels themselves: a text of JSON or TOML names the number that is written so."""
    written: dict[str, Any] = {}
    for label in labels:
        if isinstance(label, int | float) and not isinstance(label, bool):
            written[str(label)] = label
            # A whole number is written without its point, too.
            if float(label).is_integer():
                written[str(int(label))] = label
    found: dict[Any, float] = {}
    keys: dict[Any, Any] = {}
    for key, weight in class_weight.items():
        label = written.get(key, key) if isinstance(key, str) else key
        if label in found:
            raise UsageError(
                f"class_weight names the label {label!r} twice, as {keys[label]!r} and as {key!r}",
                hint="name every label once",
            )
        found[label], keys[label] = weight, key
    return found


# -- one label against all others, where they are read ----------------------------------------------------------------


@dataclass(frozen=True)
class OneLabelCoder(LabelCoder):
    """A binary encoding in which one label is the second class, and every other label the first."""

    one: Any = None
    one_kind: str = "none"  # Kind of the labels in the data; that of the classes is "bool".

    def codes(self, labels: Any) -> NDArray[np.int64]:
        """1 for the one label and 0 for the others, int64 (m,); labels of another type are a DataError."""
        kind, distinct, codes = labels if isinstance(labels, Factorised) else factorise(labels)
        if kind == "none":
            return codes
        if kind != self.one_kind:
            raise mixed_kinds([kind, f"{self.one_kind} (the classes)"])
        table = np.array([label == self.one for label in distinct.tolist()], dtype=np.int64)
        return table[codes]


def coder_of_one(coder: LabelCoder, one: Any, kind: str) -> OneLabelCoder:
    """The encoding of False and True, `coder`, for the labels that they were made from."""
    return OneLabelCoder(**vars(coder), one=one, one_kind=kind)


def stats_of_one(stats: LabelStats, one: Any) -> LabelStats:
    """The report of a scan as if its labels had been compared with one of them."""
    weight: dict[Any, float] = {}
    count: dict[Any, int] = {}
    for label, value in stats.weight.items():
        is_one = bool(label == one)
        weight[is_one] = weight.get(is_one, 0.0) + value
        count[is_one] = count.get(is_one, 0) + stats.count[label]
    return replace(stats, kind="bool", dtype="|b1", weight=weight, count=count, where={})


# -- what a person should know of labels -------------------------------------------------------------------------------

# Texts that stand for a label that is missing, more likely than not.
_MARKS = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "?"))
# So many are named in a note; the rest are counted.
_NAMED = 3


def label_notes(count: Mapping[Any, int], where: Mapping[Any, str | None]) -> tuple[str, ...]:
    """Notes on the rows of each label, and the only file of each (None where several have it)."""
    return tuple(note for note in (_on_blanks(count), _on_marks(count), _on_files(count, where)) if note)


def _on_marks(count: Mapping[Any, int]) -> str:
    marks = [label for label in count if isinstance(label, str) and label.strip().lower() in _MARKS]
    shown = ", ".join(_rows(label, count) for label in marks)
    return f"a class is called {shown}. Drop these rows if it means that the label is missing" if marks else ""


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
