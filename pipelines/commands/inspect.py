"""``dboost inspect``: the sparsity map of a model: which features it uses, in words, and which classes share each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .. import pages
from ..config import FromOne, LogSettings, ModelFolderSettings, key
from ..console import Console
from ..inputs import read_model


@dataclass(frozen=True, kw_only=True)
class InspectSettings(ModelFolderSettings, LogSettings):
    """What `dboost inspect` takes."""

    required: ClassVar[tuple[str, ...]] = ("model",)

    top: FromOne = key(30, "features that are listed")


SETTINGS = InspectSettings


def run(settings: InspectSettings, console: Console) -> int:
    """Print the map."""
    model = read_model(settings.model)
    blocks = pages.blocks_for(console.rich.encoding)
    shown = [pages.facts(pages.model_facts(model)), "", *pages.sparsity_map(model, settings.top, blocks)]
    console.page("sparsity_map", shown, pages.map_values(model))
    return 0
