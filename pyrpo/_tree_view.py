"""scikit-learn's public arrays of one tree."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pyrpo._native import Model


class Tree:
    """The tree of a model that has one, by scikit-learn's names.

    Nodes are numbered in preorder; ``-1`` and ``-2`` mark leaves as they do there. The arrays are
    read-only, made when first asked for, and kept. They are no views of the model, which is far
    smaller: it has inner nodes and leaves apart, in numbers of 1 to 4 bytes, and no numbers of
    what follows from others. A pickle leaves them out.
    """

    def __init__(self, model: Model, indicator: bool | None) -> None:
        self.model, self._indicator = model, indicator

    def __reduce__(self):
        return Tree, (self.model, self._indicator)

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: _read_only(array) for name, array in self.model.tree(0).items()}

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
        return self.model.n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of outputs; 1-D classes are one."""
        return 1 if self._indicator is False else self.model.n_outputs

    @property
    def n_classes(self) -> np.ndarray:
        """Number of classes of each output: 2 of labels, 1 of real outputs."""
        if self._indicator is False:
            return np.array([self.model.n_outputs])
        return np.full(self.n_outputs, 1 if self._indicator is None else 2)

    @property
    def max_n_classes(self) -> int:
        """The most classes of an output."""
        return int(self.n_classes.max())

    @property
    def capacity(self) -> int:
        """Nodes there is room for: as many as there are."""
        return self.node_count

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
        value = self.model.tree_values(0)
        if self._indicator is None:
            return _read_only(value[:, :, None])
        if self._indicator:
            return _read_only(np.stack([1.0 - value, value], axis=2))
        return _read_only(value[:, None, :])


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
