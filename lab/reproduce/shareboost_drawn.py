"""What ShareBoost's patches look like, which digits stay wrong, and what a prediction costs: its Figs. 5 and 6.

Covers: the tables ``features`` and ``wrong``, their drawings, the count of operations and its claim. Does not cover:
the fits (``shareboost_digits``, ``shareboost_deformed``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.reproduce.base import Figure
from lab.reproduce.claims import Check, Claim, Verdict, judged
from lab.reproduce.figures import bare, panels
from lab.reproduce.rows import Rows, Tables

# As many features as the paper draws, and as many images as fit a page.
FIRST, MOST_WRONG = 30, 100
# Multiplications and additions of one image by the best machine of the paper's time, as it quotes them.
TOP = 7.5e6


def packed(values: NDArray[np.float64], low: float, high: float) -> str:
    """Numbers between `low` and `high` as one text of two hexadecimal digits each."""
    share = (values.reshape(-1) - low) / max(high - low, 1e-300)
    return np.clip(np.round(255.0 * share), 0, 255).astype(np.uint8).tobytes().hex()


def unpacked(text: str, columns: int) -> NDArray[np.float64]:
    """Undo `packed`, as a picture of so many columns with values from 0 to 1."""
    return np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, columns) / 255.0


def first_features(model: Any, entered: list[str]) -> Rows:
    """The features that entered first: template, mask and weights, each as a picture.

    Parameters
    ----------
    model : Model
        Of patches.
    entered : list of str
        Names of its features, in the order of the rounds.
    """
    patches, names = model.hypotheses, model.hypotheses.words()
    bank, found = patches.bank, []
    for number, name in enumerate(entered[:FIRST], start=1):
        place = names.index(name)
        template = bank.templates[patches.slots[place]].astype(np.float64)
        mask = bank.gains[patches.masks[place]].astype(np.float64)
        w = model.W[place]
        high, most = float(np.abs(template).max()), float(np.abs(w).max())
        found.append(
            {
                "round": number,
                "name": name,
                "size": bank.size,
                "positions": bank.positions[1],
                "template": packed(template, -high, high),
                "mask": packed(mask, 0.0, 1.0),
                "weights": " ".join(f"{value / most:.3f}" for value in w),
            }
        )
    return Rows(found)


def wrong_images(X: Any, y: NDArray[Any], predicted: NDArray[Any]) -> Rows:
    """The test images that the model takes for others, in their order."""
    places = np.flatnonzero(predicted != y)[:MOST_WRONG]
    found = []
    for place in places:
        image = X[[place]].toarray()[0]
        found.append(
            {
                "image": int(place),
                "label": str(y[place]),
                "predicted": str(predicted[place]),
                "side": math.isqrt(len(image)),
                "pixels": packed(image, 0.0, 1.0),
            }
        )
    return Rows(found)


def operations(model: Any) -> int:
    """Multiplications with an addition that one image takes: templates where a mask sees them, masks, weights."""
    patches = model.hypotheses
    sees = patches.bank.gains > 0.0
    inner = sum(
        int(sees[patches.masks[patches.slots == slot]].any(axis=0).sum()) for slot in np.unique(patches.slots)
    )
    return int(inner * patches.bank.size**2 + sees[patches.masks].sum() + model.W.size)


def judge_operations(tables: Tables) -> Verdict:
    """The count is below that of the machine that was best."""
    (cost,) = tables["cost"]
    said = f"{cost['operations'] / 1e6:.2f} million multiplications and additions an image"
    return judged(Check(f"{said}; {1e6 * cost['predict_seconds']:.0f} µs of one core", cost["operations"] < TOP))


FEW_OPERATIONS = Claim(
    "a digit takes fewer operations than with the best machine of the time",
    "section 7.4",
    "305 features take 3.3 million multiplications with an addition an image, the top performer 7.5 million.",
    f"Counted from the templates, masks and weights of the last model, an image takes less than {TOP / 1e6:g} million.",
    judge_operations,
)


def draw_features(tables: Tables) -> Any:
    """Templates, masks and weights side by side, feature by feature."""
    rows = tables["features"]
    across = 5
    figure, axes = panels(3 * across, -(-len(rows) // across), width=0.62, height=0.82)
    for axis in axes:
        bare(axis)
    for number, r in enumerate(rows):
        template, mask, weights = axes[3 * number : 3 * number + 3]
        template.imshow(unpacked(r["template"], int(r["size"])), cmap="gray", vmin=0.0, vmax=1.0)
        template.set_title(str(r["round"]), fontsize=7, loc="left", pad=2)
        mask.imshow(unpacked(r["mask"], int(r["positions"])), cmap="Blues", vmin=0.0, vmax=1.0)
        values = np.array([float(value) for value in str(r["weights"]).split()])
        weights.imshow(values[:, None], cmap="PuOr", vmin=-1.0, vmax=1.0, aspect="auto")
        weights.set_yticks(range(len(values)), [str(code) for code in range(len(values))], fontsize=4)
        weights.tick_params(length=0, pad=1)
    return figure


def draw_wrong(tables: Tables) -> Any:
    """The images that are taken for others, with what they are and what they are taken for."""
    rows = tables["wrong"]
    across = 12
    figure, axes = panels(across, max(-(-len(rows) // across), 1), width=0.62, height=0.8)
    for axis in axes:
        bare(axis)
    if not len(rows):
        axes[0].annotate("no test image is taken for another", (0.0, 0.5), fontsize=9)
    for axis, r in zip(axes, rows, strict=False):
        axis.imshow(unpacked(r["pixels"], int(r["side"])), cmap="gray_r", vmin=0.0, vmax=1.0)
        axis.set_title(f"{r['label']} → {r['predicted']}", fontsize=7, pad=2)
    return figure


FIGURES = (
    Figure(
        "first-features",
        f"Beside Fig. 5: the first {FIRST} features in the order of their rounds; each with its 7 x 7 template (bright "
        "is ink that raises it), its mask over the positions, and its weights for the classes 0 to 9 (orange is "
        "negative, purple positive, of each feature by its largest).",
        draw_features,
    ),
    Figure(
        "wrong-images",
        f"Beside Fig. 6: test images that the last model takes for others, what they are and what it takes them for "
        f"(at most {MOST_WRONG}).",
        draw_wrong,
    ),
)
