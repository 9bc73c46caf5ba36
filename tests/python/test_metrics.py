"""Metrics against scikit-learn and against their definitions, and the scorers in use."""

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier as TheirForest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    label_ranking_average_precision_score,
    ndcg_score,
    precision_recall_curve,
    precision_score,
    r2_score,
    recall_score,
    root_mean_squared_error,
)
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pyrpo import RandomForestClassifier, RandomForestRegressor, metrics
from pyrpo.metrics import (
    label_ranking_average_precision,
    macro_auprc,
    macro_r2,
    micro_auprc,
    ndcg_at_k,
    precision_at_k,
    propensities,
    recall_at_k,
    rmse,
    scorer,
)

AT_K = [precision_at_k, recall_at_k, ndcg_at_k]
RANKING = [label_ranking_average_precision, micro_auprc, macro_auprc, *AT_K]
FORMS = [
    np.asarray,
    lambda Y: Y.astype(bool),
    lambda Y: Y.astype(np.int64),
    lambda Y: Y.astype(np.float32),
    np.asfortranarray,
    np.ndarray.tolist,
    sparse.csr_array,
    sparse.csc_matrix,
    lambda Y: sparse.coo_array(Y.astype(bool)),
]


def near(a, b):
    assert a == pytest.approx(b, abs=1e-12, nan_ok=True)


@st.composite
def problems(draw):
    """Y and scores: few levels (ties) or many, rows of zeros and ones, one label, one sample."""
    n, d = draw(st.integers(1, 12)), draw(st.sampled_from([1, 2, 3, 9, 150]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Y = (rng.random((n, d)) < draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))).astype(float)
    Y[rng.random(n) < 0.2] = 0
    Y[rng.random(n) < 0.2] = 1
    levels = draw(st.sampled_from([1, 2, 4, 30, None]))
    scores = rng.normal(size=(n, d)) if levels is None else rng.integers(levels, size=(n, d)) / 7
    scores = np.asarray(scores, dtype=draw(st.sampled_from([np.float32, np.float64])))
    scores = draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray]))(scores)
    return Y, scores, draw(st.sampled_from(FORMS)), rng


# ---- beside scikit-learn ------------------------------------------------------------------------


@given(problems())
def test_lrap_is_scikit_learns(problem):
    Y, scores, form, rng = problem
    near(
        label_ranking_average_precision(form(Y), scores),
        label_ranking_average_precision_score(Y, scores),
    )
    weight = rng.integers(3, size=len(Y))
    assume(weight.any())
    near(
        label_ranking_average_precision(form(Y), scores, sample_weight=weight),
        label_ranking_average_precision_score(Y, scores, sample_weight=weight),
    )


@given(problems())
def test_lrap_without_empty_rows(problem):
    """As the papers' formula, which divides by the number of labels."""
    Y, scores, form, rng = problem
    some = Y.any(axis=1)
    assume(some.any())
    weight = rng.random(len(Y)) + 0.1
    near(
        label_ranking_average_precision(form(Y), scores, empty="drop", sample_weight=weight),
        label_ranking_average_precision_score(Y[some], scores[some], sample_weight=weight[some]),
    )


def test_lrap_of_nothing():
    for weight in (None, [1, 1]):
        with pytest.raises(ValueError, match="Y has no row with a label"):
            label_ranking_average_precision(
                np.zeros((2, 3)), np.ones((2, 3)), empty="drop", sample_weight=weight
            )
    with pytest.raises(ValueError, match="and a weight"):
        label_ranking_average_precision(
            [[1, 0], [0, 0]], np.ones((2, 2)), empty="drop", sample_weight=[0, 1]
        )


@given(problems())
@pytest.mark.filterwarnings("ignore")  # scikit-learn's, about labels without a positive
def test_auprc_is_scikit_learns(problem):
    Y, scores, form, _ = problem
    near(micro_auprc(form(Y), scores), average_precision_score(Y.ravel(), scores.ravel()))
    by_label = np.array([average_precision_score(y, s) for y, s in zip(Y.T, scores.T, strict=True)])
    near(macro_auprc(form(Y), scores), by_label.mean())
    some = Y.any(axis=0)
    if some.any():
        near(macro_auprc(form(Y), scores, empty="drop"), by_label[some].mean())
    else:
        with pytest.raises(ValueError, match="Y has no label"):
            macro_auprc(form(Y), scores, empty="drop")


@given(problems(), st.integers(1, 20))
def test_ndcg_is_scikit_learns(problem, k):
    Y, scores, form, rng = problem
    assume(Y.shape[1] > 1)
    weight = rng.integers(3, size=len(Y))
    assume(weight.any())
    for w in (None, weight):
        near(
            ndcg_at_k(form(Y), scores, k, sample_weight=w),
            ndcg_score(Y, scores, k=k, sample_weight=w),
        )


@given(problems(), st.integers(1, 20))
def test_precision_and_recall_are_scikit_learns_of_the_top(problem, k):
    Y, scores, form, rng = problem
    n, d = Y.shape
    top = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    predicted = np.zeros_like(Y)
    np.put_along_axis(predicted, top, 1, axis=1)
    options = {"average": "samples", "zero_division": 0}
    weight = rng.integers(3, size=n)
    assume(weight.any())
    if d > 1:  # a column is no multi-label indicator to them
        near(
            precision_at_k(form(Y), scores, k, sample_weight=weight),
            precision_score(Y, predicted, sample_weight=weight, **options) * min(k, d) / k,
        )
        near(recall_at_k(form(Y), scores, k), recall_score(Y, predicted, **options))
    lists = top, np.take_along_axis(scores, top, axis=1)
    for metric in (precision_at_k, recall_at_k):
        near(metric(form(Y), lists, k), metric(Y, scores, k))
    near(ndcg_at_k(form(Y), lists, k), ndcg_at_k(Y, scores, k, ties="first"))


@given(problems())
def test_macro_r2_is_scikit_learns(problem):
    Y, scores, form, rng = problem
    weight = rng.random(len(Y)) + 0.1
    if len(Y) < 2:
        with pytest.raises(ValueError, match="Y must have at least 2 samples"):
            macro_r2(form(Y), scores)
        return
    near(macro_r2(form(Y), scores), r2_score(Y, scores))
    near(macro_r2(form(Y), sparse.csr_array(scores)), r2_score(Y, scores))
    near(
        macro_r2(form(Y), scores, sample_weight=weight),
        r2_score(Y, scores, sample_weight=weight),
    )


def test_auprc_of_many_samples():
    rng = np.random.default_rng(0)
    Y, scores = rng.integers(2, size=(40_000, 11)), rng.integers(3000, size=(40_000, 11)) / 7
    for a in (scores, np.asfortranarray(scores), scores.astype(np.float32)):
        near(macro_auprc(Y, a), average_precision_score(Y, a))
        near(micro_auprc(Y, a), average_precision_score(Y, a, average="micro"))


def test_macro_r2_of_constant_outputs():
    Y = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert macro_r2(Y, Y) == 1
    assert macro_r2(Y, [[1.0, 0.0], [1.0, 0.1]]) == 0.5
    assert macro_r2([0.0, 2.0], [0.0, 2.0]) == 1


@given(problems())
def test_rmse_is_the_papers(problem):
    Y, scores, form, rng = problem
    expected = np.linalg.norm(Y - scores.astype(float)) / np.sqrt(len(Y))
    near(rmse(form(Y), scores), expected)
    near(rmse(form(Y), sparse.csr_array(scores)), expected)
    weight = rng.random(len(Y)) + 0.1
    error = (Y - scores.astype(float)) ** 2
    near(
        rmse(form(Y), scores, sample_weight=weight) ** 2, weight @ error.sum(axis=1) / weight.sum()
    )


def test_rmse_in_blocks():
    rng = np.random.default_rng(0)
    Y, p = rng.normal(size=(30, 100_000)), rng.normal(size=(30, 100_000)).astype(np.float32)
    near(rmse(Y, p), np.linalg.norm(Y - p) / np.sqrt(30))
    near(rmse(Y[:, 0], p[:, 0]), root_mean_squared_error(Y[:, 0], p[:, 0]))
    values = r2_score(Y, p, multioutput="raw_values")
    near(macro_r2(Y, p), values.mean())


# ---- beside definitions -------------------------------------------------------------------------


@given(problems(), st.integers(1, 12))
def test_auprc_at_thresholds(problem, count):
    Y, scores, form, rng = problem
    thresholds = rng.choice(scores.ravel(), count)
    area = recall = 0.0
    for t in np.unique(thresholds)[::-1]:
        predicted = scores >= t
        if Y.any():
            right = Y[predicted].sum()
            area += (right / Y.sum() - recall) * right / predicted.sum()
            recall = right / Y.sum()
    near(micro_auprc(form(Y), scores, thresholds=thresholds), area)
    near(micro_auprc(form(Y), scores, thresholds=scores.ravel()), micro_auprc(Y, scores))


def test_auprc_at_thresholds_is_between_the_curves_points():
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((50, 40)) < 0.1).astype(int), rng.random((50, 40))
    scores = 0.7 * scores + 0.3 * Y
    grid = micro_auprc(Y, scores, thresholds=np.linspace(0, 1, 2001))
    precision, recall, _ = precision_recall_curve(Y.ravel(), scores.ravel())
    assert grid == pytest.approx(-(np.diff(recall) * precision[:-1]).sum(), abs=0.01)
    assert micro_auprc(Y, scores, thresholds=[2.0]) == 0
    assert micro_auprc(Y, scores, thresholds=[0.5]) > 0


def plain_gain(metric, y, order, worth, k):
    """A row's sum by its definition, before any normalisation over rows."""
    total = 0.0
    for rank, label in enumerate(order[:k], start=1):
        total += y[label] * worth[label] / (np.log2(1 + rank) if metric is ndcg_at_k else 1)
    if metric is precision_at_k:
        return total / k
    size = int(y.sum())
    if size == 0:
        return 0.0
    if metric is recall_at_k:
        return total / size
    return total / sum(1 / np.log2(1 + r) for r in range(1, min(k, size) + 1))


@given(problems(), st.integers(1, 7), st.sampled_from(AT_K))
def test_propensity_scored(problem, k, metric):
    """Means over rows, divided by the means of the best order: xclib's psprecision and psndcg."""
    Y, scores, form, rng = problem
    p = rng.random(Y.shape[1]) + 1e-3
    p /= p.max()
    weight = rng.integers(3, size=len(Y)).astype(float)
    assume(weight.any())
    options = {"ties": "first"} if metric is ndcg_at_k else {}
    for w in (None, weight):
        got, best = (
            np.average(
                [
                    plain_gain(metric, y, np.argsort(-by, kind="stable"), 1 / p, k)
                    for y, by in zip(Y, order, strict=True)
                ],
                weights=w,
            )
            for order in (scores, Y / p)
        )
        value = metric(form(Y), scores, k, propensity=p, sample_weight=w, **options)
        near(value, got / best if best > 0 else 0.0)
        assert value <= 1 + 1e-12
    near(
        metric(form(Y), Y / p, k, propensity=p, **options), 1.0 if Y.any() else 0.0
    )  # the best order


def test_propensity_of_one_is_the_share_of_the_attainable():
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((30, 9)) < 0.3).astype(int), rng.integers(4, size=(30, 9))
    ones = np.ones(9)
    near(
        precision_at_k(Y, scores, 3, propensity=ones),
        precision_at_k(Y, scores, 3) / precision_at_k(Y, Y, 3),
    )
    some = Y.any(axis=1)  # nDCG is of the attainable already
    near(ndcg_at_k(Y[some], scores[some], 3, propensity=ones), ndcg_at_k(Y[some], scores[some], 3))


def test_tied_gains_are_means_over_orders():
    rng = np.random.default_rng(0)
    Y, scores = (rng.random((1, 6)) < 0.5).astype(int), np.array([[2, 1, 1, 1, 1, 0]])
    p = rng.random(6)
    total = 0.0
    for _ in range(1500):
        order = rng.permutation(6)
        total += ndcg_at_k(Y[:, order], scores[:, order], 3, ties="first", propensity=p[order])
    assert ndcg_at_k(Y, scores, 3, propensity=p) == pytest.approx(total / 1500, abs=0.03)


def test_propensities():
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 12)) < rng.random(12)).astype(int)
    Y[:, 3] = 0
    c = (np.log(200) - 1) * 2.5**0.55
    expected = 1 / (1 + c * np.exp(-0.55 * np.log(Y.sum(axis=0) + 1.5)))
    for form in FORMS:
        np.testing.assert_allclose(propensities(form(Y)), expected, rtol=1e-14)
    c = (np.log(200) - 1) * 1.4**0.5
    expected = 1 / (1 + c * (Y.sum(axis=0) + 0.4) ** -0.5)
    np.testing.assert_allclose(propensities(Y, a=0.5, b=0.4), expected, rtol=1e-14)
    np.testing.assert_array_equal(propensities(Y[:2]), 1)
    for options, name in (({"a": -1}, "a"), ({"b": np.nan}, "b"), ({"b": np.inf}, "b")):
        with pytest.raises(ValueError, match=f"{name} must be finite and not negative"):
            propensities(Y, **options)


# ---- what must not matter -----------------------------------------------------------------------


def large_problem(n=400, d=300):
    rng = np.random.default_rng(0)
    Y = sparse.random_array((n, d), density=0.05, rng=rng, format="csr")
    Y.data[:] = 1
    return Y, rng.integers(50, size=(n, d)) / 3.0


@pytest.mark.parametrize("metric", RANKING)
def test_threads_number_types_and_input(metric):
    Y, scores = large_problem()
    value = metric(Y, scores)
    before = Y.data.copy(), Y.indices.copy(), scores.copy()
    assert metric(Y, scores, n_jobs=2) == value
    assert metric(Y, scores, n_jobs=5) == value
    assert metric(Y.toarray(), scores) == value
    assert metric(Y.toarray(), scores[::-1][::-1]) == value
    assert metric(Y, np.repeat(scores, 2, axis=1)[:, ::2], n_jobs=3) == value
    long = sparse.csr_array(
        (Y.data, Y.indices.astype(np.int64), Y.indptr.astype(np.int64)), Y.shape
    )
    assert metric(long, scores) == value
    whole = (3 * scores).astype(np.int32)
    assert metric(Y, whole.astype(np.float32)) == metric(Y, whole)
    for a, b in zip(before, (Y.data, Y.indices, scores), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("metric", RANKING)
def test_stored_zeros_duplicates_and_order_of_entries(metric):
    scores = np.random.default_rng(0).random((2, 4))
    plain = sparse.csr_array(np.array([[1, 0, 0, 1], [0, 1, 0, 0]]))
    zeros = sparse.csr_array(([1, 0, 1, 1, 0], [3, 1, 0, 1, 2], [0, 3, 5]), shape=(2, 4))
    assert metric(zeros, scores) == metric(plain, scores)
    twice = sparse.csr_array(([1, 1, 1], [3, 3, 1], [0, 2, 3]), shape=(2, 4))
    with pytest.raises(ValueError, match="Y must hold zeros and ones only, found 2"):
        metric(twice, scores)


def test_no_dense_copy_of_labels():
    """n x d in float64 would be 8 TB."""
    n, d = 1_000_000, 1_000_000
    Y = sparse.random_array((n, d), density=1e-6, rng=np.random.default_rng(0), format="csr")
    Y.data[:] = 1
    labels = np.tile(np.arange(3), (n, 1))
    labels[:, 0] = Y.indices[np.minimum(Y.indptr[:-1], Y.nnz - 1)]
    labels[:, 1:] = (labels[:, :1] + [1, 2]) % d
    scores = np.broadcast_to([3.0, 2.0, 1.0], labels.shape)
    has = np.diff(Y.indptr) > 0
    assert precision_at_k(Y, (labels, scores), 1) == pytest.approx(has.mean(), abs=0.01)
    assert precision_at_k(Y, (labels, scores), 1, propensity=propensities(Y)) > 0.5


# ---- wrong input --------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", RANKING)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_refused(metric, form):
    Y, scores = form(np.eye(3)), np.ones((3, 3))

    def refused(match, Y=Y, scores=scores, error=ValueError, **options):
        with pytest.raises(error, match=match):
            metric(Y, scores, **options)

    for value in (np.nan, np.inf, -np.inf):
        for place in ((0, 0), (2, 1)):
            bad = scores.copy()
            bad[place] = value
            refused(f"scores must be finite, found -?{abs(value)}", scores=bad)
            refused("scores must be finite", scores=bad.astype(np.float32))
    refused(r"scores must have the shape \(3, 3\) of Y, got \(3, 2\)", scores=scores[:, :2])
    refused(r"scores must have rows and columns.*got shape \(3,\)", scores=scores[0])
    refused("scores must be dense", scores=sparse.csr_array(scores), error=TypeError)
    for value in (2.0, -1.0, 0.5, np.nan):
        bad = np.eye(3)
        bad[1, 1] = value
        refused(f"Y must hold zeros and ones only, found {value:g}", Y=form(bad))
    refused("Y must have rows and columns", Y=np.ones(3))
    refused("Y must have rows and columns", Y=np.ones((0, 3)), scores=np.ones((0, 3)))
    refused("Y", Y=None)
    if metric in (label_ranking_average_precision, *AT_K):
        refused("sample_weight must have shape", sample_weight=[1, 1])
        refused("sample_weight must not be negative", sample_weight=[1, 1, -1])
        refused("sample_weight must not be zero everywhere", sample_weight=[0, 0, 0])
    if metric in AT_K:
        refused("k must be at least 1, got 0", k=0)
        refused("k must be an int, got 2.0", k=2.0, error=TypeError)
        refused("k must be an int, got True", k=True, error=TypeError)
        refused("propensity must have a number for each of 3", propensity=[0.5, 1])
        refused(r"propensity must lie in \(0, 1\], found 0", propensity=[0.5, 1, 0])
        refused(r"propensity must lie in \(0, 1\], found 2", propensity=[0.5, 1, 2])
        refused("propensity contains NaN", propensity=[0.5, 1, np.nan])


@pytest.mark.parametrize("metric", AT_K)
@pytest.mark.parametrize(
    ("labels", "scores", "match"),
    [
        ([[0, 1], [1, 0]], [[2, 1], [2, 1]], r"shape \(3, m\), got \(2, 2\)"),
        ([[0, 1]] * 3, [[2]] * 3, r"got \(3, 2\) and \(3, 1\)"),
        ([[0]] * 3, [[2]] * 3, "lists of 1 labels are too short for k=2"),
        ([[0, 4]] * 3, [[2, 1]] * 3, "labels must be between 0 and 3, found 4"),
        ([[-1, 3]] * 3, [[2, 1]] * 3, "labels must be between 0 and 3, found -1"),
        ([[1, 1]] * 3, [[2, 1]] * 3, "occurs twice"),
        ([[0, 1]] * 3, [[1, 2]] * 3, "best first"),
        ([[0, 1]] * 3, [[1, np.nan]] * 3, "best first, without NaN"),
    ],
)
def test_wrong_lists_are_refused(metric, labels, scores, match):
    Y = np.eye(4)[:3]
    with pytest.raises(ValueError, match=match):
        metric(Y, (np.array(labels), np.array(scores)), 2)
    with pytest.raises(TypeError, match="labels must be integers"):
        metric(Y, (np.zeros((3, 2)), np.ones((3, 2))), 2)
    with pytest.raises(ValueError, match="tuple"):
        metric(Y, (np.ones((3, 4)),), 2)


def test_wrong_options_are_refused():
    Y, scores = np.eye(3), np.ones((3, 3))
    for metric in (label_ranking_average_precision, macro_auprc):
        with pytest.raises(ValueError, match=r"empty must be one of .*, got 'none'"):
            metric(Y, scores, empty="none")
    with pytest.raises(ValueError, match="ties must be one of"):
        ndcg_at_k(Y, scores, ties=None)
    with pytest.raises(ValueError, match="thresholds contains NaN"):
        micro_auprc(Y, scores, thresholds=[0.1, np.nan])
    for metric in (rmse, macro_r2):
        with pytest.raises(ValueError, match=r"predicted must have the shape \(3, 3\) of Y"):
            metric(Y, scores[:2])
        with pytest.raises(ValueError, match="Y contains NaN"):
            metric(Y * np.nan, scores)
        with pytest.raises(ValueError, match="predicted contains NaN"):
            metric(Y, scores * np.nan)
        with pytest.raises(ValueError, match="sample_weight"):
            metric(Y, scores, sample_weight=[1])


# ---- scorers ------------------------------------------------------------------------------------

SCORERS = [name for name in metrics.__all__ if name.endswith("_scorer")]


def label_problem(n=120, d=8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, (X @ rng.normal(size=(5, d)) > 1).astype(np.int64)


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("d", [2, 8])  # scikit-learn takes two columns for two classes
def test_scorers_in_cross_validation(name, d):
    X, Y = label_problem(d=d)
    forest = RandomForestClassifier(5, random_state=0)
    score = getattr(metrics, name)
    with sklearn.config_context(skip_parameter_validation=True):  # it refuses a sparse y otherwise
        values = [
            cross_validate(forest, X, form(Y), scoring=scoring, cv=3, error_score="raise")
            for form in (np.asarray, sparse.csr_array, sparse.csr_matrix)
            for scoring in (score, {"score": score})
        ]
    for value in values:
        np.testing.assert_allclose(value["test_score"], values[0]["test_score"], rtol=1e-12)
    piped = cross_validate(make_pipeline(forest), X, Y, scoring=score, cv=3, error_score="raise")
    np.testing.assert_allclose(piped["test_score"], values[0]["test_score"], rtol=1e-12)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_are_the_metrics(name):
    X, Y = label_problem()
    forest = RandomForestClassifier(5, random_state=0).fit(X[:60], Y[:60])
    X, Y, weight = X[60:], Y[60:], np.arange(60) % 3
    score = getattr(metrics, name)
    metric = getattr(metrics, name.removesuffix("_scorer").removeprefix("neg_"))
    p = forest.predict(X) if metric in (rmse, macro_r2) else forest.predict_proba(X)
    sign = -1 if name.startswith("neg_") else 1
    options = {"ties": "first"} if metric is ndcg_at_k else {}
    near(score(forest, X, Y), sign * metric(Y, p, **options))
    if metric not in (micro_auprc, macro_auprc):
        near(
            score(forest, X, Y, sample_weight=weight),
            sign * metric(Y, p, sample_weight=weight, **options),
        )
    near(pickle.loads(pickle.dumps(score))(forest, X, Y), score(forest, X, Y))


def test_scorer_in_a_grid_search():
    X, Y = label_problem()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)),
        {"randomforestclassifier__min_samples_leaf": [1, 40]},
        scoring={
            "lrap": metrics.label_ranking_average_precision_scorer,
            "p1": scorer(precision_at_k, k=1),
        },
        refit="lrap",
        n_jobs=2,
    ).fit(X, sparse.csr_array(Y))
    assert search.best_params_ == {"randomforestclassifier__min_samples_leaf": 1}
    lrap = metrics.label_ranking_average_precision_scorer
    near(lrap(search, X, Y), label_ranking_average_precision(Y, search.predict_proba(X)))


def test_scores_of_other_estimators():
    X, Y = label_problem()
    Y[:, 0] = 0
    Y[:, 1] = 1  # classes_ of one class
    lrap = metrics.label_ranking_average_precision_scorer
    theirs = TheirForest(5, random_state=0).fit(X, Y)
    p = np.column_stack([np.zeros(len(X)), np.ones(len(X))])
    p = np.column_stack([p, *(q[:, 1] for q in theirs.predict_proba(X)[2:])])
    near(lrap(theirs, X, Y), label_ranking_average_precision(Y, p))
    regressor = RandomForestRegressor(5, random_state=0).fit(X, Y)
    near(lrap(regressor, X, Y), label_ranking_average_precision(Y, regressor.predict(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels that are constant
        linear = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    near(lrap(linear, X, Y), label_ranking_average_precision(Y, linear.predict_proba(X)))


def test_the_guides_example():
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), names)
    X, Y = label_problem(d=30)
    search = names["search"].set_params(estimator__n_estimators=3, cv=2).fit(X, Y)
    assert {"mean_test_lrap", "mean_test_p@1"} <= set(search.cv_results_)


def test_a_scorers_name():
    assert repr(metrics.neg_rmse_scorer) == "scorer(rmse, greater_is_better=False)"
    assert repr(scorer(precision_at_k, k=1)) == "scorer(precision_at_k, k=1)"


def test_doctests():
    import doctest
    import importlib

    for name in ("_ranking", "_top", "_outputs", "_scorers"):
        module = importlib.import_module(f"pyrpo.metrics.{name}")
        result = doctest.testmod(module)
        assert result.failed == 0
        assert result.attempted > 0
