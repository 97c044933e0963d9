"""Faces: adjointness, derivatives against finite differences, what retraction pulls back."""

from __future__ import annotations

import numpy as np

from dboost.penalties import L1, L2, Linf, NoPenalty, SmoothLinf, SparseGroup
from tests.penalties.conftest import ANY, NORMS

FACED = (*ANY, SmoothLinf(0.5), SmoothLinf(20.0))


def settled(penalty, cases, rows=30, k=6):
    """Rows as a prox leaves them: zeros, ties, and every entry well away from the border of its face."""
    W = penalty.prox(cases.rows(rows, k, ties=0.1), 0.3)
    lam = np.abs(cases.rng.normal(size=rows)) + 0.1
    lam[::6] = 0.0
    return W, lam


def test_restrict_is_the_adjoint_of_expand(cases, rng):
    for penalty in FACED:
        W, lam = settled(penalty, cases)
        for face in (penalty.face(W), penalty.face(W, lam)):
            assert face.dim > 20
            for _ in range(20):
                v, G = rng.normal(size=face.dim), rng.normal(size=W.shape)
                assert np.isclose(face.restrict(G) @ v, (G * face.expand(v)).sum(), rtol=1e-11)
                assert face.restrict(G).shape == (face.dim,) and face.expand(v).shape == W.shape


def test_derivatives_against_finite_differences(cases, rng):
    for penalty in FACED:
        W, lam = settled(penalty, cases)
        face = penalty.face(W, lam)

        def total(v, penalty=penalty, W=W, face=face, lam=lam):
            return penalty.total(W + face.expand(v), lam)

        # Below this length no entry crosses zero, and no loose entry reaches the bound.
        sizes = np.abs(W)[np.abs(W) > 0]
        top = np.abs(W).max(axis=1, keepdims=True)
        gaps = (top - np.abs(W))[np.abs(W) < top * (1 - 1e-9)]
        h = 0.02 * min(sizes.min(), gaps.min(initial=np.inf), 0.1)
        checked = 0
        for _ in range(20):
            v = rng.normal(size=face.dim)
            v /= np.abs(v).max()
            slope = (total(-2 * h * v) - 8 * total(-h * v) + 8 * total(h * v) - total(2 * h * v)) / (12 * h)
            assert np.isclose(face.gradient(lam) @ v, slope, rtol=1e-8, atol=1e-9 * (1 + total(0 * v)) / h * 1e-3)
            moved = [penalty.face(W + face.expand(s * h * v), lam).gradient(lam) for s in (-2, -1, 1, 2)]
            bend = (moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * h)
            scale = np.abs(bend).max() + 1.0
            assert np.allclose(face.hessian(v, lam), bend, rtol=0, atol=1e-5 * scale + 1e-12 / h)
            checked += 1
        assert checked == 20
        for unit in np.eye(face.dim)[:: face.dim // 7]:
            assert np.isclose(face.hessian(unit, lam) @ unit, face.diagonal(lam) @ unit, rtol=1e-12, atol=1e-12)


def test_small_steps_stay_on_the_face(cases, rng):
    for penalty in FACED:
        W, lam = settled(penalty, cases)
        face = penalty.face(W, lam)
        v = 1e-9 * rng.normal(size=face.dim)
        new = face.retract(W, v)
        assert np.allclose(new, W + face.expand(v), rtol=0, atol=1e-15 * np.abs(W).max())
        assert penalty.face(new, lam).dim == face.dim
        assert np.array_equal(face.retract(W, np.zeros(face.dim)), W)


def test_retracted_rows_stay_on_their_side(cases, rng):
    """However long the step: signs never flip, zero entries off the face stay zero, rows with lam = 0 move freely."""
    for penalty in NORMS:
        W, lam = settled(penalty, cases)
        face = penalty.face(W, lam)
        flips = 0
        for length in (0.1, 1.0, 10.0, 100.0):
            v = length * rng.normal(size=face.dim)
            plain, new = W + face.expand(v), face.retract(W, v)
            held = lam > 0
            assert np.array_equal(new[~held], plain[~held])
            assert not new[held & ~W.any(axis=1)].any() or penalty.name == "none"
            if penalty.name == "none":
                assert np.array_equal(new, plain)
            elif isinstance(penalty, L2):
                inner = (new * W).sum(1)
                assert np.all(inner[held] >= 0) and not new[held & (inner == 0)].any()
            elif isinstance(penalty, Linf):
                size = np.abs(W).max(axis=1, keepdims=True)
                tied = held[:, None] & (np.abs(W) >= size * (1 - 1e-12)) & (size > 0)
                after = np.abs(new).max(axis=1, keepdims=True)
                assert np.array_equal(np.abs(new)[tied], np.broadcast_to(after, new.shape)[tied])
                assert np.all(new[tied] * W[tied] >= 0)
            else:
                assert np.all(new[held] * W[held] >= 0) and not new[held[:, None] & (W == 0)].any()
            flips += int((new != plain).any())
        assert flips >= 2 or penalty.name == "none"


def test_dimensions():
    W = np.array([[1.0, -1.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0], [2.0, 0.0, -2.0, 2.0]])
    assert L1().face(W).dim == 6 and SparseGroup().face(W).dim == 6
    assert L2().face(W).dim == 8 and NoPenalty().face(W).dim == 12
    assert Linf().face(W).dim == 2 + 1 + 1 + 1
    free = np.array([1.0, 0.0, 1.0])
    assert L1().face(W, free).dim == 10 and L2().face(W, free).dim == 12 and Linf().face(W, free).dim == 9


def test_bound_face_by_hand():
    W = np.array([[1.0, -1.0, 0.5, 0.0]])
    face = Linf().face(W)
    assert np.array_equal(face.expand(np.array([0.1, 0.2, 0.3])), [[0.3, -0.3, 0.1, 0.2]])
    assert np.array_equal(face.restrict(np.array([[1.0, 2.0, 3.0, 4.0]])), [3.0, 4.0, -1.0])
    assert np.array_equal(face.gradient(5.0), [0.0, 0.0, 5.0])
    assert np.allclose(face.retract(W, np.array([0.9, -2.0, -0.2])), [[0.8, -0.8, 0.8, -0.8]])
    assert not face.retract(W, np.array([0.0, 0.0, -1.5])).any()


def test_crossing_by_hand():
    for make in [L1, L2, SparseGroup]:
        W = np.array([[1.0, 1.0]])
        new = make().face(W).retract(W, np.array([-1.5, 0.25]))
        assert np.array_equal(new, [[-0.5, 1.25]] if make is L2 else [[0.0, 1.25]])
        assert not make().face(W).retract(W, np.array([-1.5, -1.5])).any()


def test_coordinates_undo_expand_and_places_name_entries(cases, rng):
    for penalty in FACED:
        W, lam = settled(penalty, cases)
        face = penalty.face(W, lam)
        v = rng.normal(size=face.dim)
        np.testing.assert_allclose(face.coordinates(face.expand(v)), v, rtol=1e-12)
        places = face.places()
        tied, sizes = face.ties()
        own = places[places >= 0]
        shared = sizes[sizes >= 0]
        assert np.array_equal(np.sort(np.concatenate([own, shared])), np.arange(face.dim))
        wanted = np.where(places >= 0, v[places], 0.0)
        wanted[sizes >= 0] += tied[sizes >= 0] * v[shared][:, None]
        np.testing.assert_allclose(face.expand(v), wanted)


def test_the_penalty_is_straight_along_its_lines_only(cases):
    for penalty in FACED:
        W, lam = settled(penalty, cases)
        face = penalty.face(W, lam)
        lines = face.lines()
        assert lines.shape == W.shape
        chosen = np.flatnonzero(np.any(lines != 0.0, axis=1))
        bend = np.zeros(face.dim + 1)
        bend[:-1] = face.diagonal(lam)
        places = face.places()
        for j in chosen:
            alone = np.zeros_like(W)
            alone[j] = lines[j]
            v = face.restrict(alone)
            np.testing.assert_allclose(np.linalg.norm(v), 1.0, rtol=1e-12)
            np.testing.assert_allclose(face.hessian(v, lam), 0.0, atol=1e-12 * (1.0 + bend.max()))
        # a row that has no line of its own is curved in none of its entries, or in all directions
        curved = np.any(bend[places] > 0.0, axis=1)
        if penalty.threshold and penalty.separable and penalty.degree == 1:
            assert np.array_equal(np.flatnonzero(curved & (np.count_nonzero(places >= 0, axis=1) > 1)), chosen)
