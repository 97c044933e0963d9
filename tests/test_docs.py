"""The documentation: what its blocks and examples do, whether every public name and error has its place, links.

Covers: python and toml blocks of the guide, the syntax of the gallery (which `make docs` runs), generated pages, links
between pages. Does not cover: how pages look.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest
from sklearn import linear_model

import dboost
from dboost import errors as known_errors
from docs.generators import errors, options, reference
from lab.campaign.parts import PARTS
from pipelines.retraining.config import checked
from tests.test_readme import TYPED, Block, blocks

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"_build", "gallery"} & set(path.parts))
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))


def python_blocks() -> list[Block]:
    found = [block for page in PAGES for block in blocks(page.relative_to(ROOT).as_posix())]
    # what is written up for others shows their faults, and waits for ever
    apart = ("docs/upstream", *TYPED)
    return [block for block in found if block.language == "python" and not block.page.startswith(apart)]


@pytest.mark.filterwarnings("ignore::dboost.ConvergenceWarning")
@pytest.mark.parametrize("block", python_blocks(), ids=lambda block: f"{block.page}-{block.line}")
def test_every_block_of_the_guide_runs(block: Block, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, f"{block.page}:{block.line}", "exec"), {"__name__": "__guide__"})


def test_the_file_of_a_retraining_is_one(tmp_path: Path) -> None:
    import tomllib

    (block,) = [one for one in blocks("docs/guide/retraining.md") if one.language == "toml"]
    assert checked(tomllib.loads(block.text), tmp_path).gates.class_error == 0.1


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_has_a_title_and_compiles(example: Path) -> None:
    text = example.read_text(encoding="utf-8")
    compile(text, str(example), "exec")
    assert re.match(r'"""\n\S.*\n=+\n\n\S', text), "a title, underlined, and what one sees"


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 15


def test_every_public_name_has_a_page() -> None:
    text = "\n".join(reference.pages().values())
    for name in dboost.__all__:
        assert re.search(rf"\b{re.escape(name)}\b", text) or name == "__version__", f"{name} is on no page"


def test_every_error_has_its_cure() -> None:
    page = errors.page()
    for name in known_errors.__dict__:
        if name.endswith("Error") and name != "DboostError":
            assert name in page, f"{name} has no line on the page of errors"
    for code in ("0", "1", "2", "3", "4", "5", "6", "129", "130", "143"):
        assert re.search(rf"\| {code} ", page), f"exit code {code} is not there"


def test_options_are_those_of_the_settings() -> None:
    page = options.page()
    for flag in ("--penalty", "--alpha", "--keep", "--to", "--start", "--take-over"):
        assert flag in page


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            where = page.parent / target
            # the gallery is written by `make docs`
            generated = "generated" in target or "gallery/" in target
            assert generated or where.exists(), f"{page.relative_to(ROOT)} links to {target}"
        for target in re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", page.read_text(encoding="utf-8")):
            where = page.parent / f"{target}.md"
            assert "generated" in target or where.exists(), f"{page.relative_to(ROOT)} names {target}"


def test_the_generators_are_those_of_this_checkout() -> None:
    assert Path(sys.modules["docs.generators"].__file__ or "").is_relative_to(ROOT)


def test_what_the_page_on_security_names_is_there() -> None:
    """Each claim of its tables names a file of tests or a part of the campaign; one that is renamed is missed."""
    text = (ROOT / "docs" / "guide" / "security.md").read_text(encoding="utf-8")
    named, parts = set(re.findall(r"\btest_\w+", text)), set(re.findall(r"part `([\w-]+)`", text))
    files = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(named) >= 8 and named <= files
    assert len(parts) >= 5 and parts <= set(PARTS)
    failures = (ROOT / "docs" / "guide" / "failures.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| ([a-z, -]+) \|", failures, re.MULTILINE))
    assert {name for row in told for name in row.split(", ")} - {"part"} == set(PARTS)


GLMNET = """x y family weights offset alpha nlambda lambda.min.ratio lambda standardize intercept thresh dfmax pmax
exclude penalty.factor lower.limits upper.limits maxit type.gaussian type.logistic standardize.response
type.multinomial relax trace.it gamma type.measure nfolds foldid alignment grouped keep parallel"""
SPARK = """aggregationDepth elasticNetParam family featuresCol fitIntercept labelCol lowerBoundsOnCoefficients
lowerBoundsOnIntercepts maxBlockSizeInMB maxIter predictionCol probabilityCol rawPredictionCol regParam standardization
threshold thresholds tol upperBoundsOnCoefficients upperBoundsOnIntercepts weightCol"""
SCIKIT_LEARN = (
    "LogisticRegression", "LogisticRegressionCV", "MultiTaskElasticNetCV", "PoissonRegressor", "HuberRegressor",
    "QuantileRegressor",
)  # fmt: skip


def test_every_option_of_the_peers_has_its_place_or_is_left_out() -> None:
    text = (ROOT / "docs" / "guide" / "coming_from.md").read_text(encoding="utf-8")
    parts = {title: text.split(f"## {title}")[1].split("\n## ")[0] for title in ("glmnet", "Spark", "scikit-learn")}
    code = {title: " ".join(re.findall(r"`([^`]+)`", part)) for title, part in parts.items()}
    # R's arguments have dots in them
    told = {title: set(re.findall(r"[\w.]+", words)) for title, words in code.items()}
    assert set(GLMNET.split()) <= told["glmnet"], set(GLMNET.split()) - told["glmnet"]
    assert set(SPARK.split()) <= told["Spark"], set(SPARK.split()) - told["Spark"]
    for name in SCIKIT_LEARN:
        taken = set(inspect.signature(getattr(linear_model, name)).parameters)
        assert taken <= told["scikit-learn"], (name, taken - told["scikit-learn"])
