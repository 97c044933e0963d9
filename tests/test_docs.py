"""The documentation: what its blocks and examples do, whether every public name and error has its place, links.

Covers: python and toml blocks of the guide, the syntax of the gallery (which `make docs` runs), generated pages, links
between pages. Does not cover: how pages look.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sklearn import linear_model

import dboost
from dboost import errors as known_errors
from dboost.files.paths import SCHEMES
from docs.generators import errors, options, reference
from lab.__main__ import REGISTRY
from lab.campaign.command import PARTS
from pipelines.cli import COMMANDS, loaded
from pipelines.flags import flag
from pipelines.retraining.gates import checked
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
    (block,) = [one for one in blocks("docs/guide/retraining.md") if one.language == "toml"]
    assert checked(tomllib.loads(block.text), tmp_path).gates.class_error == 0.1


def test_every_example_has_a_title_and_compiles() -> None:
    assert len(EXAMPLES) >= 15
    for example in EXAMPLES:
        text = example.read_text(encoding="utf-8")
        compile(text, str(example), "exec")
        assert re.match(r'"""\n\S.*\n=+\n\n\S', text), f"{example}: a title, underlined, and what one sees"


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
    for one in ("--penalty", "--alpha", "--keep", "--to", "--start", "--take-over"):
        assert one in page


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


def test_the_table_of_the_papers_says_what_its_pages_measured() -> None:
    """The programs that judged are at a tag: what is kept of a verdict stands in three places, which must agree."""
    papers = ROOT / "docs" / "papers"
    index, found = (papers / "index.md").read_text(encoding="utf-8"), 0
    for marker in sorted(papers.glob("*/reproduction.json")):
        name, page = marker.parent.name, marker.with_name(f"{marker.parent.name}.md").read_text(encoding="utf-8")
        for claim in json.loads(marker.read_text(encoding="utf-8"))["claims"]:
            row = f"| {claim['name']} ({claim['where']}) | **{claim['verdict']}** |"
            assert f"[{name}]({name}/{name}.md) {row}" in index, f"{name}: {row}"
            assert f"**{claim['verdict']}**" in page, f"{name}: {claim['name']}"
            found += 1
        for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page):
            assert (marker.parent / picture).is_file(), f"{name}: {picture}"
    assert found >= 50


def test_the_generators_are_those_of_this_checkout() -> None:
    assert Path(sys.modules["docs.generators"].__file__ or "").is_relative_to(ROOT)


def test_what_the_page_on_security_names_is_there() -> None:
    """Each claim of its tables names a file of tests or a part of the campaign; one that is renamed is missed."""
    text = (ROOT / "docs" / "guide" / "security.md").read_text(encoding="utf-8")
    named, parts = set(re.findall(r"\btest_\w+", text)), set(re.findall(r"part `([\w-]+)`", text))
    files = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(named) >= 8 and named <= files
    assert len(parts) >= 4 and parts <= set(PARTS)
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


# ---- promises that a program can read --------------------------------------------------------------------------------

# Pages of results and diaries say what was done once.
KEPT = [page for page in PAGES if not {"papers", "upstream"} & set(page.parts) and page.name != "speed.md"]
READ = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "cluster" / "README.md", *KEPT]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in READ}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_command_that_a_page_names_is_there_with_its_flags() -> None:
    targets, wrong = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE)), []
    for page, text in TEXTS.items():
        fenced = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
        for line in re.findall(r"`([^`\n]+)`", text) + "\n".join(fenced).splitlines():
            words = line.split("#")[0].split()
            wrong += [f"{page}: make {word}" for word in words[1:] if words[0] == "make" and word not in targets]
            wrong += [f"{page}: {line}" for name in re.findall(r"-m lab ([a-z][a-z-]*)", line) if name not in REGISTRY]
            if words[:1] != ["dboost"] or len(words) < 2 or not re.fullmatch("[a-z]+", words[1]):
                continue
            if words[1] not in COMMANDS:
                wrong.append(f"{page}: {line}")
                continue
            known = {flag(item.name) for item in dataclasses.fields(loaded(words[1])[0])} | {"--help", "--config"}
            given = {word.split("=")[0] for word in words[2:] if word.startswith("--")}
            wrong += [f"{page}: dboost {words[1]} {name}" for name in given if name not in known]
    assert not wrong, "\n".join(wrong)


def test_every_extra_that_a_page_names_is_one_and_readme_names_all_for_users() -> None:
    wrong = [f"{page}: {name}" for page, text in TEXTS.items()
             for found in re.findall(r"(?:dboost|\.)\[([\w,-]+)\]|\(extra `([\w-]+)`\)", text)
             for name in "".join(found).split(",") if name not in EXTRAS]  # fmt: skip
    assert not wrong
    (listed,) = re.findall(r"Extras: (.*?)\.\n", TEXTS["README.md"], re.DOTALL)
    assert set(re.findall(r"`([\w-]+)`", listed)) == set(EXTRAS) - {"lab", "docs", "test", "tls", "dask-ml"}
    sends = [page for page, text in TEXTS.items() if re.search(r"[Dd]ashboard.{0,45} (shows|is at)", text)]
    assert len(sends) >= 1 and all("dboost[dashboard]" in TEXTS[page] for page in sends)


def test_schemes_of_addresses_are_those_that_are_read() -> None:
    others = {"file", "http", "https", "tcp", "tls", "ucx", "models", "runs", "ssh"}
    wrong = [f"{page}: {scheme}://" for page, text in TEXTS.items() for scheme in re.findall(r"`([a-z0-9]+)://", text)
             if scheme not in {*SCHEMES, *others}]  # fmt: skip
    # named as one that is refused
    assert wrong == ["docs/guide/files.md: memory://"]
    with pytest.raises(dboost.UsageError) as caught:
        dboost.load_model("az://container/model")
    assert all(f"{scheme}://" in str(caught.value) for scheme in SCHEMES) and "only local" not in str(caught.value)


def test_names_that_are_said_to_be_the_same_are_parameters() -> None:
    """In the tables for users of other libraries."""
    ours = [dboost.BoostedClassifier, dboost.BoostedClassifierCV, dboost.MultiTaskBoostedRegressorCV]
    taken = {name for one in [*ours, dboost.regularization_path] for name in inspect.signature(one).parameters}
    rows = re.findall(r"^\| (.+?) \| the same names?\b", TEXTS["docs/guide/coming_from.md"], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)[^`]*`", row)}
    assert len(named) >= 8 and not named - taken, named - taken


def test_figures_of_readme_are_those_of_the_page_on_speed() -> None:
    page = TEXTS["docs/performance.md"]
    table = TEXTS["README.md"].split("## In figures")[1].split("\n\n")[1]
    figure = re.compile(r"(?:> )?\d[\d.]*(?: to \d[\d.]*)?(?= s\b| times)")
    figures = [found for row in table.splitlines()[2:] for found in figure.findall(row.split(" | ")[-1])]
    assert len(figures) >= 6
    missing = [figure for figure in figures if not re.search(rf"(?<![\d.]){re.escape(figure)}(?![\d])", page)]
    assert not missing, missing


def test_every_table_of_the_page_on_speed_says_what_repeats_it() -> None:
    silent = []
    for section in re.split(r"^## ", TEXTS["docs/performance.md"], flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            head, _, *rows = table.strip().splitlines()
            column = head.strip("| ").split(" | ")[-1] == "repeats it"
            said = [row.strip("| ").split(" | ")[-1] for row in rows] if column else [text]
            command = re.compile(
                r"`(make [a-z-]+|python -m lab [a-z -]+)`|`lab [a-z -]+` at the commit `|^none: |^the same run"
            )
            silent += [f"{title}: {one}" for one in said if not command.search(one)]
    assert not silent, silent


def test_the_commits_that_pages_name_are_in_the_history() -> None:
    asked = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if asked.stdout.strip() != "false":
        pytest.skip("a copy without the history of the repository")
    named = {name for text in TEXTS.values() for name in re.findall(r"commit\s+`([0-9a-f]{7,40})`", text)}
    found = [subprocess.run(["git", "cat-file", "-e", f"{name}^{{commit}}"], cwd=ROOT, check=False) for name in named]
    assert named and not any(one.returncode for one in found), named


def test_one_page_and_readme_say_how_long_a_first_fit_takes() -> None:
    """Another page links there: four of them once said four different times."""
    number = r"(?:\d|five|ten|fifteen|twenty|thirty)[\w. ]{0,20}(?:s|seconds|minutes?)\b"
    wrong = []
    for page, text in TEXTS.items():
        for part in re.split(r"\n\n|\n- |(?<=[.?*])\s", text):
            if re.search(r"[Ff]irst\s+fit", part) and re.search(number, part.replace("\n", " ")):
                wrong.append(page)
    assert set(wrong) <= {"README.md", "docs/performance.md"}, wrong
