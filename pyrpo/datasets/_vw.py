"""Vowpal Wabbit's text format, for multiclass problems."""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import Literal, NamedTuple

import numpy as np
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
    stem,
)

_LABEL = re.compile(r"[+-]?[0-9]{1,18}")
_INDEX = re.compile(r"[0-9]{1,18}")
_VALUED = re.compile(r"(?:\s+[^\s:]+:[^\s:]+)*\s*")
_FEATURE = re.compile(r"([^\s:]+)(?::([^\s:]+))?")
_NAMESPACE = re.compile(r"([^\s:]+)(?::([^\s:]+))?(?=\s|$)")


class _Rows(NamedTuple):
    """What is read of consecutive rows; features of a row follow those of the row before."""

    numbers: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    lengths: np.ndarray
    codes: np.ndarray
    values: np.ndarray


def load_vw(
    path: PathLike,
    *,
    n_features: int | None = None,
    n_classes: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype=np.float32,
) -> Bunch:
    """Load a multiclass data set in Vowpal Wabbit's text format.

    A row is ``label [importance] ['tag] |[namespace[:scale]] feature[:value] ...``, where a
    feature without value counts 1 and several namespaces may follow each other.

    Parameters
    ----------
    path : str or path-like
        Text file, plain or compressed by gzip.
    n_features : int, default=None
        Width of X. By default, what the file needs.
    n_classes : int, default=None
        Number of classes: labels must then be 1, ..., `n_classes`.
    zero_based : bool or "auto", default="auto"
        Whether integer features are counted from 0, or else from 1; with "auto", if one of them
        is 0.
    dtype : dtype, default=np.float32
        Floating-point type of X.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        X : csr_array of shape (n_samples, n_features)
            Integer features in a single namespace are columns. Otherwise the columns are the
            names in the order they are first seen, which another file need not share. Values of
            a feature that a row repeats are added up.
        y : ndarray of int64 of shape (n_samples,)
            Labels as they stand in the file.
        sample_weight : ndarray of shape (n_samples,) or None
            Importance weights, 1 where a row has none; None if no row has any.
        feature_names : sequence of str
            Features as they are spelled in the file, with ``namespace^`` before them if there
            are several namespaces.
        target_names : list of str
            All classes if `n_classes` is given, else those that occur.
        name : str
            Name of the file without folder and suffixes.

    Raises
    ------
    ValueError
        If the file is malformed. The message names file and line.
    """
    dtype = float_dtype(dtype)
    vocabulary = _Vocabulary()
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    rows = _concatenate([_parse(b, vocabulary, n_classes) for b in batches(path, lines)])

    columns, feature_names = _layout(vocabulary.names(), n_features, zero_based)
    width = len(feature_names)
    indices = columns[rows.codes]
    bad = np.flatnonzero((indices < 0) | (indices >= width))
    if len(bad):
        row = np.searchsorted(np.cumsum(rows.lengths), bad[0], side="right")
        name = vocabulary.names()[rows.codes[bad[0]]]
        raise malformed(
            path, int(rows.numbers[row]), f"feature {shorten(name)} is not one of {width}"
        )

    classes = np.unique(rows.y) if n_classes is None else range(1, n_classes + 1)
    weighted = not np.isnan(rows.weights).all()
    return Bunch(
        X=narrowed(path, csr_rows(rows.lengths, indices, rows.values, width), dtype),
        y=rows.y,
        sample_weight=np.nan_to_num(rows.weights, nan=1.0) if weighted else None,
        feature_names=feature_names,
        target_names=[str(label) for label in classes],
        name=stem(path),
    )


def _layout(
    names: list[str], n_features: int | None, zero_based: bool | Literal["auto"]
) -> tuple[np.ndarray, Sequence[str]]:
    """Column of each code, and the name of each column."""
    if all(map(_INDEX.fullmatch, names)):
        columns = np.array(names, dtype=np.int64)
        first = int(not zero_based or (zero_based == "auto" and columns.min(initial=1) > 0))
        columns -= first
        width = int(columns.max(initial=-1)) + 1 if n_features is None else n_features
        return columns, Numbered(width, first)
    width = len(names) if n_features is None else n_features
    unseen = [str(column) for column in range(len(names), width)]
    return np.arange(len(names)), (names + unseen)[:width]


class _Vocabulary:
    """Codes of the features of each namespace, 0, 1, ... in the order they are first seen."""

    def __init__(self):
        next_code = count().__next__
        self.namespaces: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(next_code))

    def names(self) -> list[str]:
        several = len(self.namespaces) > 1
        coded = [
            (code, f"{namespace}^{name}" if several and namespace else name)
            for namespace, codes in self.namespaces.items()
            for name, code in codes.items()
        ]
        return [name for _, name in sorted(coded)]


def _concatenate(parts: list[_Rows]) -> _Rows:
    types = (np.int64, np.int64, np.float64, np.int64, np.int64, np.float64)
    empty = _Rows(*(np.empty(0, dtype=dtype) for dtype in types))
    return _Rows(*map(np.concatenate, zip(empty, *parts, strict=True)))


def _parse(batch: Batch, vocabulary: _Vocabulary, n_classes: int | None) -> _Rows:
    labels, weights, lengths = [], [], []
    codes: list[int] = []
    values: list[str] = []
    scales: list[tuple[int, float]] = []
    for row, line in enumerate(batch.lines):
        head, *sections = line.split("|")
        if not sections:
            raise batch.error(row, f"expected 'label | feature:value ...', found {shorten(line)}")
        label, weight = _parse_head(batch, row, head, n_classes)
        labels.append(label)
        weights.append(weight)
        start = len(codes)
        for section in sections:
            namespace, scale, pairs = _parse_section(batch, row, section)
            if pairs:
                codes += map(vocabulary.namespaces[namespace].__getitem__, pairs[::2])
                values += pairs[1::2]
                scales.append((len(pairs) // 2, scale))
        lengths.append(len(codes) - start)
    sizes = np.array(lengths, dtype=np.int64)
    numbers = parse_floats(values, lambda item, what: batch.error_at(sizes, item, what))
    if scales:
        section_sizes, factors = zip(*scales, strict=True)
        numbers *= np.repeat(factors, section_sizes)
    return _Rows(
        numbers=np.array(batch.numbers),
        y=np.array(labels, dtype=np.int64),
        weights=np.array(weights, dtype=np.float64),
        lengths=sizes,
        codes=np.array(codes, dtype=np.int64),
        values=numbers,
    )


def _parse_head(batch: Batch, row: int, head: str, n_classes: int | None) -> tuple[int, float]:
    """Label and importance weight, NaN if there is none."""
    words = head.split()
    # A last word is the tag if it is quoted or touches the bar, as in Vowpal Wabbit.
    if len(words) > 1 and (words[-1].startswith("'") or not head[-1].isspace()):
        words.pop()
    if not words or len(words) > 2 or not _LABEL.fullmatch(words[0]):
        what = "expected an integer label, an optional weight and tag before '|', found "
        raise batch.error(row, what + shorten(head.strip()))
    label = int(words[0])
    if n_classes is not None and not 1 <= label <= n_classes:
        raise batch.error(row, f"label {label} is not between 1 and {n_classes}")
    if len(words) == 1:
        return label, np.nan
    weight = _number(batch, row, words[1])
    if not 0 <= weight < np.inf:
        raise batch.error(row, f"expected a weight of at least 0, found {shorten(words[1])}")
    return label, weight


def _parse_section(batch: Batch, row: int, section: str) -> tuple[str, float, list[str]]:
    """Namespace, its scale, and name, value, name, ... of what follows a bar."""
    namespace, scale = "", 1.0
    if section and not section[0].isspace():
        match = _NAMESPACE.match(section)
        if match is None:
            found = shorten(section.split()[0])
            raise batch.error(row, f"expected a namespace or a space after '|', found {found}")
        namespace, section = match[1], section[match.end() :]
        scale = 1.0 if match[2] is None else _number(batch, row, match[2])
    if _VALUED.fullmatch(section):
        return namespace, scale, section.replace(":", " ").split()
    pairs = []
    for token in section.split():
        match = _FEATURE.fullmatch(token)
        if match is None:
            raise batch.error(row, f"expected 'feature' or 'feature:value', found {shorten(token)}")
        pairs += [match[1], match[2] or "1"]
    return namespace, scale, pairs


def _number(batch: Batch, row: int, token: str) -> float:
    return float(parse_floats([token], lambda _, what: batch.error(row, what))[0])
