"""Handles of the library, with `_native_call` and its kin all that touches cffi.

Everything above works with numpy arrays, scipy matrices and what is made here: `Features`,
`Projection` and `Model`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from pyrpo._native_call import (
    Matrix,
    address,
    check,
    control,
    ffi,
    given,
    into,
    lib,
    new_options,
)
from pyrpo._options import number

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


class Features:
    """X encoded once, for all trees."""

    def __init__(self, X: Any, max_bins: int = 0, n_jobs: int | None = None, like=None) -> None:
        view, pointer = Matrix(X), ffi.new("rpo_features **")
        with control(n_jobs) as c:
            if like is None:
                check(lib.rpo_features_new, view.struct, max_bins, c, pointer)
            else:
                check(lib.rpo_features_like, view.struct, like.handle, c, pointer)
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
        check(lib.rpo_features_edges, self.handle, column, into(low), into(high))
        return low, high

    def codes(self, column: int) -> np.ndarray:
        """Codes of one column; missing values have the code after the last."""
        out = np.empty(self.shape[0], dtype=np.int32)
        check(lib.rpo_features_codes, self.handle, column, into(out))
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
        check(lib.rpo_projection_draw, self.struct, d, into(out))
        return out

    def apply(self, Y: Any) -> np.ndarray:
        """Z = Y Phi^T, n x m."""
        view, out = Matrix(Y), np.empty((Y.shape[0], self.components))
        with control() as c:
            check(lib.rpo_projection_apply, self.struct, view.struct, c, into(out))
        return out


def _parse(buffer: np.ndarray) -> Model:
    """`Model.parse` by a name of the module, as every pickler wants it."""
    return Model.parse(buffer)


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
        work = ffi.new("double *")
        with control(n_jobs, progress) as c:
            c.work = work
            check(
                lib.rpo_forest_fit,
                new_options(options),
                features.handle,
                target.struct,
                ffi.NULL if labels is None else labels.struct,
                given(fallback),
                given(weight),
                ffi.NULL if projection is None else projection.struct,
                c,
                pointer,
            )
        model = cls(pointer)
        model.work = work[0]
        return model

    def relabel(
        self,
        features: Features,
        labels: Matrix,
        weight: np.ndarray | None,
        n_jobs: int | None = None,
    ) -> Model:
        """Return the same trees with all training rows in their leaves (``rpo_forest_relabel``)."""
        result = ffi.new("rpo_forest **")
        with control(n_jobs) as c:
            check(
                lib.rpo_forest_relabel,
                *(self.handle, features.handle, labels.struct, given(weight), c, result),
            )
        return Model(result)

    @classmethod
    def pick(cls, models: list[Model], trees: list[tuple[int, int]]) -> Model:
        """Join trees, given as (model, tree) pairs, into one model."""
        pointer = ffi.new("rpo_forest **")
        handles = ffi.new("rpo_forest *[]", [m.handle for m in models])
        check(
            lib.rpo_forest_pick,
            ffi.cast("const rpo_forest * const *", handles),
            len(models),
            given(trees, np.int64),
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
        check(lib.rpo_forest_beside, forests, len(models), pointer)
        return cls(pointer)

    # ---- keeping ----

    def save(self, path: str | os.PathLike, note: bytes = b"") -> None:
        """Write a model file; `note` travels with it."""
        check(lib.rpo_forest_save, self.handle, os.fsencode(path), note, len(note))

    @classmethod
    def load(cls, path: str | os.PathLike, *, mmap: bool = False) -> Model:
        """Read a model file, or map it."""
        pointer = ffi.new("rpo_forest **")
        read = lib.rpo_forest_open_mapped if mmap else lib.rpo_forest_load
        check(read, os.fsencode(path), pointer)
        return cls(pointer)

    def drop_labels(self, n_jobs: int | None = None) -> Model:
        """Return the same forest with a leaf table in place of its training rows and labels."""
        pointer = ffi.new("rpo_forest **")
        with control(n_jobs) as c:
            check(lib.rpo_forest_drop_labels, self.handle, c, pointer)
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
        check(lib.rpo_forest_parse, address(buffer), buffer.size, pointer)
        return cls(pointer)

    def dump(self) -> np.ndarray:
        """The bytes of the model's file."""
        out = np.empty(self.nbytes, dtype=np.uint8)
        check(lib.rpo_forest_dump, self.handle, address(out))
        return out

    def __reduce__(self):
        return _parse, (self.dump(),)

    def __deepcopy__(self, memo):
        return self  # immutable

    # ---- predicting ----

    def predict(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Mean of the trees' predictions, (n, outputs)."""
        view, out = Matrix(X), np.empty((X.shape[0], self.n_outputs))
        with control(n_jobs) as c:
            check(lib.rpo_forest_predict, self.handle, view.struct, c, into(out))
        return out

    def predict_topk(self, X: Any, k: int, n_jobs: int | None = None):
        """The k best outputs of each row and their scores."""
        view, k = Matrix(X), int(number(k, "k", 1, self.n_outputs, whole=True))
        index, score = np.empty((X.shape[0], k), dtype=np.int64), np.empty((X.shape[0], k))
        with control(n_jobs) as c:
            check(
                lib.rpo_forest_predict_topk,
                *(self.handle, view.struct, k, c, into(index), into(score)),
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
        with control(n_jobs) as c:
            check(
                lib.rpo_forest_predict_oob,
                *(self.handle, view.struct, ffi.NULL if labels is None else labels.struct),
                *(given(weight), c, into(out), into(counts)),
            )
        return out, counts

    def agreement(self, X, Y, rows, weight=None, n_jobs: int | None = None) -> np.ndarray:
        """Trees that count, their squared errors, the products of pairs of errors: by row."""
        x, y, out = Matrix(X), Matrix(Y), np.empty((len(rows), 3))
        with control(n_jobs) as c:
            check(
                lib.rpo_forest_agreement,
                *(self.handle, x.struct, y.struct, given(rows, np.int64)),
                *(given(weight), c, into(out)),
            )
        return out

    def apply(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Leaf node of each row in each tree."""
        view, out = Matrix(X), np.empty((X.shape[0], self.n_trees), dtype=np.int64)
        with control(n_jobs) as c:
            check(lib.rpo_forest_apply, self.handle, view.struct, c, into(out))
        return out

    def paths(self, X: Any, n_jobs: int | None = None):
        """Nodes each row passes, as CSR, and where each tree's columns begin."""
        view = Matrix(X)
        starts = np.empty(self.n_trees + 1, dtype=np.int64)
        indptr, columns = np.empty(X.shape[0] + 1, dtype=np.int64), None
        for _ in range(2):
            with control(n_jobs) as c:
                check(
                    lib.rpo_forest_paths,
                    *(self.handle, view.struct, c, into(starts)),
                    *(into(indptr), into(columns)),
                )
            if columns is None:
                columns = np.empty(indptr[-1], dtype=np.int64)
        ones = np.ones(len(columns), dtype=np.int8)
        return sparse.csr_array((ones, columns, indptr), shape=(X.shape[0], starts[-1])), starts

    def leaf_rows(self, X: Any, weight: np.ndarray | None, n_jobs: int | None = None) -> Any:
        """Training rows of the leaves, made again from the data of the fit."""
        view, pointer = Matrix(X), ffi.new("rpo_leaf_rows **")
        with control(n_jobs) as c:
            check(lib.rpo_leaf_rows_new, self.handle, view.struct, given(weight), c, pointer)
        return ffi.gc(pointer[0], lib.rpo_leaf_rows_free)

    def weights(self, X: Any, leaf_rows: Any = None, n_jobs: int | None = None) -> sparse.csr_array:
        """Weights of the training rows in each prediction."""
        view, rows = Matrix(X), ffi.NULL if leaf_rows is None else leaf_rows
        indptr, columns, values = np.empty(X.shape[0] + 1, dtype=np.int64), None, None
        for _ in range(2):
            with control(n_jobs) as c:
                check(
                    lib.rpo_forest_weights,
                    *(self.handle, rows, view.struct, c, into(indptr)),
                    *(into(columns), into(values)),
                )
            if columns is None:
                columns = np.empty(indptr[-1], dtype=np.int64)
                values = np.empty(indptr[-1])
        return sparse.csr_array((values, columns, indptr), shape=(X.shape[0], self.n_rows))

    # ---- looking inside ----

    def importances(self) -> np.ndarray:
        """Mean decrease in impurity by feature."""
        out = np.empty(self.n_inputs)
        check(lib.rpo_forest_importances, self.handle, into(out))
        return out

    def importances_on(
        self, X: Any, target: Matrix, weight: np.ndarray | None, n_jobs: int | None = None
    ) -> np.ndarray:
        """Mean decrease in variance of any outputs, in the samples of the fit."""
        view, out = Matrix(X), np.empty(self.n_inputs)
        with control(n_jobs) as c:
            check(
                lib.rpo_forest_importances_on,
                *(self.handle, view.struct, target.struct, given(weight), c, into(out)),
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
        check(lib.rpo_forest_tree, self.handle, index, struct)
        return arrays

    def tree_values(self, index: int) -> np.ndarray:
        """Predicted outputs of every node of a tree, (nodes, outputs)."""
        nodes = max(lib.rpo_forest_tree_nodes(self.handle, index), 0)
        out = np.empty((nodes, self.n_outputs))
        check(lib.rpo_forest_tree_values, self.handle, index, into(out))
        return out
