"""The library's products of sparse and dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrpo._native_call import Matrix, check, control, given, into, lib

_FUNCTIONS = {
    "product": lib.rpo_sparse_product,
    "t_product": lib.rpo_sparse_transposed_product,
    "gram_product": lib.rpo_sparse_gram_product,
}


def check_out(out: np.ndarray, shape: tuple[int, int], dtype: np.dtype) -> None:
    """An array that a result can go into; it must lie apart from the factors."""
    flags = out.flags
    fits = out.shape == shape and out.dtype == dtype
    if not (fits and flags.c_contiguous and flags.aligned and flags.writeable):
        raise ValueError(
            f"out must be a writable {dtype} array in C order, of shape {shape}, "
            f"got {out.dtype} of shape {out.shape}"
        )


def multiply(
    kind: str,
    A: Any,
    Z: np.ndarray,
    weights: np.ndarray | None = None,
    n_jobs: int | None = None,
    *,
    ones: bool = False,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Product of a CSR matrix A with Z, of the same float type; `ones`: A's values are all 1.

    It goes into `out`, if that is given: see `check_out`.
    """
    shape = (A.shape[0 if kind == "product" else 1], Z.shape[1])
    if out is None:
        out = np.empty(shape, dtype=Z.dtype)
    else:
        check_out(out, shape, Z.dtype)
    if 0 in A.shape or 0 in Z.shape:
        out[:] = 0
        return out
    a, z = Matrix(A, ones=ones), Matrix(Z)
    with control(n_jobs) as c:
        check(_FUNCTIONS[kind], a.struct, given(weights), z.struct, c, into(out))
    return out
