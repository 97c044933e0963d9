"""``python -m lab NAME [ARGUMENT ...]``: run one of the campaigns below.

Each is a module with ``main(arguments) -> exit code``; it is imported only when it is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

CAMPAIGNS = {
    "chaos": "worker deaths, silence and lack of memory: the undisturbed bits, or one clear error in time",
    "fuzz": "random fits of hostile data against an oracle in long double",
}
"""Name of each campaign, which is the module or package ``lab.<name>``, and what it shows."""


def main(arguments: Sequence[str]) -> int:
    """Run the campaign that the first argument names with the others; return its exit code."""
    if not arguments or arguments[0] not in CAMPAIGNS:
        known = "\n".join(f"  {name:<8}{what}" for name, what in CAMPAIGNS.items())
        found = f"unknown campaign {arguments[0]!r}" if arguments else "no campaign named"
        print(f"lab: {found}; expected python -m lab NAME, with NAME one of\n{known}", file=sys.stderr)
        return 2
    code: int = importlib.import_module(f"lab.{arguments[0]}").main(list(arguments[1:]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
