"""Forests joined: predictions are the means over all trees, whatever the parts were."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pyrpo
from pyrpo import join_forests

KINDS = [
    (pyrpo.RandomForestClassifier, {"leaf_rows": "all"}),
    (pyrpo.RandomForestClassifier, {"leaf_rows": "all", "projection": "gaussian"}),
    (pyrpo.ExtraTreesClassifier, {}),
    (pyrpo.ExtraTreesClassifier, {"min_samples_leaf": 5}),  # leaves as a table
    (pyrpo.ExtraTreesClassifier, {"bootstrap": True, "leaf_rows": "all"}),
]


def problem(seed, form):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(60, 4)).astype(float)
    X[:, 0] = rng.normal(size=60)
    X[rng.random(X.shape) < 0.05] = np.nan
    Y = (rng.random((60, 6)) < 0.3).astype(float)
    return X, {"dense": Y, "csr": sparse.csr_array(Y), "classes": rng.integers(0, 4, 60)}[form]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 99),
    form=st.sampled_from(["dense", "csr", "classes"]),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3),
    weighted=st.booleans(),
)
def test_predictions_are_means_over_all_trees(seed, form, kinds, weighted):
    X, y = problem(seed, form)
    weight = np.random.default_rng(seed).integers(0, 3, 60).astype(float) if weighted else None
    trees = [3 + 2 * i for i in range(len(kinds))]
    parts = [
        cls(t, random_state=seed + t, **options).fit(X, y, weight)
        for t, (cls, options) in zip(trees, kinds, strict=True)
    ]
    joined = join_forests(parts)
    assert type(joined) is type(parts[0])
    assert joined.n_estimators == len(joined.estimators_) == sum(trees)

    def mean(of):
        return sum(t * of(p) for t, p in zip(trees, parts, strict=True)) / sum(trees)

    np.testing.assert_allclose(
        joined.predict_proba(X), mean(lambda p: p.predict_proba(X)), rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(joined.apply(X), np.hstack([p.apply(X) for p in parts]))
    fitted = {"X_fit": X, "sample_weight": weight}
    w = mean(lambda p: p.weights(X, **fitted).toarray())
    np.testing.assert_allclose(joined.weights(X, **fitted).toarray(), w, rtol=0, atol=1e-12)
    gains = [t * p.feature_importances_ for t, p in zip(trees, parts, strict=True)]
    if all(p.feature_importances_.sum() > 0 for e in parts for p in e.estimators_):
        np.testing.assert_allclose(joined.feature_importances_, sum(gains) / sum(trees))


def test_regressors_and_what_is_left_out(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 5)), rng.normal(size=(200, 3))
    a, b = (
        pyrpo.RandomForestRegressor(30, oob_score=True, random_state=s).fit(X, Y) for s in (0, 1)
    )
    kept = a.predict(X), a.n_estimators, a.oob_score_
    joined = join_forests((a, b))
    np.testing.assert_allclose(joined.predict(X), (a.predict(X) + b.predict(X)) / 2)
    assert {"tuning_", "oob_score_", "oob_prediction_"} <= vars(a).keys()
    assert not {"tuning_", "convergence_", "oob_score_", "oob_prediction_"} & vars(joined).keys()
    np.testing.assert_array_equal(a.predict(X), kept[0])
    assert (a.n_estimators, a.oob_score_) == kept[1:]
    joined.save(tmp_path / "joined.rpo")
    np.testing.assert_array_equal(pyrpo.load(tmp_path / "joined.rpo").predict(X), joined.predict(X))
    more = joined.set_params(n_estimators=63, warm_start=True).fit(X, Y)
    assert len(more.estimators_) == 63


def test_found_thresholds_stay():
    X, Y = problem(0, "dense")
    forest = pyrpo.RandomForestClassifier(30, threshold="oob", leaf_rows="all", random_state=0)
    forest.fit(X, Y)
    beside = pyrpo.ExtraTreesClassifier(30, threshold=forest.threshold_).fit(X, Y)
    joined = join_forests([forest, beside])
    assert joined.threshold == joined.threshold_ == forest.threshold_
    assert joined.set_params(n_estimators=70, warm_start=True).fit(X, Y)._model.n_trees == 70


def test_other_forests_are_refused():
    X, Y = problem(0, "dense")
    forest = pyrpo.RandomForestClassifier(3, random_state=0).fit(X, Y)
    real = pyrpo.RandomForestRegressor(3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="forests is empty"):
        join_forests(iter([]))
    boosting = pyrpo.GradientBoostingClassifier(3).fit(X, Y)
    for other in (real, boosting, pyrpo.DecisionTreeClassifier().fit(X, Y), 3):
        with pytest.raises(TypeError, match=r"forests\[1\] must be a fitted forest, a Ran"):
            join_forests([forest, other])
    with pytest.raises(TypeError, match=r"forests\[0\]"):
        join_forests([boosting])
    with pytest.raises(ValueError, match="not fitted"):
        join_forests([forest, pyrpo.RandomForestClassifier()])
    cases = {
        "n_features_in": (X[:, :3], Y),
        "n_outputs": (X, Y[:, :2]),
        "indicator": (X, np.arange(60) % 3),
        "same data": (X, Y[::-1]),
    }
    for match, data in cases.items():
        with pytest.raises(ValueError, match=match):
            join_forests([forest, pyrpo.RandomForestClassifier(3).fit(*data)])
    other = pyrpo.RandomForestClassifier(3, threshold=0.3).fit(X, Y)
    with pytest.raises(ValueError, match=r"threshold is 0\.3 and 0\.5"):
        join_forests([forest, other])
    by_class = X, np.arange(60) % 3
    kinds = (None, "balanced_subsample")
    parts = [pyrpo.RandomForestClassifier(3, class_weight=w).fit(*by_class) for w in kinds]
    with pytest.raises(ValueError, match="class_weight is 'balanced_subsample' and None"):
        join_forests(parts)
    holes = Y.copy()
    holes[0, 0] = np.nan
    weights = (None, np.arange(60) + 1.0)
    parts = [pyrpo.RandomForestRegressor(3, max_depth=2).fit(X, holes, w) for w in weights]
    with pytest.raises(ValueError, match="same data"):
        join_forests(parts)
    with pytest.raises(ValueError, match="leaf_rows"):
        join_forests([forest, pyrpo.RandomForestClassifier(3, leaf_rows="all").fit(X, Y)])
    single = pyrpo.RandomForestClassifier(3, strategy="single_target").fit(X, Y)
    single = pickle.loads(pickle.dumps(single)).set_params(strategy="joint")
    with pytest.raises(ValueError, match="single targets"):
        join_forests([forest, single])
