"""A generated multi-label problem that looks like tagged texts."""

import numpy as np
from scipy import sparse
from scipy.optimize import brentq
from sklearn.utils import Bunch, check_random_state

from ._generated import at_least_one, chunks, numbered
from ._text import csr_rows, stack_rows

# With these three and the defaults, a forest of 20 trees ranks labels with an average precision
# of 0.4 (3000 samples) to 0.5 (15000), their frequencies alone with one of 0.12.
_WORDS_PER_LABEL = 5
_TOPIC_BOOST = 200.0
_NOISE_SHARE = 0.2


def make_multilabel(
    n_samples: int = 1000,
    n_features: int = 600,
    n_labels: int = 1000,
    *,
    cardinality: float = 10.0,
    density: float = 0.04,
    exponent: float = 1.0,
    random_state=None,
) -> Bunch:
    """Generate a multi-label problem with skewed labels and sparse binary features.

    Labels are tags and features words. A sample has a topic; it draws its labels by popularity,
    those of its topic being preferred, and its labels draw its words, some words being noise.
    Label sets, and the words that tell them, are thus correlated.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.
    n_features : int, default=600
        Number of words.
    n_labels : int, default=1000
        Number of labels.
    cardinality : float, default=10.0
        Expected number of labels of a sample, between 1 and `n_labels`. Each has at least one.
    density : float, default=0.04
        Expected share of the features that are 1, between 0 and 1, both excluded.
    exponent : float, default=1.0
        The k-th most popular label has weight ``k ** -exponent``; 0 makes all alike.
    random_state : int, RandomState instance or None, default=None
        Source of the problem; an int gives the same one each time.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        X : csr_array of float32 of shape (n_samples, n_features)
            1 where the sample has the word.
        Y : csr_array of int8 of shape (n_samples, n_labels)
            Label indicators.
        feature_names, target_names : list of str
            ``word_0``, ... and ``label_0``, ...
        name : str
            ``make_multilabel``.
    """
    at_least_one(n_samples=n_samples, n_features=n_features, n_labels=n_labels)
    if not 1 <= cardinality <= n_labels:
        raise ValueError(f"cardinality must be between 1 and {n_labels}, got {cardinality}")
    if not 0 < density < 1:
        raise ValueError(f"density must be between 0 and 1, both excluded, got {density}")
    if not exponent >= 0:
        raise ValueError(f"exponent must not be negative, got {exponent}")
    rng = check_random_state(random_state)
    Y = _draw_labels(rng, n_samples, n_labels, cardinality, exponent)
    X = _draw_words(rng, Y, n_features, density)
    return Bunch(
        X=X,
        Y=Y,
        feature_names=numbered("word", n_features),
        target_names=numbered("label", n_labels),
        name="make_multilabel",
    )


def _draw_labels(
    rng: np.random.RandomState, n_samples: int, n_labels: int, cardinality: float, exponent: float
) -> sparse.csr_array:
    popularity = -exponent * np.log(1.0 + rng.permutation(n_labels))
    n_topics = max(1, round(n_labels**0.5))
    label_topic = rng.randint(n_topics, size=n_labels)
    sample_topic = rng.randint(n_topics, size=n_samples)
    share = (cardinality - 1) / max(1, n_labels - 1)
    sizes = 1 + rng.binomial(n_labels - 1, share, size=n_samples)
    drawn = []
    for rows in chunks(n_samples, n_labels):
        # The largest Gumbel-perturbed log-weights are a weighted draw without replacement.
        same_topic = sample_topic[rows, None] == label_topic
        keys = popularity + np.log(_TOPIC_BOOST) * same_topic
        keys += rng.gumbel(size=keys.shape)
        most = sizes[rows].max()
        top = np.argpartition(-keys, most - 1, axis=1)[:, :most]
        order = np.argsort(-np.take_along_axis(keys, top, axis=1), axis=1)
        top = np.take_along_axis(top, order, axis=1)
        drawn.append(top[np.arange(most) < sizes[rows, None]])
    indices = np.concatenate(drawn)
    return csr_rows(sizes, indices, np.ones(len(indices), dtype=np.int8), n_labels)


def _draw_words(
    rng: np.random.RandomState, Y: sparse.csr_array, n_features: int, density: float
) -> sparse.csr_array:
    n_samples, n_labels = Y.shape
    weights = rng.standard_exponential((n_labels, _WORDS_PER_LABEL))
    weights /= weights.sum(axis=1, keepdims=True)
    words = csr_rows(
        np.full(n_labels, _WORDS_PER_LABEL),
        rng.randint(n_features, size=weights.size),
        weights.ravel(),
        n_features,
    )
    noise = 1.0 / (1.0 + rng.permutation(n_features))
    noise *= _NOISE_SHARE / noise.sum()
    shares = Y / Y.sum(axis=1)[:, None]

    def intensity(rows: slice) -> np.ndarray:
        return (shares[rows] @ words).toarray() + noise

    scale = _length_for(density, intensity(slice(0, 1000)))
    parts = []
    for rows in chunks(n_samples, n_features):
        expected = intensity(rows)
        # A word is present if a Poisson number of occurrences is not 0.
        present = rng.random_sample(expected.shape) < -np.expm1(-scale * expected)
        parts.append(sparse.csr_array(present).astype(np.float32))
    return stack_rows(parts, n_features, np.float32)


def _length_for(density: float, intensity: np.ndarray) -> float:
    """Length of a text at which words of this intensity are present with the wanted density."""

    def excess(log_length: float) -> float:
        return -np.expm1(-np.exp(log_length) * intensity).mean() - density

    return float(np.exp(brentq(excess, -50.0, 50.0, xtol=1e-6)))
