"""``python -m lab NAME [ARGUMENT ...]``: run one of the programs below, from a checkout.

Each is a module with ``main(arguments) -> exit code``; it is imported only when it is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from dboost.errors import DboostError


@dataclass(frozen=True)
class Entry:
    """A program that can be asked for."""

    # Its module or package.
    module: str
    # What it shows, in one line.
    summary: str


REGISTRY = {
    "bench": Entry("lab.benchmarks.command", "how fast it is, against peers and on a cluster, to a given accuracy"),
    "oracle": Entry("lab.oracle.campaign", "every loss and penalty against independent solvers"),
    "against-glmnet": Entry("lab.against_glmnet.command", "the options of R's glmnet, each solved by both"),
    "ablation": Entry("lab.ablation", "what each accelerator is worth: the same fits with each one off in turn"),
    "all-products": Entry("lab.all_products", "every system over 12 and 200 million products: what a round takes"),
    "same-bits": Entry("lab.same_bits", "one fit on threads and on 1, 2 and 4 workers: the same bits"),
    "campaign": Entry("lab.campaign", "everything that may go wrong, tried many times and counted"),
    "soak": Entry("lab.soak", "hours of retraining with workers killed at random: what grows, and what does not"),
    "preflight": Entry("lab.preflight", "estimates of memory and seconds before a training, and what it then takes"),
    "mutation": Entry("lab.mutation.command", "whether make test finds the faults that make test-all finds"),
    "defaults": Entry("lab.defaults", "what the defaults are worth on 20 data sets, beside scikit-learn's own choice"),
    "fuzz": Entry("lab.fuzz", "random fits of hostile data against an oracle in long double"),
}
"""What is typed for each program, and what runs."""


def main(arguments: Sequence[str]) -> int:
    """Run the program that the first argument names with the others; return its exit code."""
    if not arguments or arguments[0] not in REGISTRY:
        width = max(map(len, REGISTRY))
        known = "\n".join(f"  {name.ljust(width)}  {entry.summary}" for name, entry in REGISTRY.items())
        if arguments and arguments[0] in ("-h", "--help"):
            print(f"usage: python -m lab NAME [ARGUMENT ...], with NAME one of\n{known}")
            return 0
        found = f"unknown program {arguments[0]!r}" if arguments else "no program named"
        print(f"lab: {found}; expected python -m lab NAME, with NAME one of\n{known}", file=sys.stderr)
        return 2
    try:
        code: int = importlib.import_module(REGISTRY[arguments[0]].module).main(list(arguments[1:]))
    except DboostError as error:
        print(f"lab {arguments[0]}: {error}", file=sys.stderr)
        return error.exit_code
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
