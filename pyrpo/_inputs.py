"""X, Y and weights of scikit-learn's many kinds, brought to the few the library reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from pyrpo._native import Matrix


def check_X(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a float array of any strides or as CSR (CSC too in fit); NaN means missing."""
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=["csr", "csc"] if reset else "csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan",
    )
    return _canonical(X) if sparse.issparse(X) else X


def _canonical(a: Any) -> Any:
    """Sum duplicates and sort indices, on a copy where there is something to do."""
    if a.has_canonical_format:
        return a
    a = a.copy()
    a.sum_duplicates()
    return a


@dataclass
class Outputs:
    """Y as the library wants it.

    `target` is what the split search sees, `labels` what the leaves hold (None: the same).
    """

    target: Any
    n_outputs: int
    impurity_scale: float
    ones: bool = False  # target is CSR and every stored entry is 1
    labels: np.ndarray | None = None  # [w * y | w] where entries are missing or weighted
    fallback: np.ndarray | None = None
    weight: np.ndarray | None = None  # by row

    def views(self) -> tuple[Matrix, Matrix | None]:
        """Pointers to target and labels."""
        return Matrix(self.target, ones=self.ones), None if self.labels is None else Matrix(
            self.labels
        )


def check_weight(sample_weight: Any, n_samples: int, n_outputs: int) -> np.ndarray | None:
    """Weights by row, or by row and output."""
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_samples, sample_weight)
    weight = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight"
    )
    if weight.shape not in {(n_samples,), (n_samples, n_outputs)}:
        raise ValueError(
            f"sample_weight must have shape ({n_samples},) or ({n_samples}, {n_outputs}), "
            f"got {weight.shape}"
        )
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative, found {weight.min()}")
    if not (weight > 0).any():
        raise ValueError("sample_weight must not be zero everywhere: all weights are zero")
    return weight


def by_entry(outputs: Outputs, Y: np.ndarray, weight: np.ndarray | None, scale) -> Outputs:
    """Missing entries, or weights by entry: leaves hold numerators and denominators.

    The split search sees a missing entry at its output's mean and a row at its mean weight.
    """
    observed = ~np.isnan(Y)
    entry = observed.astype(np.float64)
    if weight is not None and weight.ndim == 2:
        entry *= weight
        row = weight.mean(axis=1)
    else:
        row = np.ones(len(Y)) if weight is None else weight
    below = (entry * (1.0 if weight is None or weight.ndim == 2 else row[:, None])).sum(axis=0)
    filled = np.where(observed, Y, 0.0)
    total = entry if weight is None or weight.ndim == 2 else entry * row[:, None]
    empty = np.flatnonzero(below == 0)
    if len(empty):
        raise ValueError(
            f"y: output {empty[0]} is never observed (NaN or of weight 0 in every row)"
        )
    mean = (total * filled).sum(axis=0) / below
    if weight is not None and weight.ndim == 2:  # relative to the row's weight, which S carries
        entry = np.divide(entry, row[:, None], out=np.zeros_like(entry), where=row[:, None] > 0)
    outputs.target = np.where(observed, Y, mean) * scale
    outputs.ones = False
    outputs.labels = np.hstack([entry * filled, entry])
    outputs.fallback = mean
    outputs.weight = None if weight is None else row
    return outputs


def output_scale(kind: Any, Y: Any, weight: np.ndarray | None) -> Any:
    """Factor of each output in the split score."""
    if kind is None or (isinstance(kind, str) and kind == "none"):
        return 1.0
    d = Y.shape[1]
    if isinstance(kind, str):
        if kind != "std":
            raise ValueError(f"output_scale must be 'none', 'std' or an array, got {kind!r}")
        if sparse.issparse(Y):
            mean = np.asarray(Y.mean(axis=0)).ravel()
            square = np.asarray(Y.multiply(Y).mean(axis=0)).ravel()
            std = np.sqrt(np.maximum(square - mean**2, 0.0))
        else:
            std = np.nanstd(Y, axis=0)
        return np.divide(1.0, std, out=np.zeros(d), where=std > 0)
    scale = np.asarray(kind, dtype=np.float64)
    if scale.shape != (d,) or not np.isfinite(scale).all() or (scale < 0).any():
        raise ValueError(
            f"output_scale must hold {d} finite numbers, none negative; got shape {scale.shape}"
        )
    return scale


def _scaled(Y: Any, scale: Any) -> Any:
    if np.isscalar(scale):
        return Y
    return sparse.csr_array(Y.multiply(scale[None, :])) if sparse.issparse(Y) else Y * scale


def regression_outputs(y: Any, sample_weight: Any, scale_kind: Any) -> tuple[Outputs, int]:
    """Outputs of a regressor, and the number of dimensions y came in."""
    if sparse.issparse(y):
        Y = check_array(y, accept_sparse="csr", dtype=np.float64, input_name="y")
        Y, n_dims = _canonical(Y), 2
    else:
        Y = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
        )
        n_dims = Y.ndim
        Y = Y[:, None] if Y.ndim == 1 else Y
        if np.isnan(Y).all():
            raise ValueError("Input y contains NaN only")
    weight = check_weight(sample_weight, *Y.shape)
    outputs = Outputs(Y, Y.shape[1], 1.0 / Y.shape[1], weight=weight)
    scale = output_scale(scale_kind, Y, weight)
    return _with_weights(outputs, Y, weight, scale), n_dims


def _with_weights(outputs: Outputs, Y: Any, weight: np.ndarray | None, scale: Any) -> Outputs:
    per_entry = weight is not None and weight.ndim == 2
    if per_entry or (not sparse.issparse(Y) and np.isnan(Y).any()):
        if sparse.issparse(Y):
            raise ValueError("sample_weight by output needs a dense y, got a sparse one")
        return by_entry(outputs, Y, weight, scale)
    if not np.isscalar(scale):
        outputs.target = _scaled(Y, scale)
        outputs.ones = False
        outputs.labels = Y
    return outputs


def _is_indicator(y: Any) -> bool:
    """Whether y is a matrix of 0, 1 and, when dense, NaN."""
    if sparse.issparse(y):
        return True
    return hasattr(y, "ndim") and y.ndim == 2 and y.shape[1] > 1


def _indicator(y: Any) -> Any:
    """A CSR matrix of ones, or a dense array where entries are missing."""
    if sparse.issparse(y):
        Y = check_array(y, accept_sparse="csr", dtype=None, input_name="y")
        Y = _canonical(Y)
        if not np.isin(Y.data, (0, 1)).all():
            odd = Y.data[~np.isin(Y.data, (0, 1))][0]
            raise ValueError(f"y: an indicator matrix holds 0 and 1 only, found {odd}")
        if (Y.data == 0).any():
            Y = Y.copy()
            Y.eliminate_zeros()
        return Y
    Y = check_array(
        y, dtype=np.float64, ensure_all_finite="allow-nan", ensure_2d=True, input_name="y"
    )
    missing = np.isnan(Y)
    if missing.all():
        raise ValueError("Input y contains NaN only")
    bad = ~(missing | (Y == 0) | (Y == 1))
    if bad.any():
        raise ValueError(
            "y with several columns must be a label indicator of 0 and 1; multiclass-multioutput "
            f"targets are not supported (found {Y[bad][0]:g}). Encode each output by indicators"
        )
    return Y if missing.any() else sparse.csr_array(Y)


def label_weights(class_weight: Any, y: Any, classes: Any) -> np.ndarray | None:
    """Row weights that `class_weight` stands for, as scikit-learn defines them."""
    if class_weight is None:
        return None
    from sklearn.utils.class_weight import compute_sample_weight

    if isinstance(class_weight, str) and class_weight == "balanced_subsample":
        class_weight = "balanced"
    if classes is not None:
        return compute_sample_weight(class_weight, y)
    Y = sparse.csc_array(y) if not sparse.issparse(y) else y.tocsc()
    n, d = Y.shape
    ones = np.diff(Y.indptr)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                "class_weight must be a dict, a list of dicts, 'balanced' or "
                f"'balanced_subsample', got {class_weight!r}"
            )
        present = 1.0 + ((ones > 0) & (ones < n))  # classes a label takes
        with np.errstate(divide="ignore"):
            of_one, of_zero = n / (present * ones), n / (present * (n - ones))
    else:
        if isinstance(class_weight, dict):
            raise ValueError("class_weight must be a list of dicts, one a label; got one dict")
        if len(class_weight) != d:
            raise ValueError(f"class_weight must have {d} entries, got {len(class_weight)}")
        of_one = np.array([w.get(1, 1.0) for w in class_weight])
        of_zero = np.array([w.get(0, 1.0) for w in class_weight])
    if (of_zero[ones < n] == 0).any() or (of_one[ones > 0] == 0).any():
        return compute_sample_weight(class_weight, Y.toarray())
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(ones < n, np.log(of_zero), 0.0)
        step = np.where(ones > 0, np.log(of_one), 0.0) - zero
    weight = np.exp(zero.sum() + Y @ step)
    if not np.isfinite(weight).all() or not (weight > 0).any():
        raise ValueError("class_weight: the product over the labels leaves the range of numbers")
    return weight


def classification_outputs(y: Any, sample_weight: Any, class_weight: Any, scale_kind: Any):
    """Outputs of a classifier, its classes, and whether y was a label indicator."""
    if isinstance(y, list | tuple):
        y = np.asarray(y)
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if _is_indicator(y):
        Y = _indicator(y)
        d = Y.shape[1]
        weight = check_weight(sample_weight, *Y.shape)
        balance = label_weights(class_weight, np.nan_to_num(Y) if not sparse.issparse(Y) else Y, None)
        if balance is not None:
            by_rows = balance if weight is None or weight.ndim == 1 else balance[:, None]
            weight = by_rows if weight is None else weight * by_rows
        outputs = Outputs(Y, d, 2.0 / d, ones=sparse.issparse(Y), weight=weight)
        if weight is not None and weight.ndim == 2 and sparse.issparse(Y):
            Y = Y.toarray().astype(np.float64)
        scale = output_scale(scale_kind, Y, weight)
        return _with_weights(outputs, Y, weight, scale), np.arange(d), True
    y = column_or_1d(y, warn=True)
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"Unknown label type: {kind}. y must hold classes or be a label indicator")
    check_array(y, ensure_2d=False, dtype=None, input_name="y")
    classes, codes = np.unique(y, return_inverse=True)
    n = len(y)
    weight = check_weight(sample_weight, n, 1)
    if weight is not None and weight.ndim == 2:
        weight = weight.ravel()
    balance = label_weights(class_weight, y, classes)
    if balance is not None:
        weight = balance if weight is None else weight * balance
    Y = sparse.csr_array(
        (np.ones(n), codes.astype(np.int32), np.arange(n + 1, dtype=np.int32)),
        shape=(n, len(classes)),
    )
    return Outputs(Y, len(classes), 1.0, ones=True, weight=weight), classes, False
