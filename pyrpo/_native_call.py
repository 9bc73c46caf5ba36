"""Calls of the library: arrays to pointers, status codes to exceptions, threads and progress.

The modules named `_native...` are the only ones that touch cffi. This is the ground of the others.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from pyrpo._waiting import waiting_briefly

with waiting_briefly():
    from pyrpo._rpo import ffi, lib

version = ffi.string(lib.rpo_version()).decode()


class FormatError(ValueError):
    """A model file or buffer is damaged or of an unknown version."""


_EXCEPTIONS = {
    lib.RPO_EINVAL: ValueError,
    lib.RPO_ENOMEM: MemoryError,
    lib.RPO_ECANCELED: RuntimeError,
    lib.RPO_EFORMAT: FormatError,
    lib.RPO_EIO: OSError,
}


class _Call:
    """What Python keeps while C works: the progress display and the exception that stopped it."""

    def __init__(self, progress: Callable[[int, int], Any] | None) -> None:
        self.progress = progress
        self.exception: BaseException | None = None


def keep_exception(exception, value, traceback):
    """Keep what the callback raised (a KeyboardInterrupt, mostly) for after the call."""
    call = _running.get(threading.get_ident())
    if call is not None:
        call.exception = value


_running: dict[int, _Call] = {}


@ffi.def_extern(onerror=keep_exception, error=1)
def pyrpo_progress(user, done, total):
    """Report progress; what is raised in here, a ^C above all, cancels the call."""
    call = ffi.from_handle(user)
    if call.progress is not None:
        call.progress(done, total)
    return 0


def threads(n_jobs: int | None) -> int:
    """Native threads for scikit-learn's ``n_jobs``, within OMP_NUM_THREADS."""
    wanted = effective_n_jobs(n_jobs)
    with contextlib.suppress(ValueError):
        limit = int(os.environ.get("OMP_NUM_THREADS", "").split(",")[0])
        if limit > 0:
            wanted = min(wanted, limit)
    return wanted


@contextlib.contextmanager
def control(n_jobs: int | None = None, progress: Callable[[int, int], Any] | None = None):
    """Yield an ``rpo_control *``; afterwards raise what the callback caught."""
    call = _Call(progress)
    handle = ffi.new_handle(call)
    struct = ffi.new("rpo_control *")
    struct.n_threads = threads(n_jobs)
    struct.progress = lib.pyrpo_progress
    struct.user = handle
    me = threading.get_ident()
    outer = _running.get(me)
    _running[me] = call
    try:
        yield struct
    except RuntimeError:
        if call.exception is None:
            raise
    finally:
        if outer is None:
            _running.pop(me, None)
        else:
            _running[me] = outer
    if call.exception is not None:
        raise call.exception


def check(function: Callable[..., int], *args: Any) -> None:
    error = ffi.new("rpo_error *")
    status = function(*args, error)
    if status != lib.RPO_OK:
        raise _EXCEPTIONS[status](ffi.string(error.message).decode(errors="replace"))


def address(array: np.ndarray) -> Any:
    return ffi.cast("void *", array.ctypes.data)


_ELEMENTS = {
    np.dtype(np.float64): "double[]",
    np.dtype(np.float32): "float[]",
    np.dtype(np.int64): "int64_t[]",
    np.dtype(np.int32): "int32_t[]",
    np.dtype(np.uint8): "uint8_t[]",
}


def given(array: Any, dtype: Any = np.float64) -> Any:
    """Pointer to an input of that type, a copy where it must be; None is NULL.

    It keeps the array alive: C may read it as long as the pointer is held.
    """
    if array is None:
        return ffi.NULL
    array = np.ascontiguousarray(array, dtype=dtype)
    return ffi.from_buffer(_ELEMENTS[array.dtype], array)


def into(array: np.ndarray | None) -> Any:
    """Pointer to an output array, which must be ours and contiguous; None is NULL."""
    if array is None:
        return ffi.NULL
    return ffi.from_buffer(_ELEMENTS[array.dtype], array, require_writable=True)


_DTYPES = {np.dtype(np.float32): lib.RPO_F32, np.dtype(np.float64): lib.RPO_F64}
_INDICES = {np.dtype(np.int32): lib.RPO_I32, np.dtype(np.int64): lib.RPO_I64}


class Matrix:
    """A borrowed view of an array or sparse matrix; keeps what it points to alive."""

    def __init__(self, a: Any, *, ones: bool = False) -> None:
        self.struct = ffi.new("rpo_matrix *")
        self.shape = a.shape
        self.struct.rows, self.struct.cols = a.shape
        if sparse.issparse(a):
            self._sparse(a, ones)
        else:
            self._dense(a)

    def _dense(self, a: np.ndarray) -> None:
        if a.dtype not in _DTYPES or any(s % a.itemsize for s in a.strides):
            a = np.ascontiguousarray(a, dtype=np.float64)
        self.keep = (a,)
        self.struct.format = lib.RPO_DENSE
        self.struct.dtype = _DTYPES[a.dtype]
        self.struct.data = address(a)
        self.struct.row_stride = a.strides[0] // a.itemsize
        self.struct.col_stride = a.strides[1] // a.itemsize

    def _sparse(self, a: Any, ones: bool) -> None:
        self.struct.format = {"csr": lib.RPO_CSR, "csc": lib.RPO_CSC}[a.format]
        data = a.data if a.data.dtype in _DTYPES else a.data.astype(np.float64)
        kind = np.result_type(a.indices.dtype, a.indptr.dtype)
        kind = np.dtype(np.int32) if kind.itemsize <= 4 else np.dtype(np.int64)
        indices = np.ascontiguousarray(a.indices, dtype=kind)
        indptr = np.ascontiguousarray(a.indptr, dtype=kind)
        data = np.ascontiguousarray(data)
        self.keep = (data, indices, indptr)
        self.struct.dtype = _DTYPES[data.dtype]
        self.struct.index = _INDICES[kind]
        self.struct.data = ffi.NULL if ones else address(data)
        self.struct.indices = address(indices)
        self.struct.indptr = address(indptr)


def options_table() -> list[dict[str, Any]]:
    """Describe the library's options: id, name, default, bounds, meaning."""
    rows = []
    ident, name, text = ffi.new("int32_t *"), ffi.new("const char **"), ffi.new("const char **")
    default, low, high = (ffi.new("double *") for _ in range(3))
    while True:
        try:
            outputs = (ident, name, default, low, high, text)
            check(lib.rpo_option_info, len(rows), *outputs)
        except ValueError:
            return rows
        numbers = {"id": ident[0], "default": default[0], "low": low[0], "high": high[0]}
        texts = {"name": ffi.string(name[0]).decode(), "text": ffi.string(text[0]).decode()}
        rows.append(numbers | texts)


_OPTION_IDS = {row["name"]: row["id"] for row in options_table()}


def new_options(values: dict[str, float]) -> Any:
    pointer = ffi.new("rpo_options **")
    check(lib.rpo_options_new, pointer)
    options = ffi.gc(pointer[0], lib.rpo_options_free)
    for name, value in values.items():
        check(lib.rpo_options_set, options, _OPTION_IDS[name], float(value))
    return options


def instruction_set() -> str:
    """Name of the instruction set in use."""
    return ffi.string(lib.rpo_instruction_set()).decode()


def has_openmp() -> bool:
    """Whether the library runs in parallel."""
    return bool(lib.rpo_has_openmp())
