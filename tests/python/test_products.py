"""Products of sparse matrices with dense ones against numpy, by type, shape and thread."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from pyrpo import _native_sparse
from pyrpo._products import gram_product, product, t_product

SIZES = st.integers(0, 30)
FORMS = [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array, np.asarray]


@st.composite
def factors(draw):
    """A with empty rows, constant and repeated columns; a factor that fits; weights with 0."""
    n, p, m = draw(SIZES), draw(SIZES), draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = rng.normal(size=(n, p)) * (rng.random((n, p)) < draw(st.sampled_from([0, 0.1, 0.6, 1])))
    if draw(st.booleans()) and p > 2:
        A[:, 0], A[:, 1] = A[:, 2], 1.0
    weights = rng.random(n) * (rng.random(n) < 0.8) if draw(st.booleans()) else None
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    order = draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray, lambda Z: Z[:, ::-1]]))
    return A.astype(dtype), order(rng.normal(size=(p, m)).astype(dtype)), weights


@given(factors(), st.sampled_from(FORMS), st.sampled_from([np.int32, np.int64]), st.integers(1, 3))
def test_products_are_numpys(case, form, index, n_jobs):
    dense, Z, weights = case
    A = form(dense)
    if getattr(A, "format", None) in ("csr", "csc"):
        A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    tolerance = {"atol": 1e-3 if Z.dtype == np.float32 else 1e-10, "strict": True}
    inner = dense @ Z
    jobs = {"n_jobs": n_jobs}
    np.testing.assert_allclose(product(A, Z, **jobs), inner, **tolerance)
    np.testing.assert_allclose(t_product(A, inner, **jobs), dense.T @ inner, **tolerance)
    weighted = inner if weights is None else inner * weights[:, None].astype(Z.dtype)
    gram = gram_product(A, Z, weights, **jobs)
    np.testing.assert_allclose(gram, dense.T @ weighted, **tolerance)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_number_types_meet_in_the_wider_one(rng, dtype):
    A = sparse.csr_array((rng.random((20, 9)) < 0.3).astype(dtype))
    for kind in (np.float32, np.float64):
        Z = rng.normal(size=(9, 5)).astype(kind)
        out = product(A, Z)
        assert out.dtype == kind
        np.testing.assert_allclose(out, A.toarray().astype(kind) @ Z, rtol=1e-4, atol=1e-5)
    stored_false = A.astype(bool)
    stored_false.data[::2] = False
    Z = rng.normal(size=(9, 5))
    np.testing.assert_allclose(product(stored_false, Z), stored_false.toarray() @ Z)


def test_entries_in_any_order_and_twice(rng):
    A = sparse.csr_array((np.ones(5), [3, 0, 3, 1, 3], [0, 3, 3, 5]), shape=(3, 4))
    dense, Z = np.array([[1, 0, 0, 2], [0, 0, 0, 0], [0, 1, 0, 1.0]]), rng.normal(size=(4, 17))
    np.testing.assert_allclose(product(A, Z), dense @ Z)
    np.testing.assert_allclose(gram_product(A, Z), dense.T @ dense @ Z)


def test_operators(rng):
    dense, weights = rng.normal(size=(12, 7)), rng.random(12)
    Z = rng.normal(size=(7, 3))

    class Bare:  # no more than scipy asks for
        shape, dtype = dense.shape, dense.dtype
        matvec = staticmethod(lambda v: dense @ v)
        rmatvec = staticmethod(lambda v: dense.T @ v)

    own = LinearOperator(dense.shape, matvec=lambda v: dense @ v, rmatvec=lambda v: dense.T @ v)
    for A in (aslinearoperator(dense), own, Bare()):
        np.testing.assert_allclose(product(A, Z), dense @ Z)
        np.testing.assert_allclose(t_product(A, dense @ Z), dense.T @ dense @ Z)
        expected = dense.T @ (weights[:, None] * (dense @ Z))
        np.testing.assert_allclose(gram_product(A, Z, weights), expected)


def test_numbers_that_are_not_finite_spread(rng):
    dense, Z = np.zeros((3, 4)), np.ones((4, 20))
    dense[1, 2], dense[0, 0] = np.nan, np.inf
    out = product(sparse.csr_array(dense), Z)
    assert np.isinf(out[0]).all()
    assert np.isnan(out[1]).all()
    assert (out[2] == 0).all()


@pytest.mark.parametrize("Z", [np.ones(4), np.ones((3, 2))])
def test_shapes_that_do_not_fit_are_refused(Z):
    A = sparse.csr_array(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"Z of shape .* A of shape \(2, 4\)"):
        product(A, Z)


@pytest.mark.parametrize("of", [np.asarray, sparse.csr_array, sparse.csc_array, aslinearoperator])
def test_a_gram_product_into_memory_that_is_there(rng, of):
    A, Z, weights = of(rng.random((7, 5))), rng.random((5, 3)), rng.random(7)
    out = np.full_like(Z, np.nan)
    assert gram_product(A, Z, weights, out=out) is out
    np.testing.assert_array_equal(out, gram_product(A, Z, weights))


def _read_only(out):
    out.flags.writeable = False
    return out


@pytest.mark.parametrize("of", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize(
    "out",
    [
        np.empty((3, 4)),
        np.empty((2, 4, 3)),
        np.empty((4, 3), np.float32),
        np.empty((3, 4)).T,
        np.empty(97, np.uint8)[1:].view(np.float64).reshape(4, 3),
        _read_only(np.empty((4, 3))),
    ],
    ids=["shape", "3-D", "type", "order", "address", "read-only"],
)
def test_memory_of_another_form_is_refused(of, out):
    A, Z = of(np.ones((2, 4))), np.ones((4, 3))
    with pytest.raises(
        ValueError, match=r"out must be a writable float64 array in C order, of sha"
    ):
        gram_product(A, Z, out=out)


def test_bad_weights_and_indices_are_refused():
    A, Z = sparse.csr_array(np.ones((2, 4))), np.ones((4, 3))
    with pytest.raises(ValueError, match="weights must hold 2 numbers, got shape"):
        gram_product(A, Z, np.ones(3))
    with pytest.raises(ValueError, match="weight must be finite, found nan"):
        gram_product(A, Z, np.array([1.0, np.nan]))
    A.indices[1] = 4
    with pytest.raises(ValueError, match="A: index 4 is outside"):
        _native_sparse.multiply("product", A, Z)


def test_the_largest_index_type_is_kept(rng):
    A = sparse.random_array((500, 300), density=0.1, rng=rng, format="csr")
    Z = rng.normal(size=(300, 33))
    few = product(A, Z)
    A.indptr, A.indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    np.testing.assert_array_equal(product(A, Z), few)


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_dense_sides_go_by_panels(rng, dtype, in_order):
    """140 000 rows of B, more than caches hold: panels of one line, the last one not full.

    Where columns ascend in a row, entries go by tiles, with the same bits for any threads.
    """
    n, p, entries = 2500, 140_000, 240
    columns = rng.integers(p, size=(n, entries), dtype=np.int32)
    columns = (np.sort(columns, axis=1) if in_order else columns).ravel()
    values, starts = rng.normal(size=n * entries).astype(dtype), np.arange(n + 1) * entries
    A = sparse.csr_array((values, columns, starts.astype(np.int32)), shape=(n, p))
    Z, w = rng.normal(size=(p, 41 if dtype == np.float64 else 85)).astype(dtype), rng.random(n)
    close = {"atol": 1e-2 if dtype == np.float32 else 1e-10}
    inner = A @ Z
    weighted = (w[:, None] * inner).astype(dtype)
    one_thread = None
    for n_jobs in (1, 2, 5):
        jobs = {"n_jobs": n_jobs}
        found = product(A, Z, **jobs), t_product(A, inner, **jobs), gram_product(A, Z, w, **jobs)
        for part, oracle in zip(found, (inner, A.T @ inner, A.T @ weighted), strict=True):
            np.testing.assert_allclose(part, oracle, **close)
        one_thread = found if n_jobs == 1 else one_thread
        for part, before in zip(found, one_thread, strict=True):
            np.testing.assert_array_equal(part, before)


SCRIPT = """
import hashlib, sys
import numpy as np
from scipy import sparse
from pyrpo._products import gram_product, product, t_product

rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    for n, p, m in [(900, 70, 1), (900, 70, 37), (1000, 1000, 129), (50, 3000, 120)]:
        A = sparse.random_array((n, p), density=0.05, rng=rng, format="csr", dtype=dtype)
        Z, w = rng.normal(size=(p, m)).astype(dtype), rng.random(n)
        for jobs in sys.argv[1:]:
            jobs = {"n_jobs": int(jobs)}
            parts = [product(A, Z, **jobs), gram_product(A, Z, w, **jobs)]
            parts.append(t_product(A, parts[0], **jobs))
            parts.append(product(A.tocsc(), Z, **jobs))
            print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16])
"""


def digests(tmp_path, *n_jobs, **environment):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, n_jobs)],
        env=os.environ | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = run.stdout.splitlines()
    return [said[i :: len(n_jobs)] for i in range(len(n_jobs))]


def test_the_same_bits_everywhere(tmp_path):
    reference, *others = digests(tmp_path, 1, 2, 3, 7)
    assert len(set(reference)) == 8
    for name in ("baseline", "avx2", "avx512"):
        others += digests(tmp_path, 2, RPO_ISA=name)
    assert all(other == reference for other in others)
