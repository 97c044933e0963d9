"""The vocabulary in shards, against a plain count, and what reaches the driver."""

from __future__ import annotations

import pickle
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dboost
from dboost.compiled.text.terms import Terms
from dboost.data.manifest import load_manifest, read_vocabulary
from dboost.data.prepared import vocabulary
from dboost.data.prepared.mapper import InProcess
from dboost.data.prepared.prepare import prepare_text
from dboost.data.prepared.text import SHARDS, TermCounts, count_texts, load_shards
from dboost.engine.dask.submission import names
from dboost.errors import DataError, without_values
from dboost.estimators.transform_files import FeaturesOfFiles, transform_of_prepared
from pipelines.cli import main

N = 300


class Measured(InProcess):
    """Notes how many bytes each pass returns to the driver."""

    def __init__(self):
        self.sizes = {}

    def map(self, fn, items, *args, name):
        found = super().map(fn, items, *args, name=name)
        self.sizes[name] = self.sizes.get(name, 0) + len(pickle.dumps(found))
        return found


def documents_with_identifiers(path):
    """Eight common words, and eight that occur in no other document."""
    rng = np.random.default_rng(0)
    texts = [
        " ".join([*(f"word{w}" for w in rng.zipf(1.4, 8) % 50), *(f"id{rng.integers(2**60):015x}" for _ in range(8))])
        for _ in range(N)
    ]
    pq.write_table(pa.table({"text": texts, "y": ["a", "b"] * (N // 2)}), path, row_group_size=50)
    return texts


def test_terms_that_occur_once_do_not_reach_the_driver(tmp_path, monkeypatch):
    texts = documents_with_identifiers(tmp_path / "d.parquet")
    df = Counter(term for text in texts for term in set(text.split()))
    tf = Counter(term for text in texts for term in text.split())
    often = sorted(term for term in df if 3 <= df[term] <= 0.5 * N)
    # All terms but the common ones are tied at one, so that names decide.
    ranked = sorted(sorted(df), key=lambda term: -tf[term])
    monkeypatch.setattr("dboost.data.prepared.prepare.SLICE_BYTES", 4000)
    folders = {}
    for task_bytes, slack in ((1 << 30, 1 << 16), (3000, 10)):
        monkeypatch.setattr(vocabulary, "TASK_BYTES", task_bytes)
        monkeypatch.setattr(vocabulary, "SLACK", slack)
        engine, out = Measured(), tmp_path / f"o{task_bytes}"
        made = prepare_text(tmp_path / "d.parquet", out, text="text", label="y", min_df=3, engine=engine)
        assert list(made.feature_names()) == often
        assert read_vocabulary(out, made.vocabulary)[1].tolist() == [df[term] for term in often]
        # 2,400 identifiers of 17 letters are 40 kB.
        assert sum(engine.sizes[name] for name in ("count-terms", "count-shards")) < 20_000
        assert not [path for path in out.iterdir() if path.name.startswith("_counts")]
        most = prepare_text(
            tmp_path / "d.parquet", tmp_path / f"m{task_bytes}", text="text", label="y", min_df=1, max_features=120
        )
        assert list(most.feature_names()) == sorted([term for term in ranked if df[term] <= 0.5 * N][:120])
        folders[task_bytes] = (made.fingerprint, most.fingerprint)
    assert len(set(folders.values())) == 1


@pytest.mark.full
@pytest.mark.parametrize("more", [{"min_df": 3}, {"min_df": 2, "max_features": 20, "binary": True}, {"hashing": 64}])
def test_terms_of_a_table_are_counted_in_shards_too(tmp_path, monkeypatch, more):
    texts = documents_with_identifiers(tmp_path / "d.parquet")
    monkeypatch.setattr("dboost.data.prepared.prepare.SLICE_BYTES", 4000)
    monkeypatch.setattr(vocabulary, "TASK_BYTES", 3000)
    monkeypatch.setattr(vocabulary, "SLACK", 10)
    here = dboost.TextFeatures(**more).fit(texts)
    features = dboost.Features({"text": "text", "y": "category"}, others="drop", text=dboost.TextFeatures(**more))
    engine = Measured()
    made = prepare_text(
        tmp_path / "d.parquet", tmp_path / "o", text=(), table=FeaturesOfFiles.of(features), engine=engine
    )
    found = transform_of_prepared(made).texts_["text"]
    assert found.get_feature_names_out().tolist() == here.get_feature_names_out().tolist()
    assert found.document_frequency_.tolist() == here.document_frequency_.tolist()
    assert np.array_equal(found.idf_, here.idf_)
    assert "hashing" in more or sum(engine.sizes[name] for name in ("count-terms", "count-shards")) < 20_000
    assert not [path for path in (tmp_path / "o").iterdir() if path.name.startswith("_counts")]


@pytest.mark.full
@pytest.mark.timeout(300)
def test_workers_choose_the_terms_that_one_process_chooses(tmp_path):
    documents_with_identifiers(tmp_path / "d.parquet")
    prints = set()
    for workers in ("0", "2"):
        more = ["--workers", workers, *(["--memory-limit", "1GiB"] if workers != "0" else [])]
        out = tmp_path / f"o{workers}"
        arguments = ["prepare", str(tmp_path / "d.parquet"), "--label", "y", "--max-features", "200", "--min-df", "1"]
        assert main([*arguments, "--out", str(out), *more]) == 0
        prints.add(load_manifest(out).fingerprint)
    assert len(prints) == 1


def test_a_vocabulary_that_fits_no_worker_is_refused():
    shards = [vocabulary.Kept("a", 9_000_000, 2_000_000, 30 << 20), vocabulary.Kept("b", 9, 2_000_000, 30 << 20)]
    with pytest.raises(DataError, match="4,000,000 terms, which take about 637 MiB in every process.*409 MiB.*min_df"):
        vocabulary.refuse_many(shards, None, (1 << 30) * 2 // 5)
    vocabulary.refuse_many(shards, 2_000_000, (1 << 30) * 2 // 5)


@pytest.mark.parametrize("hashing", [None, 50])
def test_shards_of_a_file_are_its_terms(tmp_path, hashing):
    texts = [" ".join(f"w{i * j % 997}" for j in range(40)) for i in range(60)]
    counted = count_texts([*texts, "", "naïve Ökonomie"], "words", hashing)
    size = counted.save(tmp_path / "c")
    assert counted.shard.min() >= 0 and counted.shard.max() < SHARDS
    cuts = [0, 1, 300, 301, 700, SHARDS]
    pieces = [load_shards(tmp_path / "c", a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    assert pa.concat_tables(pieces).sort_by("term").equals(counted.frequencies().sort_by("term"))
    assert size < (tmp_path / "c").stat().st_size
    empty = count_texts(["", "a"], "words", hashing)
    empty.save(tmp_path / "none")
    assert load_shards(tmp_path / "none", 0, SHARDS).num_rows == 0 and len(TermCounts.load(tmp_path / "none")) == 2
    counted.save(tmp_path / "terms", documents=False)
    assert (tmp_path / "terms").stat().st_size == size and TermCounts.load(tmp_path / "terms").parts == []


def test_a_term_has_one_hash_in_all_tables():
    one, two = Terms(4), Terms(4000)
    for table, terms in ((one, ["sea", "", "a longer term than sixteen bytes"]), (two, ["sky", "sea"])):
        text = "".join(terms).encode()
        offsets = np.cumsum([0, *(len(term) for term in terms)])
        table.enter(np.frombuffer(text + bytes(32), np.uint8), offsets)
    assert one.hashes()[0] == two.hashes()[1] != two.hashes()[0] and len(set(one.hashes())) == 3


def test_no_error_of_a_command_repeats_what_documents_say(tmp_path, monkeypatch, capsys):
    pq.write_table(pa.table({"text": ["my secret"] * 4, "y": ["a", "b"] * 2, "n": [1] * 4}), tmp_path / "d.parquet")
    arguments = ["prepare", str(tmp_path / "d.parquet"), "--label", "y", "--out", str(tmp_path / "o"), "--workers", "0"]

    def fails(*_, **__):
        raise ValueError("could not convert string to float: 'my secret'")

    for more in (["--split", "text"], ["--where", "text > 3"]):
        assert main([*arguments, *more, "--debug"]) in (2, 3)
        said = capsys.readouterr()
        assert "secret" not in said.err + said.out and "dboost: error" in said.err
    monkeypatch.setattr("pipelines.commands.prepare.prepare_text", fails)
    assert main(arguments) == 1
    assert "ValueError: could not convert string to float: (a value) (please report it" in capsys.readouterr().err


def test_no_message_repeats_what_documents_say():
    item = SimpleNamespace(spans=((SimpleNamespace(path="/d/a.parquet"), (3, 4)),))
    said = names([pa.table({"term": ["secret"]}), "secret", item, ("/d/b.csv", "secret"), (0, 7), {"a": "secret"}])
    assert said == "one of the partitions 0, 1, /d/a.parquet from row group 3 on, /d/b.csv, 0-7, 5"
    assert names([SimpleNamespace(key="x-3")]) == "partition x-3"
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)) as found:
        pa.array(["a", {"note": object()}], pa.string())
    assert "note" not in without_values(found.value)
    assert without_values("Could not convert <secret of it> with type X: no") == (
        "Could not convert (a value) with type X: no"
    )
