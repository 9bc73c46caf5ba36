"""Generated extreme classification: many features, very many labels in a hierarchy."""

from __future__ import annotations

from math import ceil

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch, check_random_state

from ._generated import at_least_one, chunks, numbered
from ._text import csr_rows, stack_rows

_WORDS_PER_NODE = 20
_SIBLING = 0.5  # probability of a further label to be a sibling of the first


def make_xmc(
    n_samples: int = 1000,
    n_features: int = 5000,
    n_labels: int = 500,
    *,
    cardinality: float = 1.0,
    words: int = 100,
    branching: int = 10,
    exponent: float = 0.5,
    noise: float = 0.85,
    own: float = 0.02,
    random_state=None,
) -> Bunch:
    """Generate texts with very many labels that form a hierarchy.

    Labels are the leaves of a tree, their frequencies follow a power law, and so do the words'.
    Each node of the tree prefers some words. A text draws its words from its labels, from their
    ancestors, which they share with other labels, and from all words: what labels depend on is of
    low rank, but for the labels' own words. It is drawn in chunks of rows, in memory for the result
    and little more.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of texts.
    n_features : int, default=5000
        Number of words.
    n_labels : int, default=500
        Number of labels.
    cardinality : float, default=1.0
        Expected number of draws of a text's labels, at least 1; with 1 each has one label. A label
        drawn twice counts once. Half of the further labels are siblings of the first.
    words : int, default=100
        Draws of words of a text, of which about three quarters are distinct.
    branching : int, default=10
        Children of a node of the hierarchy, 2 or more.
    exponent : float, default=0.5
        The i-th most frequent label has weight ``i ** -exponent``; 0 makes all alike.
    noise, own : float, default=0.85 and 0.02
        Shares of the words drawn from all words, whatever the labels, and from a label's own; the
        others are drawn from its ancestors', half of them from its parent's. The more own words,
        the higher the rank of what can be predicted.
    random_state : int, RandomState instance or None, default=None
        Source of the problem; an int gives the same one each time.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        X : csr_array of float32 of shape (n_samples, n_features)
            Square roots of counts, rows of length 1.
        Y : csr_array of int8 of shape (n_samples, n_labels)
            Label indicators.
        parents : ndarray of int64 of shape (n_nodes,)
            Parent of each node of the hierarchy; labels are the first nodes, the root is the last
            and its own parent.
        feature_names, target_names : list of str
            ``word_0``, ... and ``label_0``, ...; empty beyond a million.
        name : str
            ``make_xmc``.
    """
    at_least_one(n_samples=n_samples, n_features=n_features, n_labels=n_labels, words=words)
    if not 1 <= cardinality <= n_labels:
        raise ValueError(f"cardinality must be between 1 and {n_labels}, got {cardinality}")
    if branching < 2:
        raise ValueError(f"branching must be at least 2, got {branching}")
    if not exponent >= 0:
        raise ValueError(f"exponent must not be negative, got {exponent}")
    if not (noise >= 0 and own >= 0 and noise + own <= 1):
        raise ValueError(f"noise and own must be shares, 1 together at most, got {noise}, {own}")
    rng = check_random_state(random_state)
    parents = _hierarchy(n_labels, branching)
    frequency = (1.0 + rng.permutation(n_labels)) ** -exponent
    popular = np.cumsum(frequency / frequency.sum())
    names = rng.permutation(n_features).astype(np.int32)  # words by their rank
    vocabulary = names[_ranks(rng, (len(parents), _WORDS_PER_NODE), n_features, 0.5)]
    X_parts, Y_parts = [], []
    for rows in chunks(n_samples, words):
        Y = _draw_labels(rng, rows.stop - rows.start, popular, parents, cardinality)
        Y_parts.append(Y)
        X_parts.append(_draw_words(rng, Y, parents, vocabulary, names, words, noise, own))
    return Bunch(
        X=stack_rows(X_parts, n_features, np.float32),
        Y=stack_rows(Y_parts, n_labels, np.int8),
        parents=parents,
        feature_names=_names("word", n_features),
        target_names=_names("label", n_labels),
        name="make_xmc",
    )


def _names(kind: str, count: int) -> list[str]:
    return numbered(kind, count) if count <= 10**6 else []


def _hierarchy(n_labels: int, branching: int) -> np.ndarray:
    """Parents, level after level: neighbours share one."""
    levels, first, size = [], 0, n_labels
    while size > 1:
        levels.append(first + size + np.arange(size) // branching)
        first, size = first + size, ceil(size / branching)
    return np.concatenate([*levels, [first]])


def _ranks(rng: np.random.RandomState, shape, size: int, exponent: float) -> np.ndarray:
    """Ranks 0, ..., size - 1 of which the i-th has a weight of about (i + 1) ** -exponent."""
    u = rng.random_sample(shape)
    if exponent == 1.0:
        ranks = (size + 1.0) ** u - 1
    else:
        power = 1.0 - exponent
        ranks = (1.0 + u * ((size + 1.0) ** power - 1)) ** (1 / power) - 1
    return np.minimum(ranks.astype(np.int64), size - 1)


def _draw_labels(
    rng: np.random.RandomState, n: int, popular: np.ndarray, parents: np.ndarray, cardinality: float
) -> sparse.csr_array:
    """One label by popularity; further ones are its siblings, or by popularity too."""
    n_labels = len(popular)

    def draw(size: int) -> np.ndarray:
        return np.minimum(np.searchsorted(popular, rng.random_sample(size)), n_labels - 1)

    first = draw(n)
    more = rng.poisson(cardinality - 1.0, n) if cardinality > 1 else np.zeros(n, dtype=np.int64)
    row = np.repeat(np.arange(n), more)
    other = draw(len(row))
    siblings = _siblings(rng, first[row], parents, n_labels)
    other = np.where(rng.random_sample(len(row)) < _SIBLING, siblings, other)
    row, label = np.concatenate([np.arange(n), row]), np.concatenate([first, other])
    Y = sparse.coo_array((np.ones(len(row), dtype=np.int8), (row, label)), shape=(n, n_labels))
    Y = Y.tocsr()
    Y.data[:] = 1  # a label drawn twice
    return Y


def _siblings(
    rng: np.random.RandomState, labels: np.ndarray, parents: np.ndarray, n_labels: int
) -> np.ndarray:
    """A random label of the same parent; labels of one parent are neighbours."""
    starts = np.searchsorted(parents[:n_labels], parents[labels], side="left")
    ends = np.searchsorted(parents[:n_labels], parents[labels], side="right")
    return starts + (rng.random_sample(len(labels)) * (ends - starts)).astype(np.int64)


def _draw_words(
    rng: np.random.RandomState,
    Y: sparse.csr_array,
    parents: np.ndarray,
    vocabulary: np.ndarray,
    names: np.ndarray,
    words: int,
    noise: float,
    own: float,
) -> sparse.csr_array:
    n, count = Y.shape[0], np.diff(Y.indptr)
    which = (rng.random_sample((n, words)) * count[:, None]).astype(np.int64)
    node = Y.indices[Y.indptr[:-1, None] + which].astype(np.int64)  # that the word is drawn from
    source = rng.random_sample((n, words))
    up = source > own
    while up.any():  # to the parent, and on with probability 1/2
        node[up] = parents[node[up]]
        up &= rng.random_sample((n, words)) < 0.5
        up &= node < len(parents) - 1
    drawn = vocabulary[node, rng.randint(_WORDS_PER_NODE, size=(n, words))]
    anywhere = source > 1 - noise
    drawn[anywhere] = names[_ranks(rng, int(anywhere.sum()), len(names), 1.0)]
    X = csr_rows(np.full(n, words), drawn.ravel(), np.ones(n * words), len(names))
    X = X.astype(np.float32)
    X.data = np.sqrt(X.data)
    length = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(length, np.diff(X.indptr)).astype(np.float32)
    return X
