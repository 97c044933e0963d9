"""Settings of Sphinx: `make docs` builds the pages into docs/_build/html, with every warning an error."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

# Pictures are drawn into files; no example may look for a screen.
os.environ["MPLBACKEND"] = "Agg"

import dboost  # noqa: E402
from docs.generators import write_all  # noqa: E402

# The options, the errors and the pages of the reference are written from the code before Sphinx reads the folder.
write_all(HERE / "generated")

project = "dboost"
author = "the dboost authors"
copyright = "2026, the dboost authors"
version = release = dboost.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "generators", "gallery/*.py", "gallery/*.ipynb"]
suppress_warnings = [
    # Pages that are not there yet are found by a pattern, so that they need no second place when they come.
    "toc.empty_glob",
    # What a gallery example holds between its parts cannot be pickled, which only costs a second reading.
    "config.cache",
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"dboost {version}"
html_static_path = ["_static"]
html_css_files = ["dboost.css"]
html_show_sourcelink = False
html_copy_source = False
# A page without others below it has nothing to list beside it, and its lines of code need the room.
html_sidebars = {name: [] for name in ("index", "why", "quickstart", "faq", "performance", "speed")}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def fresh_example(gallery_conf: object, fname: str) -> None:
    """Nothing of one example reaches the next: figures are closed, and the filters of warnings are those of Python."""
    import matplotlib.pyplot as plt

    plt.close("all")
    plt.rcdefaults()
    warnings.resetwarnings()


sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "plot_gallery": True,
    "show_memory": False,
    "min_reported_time": 1,
    "reset_modules": (fresh_example,),
    "show_signature": False,
    "backreferences_dir": None,
    "doc_module": ("dboost",),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "copyfile_regex": r".*\.(rst|txt)",
    "write_computation_times": False,
    # What the last line of an example gives is a picture, and not the name of its object.
    "capture_repr": (),
}


def plain_bars(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """|w| in a docstring is an absolute value; reStructuredText would look for a substitution of that name."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            pieces = re.split(r"(``.*?``)", line)
            lines[at] = "".join(one if one.startswith("``") else one.replace("|", r"\|") for one in pieces)


def setup(app: object) -> None:
    """Run after numpydoc, which makes sections of the docstrings."""
    app.connect("autodoc-process-docstring", plain_bars, priority=900)  # type: ignore[attr-defined]
