"""The friedman1 problems with several targets, chained, grouped or independent."""

import numpy as np
from sklearn.utils import check_random_state


def make_friedman1_chain(
    n_samples: int = 100, n_targets: int = 16, *, noise: float = 1.0, random_state=None
) -> tuple[np.ndarray, np.ndarray]:
    """Generate the friedman1-chain problem: each target is the one before it and noise.

    With ``f(x) = 10 sin(pi x1 x2) + 20 (x3 - 0.5)^2 + 10 x4 + 5 x5``, x uniform on [0, 1]^5 and
    e normal, ``y_1 = f(x) + e_1`` and ``y_j = y_{j-1} + e_j`` for j > 1.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_targets : int, default=16
        Number of targets.
    noise : float, default=1.0
        Standard deviation of e.
    random_state : int, RandomState instance or None, default=None
        Source of x and e; an int gives the same problem each time.

    Returns
    -------
    X : ndarray of shape (n_samples, 5)
    Y : ndarray of shape (n_samples, n_targets)

    References
    ----------
    .. [1] A. Joly, L. Wehenkel and P. Geurts, "Gradient tree boosting with random output
           projections for multi-label classification and multi-output regression", 2019,
           equations (29) and (30). The normal x printed there is a slip.
    """
    rng = _check(n_samples, n_targets, noise, random_state)
    X = rng.uniform(size=(n_samples, 5))
    E = noise * rng.standard_normal((n_samples, n_targets))
    return X, _friedman1(X)[:, None] + np.cumsum(E, axis=1)


def make_friedman1_group(
    n_samples: int = 100, n_targets: int = 16, *, noise: float = 1.0, random_state=None
) -> tuple[np.ndarray, np.ndarray]:
    """Generate the friedman1-group problem: each target is the same function and own noise.

    With f, x and e as in :func:`make_friedman1_chain`, ``y_j = f(x) + e_j``.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_targets : int, default=16
        Number of targets.
    noise : float, default=1.0
        Standard deviation of e.
    random_state : int, RandomState instance or None, default=None
        Source of x and e; an int gives the same problem each time.

    Returns
    -------
    X : ndarray of shape (n_samples, 5)
    Y : ndarray of shape (n_samples, n_targets)

    References
    ----------
    .. [1] Joly et al., cited at :func:`make_friedman1_chain`, equation (31).
    """
    rng = _check(n_samples, n_targets, noise, random_state)
    X = rng.uniform(size=(n_samples, 5))
    return X, _friedman1(X)[:, None] + noise * rng.standard_normal((n_samples, n_targets))


def make_friedman1_ind(
    n_samples: int = 100, n_targets: int = 16, *, noise: float = 1.0, random_state=None
) -> tuple[np.ndarray, np.ndarray]:
    """Generate the friedman1-ind problem: each target depends on five features of its own.

    With f and e as in :func:`make_friedman1_chain` and x uniform on [0, 1]^(5 n_targets),
    ``y_j = f(x_{5(j-1)+1}, ..., x_{5j}) + e_j``.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_targets : int, default=16
        Number of targets.
    noise : float, default=1.0
        Standard deviation of e.
    random_state : int, RandomState instance or None, default=None
        Source of x and e; an int gives the same problem each time.

    Returns
    -------
    X : ndarray of shape (n_samples, 5 * n_targets)
    Y : ndarray of shape (n_samples, n_targets)

    References
    ----------
    .. [1] Joly et al., cited at :func:`make_friedman1_chain`, equation (32), whose slice is
           printed five features too far.
    """
    rng = _check(n_samples, n_targets, noise, random_state)
    X = rng.uniform(size=(n_samples, 5 * n_targets))
    Y = _friedman1(X.reshape(n_samples, n_targets, 5))
    return X, Y + noise * rng.standard_normal((n_samples, n_targets))


def _check(n_samples: int, n_targets: int, noise: float, random_state) -> np.random.RandomState:
    if n_samples < 0 or n_targets < 1 or not noise >= 0:
        raise ValueError(
            "n_samples and noise must be at least 0 and n_targets at least 1, "
            f"got {n_samples}, {noise} and {n_targets}"
        )
    return check_random_state(random_state)


def _friedman1(x: np.ndarray) -> np.ndarray:
    x1, x2, x3, x4, x5 = np.moveaxis(x, -1, 0)
    return 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
