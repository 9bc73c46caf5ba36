"""What boosting is given: outputs, weights of rows and entries, rows that are only watched."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from scipy import sparse

from pyrpo._inputs import (
    check_weight,
    class_codes,
    class_columns,
    class_weighted,
    label_indicator,
    labels_or_classes,
    real_outputs,
)
from pyrpo._options import stream

FAR = 1e4  # times its range from 0 is too far for an output
LARGEST = 1e20  # of outputs: sums of many, weighted, fit single precision


@dataclass
class BoostData:
    """Outputs Y, dense or CSR and complete; what is missing has an entry weight of 0."""

    Y: Any
    weight: np.ndarray | None = None
    entry_weight: np.ndarray | None = None
    watched: np.ndarray | None = None  # rows that are not trained on
    classes: bool = False  # one 1 in each row

    @property
    def rows(self) -> int:
        return self.Y.shape[0]

    @property
    def outputs(self) -> int:
        return self.Y.shape[1]

    @property
    def held_rows(self) -> np.ndarray:
        """Numbers of the rows that are watched."""
        return np.flatnonzero(self.watched)

    @property
    def held(self) -> BoostData:
        """The rows that are watched, as data of their own."""
        return self._take(self.held_rows)

    def dense(self) -> np.ndarray:
        """Y as an array, NaN where it is missing."""
        Y = self.Y.toarray() if sparse.issparse(self.Y) else self.Y
        missing = self.entry_weight is not None and (self.entry_weight == 0).any()
        return np.where(self.entry_weight == 0, np.nan, Y) if missing else Y

    def _take(self, rows: Any) -> BoostData:
        def part(a):
            return None if a is None else a[rows]

        return replace(
            self,
            Y=self.Y[rows],
            weight=part(self.weight),
            entry_weight=part(self.entry_weight),
            watched=part(self.watched),
        )

    def column(self, j: int) -> BoostData:
        """One output."""
        return replace(
            self,
            Y=self.Y[:, [j]],
            entry_weight=None if self.entry_weight is None else self.entry_weight[:, [j]],
        )

    def hold(self, rows: np.ndarray) -> BoostData:
        """Mark rows as watched."""
        watched = np.zeros(self.rows, dtype=bool)
        watched[rows] = True
        return replace(self, watched=watched)

    def choose(self, seed: int, share: float) -> np.ndarray:
        """Rows of positive weight to hold out; of classes, each its share."""
        rows = np.arange(self.rows) if self.weight is None else np.flatnonzero(self.weight)
        wanted = min(max(1, ceil(share * len(rows))), len(rows) - 1)
        rng = stream(seed, "held out")
        order = rng.permutation(rows)
        if not self.classes or self.outputs < 2:
            return order[:wanted]
        labels = self.Y.indices[order]
        place = np.argsort(labels, kind="stable")
        counts = np.bincount(labels, minlength=self.outputs)
        rank = np.empty(len(rows), dtype=np.int64)
        rank[place] = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        relative = (rank + rng.random(self.outputs)[labels]) / counts[labels]
        return order[np.argsort(relative, kind="stable")[:wanted]]

    def scaled_up(self, rounds: int) -> int:
        """As many more rounds for all rows as there are more rows than those not watched.

        A quarter more at most: of larger shares held out the rounds found say less and less.
        """
        rows = self.rows if self.weight is None else np.count_nonzero(self.weight)
        return ceil(rounds * min(rows / (rows - len(self.held_rows)), 1.25))

    def stack(self, other: BoostData) -> BoostData:
        """The rows of both, the other's watched."""
        n, m = self.rows, other.rows

        def joined(a, b, shape):
            if a is None and b is None:
                return None
            a = np.ones((n, *shape)) if a is None else a
            return np.concatenate([a, np.ones((m, *shape)) if b is None else b])

        both_sparse = sparse.issparse(self.Y) and sparse.issparse(other.Y)
        Y = (
            sparse.vstack([self.Y, other.Y], format="csr")
            if both_sparse
            else np.vstack([a.toarray() if sparse.issparse(a) else a for a in (self.Y, other.Y)])
        )
        return replace(
            self,
            Y=Y,
            weight=joined(self.weight, other.weight, ()),
            entry_weight=joined(self.entry_weight, other.entry_weight, (self.outputs,)),
            watched=np.arange(n + m) >= n,
        )

    def check_observed(self) -> None:
        """Refuse outputs of which there is no entry."""
        if self.entry_weight is None:
            return
        seen = (self.entry_weight > 0).any(axis=0)
        if not seen.all():
            empty = int(np.flatnonzero(~seen)[0])
            raise ValueError(
                f"y: output {empty} is never observed (NaN or of weight 0 in every row)"
            )

    def warn_of_offsets(self, stacklevel: int) -> None:
        """Scores hold 24 bits: of an output far from 0 few are left for what varies."""
        if sparse.issparse(self.Y):
            return
        Y = self.dense()
        with np.errstate(invalid="ignore"):
            least, most = np.fmin.reduce(Y), np.fmax.reduce(Y)
            far = np.fmax(abs(least), abs(most)) > FAR * (most - least)
        far &= most > least
        if far.any():
            j = int(np.flatnonzero(far)[0])
            warnings.warn(
                f"y: output {j} lies between {least[j]:.9g} and {most[j]:.9g}; scores are kept in "
                "single precision, so that little of its variation is left: subtract its mean "
                "first (sklearn.compose.TransformedTargetRegressor)",
                stacklevel=stacklevel + 1,
            )

    def start(self, loss: Any) -> np.ndarray | None:
        """Constant scores of a callable loss that knows its own; None: the library's."""
        start = getattr(loss, "start", None)
        if start is None:
            return None
        found = np.asarray(start(self.dense()), dtype=np.float64)
        if found.shape != (self.outputs,):
            raise ValueError(
                f"loss: start must give an array of shape ({self.outputs},), a constant for each "
                f"output, got shape {found.shape}"
            )
        return found

    def mean_loss(self, loss: Callable, scores: np.ndarray) -> float:
        """Mean value of a user's loss."""
        value = np.asarray(_parts(loss, self._block(slice(None)), scores)[0], dtype=np.float64)
        if value.shape != scores.shape:
            raise ValueError(f"loss: the value has shape {value.shape}, the scores {scores.shape}")
        weight = np.ones(self.rows) if self.weight is None else self.weight
        entry = 1.0 if self.entry_weight is None else self.entry_weight
        return float(weight @ (value * entry).mean(axis=1) / weight.sum())

    def _block(self, rows: Any) -> np.ndarray:
        Y = self.Y[rows]
        return Y.toarray() if sparse.issparse(Y) else Y

    def block_loss(self, loss: Callable) -> Callable:
        """A user's loss on blocks of rows: negative gradients and curvatures into the arrays.

        ``loss(y, scores)`` returns ``(value, gradient)`` or ``(value, gradient, curvature)``, each
        of the shape of the scores.
        """

        def fill(rows, scores, g, h):
            parts = _parts(loss, self._block(rows), scores)
            gradient = np.asarray(parts[1])
            if gradient.shape != scores.shape:
                raise ValueError(
                    f"loss: the gradient has shape {gradient.shape}, the scores {scores.shape}"
                )
            with np.errstate(over="ignore"):  # the library refuses what is not finite
                np.negative(gradient, out=g, casting="unsafe")
            if h is None:
                return
            curvature = np.asarray(parts[2]) if len(parts) == 3 else np.ones_like(scores)
            if curvature.shape != scores.shape:
                raise ValueError(
                    f"loss: the curvature has shape {curvature.shape}, the scores {scores.shape}"
                )
            with np.errstate(over="ignore"):
                h[:] = curvature

        return fill


def _parts(loss: Callable, y: np.ndarray, scores: np.ndarray) -> tuple:
    parts = loss(y, scores)
    if not isinstance(parts, tuple) or len(parts) not in (2, 3):
        raise ValueError(
            "loss must return (value, gradient) or (value, gradient, curvature), "
            f"got {len(parts) if isinstance(parts, tuple) else type(parts).__name__}"
        )
    return parts


def _by_row(weight: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Weights of rows, and the factors of their entries if these differ."""
    if weight is None or weight.ndim == 1:
        return weight, None
    row = weight.max(axis=1)  # 1 of ones and zeros, which say what is observed
    if (weight == row[:, None]).all():
        return row, None
    return row, np.divide(weight, row[:, None], out=np.zeros_like(weight), where=row[:, None] > 0)


def _complete(Y: Any, weight: np.ndarray | None) -> BoostData:
    """Missing entries and weights by entry become entry weights."""
    missing = None if sparse.issparse(Y) else np.isnan(Y)
    weight, entry = _by_row(weight)
    if missing is not None and missing.any():
        entry = np.where(missing, 0.0, 1.0 if entry is None else entry)
        Y = np.where(missing, 0.0, Y)
    return BoostData(Y, weight, entry)


def regression_data(y: Any, sample_weight: Any) -> tuple[BoostData, int]:
    """Data of a regressor, and the number of dimensions y came in."""
    Y, ndim = real_outputs(y)
    values = Y.data if sparse.issparse(Y) else Y[~np.isnan(Y)]
    if abs(values).max(initial=0.0) > LARGEST:
        raise ValueError(
            f"y must be of size {LARGEST:g} at most, found {abs(values).max()}: scores are kept in "
            "single precision"
        )
    return _complete(Y, check_weight(sample_weight, *Y.shape)), ndim


def _known_codes(classes: np.ndarray, codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Numbers among the classes that are known."""
    where = np.searchsorted(known, classes)
    new = classes[known[np.minimum(where, len(known) - 1)] != classes]
    if len(new):
        raise ValueError(f"eval_set: y holds a class that the training y does not: {new[0]}")
    return where[codes]


def classification_data(
    y: Any, sample_weight: Any, class_weight: Any, known: np.ndarray | None
) -> tuple[BoostData, np.ndarray, bool]:
    """Data of a classifier, its classes, and whether y was a label indicator."""
    y, indicator = labels_or_classes(y)
    if indicator:
        Y = label_indicator(y)
        classes = np.arange(Y.shape[1])
    else:
        y, classes, codes = class_codes(y)
        if known is not None:
            classes, codes = known, _known_codes(classes, codes, known)
        Y = class_columns(codes, len(classes), np.float32)
    weight = class_weighted(class_weight, sample_weight, Y, None if indicator else y)
    data = _complete(Y, weight)
    data.classes = not indicator
    return data, classes, indicator
