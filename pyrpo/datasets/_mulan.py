"""Mulan data sets: an ARFF file, and an XML file that names the labels among its attributes."""

import os
import re
from collections.abc import Iterator
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Literal
from xml.parsers import expat

import numpy as np
from scipy import sparse as sp
from sklearn.utils import Bunch

from . import _arff
from ._arff import Attribute, Columns
from ._text import (
    PathLike,
    batches,
    float_dtype,
    malformed,
    narrowed,
    read_lines,
    shorten,
    stack_rows,
    stem,
)

_MEKA = re.compile(r"-C\s+(?P<count>-?[0-9]{1,9})\b")  # in the name of the relation


def load_mulan(
    path: PathLike,
    xml: PathLike | None = None,
    *,
    n_targets: int | None = None,
    sparse: bool | Literal["auto"] = "auto",
    dtype=np.float32,
) -> Bunch:
    """Load a multi-label or multi-target data set in Mulan's format.

    Parameters
    ----------
    path : str or path-like
        ARFF file with dense or sparse rows, plain or compressed by gzip.
    xml : str or path-like, default=None
        Mulan's XML file, which names the labels. By default it is looked for beside the ARFF
        file: the same name, with or without a final ``-train`` or ``-test``, and ``.xml``.
        Where there is none, the name of the relation may tell as MEKA's do: ``-C 6`` in it says
        that the first six attributes are the labels, ``-C -6`` the last six.
    n_targets : int, default=None
        For a file without XML, such as one of multi-target regression: the last `n_targets`
        attributes are the targets or, if negative, the first ``-n_targets`` ones. No XML file
        is then looked for.
    sparse : bool or "auto", default="auto"
        Whether X and Y are CSR arrays or numpy arrays. With "auto" they follow the rows of the
        file, except that the targets chosen by `n_targets` are always a numpy array.
    dtype : dtype, default=np.float32
        Floating-point type of X.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        X : ndarray or csr_array of shape (n_samples, n_features)
            A missing value is NaN; a nominal one is the position of its category in the
            declaration, from 0.
        Y : ndarray or csr_array of shape (n_samples, n_outputs)
            0 and 1 in int8 for labels, which may be spelled false and true. float64 for targets:
            missing ones are NaN, nominal ones the numbers or truth values that their categories
            spell, else coded as in X. Labels stand in the order of the ARFF file, as they do in
            Mulan, whatever their order in the XML file.
        feature_names, target_names : list of str
        categories : dict
            For each nominal feature, and target that is coded, its name and the tuple of its
            categories.
        name : str
            Name of the file without folder and suffixes.

    Raises
    ------
    ValueError
        If a file is malformed, or nothing tells which attributes are the labels. The message
        names file and line.
    """
    if sparse not in (True, False, "auto"):
        raise ValueError(f"sparse must be True, False or 'auto', got {sparse!r}")
    dtype = float_dtype(dtype)
    if n_targets is not None and xml is not None:
        raise ValueError("give either xml or n_targets, not both")

    lines = read_lines(path)
    relation, attributes = _arff.read_header(path, lines)
    has_labels = n_targets is None
    if has_labels:
        targets = _label_columns(path, relation, attributes, xml)
    else:
        count = _checked(path, len(attributes), n_targets, "n_targets")
        targets = _last_or_first(len(attributes), count)
    columns = Columns(path, attributes, targets, labels=has_labels)
    features = np.setdiff1d(np.arange(len(attributes)), targets)
    X, Y, sparse_rows = _read_data(path, lines, columns, features, targets, dtype)

    follow = sparse == "auto"
    return Bunch(
        X=_as_format(X, sparse_rows if follow else sparse),
        Y=_as_format(Y, (sparse_rows and has_labels) if follow else sparse),
        feature_names=[attributes[column].name for column in features],
        target_names=[attributes[column].name for column in targets],
        categories={
            attribute.name: attribute.categories
            for attribute, is_number in zip(attributes, columns.is_number, strict=True)
            if attribute.categories is not None and not is_number
        },
        name=stem(path),
    )


def _xml_files(path: PathLike) -> list[Path]:
    """Where the XML file may be."""
    name = stem(path)
    names = [name] + [name.removesuffix(s) for s in ("-train", "-test") if name.endswith(s)]
    return [Path(path).with_name(name + ".xml") for name in names]


def _find_xml(path: PathLike) -> Path | None:
    return next((xml for xml in _xml_files(path) if xml.exists()), None)


def _unknown_labels(path: PathLike) -> ValueError:
    tried = " or ".join(xml.name for xml in _xml_files(path))
    return ValueError(
        f"{os.fspath(path)}: nothing says which attributes are the labels; found no {tried} "
        "beside the file: give xml= (multi-label) or n_targets= (multi-target)"
    )


def _read_labels(xml: PathLike) -> dict[str, int]:
    """Names of the labels, nested ones too, and the lines they stand on."""
    labels: dict[str, int] = {}
    parser = expat.ParserCreate()

    def start(element: str, values: dict[str, str]) -> None:
        if element.rpartition(":")[2] != "label":
            return
        line = parser.CurrentLineNumber
        if "name" not in values:
            raise malformed(xml, line, "a label without a name")
        if values["name"] in labels:
            raise malformed(xml, line, f"label {shorten(values['name'])} occurs twice")
        labels[values["name"]] = line

    parser.StartElementHandler = start
    try:
        with open(xml, "rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise malformed(xml, error.lineno, f"not well-formed XML ({error})") from error
    if not labels:
        raise malformed(xml, parser.CurrentLineNumber, "the file names no label")
    return labels


def _label_columns(
    path: PathLike, relation: str, attributes: list[Attribute], xml: PathLike | None
) -> np.ndarray:
    """By the XML file or, where there is none, by the relation's name."""
    xml = _find_xml(path) if xml is None else xml
    if xml is not None:
        return _named_in(xml, path, attributes)
    meka = _MEKA.search(relation)
    if meka is None:
        raise _unknown_labels(path)
    return _last_or_first(
        len(attributes), -_checked(path, len(attributes), int(meka["count"]), "-C")
    )


def _named_in(xml: PathLike, path: PathLike, attributes: list[Attribute]) -> np.ndarray:
    labels = _read_labels(xml)
    names = {attribute.name for attribute in attributes}
    for label, line in labels.items():
        if label not in names:
            what = f"label {shorten(label)} is not an attribute of {os.fspath(path)}"
            raise malformed(xml, line, what)
    return np.array([i for i, attribute in enumerate(attributes) if attribute.name in labels])


def _checked(path: PathLike, n_attributes: int, count: int, name: str) -> int:
    if not isinstance(count, Integral) or isinstance(count, bool):
        raise ValueError(f"{name} must be an integer, got {count!r}")
    if not 0 < abs(count) < n_attributes:
        raise ValueError(
            f"{os.fspath(path)} has {n_attributes} attributes, so {name} must be between 1 and "
            f"{n_attributes - 1} or between {1 - n_attributes} and -1, got {count}"
        )
    return count


def _last_or_first(n_attributes: int, count: int) -> np.ndarray:
    columns = np.arange(n_attributes)
    return columns[-count:] if count > 0 else columns[:-count]


def _read_data(
    path: PathLike,
    lines: Iterator[tuple[int, str]],
    columns: Columns,
    features: np.ndarray,
    targets: np.ndarray,
    dtype: np.dtype,
) -> tuple[np.ndarray | sp.csr_array, np.ndarray | sp.csr_array, bool]:
    """X and Y in the format of the file's rows, and whether these are sparse."""
    rows = ((n, line) for n, raw in lines if (line := raw.strip()) and line[0] != "%")
    first = next(rows, None)
    sparse_rows = first is not None and _arff.is_sparse_row(first[1])
    target_dtype = np.int8 if columns.is_label.any() else np.float64
    X_parts, Y_parts = [], []
    for batch in batches(path, chain([first] if first else [], rows)):
        values = (_arff.parse_sparse if sparse_rows else _arff.parse_dense)(batch, columns)
        X_parts.append(narrowed(path, values[:, features], dtype))
        Y_parts.append(_select(values, targets, target_dtype))
    if not sparse_rows:
        X_parts.append(np.empty((0, len(features)), dtype=dtype))
        Y_parts.append(np.empty((0, len(targets)), dtype=target_dtype))
        return np.concatenate(X_parts), np.concatenate(Y_parts), False
    X = stack_rows(X_parts, len(features), dtype)
    X.eliminate_zeros()
    Y = _add_default(stack_rows(Y_parts, len(targets), target_dtype), columns.default[targets])
    Y.eliminate_zeros()
    return X, Y, True


def _select(values: np.ndarray | sp.csr_array, columns: np.ndarray, dtype):
    if sp.issparse(values):
        return values[:, columns].astype(dtype)
    # numpy lays the selected columns out in Fortran order.
    return values[:, columns].astype(dtype, order="C")


def _add_default(Y: sp.csr_array, default: np.ndarray) -> sp.csr_array:
    """Turn differences to what a sparse row means by leaving a label out into labels."""
    if not default.any():
        return Y
    ones = sp.csr_array(np.ones((Y.shape[0], 1), dtype=Y.dtype))
    return sp.csr_array(Y + ones @ sp.csr_array(default[None].astype(Y.dtype)))


def _as_format(values: np.ndarray | sp.csr_array, as_sparse: bool) -> np.ndarray | sp.csr_array:
    if sp.issparse(values):
        return values if as_sparse else values.toarray()
    return sp.csr_array(values) if as_sparse else values
