"""Boosting runs of the library: the part of `_native` that gradient boosting uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pyrpo._native import Features, Model, Projection
from pyrpo._native_call import (
    Matrix,
    check,
    control,
    ffi,
    given,
    into,
    keep_exception,
    lib,
    new_options,
)

LOSSES = ("squared", "absolute", "huber", "logistic", "exponential", "softmax", "custom")
LEAVES = ("newton", "mean")

# Fills gradients and curvatures of some rows: (rows, scores, gradient, curvature or None).
BlockLoss = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None], Any]


class _Loss:
    """A Python loss on its way through C."""

    def __init__(self, loss: BlockLoss, outputs: int) -> None:
        self.loss, self.outputs = loss, outputs


@ffi.def_extern(onerror=keep_exception, error=1)
def pyrpo_loss(user, count, row, f, g, h):
    """Hand a block of rows to the Python loss; what it raises cancels the call."""
    own = ffi.from_handle(user)
    shape = (count, own.outputs)

    def view(pointer, kind, size):
        return np.frombuffer(ffi.buffer(pointer, size), dtype=kind)

    scores, gradient = (view(p, np.float32, 4 * shape[0] * shape[1]).reshape(shape) for p in (f, g))
    curvature = None
    if h != ffi.NULL:
        curvature = view(h, np.float32, 4 * shape[0] * shape[1]).reshape(shape)
    own.loss(view(row, np.int32, 4 * count), scores, gradient, curvature)
    return 0


def model_steps(model: Model) -> np.ndarray:
    """Steps of a model without relabelled leaves, (trees, outputs)."""
    shape = model.n_trees, model.n_outputs
    pointer = lib.rpo_forest_step(model.handle)
    return np.frombuffer(ffi.buffer(pointer, 4 * shape[0] * shape[1]), np.float32).reshape(shape)


def round_rows(seed: int, number: int, subsample: float, weight: np.ndarray) -> np.ndarray:
    """Rows that a round of a run saw; weights of float64, 0 of rows that were only watched."""
    rows = np.empty(len(weight), dtype=np.int32)
    found = lib.rpo_boost_sample(
        *(seed, number, subsample, given(weight), len(weight)),
        into(rows),
    )
    return rows[:found]


def staged_scores(model: Model, X: Any, n_jobs: int | None = None) -> Iterator[np.ndarray]:
    """Scores after each tree of a boosted model: one array, changed in place."""
    view, d = Matrix(X), model.n_outputs
    start = np.frombuffer(ffi.buffer(lib.rpo_forest_start(model.handle), 8 * d))
    scores = np.tile(start.astype(np.float32), (X.shape[0], 1))
    for tree in range(model.n_trees):
        with control(n_jobs) as c:
            check(
                lib.rpo_forest_add_trees,
                *(model.handle, view.struct, tree, tree + 1, c, into(scores)),
            )
        yield scores


class Boost:
    """A run of boosting, changed by each round."""

    def __init__(
        self,
        options: dict[str, float],
        features: Features,
        Y: Any,
        *,
        weight: np.ndarray | None = None,
        entry_weight: np.ndarray | None = None,
        watched: np.ndarray | None = None,
        start: np.ndarray | None = None,
        projection: Projection | None = None,
        loss: BlockLoss | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.features, self.n_outputs = features, Y.shape[1]
        self._components = Y.shape[1] if projection is None else projection.components
        data, view = ffi.new("rpo_boost_data *"), Matrix(Y)
        arrays = given(weight), given(watched, np.uint8), given(start)  # alive during the call
        data.Y = view.struct
        data.weight, data.watched, data.start = arrays
        entries = None if entry_weight is None else Matrix(entry_weight)
        if entries is not None:
            data.entry_weight = entries.struct
        if loss is not None:
            self._loss = ffi.new_handle(_Loss(loss, self.n_outputs))
            data.loss, data.user = lib.pyrpo_loss, self._loss
        handle = ffi.new("rpo_boost **")
        with control(n_jobs) as c:
            check(
                lib.rpo_boost_new,
                *(new_options(options), features.handle, data),
                *(ffi.NULL if projection is None else projection.struct, c, handle),
            )
        self.handle = ffi.gc(handle[0], lib.rpo_boost_free)

    @property
    def rounds(self) -> int:
        """Rounds run so far."""
        return lib.rpo_boost_rounds(self.handle)

    def resume(self, model: Model, n_jobs: int | None = None) -> None:
        """Take over the rounds of a model."""
        with control(n_jobs) as c:
            check(lib.rpo_boost_resume, self.handle, model.handle, c)

    def run(self, rounds: int, n_jobs: int | None = None, progress=None) -> None:
        """Run more rounds."""
        with control(n_jobs, progress) as c:
            check(lib.rpo_boost_run, self.handle, rounds, c)

    def project(self, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the next round's sample and their projected negative gradients."""
        n, m = self.features.shape[0], self._components
        rows, z = np.empty(n, dtype=np.int32), np.empty((n, m))
        count = ffi.new("int64_t *")
        with control(n_jobs) as c:
            check(
                lib.rpo_boost_project,
                *(self.handle, c, into(rows), count, into(z)),
            )
        return rows[: count[0]], z[: count[0]]

    def add(self, values: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Step along what a learner says of all rows, (rows, 1) or (rows, outputs); by output."""
        step = np.empty(self.n_outputs, dtype=np.float32)
        with control(n_jobs) as c:
            check(
                lib.rpo_boost_add,
                *(self.handle, given(values, np.float32), values.shape[1], c),
                into(step),
            )
        return step

    @property
    def start(self) -> np.ndarray:
        """Constant scores."""
        pointer = lib.rpo_boost_start(self.handle)
        return np.array(ffi.unpack(pointer, self.n_outputs))

    def losses(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean losses of training and of watched rows, from before the first round on."""
        train, watched = (np.empty(self.rounds + 1) for _ in range(2))
        check(lib.rpo_boost_losses, self.handle, into(train), into(watched))
        return train, watched

    def scores(self, rows: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Scores of some rows, (rows, outputs); of softmax logarithms of probabilities."""
        out = np.empty((len(rows), self.n_outputs), dtype=np.float32)
        with control(n_jobs) as c:
            check(
                lib.rpo_boost_scores,
                *(self.handle, given(rows, np.int32), len(rows), c),
                into(out),
            )
        return out

    def model(self, rounds: int) -> Model:
        """Make the model of the first rounds."""
        pointer = ffi.new("rpo_forest **")
        check(lib.rpo_boost_forest, self.handle, rounds, pointer)
        return Model(pointer)

    @staticmethod
    def join(boosts: list[Boost], rounds: list[int]) -> Model:
        """Make one model of runs of one output each."""
        pointer = ffi.new("rpo_forest **")
        handles = ffi.new("rpo_boost *[]", [b.handle for b in boosts])
        check(
            lib.rpo_boost_join,
            *(ffi.cast("const rpo_boost * const *", handles), len(boosts)),
            *(given(rounds, np.int64), pointer),
        )
        return Model(pointer)
