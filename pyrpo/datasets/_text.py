"""What the readers of text files share: lines, batches of rows, numbers, errors with a place."""

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from scipy import sparse

PathLike = str | os.PathLike[str]

_BATCH_CHARS = 1 << 20
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error)  # what gzip says of it


def open_binary(path: PathLike) -> IO[bytes]:
    """Open a file for reading, through gzip if its content (not its name) says so."""
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_gzip else open(path, "rb")


def stem(path: PathLike) -> str:
    """Name of the file without its folder, without .gz and without its own suffix."""
    name = re.sub(r"\.gz$", "", Path(path).name, flags=re.IGNORECASE)
    return Path(name).stem


def malformed(path: PathLike, line: int, what: str) -> ValueError:
    return ValueError(f"{os.fspath(path)}, line {line}: {what}")


def shorten(text: str, width: int = 40) -> str:
    return repr(text if len(text) <= width else text[: width - 3] + "...")


def read_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, line without its end)."""
    number = 0
    try:
        with open_binary(path) as file:
            for number, raw in enumerate(file, 1):
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                yield number, _decode(raw).rstrip("\r\n")
    except DAMAGED as error:
        raise malformed(path, number + 1, f"damaged gzip data ({error})") from error


def _decode(raw: bytes) -> str:
    # The older Mulan files are Latin-1, in which every byte is a character.
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


class Numbered(Sequence[str]):
    """Names "0", "1", ... (or from `first` on) of columns that have none, made when asked for.

    A file of a few bytes may tell of a billion columns.
    """

    def __init__(self, count: int, first: int = 0):
        self._numbers = range(first, first + count)

    def __len__(self):
        return len(self._numbers)

    def __getitem__(self, item):
        if isinstance(item, slice):
            return [str(i) for i in self._numbers[item]]
        return str(self._numbers[item])

    def __eq__(self, other):
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}({len(self)}, first={self._numbers.start})"


class Batch(NamedTuple):
    """Consecutive rows of a file, converted together."""

    path: PathLike
    numbers: list[int]
    lines: list[str]

    def error(self, row: int, what: str) -> ValueError:
        return malformed(self.path, self.numbers[row], what)

    def error_at(self, lengths: np.ndarray, item: int, what: str) -> ValueError:
        """Error at the row that holds an item, rows having these numbers of items."""
        return self.error(int(np.searchsorted(np.cumsum(lengths), item, side="right")), what)


def batches(path: PathLike, lines: Iterable[tuple[int, str]]) -> Iterator[Batch]:
    """Group lines by about a million characters: memory stays bounded however long rows are."""
    numbers, texts, n_chars = [], [], 0
    for number, line in lines:
        numbers.append(number)
        texts.append(line)
        n_chars += len(line) + 1
        if n_chars >= _BATCH_CHARS:
            yield Batch(path, numbers, texts)
            numbers, texts, n_chars = [], [], 0
    if texts:
        yield Batch(path, numbers, texts)


def parse_floats(tokens: list[str], error: Callable[[int, str], Exception]) -> np.ndarray:
    """Convert tokens; `error(position, message)` makes the exception for the first bad one."""
    try:
        # Python, hence numpy, reads "1_0" as 10.
        if "_" in " ".join(tokens):
            raise ValueError
        return np.array(tokens, dtype=np.float64)
    except ValueError:
        position = next(i for i, token in enumerate(tokens) if not _is_number(token))
        found = shorten(tokens[position])
        raise error(position, f"expected a number, found {found}") from None


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return "_" not in token


def csr_rows(
    lengths: np.ndarray, indices: np.ndarray, values: np.ndarray, n_columns: int
) -> sparse.csr_array:
    """CSR rows from their lengths and concatenated contents, repeated columns added up."""
    # scikit-learn's trees take 32-bit indices only.
    narrow = max(len(indices), n_columns) <= np.iinfo(np.int32).max
    index_type = np.int32 if narrow else np.int64
    indptr = np.zeros(len(lengths) + 1, dtype=index_type)
    np.cumsum(lengths, out=indptr[1:])
    rows = sparse.csr_array(
        (values, indices.astype(index_type), indptr), shape=(len(lengths), n_columns)
    )
    rows.sum_duplicates()
    return rows


def stack_rows(parts: list[sparse.csr_array], n_columns: int, dtype) -> sparse.csr_array:
    if not parts:
        return sparse.csr_array((0, n_columns), dtype=dtype)
    return sparse.vstack(parts, format="csr", dtype=dtype)


def narrowed(path: PathLike, X: Any, dtype: np.dtype) -> Any:
    """X in the type asked for; numbers beyond it, or none at all, are refused."""
    with np.errstate(over="ignore"):
        X = X.astype(dtype, order="C") if isinstance(X, np.ndarray) else X.astype(dtype)
    values = X.data if sparse.issparse(X) else X
    if np.isinf(values).any():
        raise ValueError(
            f"{os.fspath(path)}: a value is infinite in {dtype}, whose largest number is "
            f"{np.finfo(dtype).max:.2g}; a wider dtype= may hold it"
        )
    return X


def float_dtype(dtype) -> np.dtype:
    """Check the type asked for X, which must be able to hold fractions and NaN."""
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise ValueError(f"dtype must be a floating-point type, got {dtype}")
    return dtype
