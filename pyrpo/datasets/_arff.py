"""ARFF: the header's attributes, and the data section in batches of numbers.

Which attributes are labels or targets is the business of _mulan.py.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ._text import Batch, PathLike, csr_rows, malformed, parse_floats, shorten

_QUOTED = r"""'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)\""""
_DECLARATION = re.compile(
    rf"@attribute\s+(?:{_QUOTED}|(?P<plain>[^\s'\"{{][^\s{{]*))(?P<type>.*)", re.I
)
_NUMERIC = re.compile(r"\s+(?:numeric|real|integer)\s*(?:\[[^\]]*\])?\s*(?:%.*)?", re.I)
_NOMINAL = re.compile(r"\s*\{(?P<values>.*)\}\s*(?:%[^}]*)?")
_VALUE = re.compile(rf"\s*(?:{_QUOTED}|(?P<plain>[^\s,'\"][^,]*|))\s*(?P<end>,|$)")
_PAIR = re.compile(
    rf"\s*(?P<index>[0-9]{{1,18}})\s+(?:{_QUOTED}|(?P<plain>[^\s,'\"][^\s,]*))\s*(?P<end>,|$)"
)
_PLAIN_PAIR = r"[0-9]{1,18}\s+[^\s,{}'\"]+\s*"
_PLAIN_SPARSE_ROW = re.compile(rf"\{{\s*(?:{_PLAIN_PAIR}(?:,\s*{_PLAIN_PAIR})*)?\}}")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_TRUTH = {"false": 0.0, "true": 1.0}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class Attribute:
    """One declaration of the header; numeric if there are no categories."""

    name: str
    line: int
    categories: tuple[str, ...] | None = None


def read_header(path: PathLike, lines: Iterator[tuple[int, str]]) -> tuple[str, list[Attribute]]:
    """Consume the lines up to @data and return the relation's name and the attributes."""
    attributes: dict[str, Attribute] = {}
    number, relation = 0, ""
    for number, line in lines:
        line = line.strip()
        keyword = line.split(None, 1)[0].lower() if line else ""
        if not keyword or keyword.startswith("%"):
            continue
        if keyword == "@relation":
            relation = line[len(keyword) :].strip()
            continue
        if keyword == "@data":
            if not attributes:
                raise malformed(path, number, "@data without any @attribute before it")
            return relation, list(attributes.values())
        if keyword != "@attribute":
            raise malformed(path, number, f"expected @attribute or @data, found {shorten(line)}")
        attribute = _parse_attribute(path, number, line)
        if attribute.name in attributes:
            first = attributes[attribute.name].line
            name = shorten(attribute.name)
            raise malformed(path, number, f"attribute {name} is declared on line {first} too")
        attributes[attribute.name] = attribute
    raise malformed(path, number + 1, "the file ends without @data")


def _parse_attribute(path: PathLike, number: int, line: str) -> Attribute:
    match = _DECLARATION.fullmatch(line)
    if match is None:
        raise malformed(path, number, f"expected '@attribute name type', found {shorten(line)}")
    name, declared = _value(match), match["type"]
    if _NUMERIC.fullmatch(declared):
        return Attribute(name, number)
    nominal = _NOMINAL.fullmatch(declared)
    if nominal is None:
        what = f"attribute {shorten(name)} must be numeric or nominal, found type "
        raise malformed(path, number, what + shorten(declared.strip()))
    categories = _split(_VALUE, nominal["values"])
    if categories is None or len(set(categories)) < len(categories):
        what = f"bad or repeated categories of attribute {shorten(name)}: "
        raise malformed(path, number, what + shorten(nominal["values"]))
    return Attribute(name, number, tuple(categories))


def _value(match: re.Match) -> str:
    if match["plain"] is not None:
        return match["plain"].rstrip()
    quoted = match["double"] if match["single"] is None else match["single"]
    return _ESCAPE.sub(_unescape, quoted)


def _unescape(match: re.Match) -> str:
    escaped = match[1]
    return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _CONTROLS.get(escaped, escaped)


def _split(item: re.Pattern, text: str) -> list[str] | None:
    """Values of a comma-separated text, or index, value, index, ...; None if malformed."""
    found: list[str] = []
    position = 0
    while match := item.match(text, position):
        if item is _PAIR:
            found.append(match["index"])
        found.append(_value(match))
        if not match["end"]:
            return found
        position = match.end()
    return None


class Columns:
    """How the values of each attribute become numbers.

    A nominal attribute gets the codes 0, 1, ... in order of declaration. One of `targets` gets
    the numbers its categories spell, so that {1,0} is not turned upside down; `default` is then
    what a sparse row means by leaving it out. With `labels`, they must be 0 and 1.
    """

    def __init__(
        self, path: PathLike, attributes: list[Attribute], targets: np.ndarray, labels: bool
    ):
        self.path = path
        self.attributes = attributes
        width = len(attributes)
        self.default = np.zeros(width)
        self.is_label = np.zeros(width, dtype=bool)
        self.is_label[targets] = labels
        self.is_number = np.zeros(width, dtype=bool)
        is_target = np.zeros(width, dtype=bool)
        is_target[targets] = True
        self._n_codes = np.zeros(width)
        self._spelled: dict[int, dict[str, str]] = {}
        for column, attribute in enumerate(attributes):
            if self.is_label[column]:
                self._add_label(column, attribute)
            elif attribute.categories is not None:
                self._add_nominal(column, attribute.categories, is_target[column])
        self._is_spelled = np.zeros(width, dtype=bool)
        self._is_spelled[list(self._spelled)] = True

    def _add_label(self, column: int, attribute: Attribute) -> None:
        categories = attribute.categories or ("0", "1")
        numbers = _spelled_numbers(categories)
        if numbers is None or not set(numbers) <= {0.0, 1.0}:
            what = f"label {shorten(attribute.name)} must have the values 0 and 1, found "
            raise malformed(self.path, attribute.line, what + shorten(",".join(categories)))
        self._n_codes[column] = 2
        self.is_number[column] = True
        self.default[column] = numbers[0]
        if not set(categories) <= {"0", "1"}:
            self._spelled[column] = _spelling(categories, numbers)

    def _add_nominal(self, column: int, categories: tuple[str, ...], is_target: bool) -> None:
        numbers = _spelled_numbers(categories) if is_target else None
        self.is_number[column] = numbers is not None
        codes = list(map(float, range(len(categories)))) if numbers is None else numbers
        self.default[column] = codes[0]
        are_first = set(codes) == set(range(len(codes)))
        self._n_codes[column] = len(codes) if are_first else 0
        # Where the categories are 0, 1, ... already, they are read as numbers, much faster.
        if not are_first or any(f"{n:g}" != c for c, n in zip(categories, codes, strict=True)):
            self._spelled[column] = _spelling(categories, codes)

    def convert(
        self, batch: Batch, lengths: np.ndarray, tokens: list[str], columns: np.ndarray
    ) -> np.ndarray:
        """Numbers of a batch's tokens, given their columns and how many each row has."""

        def error(item: int, what: str) -> ValueError:
            name = self.attributes[columns[item]].name
            return batch.error_at(lengths, item, f"attribute {shorten(name)}: {what}")

        for item in np.flatnonzero(self._is_spelled[columns]).tolist():
            code = self._spelled[columns[item]].get(tokens[item])
            if code is None:
                raise error(item, f"{shorten(tokens[item])} is not one of the declared categories")
            tokens[item] = code
        if any("?" in line for line in batch.lines):
            tokens = ["nan" if token == "?" else token for token in tokens]
        values = parse_floats(tokens, error)
        self._check_codes(values, columns, error)
        return values

    def _check_codes(
        self, values: np.ndarray, columns: np.ndarray, error: Callable[[int, str], Exception]
    ) -> None:
        n_codes = self._n_codes[columns]
        is_code = (values >= 0) & (values < n_codes) & (values == np.floor(values))
        missing = np.isnan(values)
        bad = np.flatnonzero((n_codes > 0) & ~is_code & ~(missing & ~self.is_label[columns]))
        if not len(bad):
            return
        if missing[bad[0]]:
            raise error(bad[0], "a label cannot be missing")
        raise error(bad[0], f"{values[bad[0]]:g} is not one of the declared categories")


def _spelled_numbers(categories: tuple[str, ...]) -> list[float] | None:
    """What all of the categories say, if these are different numbers or truth values."""
    try:
        numbers = [_TRUTH.get(c.lower()) if c.lower() in _TRUTH else float(c) for c in categories]
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() and len(set(numbers)) == len(numbers) else None


def _spelling(categories: tuple[str, ...], numbers: list[float]) -> dict[str, str]:
    return {"?": "nan"} | dict(zip(categories, map(repr, numbers), strict=True))


def is_sparse_row(line: str) -> bool:
    return line.startswith("{")


def parse_dense(batch: Batch, columns: Columns) -> np.ndarray:
    """Numbers of a batch of rows `v,v,...`."""
    width = len(columns.attributes)
    tokens: list[str] = []
    for row, line in enumerate(batch.lines):
        if is_sparse_row(line):
            raise batch.error(row, "a sparse row in a file of dense rows")
        quoted = "'" in line or '"' in line
        values = _split(_VALUE, line) if quoted else list(map(str.strip, line.split(",")))
        if values is not None and len(values) == 1 < width:
            values = line.split()  # tabs or spaces between them
        if values is None:
            raise batch.error(row, f"unbalanced quotes in {shorten(line)}")
        if len(values) != width:
            raise batch.error(row, f"expected {width} values, found {len(values)}")
        tokens += values
    n_rows = len(batch.lines)
    lengths = np.full(n_rows, width)
    numbers = columns.convert(batch, lengths, tokens, np.tile(np.arange(width), n_rows))
    return numbers.reshape(n_rows, width)


def parse_sparse(batch: Batch, columns: Columns) -> sparse.csr_array:
    """Numbers of a batch of rows `{index value,index value,...}`, less the columns' defaults."""
    rows = [_split_sparse(batch, row, line) for row, line in enumerate(batch.lines)]
    lengths = np.array([len(row) // 2 for row in rows], dtype=np.int64)
    tokens = [token for row in rows for token in row]
    indices = np.array(tokens[::2], dtype=np.int64)
    _check_indices(batch, lengths, indices, len(columns.attributes))
    values = columns.convert(batch, lengths, tokens[1::2], indices) - columns.default[indices]
    return csr_rows(lengths, indices, values, len(columns.attributes))


def _split_sparse(batch: Batch, row: int, line: str) -> list[str]:
    if _PLAIN_SPARSE_ROW.fullmatch(line):
        return line[1:-1].replace(",", " ").split()
    if not is_sparse_row(line):
        raise batch.error(row, "a dense row in a file of sparse rows")
    if not line.endswith("}"):
        raise batch.error(row, f"sparse row without its closing brace, it ends in {line[-20:]!r}")
    tokens = _split(_PAIR, line[1:-1])
    if tokens is None:
        bad = next(p for p in line[1:-1].split(",") if not re.fullmatch(_PLAIN_PAIR, p.strip()))
        raise batch.error(row, f"expected 'index value', found {shorten(bad.strip())}")
    return tokens


def _check_indices(batch: Batch, lengths: np.ndarray, indices: np.ndarray, width: int) -> None:
    bad = np.flatnonzero(indices >= width)
    if len(bad):
        what = f"index {indices[bad[0]]} is beyond the {width} attributes"
        raise batch.error_at(lengths, bad[0], what)
    keys = np.repeat(np.arange(len(lengths)), lengths) * width + indices
    order = np.argsort(keys, kind="stable")
    repeated = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(repeated):
        item = order[repeated[0] + 1]
        raise batch.error_at(lengths, item, f"index {indices[item]} occurs twice")
