"""Boosting against its slowest implementation: the paper's Algorithms 2 to 4 in plain numpy.

Random problems with random weights of rows, so that no two splits are equally good but those that
part the rows alike.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

from pyrpo._native import Features, Projection
from pyrpo._native_boost import LEAVES, LOSSES, Boost

# ---- The reference ----


def best_cut(X, Z, w, rows):
    """The feature and cut of the largest decrease of variance; None where none decreases it."""
    total, weight = (w[rows, None] * Z[rows]).sum(axis=0), w[rows].sum()
    least = (total**2).sum() / weight
    best, found = 1e-9 * (w[rows] @ (Z[rows] ** 2).sum(axis=1)), None
    for j in range(X.shape[1]):
        values = np.unique(X[rows, j])
        for a, b in itertools.pairwise(values):
            left = rows[X[rows, j] <= (a + b) / 2]
            s, v = (w[left, None] * Z[left]).sum(axis=0), w[left].sum()
            gain = (s**2).sum() / v + ((total - s) ** 2).sum() / (weight - v) - least
            if gain > best:
                best, found = gain, (j, (a + b) / 2)
    return found


def leaves_of(X, Z, w, depth, rows=None):
    """The rows of each leaf of a regression tree."""
    rows = np.arange(len(X)) if rows is None else rows
    cut = best_cut(X, Z, w, rows) if depth > 0 and len(rows) > 1 else None
    if cut is None:
        return [rows]
    left = X[rows, cut[0]] <= cut[1]
    parts = rows[left], rows[~left]
    return [leaf for part in parts for leaf in leaves_of(X, Z, w, depth - 1, part)]


def slopes(loss, Y, F):
    """Negative gradient and curvature."""
    if loss == "squared":
        return Y - F, np.ones_like(F)
    return Y - expit(F), expit(F) * expit(-F)


def loss_of(loss, y, f):
    return (y - f) ** 2 / 2 if loss == "squared" else np.logaddexp(0, (1 - 2 * y) * f)


def safe(loss, t, g, h):
    """A Newton step, halved until the loss's bound says that it cannot harm."""
    while loss == "logistic" and h * (np.expm1(abs(t)) - abs(t)) > abs(g) * abs(t):
        t /= 2
    return t


def line_search(loss, w, y, f, v):
    if not abs(v).max() > 0:
        return 0.0
    if loss == "squared":
        return (w * v) @ (y - f) / ((w * v) @ v)
    total = lambda c: w @ loss_of(loss, y, f + c * v)  # noqa: E731
    return minimize_scalar(total, options={"xtol": 1e-12}).x


def constants(Y, w, loss):
    mean = w @ Y / w.sum()
    return np.tile(mean if loss == "squared" else logit(mean), (len(Y), 1))


def slow_round(X, Y, w, F, *, loss, phi, relabel, leaf, rate, l2, depth):
    """Scores of the training rows, one round on."""
    g, h = slopes(loss, Y, F)
    z = g if phi is None else g @ phi.T  # Algorithm 4, line 4
    v, step = np.zeros_like(F), np.zeros_like(F)
    for rows in leaves_of(X, z, w, depth):
        G, H = w[rows] @ g[rows], w[rows] @ h[rows]
        # Line 7: the mean negative gradient of every output, else that of the component.
        v[rows] = G / w[rows].sum() if relabel else w[rows] @ z[rows] / w[rows].sum()
        full = rate * G / (H + l2)
        step[rows] = [safe(loss, *x) for x in zip(full, G, H, strict=True)]
    if leaf == "mean":
        rho = [line_search(loss, w, Y[:, j], F[:, j], v[:, j]) for j in range(Y.shape[1])]
        step = rate * v * rho
    return F + step


# ---- The differences ----


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, p, d = rng.integers(5, 45), rng.integers(1, 5), rng.integers(1, 6)
    X = rng.normal(size=(n, p))
    if rng.random() < 0.3:
        X[:, 0] = rng.integers(0, 4, n)  # ties
    loss = ("squared", "logistic")[seed % 2]
    Y = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    if loss == "logistic":
        Y = (rng.random((n, d)) < rng.uniform(0.2, 0.8, d)).astype(float)
        Y[0], Y[1] = 0, 1  # no output is constant
    algorithm = 2 + seed // 2 % 3
    components = 1 if algorithm == 3 else int(rng.integers(1, 4))
    phi = None if algorithm == 2 else rng.normal(size=(components, d))
    # Without relabelling only the line search is defined by the paper.
    leaf = "mean" if algorithm == 3 or rng.random() < 0.5 else "newton"
    options = {
        "loss": loss,
        "phi": phi,
        "relabel": algorithm != 3,
        "leaf": leaf,
        "rate": float(rng.choice([0.1, 0.5, 1.0])),
        "l2": float(rng.choice([0.0, 1.0])) if leaf == "newton" else 0.0,
        "depth": int(rng.integers(1, 4)),
    }
    return X, Y, rng.uniform(0.5, 1.5, n), options


def run(X, Y, w, *, loss, phi, relabel, leaf, rate, l2, depth):
    options = {
        "loss": LOSSES.index(loss),
        "leaf": LEAVES.index(leaf),
        "relabel": int(relabel),
        "learning_rate": rate,
        "l2": l2,
        "max_depth": depth,
    }
    projection = None if phi is None else Projection("matrix", len(phi), matrix=phi)
    boost = Boost(options, Features(X, 0, 1), Y, weight=w, projection=projection)
    rows = np.arange(len(X))
    yield boost.scores(rows)
    while True:
        boost.run(1)
        yield boost.scores(rows)


SEEDS = range(200)


@pytest.mark.parametrize("seed", SEEDS)
def test_equals_the_slow_one(seed):
    X, Y, w, options = random_problem(seed)
    loss = options["loss"]
    searched = loss != "squared" and options["leaf"] == "mean"
    ours, F = run(X, Y, w, **options), constants(Y, w, loss)
    np.testing.assert_allclose(next(ours), F, atol=1e-5, rtol=1e-5)
    for number, here in zip(range(4), ours, strict=False):
        before, F = F, slow_round(X, Y, w, F, **options)
        if not searched:
            assert abs(here - F).max() < 2e-4 * (1 + abs(F).max()), (number, options)
            continue
        # A line search is as exact as losses tell: by them it is compared, and goes on from there.
        # Outputs that the step tells apart have their minimum at infinity.
        near = abs(F - before).max(axis=0) < 10 * options["rate"]
        a, b = ((w @ loss_of(loss, Y, f))[near] for f in (here.astype(float), F))
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=str((number, options)))
        F = here.astype(float)
