"""Many classes, one softmax, rows of W vanish as a whole."""

from __future__ import annotations

from .base import Kind
from .multinomial_l1 import DATA

KIND = Kind("multinomial-groups", "multinomial, l1/l2 and l1/linf", DATA, ("l1/l2", "l1/linf"), goal=15.0)
