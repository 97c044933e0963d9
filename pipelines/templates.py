"""Texts and pages from templates that lie in the folder ``templates`` of a package."""

from __future__ import annotations

import datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from . import pages


def text_of(package: str | None, template: str, html: bool = False, **values: Any) -> str:
    """A template with these values; in HTML they are escaped."""
    environment = Environment(
        loader=PackageLoader(str(package), "templates"), autoescape=html, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=not html,
    )  # fmt: skip
    environment.filters |= {"percent": pages.percent, "count": lambda n: f"{n:,.6g}" if n < 1e6 else f"{n:,.0f}"}
    return environment.get_template(template).render(**values)


def page_of(package: str | None, template: str, **values: Any) -> str:
    """A page of HTML, with the time at which it was written."""
    written = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    return text_of(package, template, html=True, written=written, **values)
