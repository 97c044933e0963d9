"""What the short lane leaves out is seen in what it takes."""

from __future__ import annotations

from tests.lanes import covering, for_all_only, words


def test_every_word_of_a_grid_is_in_what_is_taken() -> None:
    losses, penalties, engines = ("log", "exp", "squared", "huber"), ("l1", "l1/l2", "l2"), ("threads", "dask")
    grid = [f"a.py::test_one[{a}-{b}-{c}]" for a in losses for b in penalties for c in engines]
    taken = covering(grid)
    assert set().union(*map(words, taken)) == {*losses, *penalties, *engines}
    assert len(taken) <= len(losses) + 1
    # another function takes other members, so that pairs meet somewhere
    other = {name.replace("two", "one") for name in covering([name.replace("one", "two") for name in grid])}
    assert other != taken


def test_functions_without_a_grid_stay_whole() -> None:
    assert for_all_only(["a.py::test_one", "a.py::test_two[x]", "b.py::test_one"]) == set()
    assert len(for_all_only([f"a.py::test[{n}-seed]" for n in range(4)] + ["a.py::test[0-seed-1]"])) == 2
