"""What embeddings that select labels share: codes are columns of Y, the others interpolated."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from pyrpo.embedding._base import Embedding


class LabelSelection(Embedding):
    """Codes are the selected labels; scores are codes times the interpolation."""

    columns_: np.ndarray
    interpolation_: np.ndarray

    def _encode(self, Y):
        return dense_columns(Y, self.columns_)

    def _decode(self, codes):
        return codes @ self.interpolation_


def dense_columns(Y: Any, columns: np.ndarray) -> np.ndarray:
    """Some columns of Y as an array."""
    chosen = Y[:, columns]
    return chosen.toarray() if sparse.issparse(chosen) else np.ascontiguousarray(chosen)


def scale_rows(Y: Any, weight: np.ndarray | None) -> Any:
    """Rows times the square roots of their weights."""
    if weight is None:
        return Y
    root = np.sqrt(weight).astype(Y.dtype)[:, None]
    return sparse.csr_array(Y.multiply(root)) if sparse.issparse(Y) else Y * root


def refuse_beyond(limit: float, n_labels: int, copies: int, name: str) -> None:
    """Refuse methods of dense (n_labels, n_labels) matrices where these would not fit."""
    needed = 8.0 * copies * n_labels**2
    if needed > limit:
        raise ValueError(
            f"{name} holds {copies} dense matrices of {n_labels} x {n_labels} labels, "
            f"{needed / 1e9:.1f} GB, more than memory_limit={limit / 1e9:g} GB"
        )
