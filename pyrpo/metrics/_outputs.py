"""Metrics of real-valued outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import r2_score

from pyrpo.metrics._read import read_numbers, read_weight

_BLOCK = 1 << 20  # numbers made dense at a time


def _read_pair(Y: Any, predicted: Any) -> tuple[Any, Any]:
    Y, predicted = (
        a if sparse.issparse(a) or np.ndim(a) != 1 else np.reshape(a, (-1, 1))
        for a in (Y, predicted)
    )
    Y, predicted = read_numbers(Y, "Y"), read_numbers(predicted, "predicted")
    if Y.shape != predicted.shape:
        raise ValueError(f"predicted must have the shape {Y.shape} of Y, got {predicted.shape}")
    return Y, predicted


def _dense(a: Any) -> np.ndarray:
    """A block of either as float64."""
    return (a.toarray() if sparse.issparse(a) else a).astype(np.float64, copy=False)


def rmse(Y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    r"""Root mean squared length of a sample's error, :math:`\|\hat Y - Y\|_F / \sqrt{n}`.

    That of Bi and Kwok (2013), eq. (6). The mean is over samples, not over entries:
    scikit-learn's ``root_mean_squared_error`` divides by the number of outputs as well.

    Parameters
    ----------
    Y, predicted : array or sparse matrix of shape (n_samples, n_outputs) or array of (n_samples,)
    sample_weight : array of shape (n_samples,), default=None

    Returns
    -------
    rmse : float

    Examples
    --------
    >>> from pyrpo.metrics import rmse
    >>> rmse([[0, 0], [1, 1]], [[3, 4], [1, 1]])
    3.5355339059327378
    """
    Y, predicted = _read_pair(Y, predicted)
    n, d = Y.shape
    weight = read_weight(sample_weight, n)
    square = np.empty(n)
    step = max(_BLOCK // d, 1)
    for first in range(0, n, step):
        rows = slice(first, first + step)
        error = _dense(Y[rows]) - _dense(predicted[rows])
        square[rows] = np.einsum("ij,ij->i", error, error)
    return float(np.sqrt(np.average(square, weights=weight)))


def macro_r2(Y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    r"""Share of variance explained, :math:`1 - RSS_j / TSS_j`, averaged over the outputs j.

    scikit-learn's ``r2_score(multioutput="uniform_average")``, called on blocks of outputs. An
    output that is constant in Y counts 1 if it is predicted exactly, else 0.

    Parameters
    ----------
    Y, predicted : array or sparse matrix of shape (n_samples, n_outputs) or array of (n_samples,)
    sample_weight : array of shape (n_samples,), default=None

    Returns
    -------
    r2 : float
    """
    Y, predicted = _read_pair(Y, predicted)
    n, d = Y.shape
    if n < 2:
        raise ValueError(f"Y must have at least 2 samples: r2 compares with their mean, got {n}")
    weight = read_weight(sample_weight, n)
    Y, predicted = (a.tocsc() if sparse.issparse(a) else a for a in (Y, predicted))
    step = max(_BLOCK // n, 1)
    values = [
        r2_score(
            _dense(Y[:, first : first + step]),
            _dense(predicted[:, first : first + step]),
            sample_weight=weight,
            multioutput="raw_values",
        )
        for first in range(0, d, step)
    ]
    return float(np.concatenate(values).mean())
