"""scikit-learn's public arrays of one tree."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pyrpo._native import Model


class Tree:
    """One grown tree, by scikit-learn's names; arrays are read-only and made when asked for.

    Nodes are numbered in preorder; ``-1`` and ``-2`` mark leaves as they do there. The model itself
    is far smaller than these arrays.
    """

    def __init__(self, model: Model, index: int, criterion_classes: bool) -> None:
        self._model, self._index, self._binary_values = model, index, criterion_classes

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = self._model.tree(self._index)
        for array in arrays.values():
            array.flags.writeable = False
        return arrays

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self._arrays["left"])

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return (self.node_count + 1) // 2

    @cached_property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        depth = np.zeros(self.node_count, dtype=np.int64)
        left, right = self.children_left, self.children_right
        level = np.array([0])
        deepest = 0
        while True:
            inner = level[left[level] >= 0]
            if len(inner) == 0:
                return deepest
            level = np.concatenate([left[inner], right[inner]])
            deepest += 1
            depth[level] = deepest

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self._model.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return self._model.n_outputs

    @property
    def children_left(self) -> np.ndarray:
        """Left child of each node, -1 at leaves."""
        return self._arrays["left"]

    @property
    def children_right(self) -> np.ndarray:
        """Right child of each node, -1 at leaves."""
        return self._arrays["right"]

    @property
    def feature(self) -> np.ndarray:
        """Feature each node splits on, -2 at leaves."""
        return self._arrays["feature"]

    @property
    def threshold(self) -> np.ndarray:
        """Values up to the threshold go left; -2 at leaves."""
        return self._arrays["threshold"]

    @property
    def impurity(self) -> np.ndarray:
        """Impurity of each node."""
        return self._arrays["impurity"]

    @property
    def n_node_samples(self) -> np.ndarray:
        """Training rows of each node."""
        return self._arrays["n_samples"]

    @property
    def weighted_n_node_samples(self) -> np.ndarray:
        """Weight of the training rows of each node."""
        return self._arrays["weight"]

    @property
    def missing_go_to_left(self) -> np.ndarray:
        """1 where missing values go left."""
        return self._arrays["missing_left"]

    @cached_property
    def value(self) -> np.ndarray:
        """Predicted outputs of each node.

        (nodes, outputs, 1) of regressors, (nodes, 1, classes) of classifiers of 1-D classes,
        (nodes, labels, 2), absent and present, of label indicators.
        """
        value = self._model.tree_values(self._index)
        if self._binary_values is None:
            return value[:, :, None]
        if self._binary_values:
            return np.stack([1.0 - value, value], axis=2)
        return value[:, None, :]
