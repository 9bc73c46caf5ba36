"""Multi-label svmlight files, which scikit-learn reads: labels made a matrix, errors placed."""

import io
import os
from itertools import chain
from typing import Literal

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from ._text import (
    DAMAGED,
    Numbered,
    PathLike,
    csr_rows,
    float_dtype,
    malformed,
    narrowed,
    open_binary,
    read_lines,
    stem,
)


def load_svmlight_multilabel(
    path: PathLike,
    *,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    zero_based_labels: bool = True,
    dtype=np.float32,
) -> Bunch:
    """Load a multi-label file in svmlight's format, ``label,label feature:value ...``.

    Parameters
    ----------
    path : str or path-like
        Text file, plain or compressed by gzip. A row without labels may begin with a space;
        a blank line, even for a row with neither labels nor features, is skipped.
    n_features, n_labels : int, default=None
        Widths of X and Y. By default, what the file needs: give them where a file, such as a
        test set, need not contain the last ones.
    zero_based : bool or "auto", default="auto"
        Whether features are counted from 0, as for
        :func:`sklearn.datasets.load_svmlight_file`; with "auto", if one of them is 0.
    zero_based_labels : bool, default=True
        Whether labels are counted from 0, or else from 1.
    dtype : dtype, default=np.float32
        Floating-point type of X.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        X : csr_array of shape (n_samples, n_features)
        Y : csr_array of shape (n_samples, n_labels)
            Label indicators, in int8.
        feature_names, target_names : sequence of str
            The numbers of features and labels from 0: the format has no names.
        name : str
            Name of the file without folder and suffixes.

    Raises
    ------
    ValueError
        If the file is malformed. The message names file and line.
    """
    dtype = float_dtype(dtype)
    first = 0 if zero_based_labels else 1
    try:
        with open_binary(path) as file:
            X, rows = load_svmlight_file(
                file, n_features=n_features, dtype=dtype, multilabel=True, zero_based=zero_based
            )
        indices = _label_indices(rows, first, n_labels)
    except (ValueError, OverflowError, *DAMAGED) as error:
        options = {"n_features": n_features, "zero_based": zero_based}
        raise _placed(path, error, first, n_labels, options) from error
    n_labels = int(indices.max(initial=-1)) + 1 if n_labels is None else n_labels
    Y = csr_rows(
        np.array([len(row) for row in rows], dtype=np.int64),
        indices,
        np.ones(len(indices), dtype=bool),
        n_labels,
    )
    return Bunch(
        X=narrowed(path, csr_rows(np.diff(X.indptr), X.indices, X.data, X.shape[1]), dtype),
        Y=Y.astype(np.int8),
        feature_names=Numbered(X.shape[1]),
        target_names=Numbered(n_labels),
        name=stem(path),
    )


def _label_indices(rows: list[tuple], first: int, n_labels: int | None) -> np.ndarray:
    labels = np.array(list(chain.from_iterable(rows)), dtype=np.float64)
    end = np.iinfo(np.int64).max if n_labels is None else first + n_labels
    bad = (labels != np.floor(labels)) | (labels < first) | (labels >= end)
    if bad.any():
        bound = "" if n_labels is None else f" to {end - 1}"
        raise ValueError(f"expected labels from {first}{bound}, found {labels[bad][0]:g}")
    return labels.astype(np.int64) - first


def _placed(
    path: PathLike, error: Exception, first: int, n_labels: int | None, options: dict
) -> ValueError:
    """The error with its line, which scikit-learn does not tell: the first one refused alone."""
    for number, line in read_lines(path):
        try:
            text = io.BytesIO(line.encode())
            _, rows = load_svmlight_file(text, multilabel=True, **options)
            _label_indices(rows, first, n_labels)
        except (ValueError, OverflowError) as cause:
            return malformed(path, number, f"{cause}, in {line[:40]!r}")
    return ValueError(f"{os.fspath(path)}: {error}")
