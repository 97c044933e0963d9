"""``python -m pipelines`` from a checkout, ``python -m dboost_pipelines`` from an installation."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
