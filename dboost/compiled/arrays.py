"""Names of the arrays that compiled loops take, by the type of their numbers.

Covers: the types that annotations of loops are written with. numba reads none of them: it compiles a loop for what it
is called with. Does not cover: shapes, which the loops' own words give.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Int8 = NDArray[np.int8]
UInt8 = NDArray[np.uint8]
UInt64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

Values = NDArray[Any]
"""Arrays that a loop takes in several types, most of them stored values, in float32 or float64."""
