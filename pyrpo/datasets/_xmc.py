"""The text format of the extreme classification repository."""

import re
from collections.abc import Iterator
from itertools import chain, islice

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from ._text import (
    Batch,
    Numbered,
    PathLike,
    batches,
    csr_rows,
    float_dtype,
    malformed,
    narrowed,
    parse_floats,
    read_lines,
    shorten,
    stack_rows,
    stem,
)

_LABELS = r"[0-9]{1,18}(?:,[0-9]{1,18})*"
_PAIR = r"[0-9]{1,18}:[^\s:]+"
_ROW = re.compile(rf"(?P<labels>{_LABELS}|)(?P<features>(?:[ \t]+{_PAIR})*)\s*")
_HEADER = re.compile(r"\s*([0-9]{1,18})\s+([0-9]{1,18})\s+([0-9]{1,18})\s*")


def load_xmc(path: PathLike, *, dtype=np.float32) -> Bunch:
    """Load a data set in the format of the extreme classification repository.

    The first line holds the numbers of samples, features and labels. Then each line is a
    sample, ``label,label feature:value feature:value``, both counted from 0. The line of a
    sample without labels begins with a space.

    Parameters
    ----------
    path : str or path-like
        Text file, plain or compressed by gzip.
    dtype : dtype, default=np.float32
        Floating-point type of X.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        X : csr_array of shape (n_samples, n_features)
            Values of a feature that a row repeats are added up.
        Y : csr_array of shape (n_samples, n_labels)
            Label indicators, in int8.
        feature_names, target_names : sequence of str
            The numbers of features and labels: the format has no names.
        name : str
            Name of the file without folder and suffixes.

    Raises
    ------
    ValueError
        If the file is malformed or has another size than its header says. The message names
        file and line.
    """
    dtype = float_dtype(dtype)
    lines = read_lines(path)
    n_samples, n_features, n_labels = _read_header(path, lines)
    X_parts, Y_parts, n_read = [], [], 0
    for batch in batches(path, islice(lines, n_samples)):
        X, Y = _parse(batch, n_features, n_labels)
        X_parts.append(narrowed(path, X, dtype))
        Y_parts.append(Y)
        n_read += len(batch.lines)
    if n_read < n_samples:
        what = f"the header says {n_samples} samples, the file ends after {n_read}"
        raise malformed(path, n_read + 2, what)
    for number, line in lines:
        if line.strip():
            raise malformed(path, number, f"more rows than the {n_samples} of the header")
    return Bunch(
        X=stack_rows(X_parts, n_features, dtype),
        Y=stack_rows(Y_parts, n_labels, np.int8),
        feature_names=Numbered(n_features),
        target_names=Numbered(n_labels),
        name=stem(path),
    )


def _read_header(path: PathLike, lines: Iterator[tuple[int, str]]) -> list[int]:
    number, line = next(lines, (1, ""))
    match = _HEADER.fullmatch(line)
    if match is None:
        what = f"expected a header 'n_samples n_features n_labels', found {shorten(line)}"
        raise malformed(path, number, what)
    return [int(size) for size in match.groups()]


def _parse(
    batch: Batch, n_features: int, n_labels: int
) -> tuple[sparse.csr_array, sparse.csr_array]:
    labels, pairs = [], []
    for row, line in enumerate(batch.lines):
        match = _ROW.fullmatch(line)
        if match is None:
            raise batch.error(row, _complaint(line))
        labels.append(match["labels"].split(",") if match["labels"] else [])
        pairs.append(match["features"].replace(":", " ").split())
    X = _features(batch, pairs, n_features)
    return X, _indicators(batch, labels, n_labels)


def _complaint(line: str) -> str:
    labels, _, features = line.partition(" ")
    if labels and not re.fullmatch(_LABELS, labels):
        return f"expected 'label,label' or a leading space, found {shorten(labels)}"
    bad = next((p for p in features.split() if not re.fullmatch(_PAIR, p)), features)
    return f"expected 'feature:value', found {shorten(bad)}"


def _features(batch: Batch, rows: list[list[str]], n_features: int) -> sparse.csr_array:
    lengths = np.array([len(row) // 2 for row in rows], dtype=np.int64)
    tokens = list(chain.from_iterable(rows))
    indices = np.array(tokens[::2], dtype=np.int64)
    _check_range(batch, lengths, indices, "feature", n_features)
    values = parse_floats(tokens[1::2], lambda item, what: batch.error_at(lengths, item, what))
    return csr_rows(lengths, indices, values, n_features)


def _indicators(batch: Batch, rows: list[list[str]], n_labels: int) -> sparse.csr_array:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    indices = np.array(list(chain.from_iterable(rows)), dtype=np.int64)
    _check_range(batch, lengths, indices, "label", n_labels)
    Y = csr_rows(lengths, indices, np.ones(len(indices), dtype=bool), n_labels)
    return Y.astype(np.int8)


def _check_range(
    batch: Batch, lengths: np.ndarray, indices: np.ndarray, kind: str, end: int
) -> None:
    bad = np.flatnonzero(indices >= end)
    if len(bad):
        what = f"{kind} {indices[bad[0]]} is beyond the {end} of the header"
        raise batch.error_at(lengths, bad[0], what)
