"""X, Y and weights of scikit-learn's many kinds, brought to the few the library reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array, column_or_1d
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from pyrpo._native_call import Matrix

LARGEST = 1e100  # of outputs
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))  # read as they are; the first is wanted


def is_ready(a: Any, dtypes: tuple[np.dtype, ...] = FLOATS) -> bool:
    """Whether `check_array` would return this very array, which takes it longer than a tree."""
    return type(a) is np.ndarray and a.dtype in dtypes and a.ndim == 2 and a.size > 0


def check_X(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a float array of any strides or as CSR (CSC too in fit); NaN means missing."""
    if is_ready(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        assert_all_finite(X, allow_nan=True, input_name="X")
        return X
    check_structure(X, "X")
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=["csr", "csc"] if reset else "csr",
        dtype=FLOATS,
        ensure_all_finite="allow-nan",
    )
    return canonical(X) if sparse.issparse(X) else X


def check_structure(a: Any, name: str) -> None:
    """Refuse a sparse matrix whose indices point outside, before scipy follows them."""
    if sparse.issparse(a) and hasattr(a, "check_format"):
        try:
            a.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{name} is no valid sparse matrix: {error}") from error


def check_y_given(estimator: Any, y: Any) -> None:
    """Refuse a fit without y, in scikit-learn's words."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None"
        )


def check_same_rows(X: Any, Y: Any) -> None:
    """Refuse X and y of different lengths, in scikit-learn's words."""
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {X.shape[0]}, y has {Y.shape[0]}"
        )


def check_same_classes(estimator: Any, earlier: dict[str, Any]) -> None:
    """Refuse to go on with other classes, or with labels in place of classes."""
    same = np.array_equal(earlier.get("classes_"), getattr(estimator, "classes_", None))
    if not same or earlier.get("_indicator") != estimator._indicator:
        raise ValueError("warm_start goes on with the same classes only")


def canonical(a: Any) -> Any:
    """Sum duplicates and sort indices, on a copy where there is something to do."""
    if not a.has_canonical_format:
        a = a.copy()
        a.sum_duplicates()
    return a


@dataclass
class Outputs:
    """Y and what the library is given for it."""

    Y: Any  # as it came: CSR, or dense with NaN where missing
    impurity_scale: float
    ones: bool = False  # Y is CSR and every stored entry is 1
    weight: np.ndarray | None = None  # by row
    target: Any = None  # what the split search sees; None: Y
    labels: np.ndarray | None = None  # what the leaves hold; None: Y
    fallback: np.ndarray | None = None  # with it, labels are [numerators | denominators]

    @property
    def seen(self) -> Any:
        """What the split search sees."""
        return self.Y if self.target is None else self.target

    def views(self) -> tuple[Matrix, Matrix | None]:
        """Pointers to target and labels."""
        Y = Matrix(self.Y, ones=self.ones)
        if self.target is None:
            return Y, None
        return Matrix(self.target), Y if self.labels is None else Matrix(self.labels)


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


def output_scale(kind: Any, Y: Any) -> np.ndarray | None:
    """Factor of each output in the split score; None: all 1."""
    if kind is None or (isinstance(kind, str) and kind == "none"):
        return None
    if isinstance(kind, str):
        if kind != "std":
            raise ValueError(f"output_scale must be 'none', 'std' or an array, got {kind!r}")
        if sparse.issparse(Y):
            mean, square = Y.mean(axis=0), Y.multiply(Y).mean(axis=0)
            std = np.sqrt(np.maximum(np.ravel(square) - np.ravel(mean) ** 2, 0.0))
        else:
            std = np.nanstd(Y, axis=0)
        return np.divide(1.0, std, out=np.zeros(Y.shape[1]), where=std > 0)
    scale = np.asarray(kind, dtype=np.float64)
    if scale.shape != Y.shape[1:] or not np.isfinite(scale).all() or (scale < 0).any():
        raise ValueError(
            f"output_scale must hold {Y.shape[1]} finite numbers, none negative; got {kind!r}"
        )
    return scale


def _complete(outputs: Outputs, weight: np.ndarray | None, scale_kind: Any) -> Outputs:
    """Add weights and scales: to target and labels where Y itself will not do."""
    Y, scale = outputs.Y, output_scale(scale_kind, outputs.Y)
    by_entry = weight is not None and weight.ndim == 2
    if by_entry or (not sparse.issparse(Y) and np.isnan(Y).any()):
        dense = Y.toarray().astype(np.float64) if sparse.issparse(Y) else Y
        _ratio(outputs, dense, weight)
    else:
        outputs.weight = weight
    if scale is not None:
        seen = outputs.seen
        scaled = seen.multiply(scale[None, :]) if sparse.issparse(seen) else seen * scale
        outputs.target = sparse.csr_array(scaled) if sparse.issparse(scaled) else scaled
    return outputs


def _ratio(outputs: Outputs, Y: np.ndarray, weight: np.ndarray | None) -> None:
    """Entries missing, or weighted one by one: leaves hold numerators and denominators.

    The split search sees an entry that is missing or weighs nothing at its output's mean, and a row
    at its mean weight.
    """
    observed = ~np.isnan(Y)
    share = observed.astype(np.float64)  # of an entry in its row's weight
    if weight is None:
        row, entry = None, share
    elif weight.ndim == 1:
        row, entry = weight, share * weight[:, None]
    else:
        row, entry = weight.mean(axis=1), share * weight
        share = np.divide(entry, row[:, None], out=np.zeros_like(Y), where=row[:, None] > 0)
    filled, total = np.where(observed, Y, 0.0), entry.sum(axis=0)
    if (total == 0).any():
        empty = int(np.flatnonzero(total == 0)[0])
        raise ValueError(f"y: output {empty} is never observed (NaN or of weight 0 in every row)")
    mean = (entry * filled).sum(axis=0) / total
    steers = share > 0 if row is None else (share > 0) | (row == 0)[:, None] & observed
    outputs.target = np.where(steers, Y, mean)
    outputs.labels = np.hstack([share * filled, share])
    outputs.fallback, outputs.weight = mean, row


def real_outputs(y: Any) -> tuple[Any, int]:
    """Real-valued y as CSR or as an array of columns, and the number of dimensions y came in."""
    check_structure(y, "y")
    if sparse.issparse(y):
        Y = canonical(check_array(y, accept_sparse="csr", dtype=np.float64, input_name="y"))
        _check_size(Y.data)
        return Y, 2
    if is_ready(y, FLOATS[:1]):
        assert_all_finite(y, allow_nan=True, input_name="y")
        Y = y
    else:
        Y = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
        )
    if np.isnan(Y).all():
        raise ValueError("Input y contains NaN only")
    _check_size(Y)
    return (Y[:, None] if Y.ndim == 1 else Y), Y.ndim


def _check_size(values: np.ndarray) -> None:
    """Refuse what has no finite square; NaN passes."""
    worst = max(np.fmax.reduce(values, axis=None, initial=0.0),
                -np.fmin.reduce(values, axis=None, initial=0.0))  # fmt: skip
    if worst > LARGEST:
        raise ValueError(f"y must be of size {LARGEST:g} at most, found {worst:g}")


def regression_outputs(y: Any, sample_weight: Any, scale_kind: Any) -> tuple[Outputs, int]:
    """Outputs of a regressor, and the number of dimensions y came in."""
    Y, n_dims = real_outputs(y)
    weight = check_weight(sample_weight, *Y.shape)
    return _complete(Outputs(Y, 1.0 / Y.shape[1]), weight, scale_kind), n_dims


def label_indicator(y: Any) -> Any:
    """A CSR matrix of ones, or a dense array where entries are missing."""
    check_structure(y, "y")
    if sparse.issparse(y):
        Y = canonical(check_array(y, accept_sparse="csr", dtype=None, input_name="y"))
        odd = Y.data[(Y.data != 0) & (Y.data != 1)]
        if len(odd):
            raise ValueError(f"y: an indicator matrix holds 0 and 1 only, found {odd[0]}")
        if (Y.data == 0).any():
            Y = Y.copy()
            Y.eliminate_zeros()
        return Y
    refusal = (
        "y with several columns must be a label indicator of 0 and 1; multiclass-multioutput "
        "targets are not supported (found {}). Encode each output by indicators"
    )
    if np.asarray(y).dtype.kind in "USO":
        try:
            y = _numbers(np.asarray(y))
        except (TypeError, ValueError) as error:
            raise ValueError(refusal.format(np.asarray(y).flat[0])) from error
    Y = check_array(y, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
    missing = np.isnan(Y)
    if missing.all():
        raise ValueError("Input y contains NaN only")
    bad = ~(missing | (Y == 0) | (Y == 1))
    if bad.any():
        raise ValueError(refusal.format(f"{Y[bad][0]:g}"))
    return Y if missing.any() else sparse.csr_array(Y)


def _numbers(y: np.ndarray) -> np.ndarray:
    """Strings or objects as numbers; what stands for a missing entry in data frames is NaN."""
    if y.dtype.kind == "O":
        missing = [v is None or type(v).__name__ == "NAType" for v in y.flat]  # of pandas
        y = np.where(np.reshape(missing, y.shape), np.nan, y)
    return y.astype(np.float64)


def label_weights(class_weight: Any, Y: Any) -> np.ndarray:
    """Row weights of a label indicator: the product over its labels, as scikit-learn defines it."""
    Y = sparse.csc_array(Y)
    n, d = Y.shape
    ones = np.diff(Y.indptr)
    if isinstance(class_weight, str):
        taken = 1.0 + ((ones > 0) & (ones < n))  # classes a label takes
        with np.errstate(divide="ignore"):
            of_one, of_zero = n / (taken * ones), n / (taken * (n - ones))
    else:
        dicts = isinstance(class_weight, list | tuple) and all(
            isinstance(w, dict) for w in class_weight
        )
        if not dicts or len(class_weight) != d:
            raise ValueError(
                f"class_weight must be a list of {d} dicts, one a label; got {class_weight!r}"
            )
        of_one = np.array([w.get(1, 1.0) for w in class_weight])
        of_zero = np.array([w.get(0, 1.0) for w in class_weight])
        if np.isnan(of_one).any() or np.isnan(of_zero).any():
            raise ValueError("class_weight must hold numbers, found nan")
    if (of_zero[ones < n] <= 0).any() or (of_one[ones > 0] <= 0).any():
        return compute_sample_weight(class_weight, Y.toarray())
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = np.where(ones < n, np.log(of_zero), 0.0)
        step = np.where(ones > 0, np.log(of_one), 0.0) - zero
    weight = zero.sum() + Y @ step
    if abs(weight.max()) > 200:  # a common factor changes no tree, but their range is limited
        weight -= weight.max()
    weight = np.exp(weight)
    if not np.isfinite(weight).all() or not (weight > 0).any():
        raise ValueError("class_weight: the product over the labels leaves the range of numbers")
    return weight


def labels_or_classes(y: Any) -> tuple[Any, bool]:
    """Y as scipy or numpy hold it, and whether it is a label indicator."""
    if isinstance(y, list | tuple):
        y = np.asarray(y)
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    return y, sparse.issparse(y) or (getattr(y, "ndim", 1) == 2 and y.shape[1] > 1)


def class_codes(y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """1-D classes, their different values, and the number of each row's."""
    y = column_or_1d(y, warn=True)
    check_array(y, ensure_2d=False, dtype=None, input_name="y")
    kind = type_of_target(y, input_name="y")
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"Unknown label type: {kind}. y must hold classes or be a label indicator")
    return y, *np.unique(y, return_inverse=True)


def class_columns(codes: np.ndarray, n_classes: int, dtype: Any) -> sparse.csr_array:
    """CSR indicator of classes."""
    starts = np.arange(len(codes) + 1, dtype=np.int32)
    ones = np.ones(len(codes), dtype=dtype)
    return sparse.csr_array((ones, codes.astype(np.int32), starts), shape=(len(codes), n_classes))


def class_weighted(
    class_weight: Any, sample_weight: Any, Y: Any, classes: np.ndarray | None
) -> np.ndarray | None:
    """Weights times those of the 1-D classes or, where these are None, of Y's labels."""
    weight = check_weight(sample_weight, Y.shape[0], Y.shape[1] if classes is None else 1)
    if classes is not None and weight is not None:
        weight = weight.ravel()
    if class_weight is None:
        return weight
    if isinstance(class_weight, str) and class_weight != "balanced":
        raise ValueError(
            "class_weight must be a dict, a list of dicts (of labels), 'balanced' or, of forests, "
            f"'balanced_subsample', got {class_weight!r}"
        )
    if classes is None:
        rows = label_weights(class_weight, Y if sparse.issparse(Y) else np.nan_to_num(Y))
    else:
        if not isinstance(class_weight, str | dict):
            raise TypeError(
                f"class_weight of 1-D classes must be a dict or 'balanced', got {class_weight!r}"
            )
        rows = compute_sample_weight(class_weight, classes)
    if weight is None:
        return rows
    return weight * (rows[:, None] if weight.ndim == 2 else rows)


def classification_outputs(y: Any, sample_weight: Any, class_weight: Any, scale_kind: Any):
    """Outputs of a classifier, its classes, and whether y was a label indicator."""
    y, indicator = labels_or_classes(y)
    if indicator:
        Y = label_indicator(y)
        classes = np.arange(Y.shape[1])
    else:
        y, classes, codes = class_codes(y)
        Y = class_columns(codes, len(classes), np.float64)
    weight = class_weighted(class_weight, sample_weight, Y, None if indicator else y)
    scale = 2.0 / Y.shape[1] if indicator else 1.0
    outputs = Outputs(Y, scale, ones=sparse.issparse(Y))
    return _complete(outputs, weight, scale_kind), classes, indicator
