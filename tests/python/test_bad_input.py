"""Wrong input is refused by name, before any work, and a failed fit changes nothing."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import pyrpo
from pyrpo import _native
from pyrpo.decoder import LogisticDecoder
from pyrpo.projection import HadamardProjection, SubsampleProjection

ESTIMATORS = [
    pyrpo.DecisionTreeClassifier,
    pyrpo.DecisionTreeRegressor,
    pyrpo.RandomForestClassifier,
    pyrpo.RandomForestRegressor,
    pyrpo.ExtraTreesClassifier,
    pyrpo.ExtraTreesRegressor,
]
CLASSIFIERS = [e for e in ESTIMATORS if e.__name__.endswith("Classifier")]
REGRESSORS = [e for e in ESTIMATORS if e.__name__.endswith("Regressor")]
FORESTS = ESTIMATORS[2:]


def data(n=40, d=5):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 4)), (rng.random((n, d)) < 0.4).astype(float)


def small(cls, **options):
    return cls(n_estimators=3, **options) if cls in FORESTS else cls(**options)


def refuse_growing(*args, **kwargs):
    raise AssertionError("work was begun before the check")


def assert_refused(cls, match, X=None, Y=None, weight=None, error=ValueError, **options):
    good_X, good_Y = data()
    model = small(cls, random_state=0).fit(good_X, good_Y)
    predictions = model.predict(good_X)
    model.set_params(**options)
    before = dict(vars(model))
    arguments = good_X if X is None else X, good_Y if Y is None else Y, weight
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native.Model, "fit", refuse_growing)
        patch.setattr(_native, "Features", refuse_growing)
        with pytest.raises(error, match=match):
            model.fit(*arguments)
    assert vars(model) == before
    model.set_params(**{name: getattr(type(model)(), name) for name in options})
    np.testing.assert_array_equal(model.predict(good_X), predictions)


def with_value(a, value):
    a = np.array(a, dtype=float)
    a[3, 1] = value
    return a


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_shapes(cls):
    X, Y = data()
    assert_refused(cls, "inconsistent numbers of samples", X=X[:-1])
    assert_refused(cls, "inconsistent numbers of samples", Y=Y[:-1])
    assert_refused(cls, "inconsistent numbers of samples", Y=sparse.csr_array(Y[:-1]))
    assert_refused(cls, "Expected 2D array", X=X[:, 0])
    assert_refused(cls, "dim 3", X=X[:, :, None])
    assert_refused(cls, r"dim 3|shape \(40, 5, 1\)", Y=Y[:, :, None])
    assert_refused(cls, "0 sample", X=X[:0], Y=Y[:0])
    assert_refused(cls, "0 sample", X=sparse.csr_array((0, 4)), Y=Y[:0])
    assert_refused(cls, "0 feature", X=X[:, :0])
    assert_refused(cls, r"0 feature|shape \(40, 0\)", Y=Y[:, :0])
    assert_refused(cls, "0 feature", Y=sparse.csr_array((40, 0)))
    model = small(cls).fit(X, Y)
    for bad in (X[:, :3], sparse.csr_array(X[:, :3]), X[:0]):
        with pytest.raises(ValueError, match=r"3 features|0 sample"):
            model.predict(bad)
    with pytest.raises(ValueError, match="requires y"):
        small(cls).fit(X, None)


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values(cls, value):
    X, Y = data()
    assert_refused(cls, "X contains infinity", X=with_value(X, value))
    assert_refused(cls, "X contains infinity", X=sparse.csr_array(with_value(X, value)))
    assert_refused(cls, "y contains infinity", Y=with_value(Y, value))
    assert_refused(cls, "y contains infinity", Y=sparse.csr_array(with_value(Y, value)))
    assert_refused(cls, "y contains NaN", Y=sparse.csr_array(with_value(Y, np.nan)))
    model = small(cls).fit(X, Y)
    with pytest.raises(ValueError, match="X contains infinity"):
        model.predict(with_value(X, value))
    assert np.isfinite(model.predict(with_value(X, np.nan))).all()


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_unobserved_outputs(cls):
    _, Y = data()
    assert_refused(cls, "y contains NaN only", Y=np.full(Y.shape, np.nan))
    holes = Y.copy()
    holes[:, 2] = np.nan
    assert_refused(cls, "y: output 2 is never observed", Y=holes)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_weights(cls):
    one = np.ones(40)
    assert_refused(cls, "sample_weight must not be negative, found -2", weight=one * -2)
    assert_refused(cls, "sample_weight.*all weights are zero", weight=one * 0)
    assert_refused(cls, r"sample_weight must have shape \(40,\) or \(40, 5\)", weight=one[:-1])
    assert_refused(cls, r"sample_weight must have shape.*\(40, 2\)", weight=np.ones((40, 2)))
    assert_refused(cls, "sample_weight contains NaN", weight=one * np.nan)
    assert_refused(cls, "sample_weight contains infinity", weight=one * np.inf)
    assert_refused(cls, "must not be negative", weight=-np.eye(40, 5))


NUMBERS = {
    "max_depth": [0, -1],
    "min_samples_split": [1, 0, 0.0, 1.5, -0.1],
    "min_samples_leaf": [0, -1, 0.0, 1.5],
    "min_weight_fraction_leaf": [-0.1, 0.6],
    "max_features": [0, -1, 0.0, 1.5, "all", "most"],
    "max_leaf_nodes": [1, 0],
    "min_impurity_decrease": [-0.1],
    "ccp_alpha": [-0.1],
    "max_bins": [1, 0],
    "n_components": [0, -1, "all"],
    "projection": ["gauss", "", np.ones((2, 4)), np.ones((0, 5)), np.full((1, 5), np.nan)],
    "output_scale": ["mean", [1, 2], [1, 1, 1, 1, -1], [1, 1, 1, 1, np.nan]],
    "criterion": ["entropy", "log_loss", "absolute_error", "friedman_mse", "poisson", None],
    "monotonic_cst": [[0, 0, 0, 1]],
}


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("name", NUMBERS)
def test_values_of_parameters(cls, name):
    for value in NUMBERS[name]:
        assert_refused(cls, name, **{name: value})


KINDS = ("max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf")
KINDS += ("max_features", "max_leaf_nodes", "min_impurity_decrease", "ccp_alpha", "max_bins")


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("name", [*KINDS, "n_components"])
def test_kinds_of_parameters(cls, name):
    for value in (True, [1], object()):
        assert_refused(cls, name, error=TypeError, **{name: value})
    if name != "n_components" and not name.startswith("m"):
        assert_refused(cls, name, error=TypeError, **{name: "2"})


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_switches(cls):
    for value in (1, "yes", None, [True]):
        assert_refused(cls, "draw_non_constant", error=TypeError, draw_non_constant=value)


@pytest.mark.parametrize("cls", FORESTS)
def test_parameters_of_forests(cls):
    assert_refused(cls, "n_estimators", n_estimators=0)
    assert_refused(cls, "n_estimators", n_estimators=2.0, error=TypeError)
    assert_refused(cls, "max_samples", max_samples=0, bootstrap=True)
    assert_refused(cls, "max_samples", max_samples=1.5, bootstrap=True)
    assert_refused(cls, "max_samples", max_samples="half", bootstrap=True, error=TypeError)
    assert_refused(cls, "max_samples=5 needs bootstrap", max_samples=5, bootstrap=False)
    assert_refused(cls, "oob_score", oob_score=True, bootstrap=False)
    assert_refused(cls, "oob_score", oob_score="auc", bootstrap=True)
    assert_refused(cls, "n_jobs", n_jobs=0)
    assert_refused(cls, "n_jobs", n_jobs="all", error=TypeError)
    assert_refused(cls, "random_state|seed", random_state="seven")


@pytest.mark.parametrize("cls", [c for c in REGRESSORS if c in FORESTS])
def test_lrap_is_for_labels(cls):
    assert_refused(cls, "oob_score.*'lrap'", oob_score="lrap", bootstrap=True)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_parameters_of_classifiers(cls):
    for threshold in (-0.1, 1.1, [0.5, 0.5], np.nan, "best"):
        assert_refused(cls, "threshold", threshold=threshold)
    if cls not in FORESTS:
        assert_refused(cls, "threshold", threshold="oob")
        assert_refused(cls, "splitter", splitter="worst")
        assert_refused(cls, "class_weight='balanced_subsample'", class_weight="balanced_subsample")
    for weight in ("even", {0: 1.0}, [{0: 1.0}]):
        assert_refused(cls, "class_weight", class_weight=weight)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_components_beyond_the_outputs(cls):
    for projection in (SubsampleProjection(6), HadamardProjection(9)):
        assert_refused(cls, "n_components must be at most", projection=projection)
    for name, m in (("subsample", 6), ("hadamard", 9), ("pca", 6)):
        assert_refused(cls, "n_components must be at most", projection=name, n_components=m)
    assert_refused(cls, "class", projection=SubsampleProjection, error=TypeError)
    small(cls, projection="gaussian", n_components=50).fit(*data())


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_labels(cls):
    X, Y = data()
    for value in (2, -1, 0.5):
        bad = with_value(Y, value)
        assert_refused(cls, f"multiclass-multioutput.*found {value}", Y=bad)
        assert_refused(cls, f"y: an indicator.*found {value}", Y=sparse.csr_array(bad))
    words = np.array([["a", "b"]] * 40)
    assert_refused(cls, "multiclass-multioutput.*found a", Y=words)
    assert_refused(cls, "Unknown label type: continuous", Y=X[:, 0])
    assert_refused(cls, "y contains NaN", Y=np.where(Y[:, 0] > 0, np.nan, 1.0))
    twice = sparse.csr_array(
        (np.ones(2), np.array([1, 1]), np.r_[0, np.full(40, 2)]), shape=(40, 5)
    )
    assert_refused(cls, "found 2", Y=twice)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_targets(cls):
    _, Y = data()
    assert_refused(cls, r"convert|could not", Y=np.array([["a", "b"]] * 40))
    assert_refused(cls, "Complex data", Y=Y + 1j)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_k(cls):
    X, Y = data()
    model = small(cls).fit(X, Y)
    for k in (0, 6, -1):
        with pytest.raises(ValueError, match=f"k must be between 1 and .*5.*got {k}"):
            model.predict_topk(X, k)
    for k in (2.5, "3", None):
        with pytest.raises(TypeError):
            model.predict_topk(X, k)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_broken_sparse_matrices(cls):
    """Indices that point outside are caught, whoever made the matrix."""
    X, Y = data()
    for axis in ("X", "Y"):
        broken = sparse.csr_array({"X": X, "Y": Y}[axis])
        broken.indices[3] = 77
        with pytest.raises(ValueError, match=r"77|index|indices"):
            small(cls).fit(*((broken, Y) if axis == "X" else (X, broken)))
    broken = sparse.csr_array(X)
    broken.indptr[5] = 9999
    with pytest.raises(ValueError, match=r"offsets|indptr|index|pointer"):
        small(cls).fit(broken, Y)
    model, broken = small(cls).fit(X, Y), sparse.csr_array(X)
    broken.indices[3] = -2
    with pytest.raises(ValueError, match=r"-2|index|indices"):
        model.predict(broken)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_not_fitted(cls):
    X, _ = data()
    model = small(cls)
    calls = ["predict", "apply", "decision_path", "weights"]
    if cls in CLASSIFIERS:
        calls += ["predict_proba", "predict_log_proba"]
    for name in calls:
        with pytest.raises(NotFittedError):
            getattr(model, name)(X)
    with pytest.raises(NotFittedError):
        model.predict_topk(X, 1)
    for name in ("feature_importances_", "estimators_" if cls in FORESTS else "tree_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)


def test_names_of_features_are_kept_after_a_failed_fit():
    import pandas as pd

    X, Y = data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = pyrpo.RandomForestRegressor(3).fit(frame, Y)
    with pytest.raises(ValueError, match="n_components"):
        model.set_params(n_components=0).fit(X[:, :3], Y)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))
    assert model.n_features_in_ == 4
    model.predict(frame)


def test_more_outputs_than_fit_in_memory():
    """A prediction of n * d numbers that no machine holds is a MemoryError, not a crash."""
    X = np.zeros((3000, 1))
    Y = sparse.csr_array((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(3000, 10**6))
    model = pyrpo.RandomForestClassifier(2, max_depth=1).fit(X, Y)
    labels, p = model.predict_topk(X[:1], 2)
    assert labels.shape == p.shape == (1, 2)
    with pytest.raises(MemoryError):
        model.predict_proba(np.zeros((10**7, 1)))


def test_more_entries_than_32_bits():
    """n * d beyond 2^31 with a CSR Y."""
    rng = np.random.default_rng(0)
    n, d = 50_000, 60_000
    X = rng.normal(size=(n, 2))
    Y = sparse.csr_array((np.ones(n), rng.integers(0, d, n), np.arange(n + 1)), shape=(n, d))
    model = pyrpo.RandomForestClassifier(1, min_samples_leaf=50, random_state=0).fit(X, Y)
    labels, p = model.predict_topk(X[:5], 3)
    assert (labels < d).all()
    assert np.isfinite(p).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_random_bytes_in_place_of_arrays(n_jobs):
    """Whatever the numbers, a fit works or raises."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        X = rng.integers(0, 256, size=(20, 3 * 8), dtype=np.uint8).view(np.float64)
        Y = rng.integers(0, 256, size=(20, 2 * 8), dtype=np.uint8).view(np.float64)
        model = pyrpo.RandomForestRegressor(2, n_jobs=n_jobs)
        with np.errstate(all="ignore"):
            try:
                model.fit(X, Y).predict(X)
            except ValueError:
                continue


@pytest.mark.parametrize("index", [10**7, -(10**7), 3])
def test_broken_sparse_matrices_elsewhere(index):
    bad = sparse.csr_array((np.ones(6), np.zeros(6, np.int32), np.arange(7, dtype=np.int32)))
    bad.resize(6, 3)
    bad.indices[5] = index
    X, Y = np.random.default_rng(0).normal(size=(2, 6, 3))
    for name, call in (
        ("Y", lambda: pyrpo.projection.PCAProjection(1).fit(bad)),
        ("Y", lambda: pyrpo.projection.GaussianProjection(2).fit(bad)),
        ("Y", lambda: LogisticDecoder(loss="logistic").fit(X, bad)),
        ("projection", lambda: pyrpo.RandomForestRegressor(projection=bad).fit(X, Y)),
    ):
        with pytest.raises(ValueError, match=f"{name} is no valid sparse matrix"):
            call()


@pytest.mark.parametrize("cls", [pyrpo.DecisionTreeRegressor, pyrpo.ExtraTreesRegressor])
def test_numbers_whose_squares_are_none(cls):
    X = np.random.default_rng(0).normal(size=(30, 3))
    assert cls(random_state=0).fit(X, X * 1e99).score(X, X * 1e99) > 0.8
    for y in (X * 1e101, sparse.csr_array(X * 1e101)):
        with pytest.raises(ValueError, match=r"y must be of size 1e\+100 at most, found "):
            cls().fit(X, y)
    for weight, found in (
        (np.full(30, 1e51), r"1e\+50 at most"),
        (np.full(30, 1e-300), "together"),
    ):
        with pytest.raises(ValueError, match=found):
            cls().fit(X, X, sample_weight=weight)


# ---- Label spaces: no estimator of trees ----

LABEL_SPACE = {
    "k": [
        lambda X, Y, v: pyrpo.embedding.Rembrandt(v).fit(X, Y),
        lambda X, Y, v: pyrpo.embedding.CompressedLabeling(v).fit(Y),
        lambda X, Y, v: pyrpo.linalg.randomized_pca(Y, v),
        lambda X, Y, v: pyrpo.linalg.column_subset(Y, v),
        lambda X, Y, v: pyrpo.metrics.precision_at_k(Y, Y, v),
        lambda X, Y, v: (
            pyrpo.LabelEmbeddingClassifier(pyrpo.embedding.PLST(2)).fit(X, Y).predict_topk(X, v)
        ),
    ],
    "p": [lambda X, Y, v: pyrpo.embedding.Rembrandt(2, p=v).fit(X, Y)],
    "q": [lambda X, Y, v: pyrpo.linalg.randomized_pca(Y, 2, q=v)],
    "ridge": [lambda X, Y, v: pyrpo.embedding.Rembrandt(2, ridge=v).fit(X, Y)],
    "epsilon": [lambda X, Y, v: pyrpo.linalg.column_subset(Y, 2, epsilon=v)],
    "gamma": [
        lambda X, Y, v: pyrpo.embedding.KernelMLCSSP(2, gamma=v).fit(Y),
        lambda X, Y, v: pyrpo.feature_map.RandomFourierFeatures(5, gamma=v).fit(X),
    ],
    "l1": [lambda X, Y, v: pyrpo.embedding.MOPLMS(2, l1=v).fit(Y)],
    "l2": [lambda X, Y, v: LogisticDecoder(l2=v).fit(X, Y)],
    "f": [lambda X, Y, v: pyrpo.linalg.strong_rrqr(Y, 2, f=v)],
    "cardinality": [lambda X, Y, v: pyrpo.embedding.CompressedSensing(2, cardinality=v).fit(Y)],
    "n_components": [lambda X, Y, v: pyrpo.feature_map.RandomFourierFeatures(v).fit(X)],
}


@pytest.mark.parametrize("name", LABEL_SPACE)
def test_numbers_of_label_spaces(name):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 4)), (rng.random((30, 5)) < 0.4).astype(float)
    for call in LABEL_SPACE[name]:
        for value in ([1], True, {}):
            with pytest.raises(TypeError, match=rf"^{name} .*must be"):
                call(X, Y, value)
        with pytest.raises(ValueError, match=rf"^{name} .*must be .*-1"):
            call(X, Y, -1)
        with pytest.raises((TypeError, ValueError), match=rf"^{name} .*must be .*nan"):
            call(X, Y, np.nan)


def test_failed_fits_of_label_spaces_change_nothing():
    _, Y = data()
    for model, wrong in (
        (pyrpo.embedding.PLST(2).fit(Y), {"k": 99}),
        (pyrpo.embedding.MLCSSP(2).fit(Y), {"method": "none"}),
        (pyrpo.feature_map.RandomFourierFeatures(5).fit(Y), {"gamma": -1.0}),
    ):
        codes = model.transform(Y)
        with pytest.raises(ValueError, match="must be"):
            model.set_params(**wrong).fit(np.hstack([Y, Y]))
        np.testing.assert_array_equal(model.transform(Y), codes)


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("value", [5, [1.0], True])
def test_class_weights_of_other_types(cls, value):
    with pytest.raises(TypeError, match="class_weight of 1-D classes must be"):
        cls(class_weight=value).fit(np.eye(6), [0, 1, 2, 0, 1, 2])
