"""Readers of the public data sets.

Covers: the twins, all formats on small made-up files, every error a reader gives, and, where they are, the real files.
"""

from __future__ import annotations

import gzip
import lzma
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dboost.errors import DataError, UsageError
from lab.datasets import SYNTHETIC, arxiv, bibtex, imdb, libsvm, stackoverflow, usps
from lab.datasets import mnist as digits
from lab.datasets.base import HOME_VARIABLE, data_file, data_home, open_text, read_bytes

real = pytest.mark.skipif(
    not os.environ.get(HOME_VARIABLE), reason=f"{HOME_VARIABLE} is not set: the public data sets are not here"
)


def shape(X: Any) -> tuple[int, int]:
    return int(X.shape[0]), int(X.shape[1])


def check(dataset: Any) -> None:
    """What every data set promises."""
    m, n = shape(dataset.X)
    m_test, n_test = shape(dataset.X_test)
    assert n == n_test == len(dataset.feature_names) == len(set(dataset.feature_names.tolist()))
    assert (m, m_test) == (dataset.y.shape[0], dataset.y_test.shape[0])
    stored = dataset.X.data if hasattr(dataset.X, "indptr") else dataset.X
    assert stored.dtype == np.float64 and np.isfinite(stored).all()
    if dataset.task == "multiclass":
        assert dataset.y.ndim == 1 and set(np.unique(dataset.y_test)) <= set(np.unique(dataset.y))
    elif dataset.task == "regression":
        assert dataset.y.ndim == 1 and dataset.y.dtype == np.float64 and np.isfinite(dataset.y).all()
    else:
        assert set(np.unique(dataset.y)) == {-1, 1}
        assert dataset.y.ndim == (2 if dataset.task == "multitask" else 1)


def test_twin_is_whole_and_reproducible() -> None:
    for name in sorted(SYNTHETIC):
        first, again, other = SYNTHETIC[name](0), SYNTHETIC[name](0), SYNTHETIC[name](1)
        check(first)
        np.testing.assert_array_equal(first.y, again.y)
        assert (first.X != again.X).sum() == 0
        assert not np.array_equal(first.y, other.y)


def test_data_home_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(HOME_VARIABLE, raising=False)
    with pytest.raises(DataError, match=HOME_VARIABLE):
        usps.load()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"no folder of data sets at .*nowhere"):
        data_home()
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    assert data_home() == tmp_path
    with pytest.raises(DataError, match=r"usps_11000.*names the folder that holds 'usps'"):
        usps.load()


def test_compressed_files_are_found_and_unpacked(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.xz").write_bytes(lzma.compress(b"1 2\n"))
    (tmp_path / "set" / "b.gz").write_bytes(gzip.compress(b"3 4\n"))
    (tmp_path / "set" / "c").write_bytes(b"5 6\n")
    for name, content in (("a", b"1 2\n"), ("b", b"3 4\n"), ("c", b"5 6\n")):
        path = data_file("set", name, home=tmp_path)
        assert read_bytes(path) == content
        with open_text(path) as file:
            assert file.read().encode() == content
    (tmp_path / "set" / "d.xz").write_bytes(b"no xz at all")
    with pytest.raises(DataError, match="cannot unpack"):
        read_bytes(tmp_path / "set" / "d.xz")


def test_sparse_text_is_read() -> None:
    X, y = libsvm.parse_sparse(["-1 2:0.5 4:1e-2", "", "+1 1:3"], 4, 1, "file")
    np.testing.assert_array_equal(X.toarray(), [[0, 0.5, 0, 0.01], [3, 0, 0, 0]])
    np.testing.assert_array_equal(y, [-1, 1])
    X, _ = libsvm.parse_sparse(["1 |f 0:2 3:1"], 4, 0, "file")
    np.testing.assert_array_equal(X.toarray(), [[2, 0, 0, 1]])


def test_bad_sparse_text_is_refused() -> None:
    for line, message in [
        ("3 1:1", "label 3, expected -1 or 1"),
        ("1 a", "line 1 is not"),
        ("1 5:1", "indices 5 to 5, expected 1 to 4"),
        ("1 0:1", "indices 0 to 0, expected 1 to 4"),
    ]:
        with pytest.raises(DataError, match=message):
            libsvm.parse_sparse([line], 4, 1, "file")


ARFF = """% a comment
@relation 'some: -C 2'
@attribute 'two words' numeric
@attribute plain {0,1}
@attribute answer {NO,YES}
@attribute it\\'s {0,1}
@data
"""


def test_arff_sparse_and_dense_agree() -> None:
    sparse_names, sparse = bibtex.parse_arff((ARFF + "{0 2.5,2 YES}\n{}\n{1 1, 3 1}\n").splitlines(), "file")
    dense_names, dense = bibtex.parse_arff((ARFF + "2.5,0,YES,0\n0,0,NO,0\n0,1,NO,1\n").splitlines(), "file")
    assert sparse_names == dense_names == ["two words", "plain", "answer", "it's"]
    np.testing.assert_array_equal(sparse.toarray(), dense.toarray())
    np.testing.assert_array_equal(dense.toarray(), [[2.5, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]])
    labels = bibtex.parse_labels(b'<labels xmlns="x"><label name="it\\\'s"/><label name="plain"/></labels>', "file")
    X, Y, names = bibtex.split_labels(dense_names, dense, labels, "file")
    assert names == ["two words", "answer"]
    np.testing.assert_array_equal(X.toarray(), [[2.5, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(Y, [[-1, -1], [-1, -1], [1, 1]])


def test_bad_arff_is_refused() -> None:
    for text, message in [
        (ARFF + "1,2\n", "2 values for 4 attributes"),
        (ARFF + "{9 1}\n", "does not fit the attributes"),
        ("@attribute when date\n@data\n", "type 'date', expected numeric or nominal"),
        ("@attribute c {red,blue}\n@data\n", "expected numbers or YES/NO"),
        ("@attribute c {2,0}\n@data\n{}\n", "left out it would mean 2.0, expected 0"),
    ]:
        with pytest.raises(DataError, match=message):
            bibtex.parse_arff(text.splitlines(), "file")


def test_bad_label_lists_are_refused() -> None:
    with pytest.raises(DataError, match="not an XML list"):
        bibtex.parse_labels(b"<labels>", "file")
    _, matrix = bibtex.parse_arff((ARFF + "1,0,NO,0\n").splitlines(), "file")
    with pytest.raises(DataError, match="1 labels of the XML list are no column, the first 'other'"):
        bibtex.split_labels(["two words", "plain", "answer", "it's"], matrix, ["plain", "other"], "file")


def test_idx_is_read_and_checked() -> None:
    images = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    content = b"\x00\x00\x08\x03" + struct.pack(">III", 2, 3, 4) + images.tobytes()
    np.testing.assert_array_equal(digits.parse_idx(content, "file"), images)
    with pytest.raises(DataError, match=r"shape \(2, 3, 4\) must have 40 bytes, found 39"):
        digits.parse_idx(content[:-1], "file")
    with pytest.raises(DataError, match="not an idx file"):
        digits.parse_idx(b"PNG" + content, "file")
    np.testing.assert_array_equal(digits.pool(np.arange(16.0).reshape(1, 4, 4), 2)[0], [[2.5, 4.5], [10.5, 12.5]])
    with pytest.raises(DataError, match="cannot be pooled by 3"):
        digits.pool(np.zeros((1, 4, 4)), 3)


def test_archives_keep_one_that_is_only_listed() -> None:
    labels = arxiv.archives(["math.NA", "cs.LG", "hep-th"], ["math.NA,cs.LG", "cs.LG,ao-sci", "hep-th"])
    assert labels.tolist() == ["math", "ao-sci", "hep-th"]


def test_draw_loses_no_archive() -> None:
    labels = np.repeat(np.array(["a", "b", "c"]), [1, 2, 997])
    chosen = arxiv.draw(labels, 20, seed=3)
    assert chosen.tolist() == sorted(set(chosen.tolist())) and chosen.size == 20
    assert [int((labels[chosen] == name).sum()) for name in "abc"] == [1, 2, 17]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown set 'news'; expected one of a9a"):
        libsvm.load("news")
    with pytest.raises(UsageError, match="unknown set 'news'; expected one of bibtex"):
        bibtex.load("news")


@real
@pytest.mark.full
def test_real_sets_have_the_sizes_of_their_sources() -> None:
    """One item: a set that is read wrongly is told by its counts, and each is a file of its own."""
    images = digits.load(n_train=3000)
    check(images)
    assert shape(images.X) == (3000, 784) and shape(images.X_test) == (10_000, 784)
    assert images.X_test.mean() * 255 == pytest.approx(33.7912, abs=1e-4)
    labels = digits.parse_idx(read_bytes(data_file("mnist", digits.FILES[1])), "labels")
    assert np.bincount(labels).tolist()[:3] == [5923, 6742, 5958]
    questions = stackoverflow.load()
    check(questions)
    assert questions.y.shape == (16_000,) and len(np.unique(questions.y)) == 20
    for name, rows, nnz, positive in (
        ("a9a", 32_561, 451_592, 7841),
        ("reuters_lasvm", 7770, 339_837, 538),
        ("rcv1_vw_small", 1000, None, 459),
    ):
        dataset = libsvm.load(name)
        check(dataset)
        assert dataset.X.shape[0] == rows and int((dataset.y > 0).sum()) == positive
        assert nnz is None or dataset.X.nnz == nnz
    for name, (train, test), columns, n_labels in (
        ("bibtex", (4880, 2515), 1836, 159),
        ("delicious", (12_920, 3185), 500, 983),
        ("yeast", (1500, 917), 103, 14),
    ):
        dataset = bibtex.load(name)
        check(dataset)
        assert (dataset.X.shape[0], dataset.X_test.shape[0]) == (train, test)
        assert (dataset.X.shape[1], dataset.y.shape[1]) == (columns, n_labels)
        assert dataset.label_names is not None and len(dataset.label_names) == n_labels
    abstracts = arxiv.load(n_documents=4000, n_test=500)
    check(abstracts)
    assert abstracts.X.shape[0] == 4000 and len(np.unique(abstracts.y)) == 37
    texts, categories = arxiv.titles()
    assert len(texts) == categories.shape[0] == 573_800 and len(np.unique(categories)) == 172
    texts, y, training = imdb.reviews()
    assert len(texts) == 50_000 and int(training.sum()) == 25_000
    assert int((y[training] > 0).sum()) == int((y[~training] > 0).sum()) == 12_500
