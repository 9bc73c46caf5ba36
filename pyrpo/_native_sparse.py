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
) -> np.ndarray:
    """Product of a CSR matrix A with Z, of the same float type; `ones`: A's values are all 1."""
    rows = A.shape[0 if kind == "product" else 1]
    out = np.empty((rows, Z.shape[1]), dtype=Z.dtype)
    if 0 in A.shape or 0 in Z.shape:
        out[:] = 0
        return out
    a, z = Matrix(A, ones=ones), Matrix(Z)
    with control(n_jobs) as c:
        check(_FUNCTIONS[kind], a.struct, given(weights), z.struct, c, address(out))
    return out
