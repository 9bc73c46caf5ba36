"""What metrics are given, brought to what they compute with."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from pyrpo._inputs import canonical, check_structure, check_weight


def read_numbers(a: Any, name: str, *, dtype: Any = "numeric", finite: bool = True) -> Any:
    """Two-dimensional array or CSR matrix of numbers, not empty."""
    check_structure(a, name)
    a = check_array(
        a,
        accept_sparse="csr",
        dtype=dtype,
        ensure_all_finite=finite,
        ensure_2d=False,
        allow_nd=True,
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name=name,
    )
    if a.ndim != 2 or 0 in a.shape:
        raise ValueError(
            f"{name} must have rows and columns, at least one each, got shape {a.shape}"
        )
    return canonical(a) if sparse.issparse(a) else a


def read_labels(Y: Any) -> sparse.csr_array:
    """Label indicator as CSR, its stored entries all 1 and in order of columns."""
    Y = sparse.csr_array(read_numbers(Y, "Y", finite=False))
    wrong = (Y.data != 0) & (Y.data != 1)
    if wrong.any():
        raise ValueError(f"Y must hold zeros and ones only, found {Y.data[wrong][0]}")
    if not Y.data.all():
        Y = Y.copy()
        Y.eliminate_zeros()
    return Y


def read_labels_as_they_are(Y: Any) -> Any:
    """The same, but dense floats stay, unchecked, where the library reads them itself."""
    if isinstance(Y, np.ndarray) and Y.ndim == 2 and Y.size and Y.dtype in (np.float32, np.float64):
        return Y
    return read_labels(Y)


def read_scores(scores: Any, shape: tuple[int, int]) -> np.ndarray:
    """Dense scores of the shape of Y; the library refuses those that are not finite."""
    if sparse.issparse(scores):
        raise TypeError(
            "scores must be dense, got a sparse matrix: what is not stored has no score"
        )
    scores = read_numbers(scores, "scores", dtype=[np.float64, np.float32], finite=False)
    if scores.shape != shape:
        raise ValueError(f"scores must have the shape {shape} of Y, got {scores.shape}")
    return scores


def read_weight(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Weights by row."""
    weight = check_weight(sample_weight, n_samples, 1)
    return None if weight is None else weight.ravel()


def entry_rows(Y: sparse.csr_array) -> np.ndarray:
    """Row of each stored entry."""
    return np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> None:
    """Refuse what is not among the choices."""
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name} must be one of {choices}, got {value!r}")
