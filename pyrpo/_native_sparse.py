"""The library's products of sparse and dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrpo._native_call import Matrix, address, check, control, given, lib

_FUNCTIONS = {
    "product": lib.rpo_sparse_product,
    "t_product": lib.rpo_sparse_transposed_product,
    "gram_product": lib.rpo_sparse_gram_product,
}


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

    It goes into `out`, if that is given: an array of rows without gaps, apart from Z.
    """
    shape = (A.shape[0 if kind == "product" else 1], Z.shape[1])
    if out is None:
        out = np.empty(shape, dtype=Z.dtype)
    elif out.shape != shape or out.dtype != Z.dtype or not out.flags.c_contiguous:
        raise ValueError(f"out must be a {Z.dtype} array in C order, of shape {shape}")
    if 0 in A.shape or 0 in Z.shape:
        out[:] = 0
        return out
    a, z = Matrix(A, ones=ones), Matrix(Z)
    with control(n_jobs) as c:
        check(_FUNCTIONS[kind], a.struct, given(weights), z.struct, c, address(out))
    return out
