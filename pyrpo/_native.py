"""The only module that touches cffi: arrays to pointers, status codes to exceptions.

Everything above works with numpy arrays, scipy matrices and the two handles made here,
`Features` and `Model`.
"""

from __future__ import annotations

import contextlib
import operator
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

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


def _running_call(exception, value, traceback):
    """Keep what the callback raised (a KeyboardInterrupt, mostly) for after the call."""
    call = _running.get(threading.get_ident())
    if call is not None:
        call.exception = value


_running: dict[int, _Call] = {}


@ffi.def_extern(onerror=_running_call, error=1)
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


def _check(function: Callable[..., int], *args: Any) -> None:
    error = ffi.new("rpo_error *")
    status = function(*args, error)
    if status != lib.RPO_OK:
        raise _EXCEPTIONS[status](ffi.string(error.message).decode(errors="replace"))


def _address(array: np.ndarray) -> Any:
    return ffi.cast("void *", array.ctypes.data)


def _out(kind: str, array: np.ndarray | None) -> Any:
    """Pointer to an output array, which must be ours: contiguous and of that type."""
    if array is None:
        return ffi.NULL
    return ffi.from_buffer(kind + "[]", array, require_writable=True)


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
        self.struct.data = _address(a)
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
        self.struct.data = ffi.NULL if ones else _address(data)
        self.struct.indices = _address(indices)
        self.struct.indptr = _address(indptr)


def options_table() -> list[dict[str, Any]]:
    """Describe the library's options: id, name, default, bounds, meaning."""
    rows = []
    ident, name, text = ffi.new("int32_t *"), ffi.new("const char **"), ffi.new("const char **")
    default, low, high = (ffi.new("double *") for _ in range(3))
    while True:
        try:
            outputs = (ident, name, default, low, high, text)
            _check(lib.rpo_option_info, len(rows), *outputs)
        except ValueError:
            return rows
        numbers = {"id": ident[0], "default": default[0], "low": low[0], "high": high[0]}
        texts = {"name": ffi.string(name[0]).decode(), "text": ffi.string(text[0]).decode()}
        rows.append(numbers | texts)


_OPTION_IDS = {row["name"]: row["id"] for row in options_table()}


def _options(values: dict[str, float]) -> Any:
    pointer = ffi.new("rpo_options **")
    _check(lib.rpo_options_new, pointer)
    options = ffi.gc(pointer[0], lib.rpo_options_free)
    for name, value in values.items():
        _check(lib.rpo_options_set, options, _OPTION_IDS[name], float(value))
    return options


class Features:
    """X encoded once, for all trees."""

    def __init__(self, X: Any, max_bins: int = 0, n_jobs: int | None = None, like=None) -> None:
        view, pointer = Matrix(X), ffi.new("rpo_features **")
        with control(n_jobs) as c:
            if like is None:
                _check(lib.rpo_features_new, view.struct, max_bins, c, pointer)
            else:
                _check(lib.rpo_features_like, view.struct, like.handle, c, pointer)
        self.handle = ffi.gc(pointer[0], lib.rpo_features_free)
        self.shape = X.shape

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return lib.rpo_features_bytes(self.handle)

    @property
    def is_sparse(self) -> bool:
        """Whether the codes are kept in sparse form."""
        return bool(lib.rpo_features_is_sparse(self.handle))

    def edges(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest value of each bin of one column."""
        low = np.empty(lib.rpo_features_bins(self.handle, column))
        high = np.empty_like(low)
        _check(
            lib.rpo_features_edges, self.handle, column, _out("double", low), _out("double", high)
        )
        return low, high

    def codes(self, column: int) -> np.ndarray:
        """Codes of one column; missing values have the code after the last."""
        out = np.empty(self.shape[0], dtype=np.int32)
        _check(lib.rpo_features_codes, self.handle, column, _out("int32_t", out))
        return out


_KINDS = (
    *("gaussian", "rademacher", "hadamard", "subsample", "subsample_replaced", "matrix"),
    *("top", "norm_sampling"),
)
KINDS = {name: getattr(lib, f"RPO_PROJECT_{name.upper()}") for name in _KINDS}


@dataclass
class Projection:
    """Which matrix Phi is drawn, or the caller's own."""

    kind: str
    components: int
    sparsity: float = 1.0
    seed: int = 0
    shared: bool = False
    matrix: np.ndarray | None = None  # of float64, C order
    stream: int = 0  # independent draws of one seed: boosting's rounds

    @property
    def struct(self) -> Any:
        """An ``rpo_projection *``, alive as long as self is."""
        struct = ffi.new("rpo_projection *")
        struct.kind, struct.components = KINDS[self.kind], self.components
        struct.sparsity, struct.seed, struct.shared = self.sparsity, self.seed, self.shared
        struct.stream = self.stream
        if self.matrix is not None:
            struct.matrix = ffi.cast("double *", self.matrix.ctypes.data)
        return struct

    def draw(self, d: int) -> np.ndarray:
        """Phi, m x d."""
        out = np.empty((self.components, d))
        _check(lib.rpo_projection_draw, self.struct, d, _flat(out))
        return out

    def apply(self, Y: Any) -> np.ndarray:
        """Z = Y Phi^T, n x m."""
        view, out = Matrix(Y), np.empty((Y.shape[0], self.components))
        with control() as c:
            _check(lib.rpo_projection_apply, self.struct, view.struct, c, _flat(out))
        return out


class Model:
    """Fitted trees, their predictions means (forests) or sums (boosting)."""

    work = 0.0  # operations counted while fitting; not kept with the model

    def __init__(self, pointer: Any) -> None:
        self.handle = ffi.gc(pointer[0], lib.rpo_forest_free)
        self.n_trees = lib.rpo_forest_trees(self.handle)
        self.n_inputs = lib.rpo_forest_inputs(self.handle)
        self.n_outputs = lib.rpo_forest_outputs(self.handle)
        self.n_rows = lib.rpo_forest_rows(self.handle)
        self.nbytes = lib.rpo_forest_bytes(self.handle)
        self.is_boosted = bool(lib.rpo_forest_is_boosted(self.handle))
        self.has_rows = bool(lib.rpo_forest_has_rows(self.handle))

    # ---- making ----

    @classmethod
    def fit(
        cls,
        options: dict[str, float],
        features: Features,
        target: Matrix,
        labels: Matrix | None = None,
        *,
        fallback: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        projection: Projection | None = None,
        n_jobs: int | None = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> Model:
        """Grow a forest (``rpo_forest_fit``)."""
        pointer = ffi.new("rpo_forest **")
        fallback = None if fallback is None else np.ascontiguousarray(fallback, dtype=np.float64)
        weight = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        work = ffi.new("double *")
        with control(n_jobs, progress) as c:
            c.work = work
            _check(
                lib.rpo_forest_fit,
                _options(options),
                features.handle,
                target.struct,
                ffi.NULL if labels is None else labels.struct,
                ffi.NULL if fallback is None else ffi.from_buffer("double[]", fallback),
                ffi.NULL if weight is None else ffi.from_buffer("double[]", weight),
                ffi.NULL if projection is None else projection.struct,
                c,
                pointer,
            )
        model = cls(pointer)
        model.work = work[0]
        return model

    def relabel(
        self, X: Any, labels: Matrix, weight: np.ndarray | None, n_jobs: int | None = None
    ) -> Model:
        """Return the same trees with all training rows in their leaves (``rpo_forest_relabel``)."""
        view, result = Matrix(X), ffi.new("rpo_forest **")
        weight = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        pointer = ffi.NULL if weight is None else ffi.from_buffer("double[]", weight)
        with control(n_jobs) as c:
            _check(
                lib.rpo_forest_relabel,
                *(self.handle, view.struct, labels.struct, pointer, c, result),
            )
        return Model(result)

    @classmethod
    def pick(cls, models: list[Model], trees: list[tuple[int, int]]) -> Model:
        """Join trees, given as (model, tree) pairs, into one model."""
        pointer = ffi.new("rpo_forest **")
        handles = ffi.new("rpo_forest *[]", [m.handle for m in models])
        pairs = np.asarray(trees, dtype=np.int64).ravel()
        _check(
            lib.rpo_forest_pick,
            ffi.cast("const rpo_forest * const *", handles),
            len(models),
            ffi.from_buffer("int64_t[]", pairs),
            len(trees),
            pointer,
        )
        return cls(pointer)

    @classmethod
    def beside(cls, models: list[Model]) -> Model:
        """Make one model of forests of one output each."""
        pointer = ffi.new("rpo_forest **")
        handles = ffi.new("rpo_forest *[]", [m.handle for m in models])
        forests = ffi.cast("const rpo_forest * const *", handles)
        _check(lib.rpo_forest_beside, forests, len(models), pointer)
        return cls(pointer)

    # ---- keeping ----

    def save(self, path: str | os.PathLike, note: bytes = b"") -> None:
        """Write a model file; `note` travels with it."""
        _check(lib.rpo_forest_save, self.handle, os.fsencode(path), note, len(note))

    @classmethod
    def load(cls, path: str | os.PathLike, *, mmap: bool = False) -> Model:
        """Read a model file, or map it."""
        pointer = ffi.new("rpo_forest **")
        read = lib.rpo_forest_open_mapped if mmap else lib.rpo_forest_load
        _check(read, os.fsencode(path), pointer)
        return cls(pointer)

    def drop_labels(self, n_jobs: int | None = None) -> Model:
        """Return the same forest with a leaf table in place of its training rows and labels."""
        pointer = ffi.new("rpo_forest **")
        with control(n_jobs) as c:
            _check(lib.rpo_forest_drop_labels, self.handle, c, pointer)
        return Model(pointer)

    @property
    def note(self) -> bytes:
        """The bytes saved with the model."""
        size = ffi.new("int64_t *")
        note = lib.rpo_forest_note(self.handle, size)
        return bytes(ffi.buffer(note, size[0])) if size[0] > 0 else b""

    @classmethod
    def parse(cls, buffer: np.ndarray) -> Model:
        """Make a model of the bytes of a file."""
        pointer = ffi.new("rpo_forest **")
        buffer = np.ascontiguousarray(buffer, dtype=np.uint8)
        _check(lib.rpo_forest_parse, _address(buffer), buffer.size, pointer)
        return cls(pointer)

    def dump(self) -> np.ndarray:
        """The bytes of the model's file."""
        out = np.empty(self.nbytes, dtype=np.uint8)
        _check(lib.rpo_forest_dump, self.handle, _address(out))
        return out

    def __reduce__(self):
        return Model.parse, (self.dump(),)

    def __deepcopy__(self, memo):
        return self  # immutable

    # ---- predicting ----

    def predict(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Mean of the trees' predictions, (n, outputs)."""
        view, out = Matrix(X), np.empty((X.shape[0], self.n_outputs))
        with control(n_jobs) as c:
            _check(lib.rpo_forest_predict, self.handle, view.struct, c, _flat(out))
        return out

    def predict_topk(self, X: Any, k: int, n_jobs: int | None = None):
        """The k best outputs of each row and their scores."""
        view, k = Matrix(X), operator.index(k)
        if not 1 <= k <= self.n_outputs:
            raise ValueError(f"k must be between 1 and the {self.n_outputs} outputs, got {k}")
        index, score = np.empty((X.shape[0], k), dtype=np.int64), np.empty((X.shape[0], k))
        with control(n_jobs) as c:
            _check(
                lib.rpo_forest_predict_topk,
                *(self.handle, view.struct, k, c, _out("int64_t", index.ravel()), _flat(score)),
            )
        return index, score

    def predict_oob(
        self,
        X: Any,
        weight: np.ndarray | None,
        n_jobs: int | None = None,
        labels: Matrix | None = None,
    ):
        """Out-of-bag predictions of the training rows, NaN where no tree left the row out.

        A relabelled forest needs its labels again.
        """
        view, out = Matrix(X), np.empty((X.shape[0], self.n_outputs))
        counts = np.empty(X.shape[0], dtype=np.int64)
        weight = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        pointer = ffi.NULL if weight is None else ffi.from_buffer("double[]", weight)
        with control(n_jobs) as c:
            _check(
                lib.rpo_forest_predict_oob,
                *(self.handle, view.struct, ffi.NULL if labels is None else labels.struct),
                *(pointer, c, _flat(out), _out("int64_t", counts)),
            )
        return out, counts

    def agreement(self, X, Y, rows, weight=None, n_jobs: int | None = None) -> np.ndarray:
        """Trees that count, their squared errors, the products of pairs of errors: by row."""
        x, y, out = Matrix(X), Matrix(Y), np.empty((len(rows), 3))
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        weight = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        pointer = ffi.NULL if weight is None else ffi.from_buffer("double[]", weight)
        with control(n_jobs) as c:
            _check(
                lib.rpo_forest_agreement,
                *(self.handle, x.struct, y.struct, ffi.from_buffer("int64_t[]", rows)),
                *(pointer, c, _flat(out)),
            )
        return out

    def apply(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Leaf node of each row in each tree."""
        view, out = Matrix(X), np.empty((X.shape[0], self.n_trees), dtype=np.int64)
        with control(n_jobs) as c:
            _check(lib.rpo_forest_apply, self.handle, view.struct, c, _out("int64_t", out.ravel()))
        return out

    def paths(self, X: Any, n_jobs: int | None = None):
        """Nodes each row passes, as CSR, and where each tree's columns begin."""
        view = Matrix(X)
        starts = np.empty(self.n_trees + 1, dtype=np.int64)
        indptr, columns = np.empty(X.shape[0] + 1, dtype=np.int64), None
        for _ in range(2):
            with control(n_jobs) as c:
                _check(
                    lib.rpo_forest_paths,
                    *(self.handle, view.struct, c, _out("int64_t", starts)),
                    *(_out("int64_t", indptr), _out("int64_t", columns)),
                )
            if columns is None:
                columns = np.empty(indptr[-1], dtype=np.int64)
        ones = np.ones(len(columns), dtype=np.int8)
        return sparse.csr_array((ones, columns, indptr), shape=(X.shape[0], starts[-1])), starts

    def leaf_rows(self, X: Any, weight: np.ndarray | None, n_jobs: int | None = None) -> Any:
        """Training rows of the leaves, made again from the data of the fit."""
        view, pointer = Matrix(X), ffi.new("rpo_leaf_rows **")
        weight = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        weights = ffi.NULL if weight is None else ffi.from_buffer("double[]", weight)
        with control(n_jobs) as c:
            _check(lib.rpo_leaf_rows_new, self.handle, view.struct, weights, c, pointer)
        return ffi.gc(pointer[0], lib.rpo_leaf_rows_free)

    def weights(self, X: Any, leaf_rows: Any = None, n_jobs: int | None = None) -> sparse.csr_array:
        """Weights of the training rows in each prediction."""
        view, rows = Matrix(X), ffi.NULL if leaf_rows is None else leaf_rows
        indptr, columns, values = np.empty(X.shape[0] + 1, dtype=np.int64), None, None
        for _ in range(2):
            with control(n_jobs) as c:
                _check(
                    lib.rpo_forest_weights,
                    *(self.handle, rows, view.struct, c, _out("int64_t", indptr)),
                    *(_out("int64_t", columns), _out("double", values)),
                )
            if columns is None:
                columns = np.empty(indptr[-1], dtype=np.int64)
                values = np.empty(indptr[-1])
        return sparse.csr_array((values, columns, indptr), shape=(X.shape[0], self.n_rows))

    # ---- looking inside ----

    def importances(self) -> np.ndarray:
        """Mean decrease in impurity by feature."""
        out = np.empty(self.n_inputs)
        _check(lib.rpo_forest_importances, self.handle, _out("double", out))
        return out

    def importances_on(
        self, X: Any, target: Matrix, weight: np.ndarray | None, n_jobs: int | None = None
    ) -> np.ndarray:
        """Mean decrease in variance of any outputs, in the samples of the fit."""
        view, out = Matrix(X), np.empty(self.n_inputs)
        weight = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        pointer = ffi.NULL if weight is None else ffi.from_buffer("double[]", weight)
        with control(n_jobs) as c:
            _check(
                lib.rpo_forest_importances_on,
                *(self.handle, view.struct, target.struct, pointer, c, _out("double", out)),
            )
        return out

    def tree(self, index: int) -> dict[str, np.ndarray]:
        """One tree as flat arrays, nodes in preorder."""
        nodes = lib.rpo_forest_tree_nodes(self.handle, index)
        if nodes < 0:
            raise ValueError(f"tree must be between 0 and {self.n_trees - 1}, got {index}")
        struct = ffi.new("rpo_tree_arrays *")
        arrays = {}
        for name, kind, dtype in _TREE_FIELDS:
            arrays[name] = np.empty(nodes, dtype=dtype)
            setattr(struct, name, ffi.cast(kind + " *", arrays[name].ctypes.data))
        _check(lib.rpo_forest_tree, self.handle, index, struct)
        return arrays

    def tree_values(self, index: int) -> np.ndarray:
        """Predicted outputs of every node of a tree, (nodes, outputs)."""
        nodes = max(lib.rpo_forest_tree_nodes(self.handle, index), 0)
        out = np.empty((nodes, self.n_outputs))
        _check(lib.rpo_forest_tree_values, self.handle, index, _flat(out))
        return out


# ---- metrics of scores ----


def scores_precision(scores: np.ndarray, Y: Any, n_jobs: int | None = None) -> np.ndarray:
    """Average precision of each row; NaN where Y has no label."""
    s, y, out = Matrix(scores), Matrix(Y), np.empty(scores.shape[0])
    with control(n_jobs) as c:
        _check(lib.rpo_scores_precision, s.struct, y.struct, c, _out("double", out))
    return out


def scores_reaching(scores: np.ndarray, thresholds: np.ndarray, n_jobs: int | None = None):
    """How many of all scores are at least each of the ascending thresholds."""
    s, out = Matrix(scores), np.empty(len(thresholds), dtype=np.int64)
    steps = ffi.from_buffer("double[]", np.ascontiguousarray(thresholds, dtype=np.float64))
    with control(n_jobs) as c:
        _check(lib.rpo_scores_reaching, s.struct, steps, len(out), c, _out("int64_t", out))
    return out


def scores_topk(scores: np.ndarray, k: int, n_jobs: int | None = None):
    """The k best labels of each row, their scores, and how many score as the last of them."""
    s, shape = Matrix(scores), (scores.shape[0], k)
    index, score = np.empty(shape, dtype=np.int64), np.empty(shape)
    ties = np.empty(shape[0], dtype=np.int64)
    outputs = (_out("int64_t", index.ravel()), _flat(score), _out("int64_t", ties))
    with control(n_jobs) as c:
        _check(lib.rpo_scores_topk, s.struct, k, c, *outputs)
    return index, score, ties


_TREE_FIELDS = (
    ("left", "int64_t", np.int64),
    ("right", "int64_t", np.int64),
    ("feature", "int64_t", np.int64),
    ("threshold", "double", np.float64),
    ("impurity", "double", np.float64),
    ("n_samples", "int64_t", np.int64),
    ("weight", "double", np.float64),
    ("missing_left", "uint8_t", np.uint8),
)


def _flat(array: np.ndarray) -> Any:
    return _out("double", array.ravel())


def instruction_set() -> str:
    """Name of the instruction set in use."""
    return ffi.string(lib.rpo_instruction_set()).decode()


def has_openmp() -> bool:
    """Whether the library runs in parallel."""
    return bool(lib.rpo_has_openmp())
