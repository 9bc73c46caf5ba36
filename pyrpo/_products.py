"""A Z, AᵀZ and Aᵀ(w∘(A Z)) for arrays, sparse matrices and whatever else offers products.

CSR and CSC matrices are multiplied by the library, in parallel and without a copy in the other
order; arrays by BLAS; anything else by its own ``matmat`` and ``rmatmat`` (a ``LinearOperator``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from pyrpo import _native_sparse

_BLOCK = 1 << 22  # numbers of A Z that a Gram product of arrays holds at a time


def is_operator(A: Any) -> bool:
    """Whether A is known by its products alone, as scipy's ``LinearOperator``."""
    return hasattr(A, "shape") and (hasattr(A, "matmat") or hasattr(A, "matvec"))


def product(A: Any, Z: np.ndarray, *, n_jobs: int | None = None) -> np.ndarray:
    """A Z: A is n x p, Z is p x m."""
    if sparse.issparse(A):
        return _sparse("product", "t_product", A, Z, None, n_jobs)
    if isinstance(A, np.ndarray):
        return A @ Z
    return (A if hasattr(A, "matmat") else aslinearoperator(A)).matmat(Z)


def t_product(A: Any, Z: np.ndarray, *, n_jobs: int | None = None) -> np.ndarray:
    """AᵀZ: A is n x p, Z is n x m."""
    if sparse.issparse(A):
        return _sparse("t_product", "product", A, Z, None, n_jobs)
    if isinstance(A, np.ndarray):
        return A.T @ Z
    return (A if hasattr(A, "rmatmat") else aslinearoperator(A)).rmatmat(Z)


def gram_product(
    A: Any,
    Z: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    n_jobs: int | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Aᵀ(w∘(A Z)): A is n x p, Z is p x m, `weights` n numbers (None: ones).

    One pass over a CSR matrix or an array, and no n x m array is made of these. The result goes
    into `out`, if that is given: memory that is there need not be cleared.
    """
    if weights is not None and np.shape(weights) != A.shape[:1]:
        raise ValueError(f"weights must hold {A.shape[0]} numbers, got shape {np.shape(weights)}")
    if sparse.issparse(A) and A.format != "csc":
        return _sparse("gram_product", None, A, Z, weights, n_jobs, out)
    if isinstance(A, np.ndarray):
        return _gram_of_array(A, Z, weights, out)
    inner = product(A, Z, n_jobs=n_jobs)
    if weights is not None:
        inner = inner * np.asarray(weights, dtype=inner.dtype)[:, None]
    result = t_product(A, inner, n_jobs=n_jobs)
    if out is None:
        return result
    _native_sparse.check_out(out, result.shape, result.dtype)
    out[:] = result
    return out


def _gram_of_array(
    A: np.ndarray, Z: np.ndarray, weights: np.ndarray | None, out: np.ndarray | None
) -> np.ndarray:
    shape, dtype = (A.shape[1], Z.shape[1]), np.result_type(A, Z)
    if out is None:
        out = np.empty(shape, dtype=dtype)
    _native_sparse.check_out(out, shape, dtype)
    out[:] = 0
    step = max(1, _BLOCK // max(Z.shape[1], 1))
    for start in range(0, A.shape[0], step):
        block = A[start : start + step]
        inner = block @ Z
        if weights is not None:
            inner *= np.asarray(weights[start : start + step], dtype=inner.dtype)[:, None]
        out += block.T @ inner
    return out


def _sparse(
    kind: str, of_transposed: str | None, A: Any, Z: Any, weights: Any, n_jobs: Any, out: Any = None
) -> Any:
    """The library's product; a CSC matrix is the CSR form of its transpose."""
    Z = np.asarray(Z)
    if A.format == "csc":
        kind, A = of_transposed, A.T
    A = A.tocsr()
    dtype = np.result_type(A.dtype if A.dtype.kind == "f" else np.float32, Z.dtype, np.float32)
    ones = A.dtype == np.bool_ and bool(A.data.all())
    if not ones and A.dtype != dtype:
        A = A.astype(dtype)
    if Z.ndim != 2 or Z.shape[0] != A.shape[0 if kind == "t_product" else 1]:
        raise ValueError(f"Z of shape {Z.shape} does not go with A of shape {A.shape}")
    Z = np.ascontiguousarray(Z, dtype=dtype)
    return _native_sparse.multiply(kind, A, Z, weights, n_jobs, ones=ones, out=out)
