"""Constants, steps and leaves of boosting against numpy and scipy's minimisers, round by round."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax

from pyrpo import GradientBoostingClassifier, GradientBoostingRegressor
from pyrpo._native import Features, Projection
from pyrpo._native_boost import LEAVES, LOSSES, Boost

REAL = ("squared", "absolute", "huber")
BINARY = ("logistic", "exponential")
ENTRYWISE = REAL + BINARY

# ---- The losses in numpy: value, negative gradient, the curvature that Newton steps use ----


def value(loss, y, f, delta=None):
    """By entry; of softmax by row."""
    r, s = y - f, 2 * y - 1
    match loss:
        case "squared":
            return r**2 / 2
        case "absolute":
            return abs(r)
        case "huber":
            return np.where(abs(r) <= delta, r**2 / 2, delta * (abs(r) - delta / 2))
        case "logistic":
            return np.logaddexp(0, -s * f)
        case "exponential":
            return np.exp(-s * f / 2)
        case "softmax":
            return -(y * log_softmax(f, axis=1)).sum(axis=1, keepdims=True)


def gradient(loss, y, f, delta=None):
    """Minus the derivative of the value."""
    r, s = y - f, 2 * y - 1
    match loss:
        case "squared":
            return r
        case "absolute":
            return np.sign(r)
        case "huber":
            return np.clip(r, -delta, delta)
        case "logistic":
            return y - expit(f)
        case "exponential":
            return s / 2 * np.exp(-s * f / 2)
        case "softmax":
            return y - softmax(f, axis=1)


def curvature(loss, y, f, delta=None):
    r, s = y - f, 2 * y - 1
    match loss:
        case "squared" | "absolute":
            return np.ones_like(f)
        case "huber":
            return np.minimum(1.0, np.divide(delta, abs(r), where=r != 0, out=np.ones_like(f)))
        case "logistic":
            return expit(f) * expit(-f)
        case "exponential":
            return np.exp(-s * f / 2) / 4
        case "softmax":
            p = softmax(f, axis=1)
            return p * (1 - p) * p.shape[1] / max(p.shape[1] - 1, 1)


@pytest.mark.parametrize("loss", [*ENTRYWISE, "softmax"])
def test_the_reference_differentiates(loss, rng):
    y, f = targets(rng, loss, 50, 4)
    f = f.astype(np.float64)
    step, delta = 1e-6, np.full(4, 0.7)
    for j in range(4):
        e = step * np.eye(4)[j]
        up, down = value(loss, y, f + e, delta), value(loss, y, f - e, delta)
        slope = (up - down) / (2 * step)
        slope = slope[:, 0] if loss == "softmax" else slope[:, j]
        np.testing.assert_allclose(gradient(loss, y, f, delta)[:, j], -slope, atol=1e-6)


def targets(rng, loss, n, d):
    """y and scores."""
    if loss == "softmax":
        return np.eye(d)[rng.integers(d, size=n)], rng.normal(size=(n, d)).astype(np.float32)
    if loss in BINARY:
        return (rng.random((n, d)) < rng.random(d)).astype(float), rng.normal(size=(n, d))
    return rng.normal(size=(n, d)).astype(np.float32).astype(float), rng.normal(size=(n, d))


# ---- Runs ----


def boost(X, Y, loss, *, projection=None, start=None, weight=None, entry=None, bins=0, **options):
    options = {"loss": LOSSES.index(loss), "learning_rate": 1.0, "max_depth": 2} | options
    options["leaf"] = LEAVES.index(options.get("leaf", "newton"))
    return Boost(
        options,
        Features(X, bins, 1),
        Y,
        weight=weight,
        entry_weight=entry,
        start=start,
        projection=projection,
    )


def matrix(phi):
    return Projection("matrix", len(phi), matrix=np.asarray(phi, dtype=np.float64))


def rounds(run, X, loss, count):
    """Predictions before the first round and after each, as doubles; the run's own scores agree."""
    rows = np.arange(len(X))
    yield np.repeat(run.start[None], len(X), axis=0)
    for r in range(1, count + 1):
        run.run(1)
        predicted = run.model(r).predict(X).astype(np.float64)
        said = log_softmax(predicted, axis=1) if loss == "softmax" else predicted
        exact = {} if loss in REAL else {"atol": 5e-6, "rtol": 5e-6}
        if loss in BINARY:
            said = np.clip(said, -120 * np.log(2), 120 * np.log(2))
        np.testing.assert_allclose(run.scores(rows), said, **{"rtol": 0} | exact)
        yield predicted


def delta_of(loss, Y, W, quantile=0.9):
    """Huber's delta by output, where weights are all 1."""
    if loss != "huber":
        return None
    spread = np.sort(abs(Y - np.median(Y, axis=0)), axis=0)
    return np.array([quantile_of(s, quantile) for s in spread.T]).astype(np.float32).astype(float)


def quantile_of(s, q):
    goal = q * len(s)
    i = int(np.ceil(goal)) - 1
    exact = goal == i + 1 and i + 1 < len(s)
    found = (s[i] + s[i + 1]) / 2 if exact else s[i]
    return found if found > 0 else 1.0


# ---- Constants ----


@pytest.mark.parametrize("loss", ENTRYWISE)
@pytest.mark.parametrize("weights", [None, "rows", "entries"])
def test_constants_are_of_least_loss(loss, weights, rng):
    n, d = 60, 5
    Y, _ = targets(rng, loss, n, d)
    row = rng.integers(0, 4, n).astype(float) if weights == "rows" else None
    entry = rng.integers(0, 3, (n, d)).astype(float) if weights == "entries" else None
    run = boost(rng.normal(size=(n, 2)), Y, loss, weight=row, entry=entry, huber_quantile=0.5)
    W = np.ones((n, d)) * (1 if row is None else row[:, None]) * (1 if entry is None else entry)
    (start,) = run.scores(np.array([0]))
    for j in range(d):
        # with weights, delta is asked of the run's own loss: any delta has its constant
        deltas = [None] if loss != "huber" else [weighted_delta(Y[:, j], W[:, j], 0.5)]
        for delta in deltas:
            total = lambda c: W[:, j] @ value(loss, Y[:, j], np.float64(c), delta)  # noqa: E731, B023
            best = minimize_scalar(total, bounds=(-30, 30), method="bounded")
            assert total(start[j]) <= best.fun * (1 + 1e-6) + 1e-6


def weighted_delta(y, w, q):
    """By repeating rows of whole weights."""
    many = np.repeat(y, w.astype(int))
    return float(np.float32(quantile_of(np.sort(abs(many - np.median(many))), q)))


def test_constants_of_softmax_are_log_frequencies(rng):
    Y = np.eye(5)[rng.integers(4, size=80)]
    (start,) = boost(rng.normal(size=(80, 2)), Y, "softmax").scores(np.array([0]))
    np.testing.assert_allclose(
        start[:4] - start[0], np.log(Y[:, :4].mean(axis=0) / Y[:, 0].mean()), atol=1e-5
    )
    np.testing.assert_allclose(np.exp(start).sum(), 1, rtol=1e-6)
    assert np.isfinite(start).all()
    assert start[4] < start[:4].min()


@pytest.mark.parametrize("loss", BINARY)
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_of_one_value_have_finite_scores(loss, weighted, rng):
    n = 37
    Y = np.column_stack([np.zeros(n), np.ones(n), rng.integers(2, size=n)]).astype(float)
    w = rng.random(n) / 3 if weighted else None
    run = boost(rng.normal(size=(n, 3)), Y, loss, weight=w, l2=1.0)
    run.run(50)
    scores = run.scores(np.arange(n))
    assert np.isfinite(scores).all()
    assert (scores[:, 0] < -2).all()
    assert (scores[:, 1] > 2).all()


# ---- Leaves and steps, round by round ----


def softmax_bound(G, H, t):
    """Whether a leaf's step cannot raise the loss: variance of t under p <= 2 sum p (1 - p) t^2."""
    d = len(G)
    reach = np.ptp(np.append(t, 0.0))
    bend = (np.expm1(reach) - reach) / reach**2 if reach > 0 else 0.5
    return 2 * (d - 1) / d * (H * t**2).sum() * bend <= G @ t


def check_newton_leaf(loss, y, f, w, moved, rate, l2, delta):
    """`moved` is rate * G / (H + l2), halved only as often as its bound asks for."""
    G = (w * gradient(loss, y, f, delta)).sum(axis=0)
    H = (w * curvature(loss, y, f, delta)).sum(axis=0)
    full = np.divide(rate * G, H + l2, out=np.zeros_like(G), where=H + l2 > 0)
    if loss in REAL:
        np.testing.assert_allclose(moved, full, rtol=2e-4, atol=2e-5)
        return
    big = abs(full) > 1e-4
    halvings = np.log2(full[big] / moved[big])
    np.testing.assert_allclose(halvings, np.round(halvings), atol=2e-2)
    assert (np.round(halvings) >= 0).all()
    if loss == "softmax":
        assert np.ptp(np.round(halvings)) == 0 if big.any() else True
        for k in range(int(np.round(halvings).max()) if big.any() else 0):
            assert not softmax_bound(G, H, full / 2**k * (1 + 1e-5))
        return
    slow = 1 if loss == "logistic" else 2
    for t, k, g, h in zip(full[big], np.round(halvings), G[big], H[big], strict=True):
        if k > 0:  # the next larger step does not meet the bound
            t = abs(t) / 2 ** (k - 1) * (1 + 1e-5)
            u = t / slow
            assert h * slow**2 * (np.expm1(u) - u) > abs(g) * t * (1 - 1e-5)


def leaf_losses(loss, y, f, w, delta):
    if loss == "softmax":
        return (w[:, :1] * value(loss, y, f)).sum(axis=0)
    return (w * value(loss, y, f, delta)).sum(axis=0)


CASES = [(loss, weights) for loss in (*ENTRYWISE, "softmax") for weights in (False, True)]


@pytest.mark.parametrize(("loss", "weights"), CASES)
@pytest.mark.parametrize("rate", [0.1, 1.0])
@pytest.mark.parametrize(("l2", "d"), [(0.0, 6), (1.5, 6), (1.5, 20)])
def test_newton_leaves(loss, weights, rate, l2, d, rng):
    n = 120
    X = rng.normal(size=(n, 3))
    Y, _ = targets(rng, loss, n, d)
    if loss in BINARY:
        Y[:, 0], Y[0, 0] = 0, 1  # very unbalanced
    w = rng.random(n) + 0.1 if weights else None
    W = np.ones((n, d)) if w is None else np.repeat(w[:, None], d, axis=1)
    start = rng.normal(size=d) if loss == "huber" and weights else None
    phi = matrix(rng.normal(size=(1, d))) if d > 6 else None  # rows of whole lines
    run = boost(X, Y, loss, weight=w, l2=l2, learning_rate=rate, max_depth=3, projection=phi)
    delta = delta_of(loss, Y, W) if w is None else None
    if loss == "huber" and w is not None:
        pytest.skip("delta of fractional weights is tested by constants")
    assert start is None or loss == "huber"
    scores = list(rounds(run, X, loss, 8))
    leaves = run.model(8).apply(X)
    for r in range(8):
        before, after = scores[r : r + 2]
        for leaf in np.unique(leaves[:, r]):
            rows = leaves[:, r] == leaf
            y, f, v = Y[rows], before[rows], W[rows]
            moved = (after - before)[rows]
            np.testing.assert_allclose(moved, np.tile(moved[0], (rows.sum(), 1)), atol=2e-5)
            lower = leaf_losses(loss, y, after[rows], v, delta)
            upper = leaf_losses(loss, y, f, v, delta)
            assert (lower <= upper * (1 + 1e-5) + 1e-6).all()
            if loss == "absolute":
                for j in range(d):
                    c = moved[0, j] / rate
                    about = lambda c: v[:, j] @ abs(y[:, j] - f[:, j] - c)  # noqa: E731, B023
                    assert about(c) <= min(map(about, y[:, j] - f[:, j])) * (1 + 1e-5) + 1e-5
            else:
                check_newton_leaf(loss, y, f, v, moved.mean(axis=0), rate, l2, delta)


def check_line(loss, y, f, v, w, rho, delta, l2=0.0):
    """rho is scipy's minimiser of the loss along v, as far as the loss can tell."""
    total = lambda c: (w * value(loss, y, f + c * v, delta)).sum()  # noqa: E731
    far = 30 / max(abs(v).max(), 1e-30)  # where losses only fall, scores change by 30 at most
    best = minimize_scalar(total, bounds=(-far, far), method="bounded", options={"xatol": 1e-9})
    near = minimize_scalar(total, bracket=(rho * 0.9 - 1e-9, rho * 1.1 + 1e-9))
    least, here, now = best.fun, total(0.0), total(rho)
    if abs(near.x) < far:
        least = min(least, near.fun)
    assert now <= least + 1e-4 * (here - least) + 1e-5 * (1 + abs(here)), (
        rho,
        best.x,
        here - least,
    )


@pytest.mark.parametrize("loss", ENTRYWISE)
@pytest.mark.parametrize("relabel", [True, False])
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_line_searched_steps(loss, relabel, rate, rng):
    n, d = 150, 5
    X = rng.normal(size=(n, 3))
    Y, _ = targets(rng, loss, n, d)
    if loss in BINARY:
        Y[:, 0] = X[:, 0] > np.sort(X[:, 0])[-4]  # very unbalanced, and told by X
        Y[:, 1] = 1 - Y[:, 0]
        Y[:, 2] = 0
    else:
        Y[:, 3] = 7.0
    phi = rng.normal(size=(1, d))
    run = boost(
        X, Y, loss, projection=matrix(phi), relabel=int(relabel), leaf="mean", learning_rate=rate
    )
    delta = delta_of(loss, Y, None)
    scores = list(rounds(run, X, loss, 12))
    leaves = run.model(12).apply(X)
    for r in range(12):
        before, after = scores[r : r + 2]
        g = gradient(loss, Y, before, delta)
        z = g @ phi.T
        v = np.empty((n, d))
        for leaf in np.unique(leaves[:, r]):
            rows = leaves[:, r] == leaf
            v[rows] = g[rows].mean(axis=0) if relabel else z[rows].mean()
        for j in range(d):
            moved = after[:, j] - before[:, j]
            if abs(v[:, j]).max() < 1e-6:
                continue
            rho = (moved @ v[:, j]) / (v[:, j] @ v[:, j]) / rate
            rounding = 6e-8 * rate * abs(rho)  # of single precision, in v
            np.testing.assert_allclose(
                moved, rate * rho * v[:, j], atol=1e-4 * (1 + abs(moved).max()) + rounding
            )
            at = None if delta is None else delta[j]
            check_line(loss, Y[:, j], before[:, j], v[:, j], 1.0, rho, at)


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_softmax_takes_one_joint_step(rate, rng):
    n, d = 150, 5
    X = rng.normal(size=(n, 3))
    Y = np.eye(d)[np.digitize(X[:, 0] + rng.normal(size=n) / 4, [-2, 0, 0.5, 1])]
    run = boost(X, Y, "softmax", leaf="mean", learning_rate=rate)
    scores = list(rounds(run, X, "softmax", 10))
    leaves = run.model(10).apply(X)
    for r in range(10):
        before, after = scores[r : r + 2]
        g, v = gradient("softmax", Y, before), np.empty((n, d))
        for leaf in np.unique(leaves[:, r]):
            rows = leaves[:, r] == leaf
            v[rows] = g[rows].mean(axis=0)
        rho = ((after - before) * v).sum() / (v**2).sum() / rate
        np.testing.assert_allclose(after - before, rate * rho * v, atol=1e-4)
        total = lambda c: value("softmax", Y, before + c * v).sum()  # noqa: E731, B023
        far = 30 / abs(v).max()
        best = minimize_scalar(total, bounds=(-far, far), method="bounded")
        assert total(rho) <= best.fun + 1e-4 * (total(0) - best.fun) + 1e-4


def test_newton_steps_of_one_component(rng):
    """Without relabelling, leaf="newton": one Newton step by output, halved while it may harm."""
    n, d = 150, 5
    X, Y = rng.normal(size=(n, 3)), (rng.random((n, d)) < 0.3).astype(float)
    phi = rng.normal(size=(1, d))
    run = boost(X, Y, "logistic", projection=matrix(phi), relabel=0, l2=0.7)
    scores = list(rounds(run, X, "logistic", 6))
    leaves = run.model(6).apply(X)
    for r in range(6):
        before, after = scores[r : r + 2]
        g, h = gradient("logistic", Y, before), curvature("logistic", Y, before)
        z, v = (g @ phi.T)[:, 0], np.empty(n)
        for leaf in np.unique(leaves[:, r]):
            v[leaves[:, r] == leaf] = z[leaves[:, r] == leaf].mean()
        full = (v @ g) / (v**2 @ h + 0.7)
        rho = v @ (after - before) / (v @ v)
        halvings = np.log2(full / rho)
        np.testing.assert_allclose(halvings, np.round(halvings), atol=1e-2)
        losses = [value("logistic", Y, f).sum(axis=0) for f in (before, after)]
        assert (losses[1] <= losses[0] * (1 + 1e-6)).all()


# ---- Appendix A: the training loss never increases ----


@settings(max_examples=120)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([*ENTRYWISE, "softmax"]),
    algorithm=st.sampled_from([2, 3, 4]),
    leaf=st.sampled_from(["mean", "newton"]),
    rate=st.floats(0.01, 1.0),
    depth=st.integers(1, 4),
    unbalanced=st.booleans(),
)
def test_training_loss_never_increases(seed, loss, algorithm, leaf, rate, depth, unbalanced):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 60)), int(rng.integers(2, 7))
    X = rng.integers(-2, 3, size=(n, 3)) + (rng.random() < 0.5) * rng.normal(size=(n, 3))
    if loss == "softmax":
        p = rng.dirichlet(np.full(d, 0.1 if unbalanced else 2.0))
        Y = np.eye(d)[rng.choice(d, size=n, p=p)]
    elif loss in BINARY:
        Y = (rng.random((n, d)) < (0.03 if unbalanced else 0.4)).astype(float)
    else:
        Y = rng.normal(size=(n, d)) * (10.0 ** rng.integers(-3, 4, size=d) if unbalanced else 1)
        Y[rng.random((n, d)) < 0.3] = 0.0
    entrywise = loss != "softmax" and rng.random() < 0.3
    entry = rng.integers(0, 3, size=(n, d)).astype(float) if entrywise else None
    weight = rng.integers(1, 4, size=n).astype(float) if rng.random() < 0.3 else None
    if loss == "softmax" and algorithm == 3 and leaf == "newton":
        leaf = "mean"
    phi = rng.normal(size=(1 if algorithm == 3 else 2, d))
    run = boost(
        X,
        Y,
        loss,
        projection=None if algorithm == 2 else matrix(phi),
        relabel=int(algorithm != 3),
        leaf=leaf,
        learning_rate=rate,
        max_depth=depth,
        weight=weight,
        entry=entry,
        train_loss=1,
    )
    run.run(15)
    losses = run.losses()[0][:-1]
    assert np.isfinite(losses).all()
    assert (np.diff(losses) <= 2e-6 * losses[:-1] + 1e-9).all(), losses


# ---- Equalities between the algorithms ----


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("leaf", ["newton", "mean"])
def test_identity_projection_is_none(loss, leaf, rng):
    n, d = 100, 7
    X = rng.normal(size=(n, 4))
    Y, _ = targets(rng, loss, n, d)
    runs = [
        boost(X, Y, loss, projection=p, leaf=leaf, learning_rate=0.3, max_depth=3)
        for p in (None, matrix(np.eye(d)))
    ]
    for run in runs:
        run.run(10)
    np.testing.assert_array_equal(*(run.scores(np.arange(n)) for run in runs))
    np.testing.assert_array_equal(*(run.model(10).predict(X) for run in runs))
    np.testing.assert_array_equal(*(run.model(10).apply(X) for run in runs))


@pytest.mark.parametrize("kind", ["identical", "affine"])
def test_section_3_3_1(kind, rng):
    """Outputs that are the same, or affine in one another: all algorithms grow the same trees."""
    n, d = 200, 4
    X = rng.normal(size=(n, 3))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + rng.normal(size=n) / 10
    scale = np.ones(d) if kind == "identical" else np.array([1.0, 2.0, -3.0, 0.5])
    Y = y[:, None] * scale + (0 if kind == "identical" else np.arange(d))
    options = {
        "n_estimators": 15,
        "learning_rate": 0.3,
        "leaf": "mean",
        "subsample": 1.0,
        "early_stopping": False,
        "max_bins": None,
        "l2": 0.0,
        "max_depth": 3,
        "random_state": 0,
    }
    single = GradientBoostingRegressor(strategy="single_target", **options).fit(X, Y).predict(X)
    two = GradientBoostingRegressor(projection=None, **options).fit(X, Y).predict(X)
    three = GradientBoostingRegressor(relabel=False, **options).fit(X, Y).predict(X)
    four = GradientBoostingRegressor(relabel=True, **options).fit(X, Y).predict(X)
    np.testing.assert_allclose(two, single, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(three, single, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(four, single, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_identical_labels(loss, rng):
    """The same, of labels: the step of each output makes up for its share of the component."""
    n, d = 300, 4
    X = rng.normal(size=(n, 3))
    y = (np.sin(X[:, 0]) + X[:, 1] ** 2 + rng.normal(size=n) / 2 > 1).astype(int)
    Y = np.tile(y[:, None], d)
    options = {
        "n_estimators": 8,
        "loss": loss,
        "learning_rate": 0.3,
        "leaf": "mean",
        "subsample": 1.0,
        "early_stopping": False,
        "max_bins": None,
        "l2": 0.0,
        "max_depth": 2,
        "random_state": 0,
    }
    one, *others = (
        GradientBoostingClassifier(**options, **more).fit(X, Y).decision_function(X)
        for more in (
            {"strategy": "single_target"},
            {"projection": None},
            {"relabel": False},
            {"relabel": True},
        )
    )
    for scores in others:
        np.testing.assert_allclose(scores, one, atol=2e-3)


def test_single_target_is_each_output_alone(rng):
    X = rng.normal(size=(120, 4))
    Y = rng.normal(size=(120, 3)) + X[:, :3]
    options = {"n_estimators": 12, "early_stopping": False, "subsample": 1.0, "random_state": 3}
    joint = GradientBoostingRegressor(strategy="single_target", **options).fit(X, Y)
    for j in range(3):
        own = GradientBoostingRegressor(projection=None, **options).fit(X, Y[:, j])
        np.testing.assert_array_equal(joint.predict(X)[:, j], own.predict(X))
    L = (Y > 0).astype(int)
    joint = GradientBoostingClassifier(strategy="single_target", **options).fit(X, L)
    for j in range(3):
        own = GradientBoostingClassifier(projection=None, **options).fit(X, L[:, j])
        np.testing.assert_array_equal(joint.predict_proba(X)[:, j], own.predict_proba(X)[:, 1])


@pytest.mark.parametrize("leaf", ["newton", "mean"])
@pytest.mark.parametrize("shape", [{"max_depth": 3}, {"max_depth": None, "max_leaf_nodes": 6}])
def test_equals_scikit_learn(leaf, shape, rng):
    """One output, squared loss."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    X = rng.normal(size=(300, 5))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=300) / 5
    fresh = rng.normal(size=(200, 5))
    theirs = ensemble.GradientBoostingRegressor(
        n_estimators=40, learning_rate=0.2, min_samples_leaf=12, random_state=0, **shape
    ).fit(X, y)
    for strategy in ("joint", "single_target"):
        ours = GradientBoostingRegressor(
            40,
            learning_rate=0.2,
            projection=None,
            subsample=1.0,
            l2=0.0,
            max_bins=None,
            early_stopping=False,
            min_samples_leaf=12,
            leaf=leaf,
            strategy=strategy,
            **shape,
        ).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4, atol=1e-4)
        # scikit-learn's trees have float32 thresholds
        close = abs(ours.predict(fresh) - theirs.predict(fresh)) < 1e-4
        assert close.mean() > 0.99
