"""``njit`` of numba for functions whose machine code is kept on disk, where there is a place for it.

Covers: the decorator of every compiled function of dboost. Does not cover: numba's intrinsics.

numba keeps machine code beside the source or in the user's cache folder, and refuses to define a function where it may
write to neither: site-packages of another user and no home, as in many containers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba

from dboost.notices import warn_user


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit(**options)``; where nothing can be kept on disk, compiled in every process, which is said once."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:
            if not options.get("cache"):
                raise
            found = numba.njit(**(options | {"cache": False}))(function)
            _say_that_nothing_is_kept()
            return found

    return compiled


@cache
def _say_that_nothing_is_kept() -> None:
    warn_user(
        "there is no folder in which compiled code can be kept: every process compiles its functions anew, which takes "
        "some tens of seconds. Set NUMBA_CACHE_DIR to a folder that can be written"
    )
