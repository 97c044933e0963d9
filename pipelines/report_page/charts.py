"""Charts as SVG text within a page: lines over rounds, and calibration. Nobody needs a library or a script to see them.

Covers: scales with round numbers, lines, points. Does not cover: what is drawn (``values``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 460, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 10, 34


@dataclass(frozen=True)
class Line:
    """A line."""

    points: Sequence[tuple[float, float]]  # those that are not finite are left out
    kind: str = "one"  # its class in the style sheet, which gives its colour and dashes
    marked: bool = False  # whether points are drawn too


def chart(lines: Sequence[Line], x: str, y: str, *, logarithmic: bool = False, unit: bool = False) -> str:
    """An SVG of some lines; empty text where there are no points.

    `logarithmic`: whether y is drawn by its logarithm; what is not positive is left out.
    `unit`: whether both axes go from 0 to 1.
    """
    kept = [
        (line, [(a, b) for a, b in line.points if math.isfinite(a) and math.isfinite(b) and (b > 0 or not logarithmic)])
        for line in lines
    ]
    every = [point for _, points in kept for point in points]
    if not every:
        return ""
    xs, ys = [a for a, _ in every], [math.log10(b) if logarithmic else b for _, b in every]
    low_x, high_x = (0.0, 1.0) if unit else (min(xs), max(max(xs), min(xs) + 1))
    if unit:
        ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    elif logarithmic:
        step = max(1, math.ceil((max(ys) - min(ys)) / 5))
        ticks = [float(v) for v in range(math.floor(min(ys)), math.ceil(max(ys)) + step, step)]
    else:
        ticks = round_numbers(min(0.0, min(ys)), max(ys))
    low_y, high_y = ticks[0], max(ticks[-1], ticks[0] + 1e-12)

    def at(a: float, b: float) -> tuple[float, float]:
        b = math.log10(b) if logarithmic else b
        across = (a - low_x) / (high_x - low_x) * (WIDTH - _LEFT - _RIGHT)
        up = (b - low_y) / (high_y - low_y) * (HEIGHT - _TOP - _BOTTOM)
        return round(_LEFT + across, 1), round(HEIGHT - _BOTTOM - up, 1)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{y} by {x}">']
    for tick in ticks:
        _, up = at(low_x, 10**tick if logarithmic else tick)
        words = f"1e{tick:.0f}" if logarithmic else f"{tick:g}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{up}" y2="{up}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{up + 4}" text-anchor="end">{words}</text>')
    for tick in ticks if unit else round_numbers(low_x, high_x):
        # rounds and strengths are counted: between two of them there is nothing
        if low_x <= tick <= high_x and (unit or high_x - low_x > 8 or tick == int(tick)):
            across, _ = at(tick, 10**low_y if logarithmic else low_y)
            parts.append(f'<text x="{across}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for line, points in kept:
        places = [at(*point) for point in points]
        drawn = " ".join(f"{a},{b}" for a, b in places)
        parts.append(f'<polyline class="{line.kind}" points="{drawn}"/>')
        if line.marked or len(places) == 1:
            parts += [f'<circle class="{line.kind}" cx="{a}" cy="{b}" r="3"/>' for a, b in places]
    parts.append(f'<text x="{(WIDTH + _LEFT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">{x}</text>')
    middle = (HEIGHT - _BOTTOM + _TOP) / 2
    parts.append(f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{y}</text></svg>')
    return "".join(parts)


def round_numbers(low: float, high: float, most: int = 6) -> list[float]:
    """Numbers of one or two digits that enclose a range."""
    if high <= low:
        high = low + 1.0
    rough = (high - low) / (most - 1)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.floor(low / step)
    return [round(step * i, 12) for i in range(first, math.ceil(high / step - 1e-9) + 1)]
