"""LabelEmbeddingClassifier, decoders and feature maps, against their parts and scikit-learn."""

import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier as TheirForestClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.neighbors import KNeighborsClassifier

import pyrpo
from pyrpo import LabelEmbeddingClassifier
from pyrpo.datasets import load_vw, make_multilabel
from pyrpo.decoder import LogisticDecoder
from pyrpo.embedding import (
    CPLST,
    MLCSSP,
    PLST,
    BinaryRelevance,
    CompressedLabeling,
    CompressedSensing,
    Rembrandt,
)
from pyrpo.feature_map import RandomFourierFeatures
from pyrpo.metrics import precision_at_k

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="module")
def texts():
    data = make_multilabel(1500, 200, 60, cardinality=4, random_state=0)
    return data.X[:1000], data.Y[:1000], data.X[1000:], data.Y[1000:]


def classes(n=600, c=8, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    return 1.5 * rng.normal(size=(c, 5))[y] + rng.normal(size=(n, 5)), y


# ---- decoders ----


def test_softmax_reaches_scikit_learns_loss():
    X, y = classes()
    Y = np.eye(8)[y]
    ours = LogisticDecoder(l2=1.0, validation_fraction=0, random_state=0).fit(X, Y)
    white = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T, ddof=0))).T
    oracle = LogisticRegression(C=1.0, tol=1e-8, max_iter=10000).fit(white, y)

    def objective(p, coef):
        p = p / p.sum(axis=1, keepdims=True)
        return len(y) * log_loss(y, p) + 0.5 * (coef**2).sum()

    p = ours.predict_proba(X)
    np.testing.assert_allclose(p, oracle.predict_proba(white), atol=0.02)
    root = np.linalg.cholesky(np.cov(X.T, ddof=0))
    reached = objective(p.astype(float), root.T @ ours.coef_)
    assert reached < objective(oracle.predict_proba(white), oracle.coef_) * 1.002


def test_logistic_is_independent_regressions():
    X, y = classes()
    Y = np.eye(8)[y]
    Y[:, 1] = np.maximum(Y[:, 1], Y[:, 0])
    ours = LogisticDecoder("logistic", l2=1.0, validation_fraction=0, random_state=0).fit(X, Y)
    white = (X - X.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T, ddof=0))).T
    for label in range(8):
        oracle = LogisticRegression(C=1.0, tol=1e-8).fit(white, Y[:, label])
        p = oracle.predict_proba(white)[:, 1]
        np.testing.assert_allclose(ours.predict_proba(X)[:, label], p, atol=0.02)


def test_decoders_do_not_mind_units_and_duplicates():
    X, y = classes()
    Y = np.eye(8)[y]
    a = LogisticDecoder(random_state=0).fit(X, Y).predict_proba(X)
    scale = np.array([1e3, 1e-3, 1.0, 5.0, 2.0])
    b = LogisticDecoder(random_state=0).fit(X * scale + 7, Y).predict_proba(X * scale + 7)
    np.testing.assert_allclose(a, b, atol=0.15)
    twice = np.hstack([X, X, np.ones((len(X), 1))])
    c = LogisticDecoder(random_state=0).fit(twice, Y).predict_proba(twice)
    np.testing.assert_allclose(a, c, atol=0.1)
    assert abs(np.mean(a.argmax(1) == y) - np.mean(c.argmax(1) == y)) < 0.02


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_topk_of_decoders(loss):
    X, y = classes()
    model = LogisticDecoder(loss, random_state=0).fit(X, np.eye(8)[y])
    p = model.predict_proba(X)
    for k in (1, 3, 8):
        labels, best = model.predict_topk(X, k)
        np.testing.assert_allclose(best, -np.sort(-p, axis=1)[:, :k], atol=1e-6)
        np.testing.assert_allclose(np.take_along_axis(p, labels, 1), best, atol=1e-6)
    for k in (0, 9):
        with pytest.raises(ValueError, match="k must be between 1 and the 8 labels"):
            model.predict_topk(X, k)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
def test_topk_by_blocks_of_rows_and_labels(loss, monkeypatch):
    X, y = classes(c=30)
    model = LogisticDecoder(loss, random_state=0, max_epochs=2).fit(X, np.eye(30)[y])
    model.coef_[:, 17] = model.coef_[:, 3]  # these two tie, in different blocks
    model.intercept_[17] = model.intercept_[3]
    whole = [model.predict_topk(X, k) for k in (1, 4, 30)]
    scores = model.best(X, 4)
    monkeypatch.setattr("pyrpo.decoder._ROWS", 70)
    monkeypatch.setattr("pyrpo.decoder._SCORES", 70 * 8)
    for k, (labels, p) in zip((1, 4, 30), whole, strict=True):
        found = model.predict_topk(X, k)
        np.testing.assert_array_equal(found[0], labels)
        np.testing.assert_allclose(found[1], p, rtol=2e-5)
    np.testing.assert_array_equal(scores[0], whole[1][0])
    np.testing.assert_allclose(model.best(X, 4)[1], scores[1], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["softmax", "logistic"])
@pytest.mark.parametrize("patience", [1, 4])
def test_early_stopping_keeps_the_best(loss, patience):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 30)), np.eye(10)[rng.integers(0, 10, 400)]  # nothing to learn
    model = LogisticDecoder(loss, l2=0.0, max_epochs=60, patience=patience, random_state=0)
    model.fit(X, Y)
    losses = model.validation_loss_
    assert model.n_epochs_ == len(losses) == int(np.argmin(losses)) + 1 + patience < 60
    assert losses[-1] > 1.01 * min(losses)
    held = np.random.RandomState(0).permutation(400)[:40]  # drawn first
    p = np.clip(model.predict_proba(X[held]).astype(float), 1e-9, 1 - 1e-9)
    each = -Y[held] * np.log(p)
    if loss == "logistic":
        each -= (1 - Y[held]) * np.log(1 - p)
    assert each.sum() / 40 == pytest.approx(min(losses), rel=1e-4)


def test_epochs_and_patience_are_those_asked_for():
    X, y = classes()
    Y = np.eye(8)[y]
    assert LogisticDecoder(max_epochs=1, random_state=0).fit(X, Y).n_epochs_ == 1
    assert LogisticDecoder(max_epochs=7, validation_fraction=0).fit(X, Y).n_epochs_ == 7
    assert LogisticDecoder(validation_fraction=0).fit(X, Y).n_epochs_ > 40  # few rows


def test_bad_parameters_of_decoders():
    X, y = classes()
    Y = np.eye(8)[y]
    for options, message in [
        ({"loss": "hinge"}, "loss must be"),
        ({"l2": -1.0}, "l2 must be between"),
        ({"validation_fraction": 1.0}, "validation_fraction must be"),
        ({"patience": 0}, "patience must be between 1"),
        ({"max_epochs": 0}, "max_epochs must be between 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            LogisticDecoder(**options).fit(X, Y)
    with pytest.raises(ValueError, match="exactly one class a row"):
        LogisticDecoder().fit(X, np.ones_like(Y))
    with pytest.raises(ValueError, match="codes have 600 rows, Y has 599"):
        LogisticDecoder().fit(X, Y[1:])


# ---- feature maps ----


@pytest.mark.parametrize(
    ("kernel", "oracle"), [("gaussian", rbf_kernel), ("laplacian", laplacian_kernel)]
)
def test_fourier_features_approximate_the_kernel(kernel, oracle):
    X = np.random.default_rng(0).normal(size=(40, 3))
    features = RandomFourierFeatures(20000, kernel=kernel, gamma=0.3, random_state=0)
    F = features.fit_transform(X)
    np.testing.assert_allclose(F @ F.T, oracle(X, gamma=0.3), atol=0.05)


def test_gamma_of_fourier_features():
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert RandomFourierFeatures(2).fit(X).gamma_ == pytest.approx(1 / X.var(axis=0).sum())
    laplacian = RandomFourierFeatures(2, kernel="laplacian").fit(X)
    assert laplacian.gamma_ == pytest.approx(1 / X.std(axis=0).sum())
    for options, message in [
        ({"gamma": -1.0}, "gamma must be"),
        ({"gamma": "auto"}, "gamma must be"),
        ({"kernel": "cubic"}, "kernel must be"),
        ({"n_components": 0}, "n_components must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            RandomFourierFeatures(**options).fit(X)


# ---- the classifier ----


def test_linear_decoder_is_the_papers_prediction(texts):
    """Algorithm 1 of Bi and Kwok: h Y_C^+ Y, h not rounded, then rounded."""
    X, Y, X_test, _ = texts
    model = LabelEmbeddingClassifier(
        MLCSSP(10, random_state=0), LinearRegression(), decoder="linear"
    ).fit(X.toarray(), Y)
    C = model.embedding_.columns_
    dense = Y.toarray().astype(float)
    h = LinearRegression().fit(X.toarray(), dense[:, C]).predict(X_test.toarray())
    scores = h @ np.linalg.pinv(dense[:, C]) @ dense
    predicted = model.predict(X_test.toarray())
    sure = np.abs(scores - 0.5) > 1e-3
    np.testing.assert_array_equal(predicted[sure], (scores > 0.5)[sure])
    _, best = model.predict_topk(X_test.toarray(), 5)
    np.testing.assert_allclose(best, -np.sort(-scores, axis=1)[:, :5], atol=1e-3)


@pytest.mark.parametrize(
    "embedding",
    [None, Rembrandt(15), PLST(15), CPLST(15, ridge=1.0), MLCSSP(15), CompressedSensing(15)],
    ids=str,
)
@pytest.mark.parametrize("decoder", ["linear", "logistic"])
def test_labels_are_ranked(texts, embedding, decoder):
    X, Y, X_test, Y_test = texts
    model = LabelEmbeddingClassifier(embedding, decoder=decoder, random_state=0).fit(X, Y)
    frequency = np.tile(np.asarray(Y.mean(axis=0)).ravel(), (X_test.shape[0], 1))
    base = precision_at_k(Y_test, frequency, 3)
    reached = precision_at_k(Y_test, model.predict_topk(X_test, 3), 3)
    weak = isinstance(embedding, CompressedSensing) and decoder == "linear"
    assert reached > (0.8 if weak else 1.25) * base
    assert model.predict(X_test).shape == Y_test.shape


@pytest.mark.parametrize(
    "regressor",
    [
        pyrpo.RandomForestRegressor(10, random_state=0),
        pyrpo.RandomForestClassifier(10, random_state=0),
        TheirForestClassifier(10, random_state=0),
    ],
    ids=lambda r: type(r).__module__.split(".")[0] + type(r).__name__,
)
@pytest.mark.parametrize("k", [1, 6])
@pytest.mark.parametrize("cv", [None, 3])
def test_regressors(texts, regressor, k, cv):
    X, Y, X_test, Y_test = texts
    model = LabelEmbeddingClassifier(
        MLCSSP(k, random_state=0), regressor, decoder="logistic", cv=cv, random_state=0
    ).fit(X, Y)
    codes = model.transform_codes(X_test)
    assert codes.shape == (X_test.shape[0], k)
    assert 0 <= codes.min() < codes.max() < 1 + 1e-9
    assert precision_at_k(Y_test, model.predict_topk(X_test, 1), 1) > 0.15


def test_classifiers_predict_bits_of_compressed_labeling(texts):
    X, Y, X_test, _ = texts
    model = LabelEmbeddingClassifier(
        CompressedLabeling(30), TheirForestClassifier(10), decoder="linear", random_state=0
    ).fit(X, Y)
    assert model.predict(X_test).shape == (X_test.shape[0], 60)
    with pytest.raises(ValueError, match="codes of 0 and 1 only"):
        model.set_params(embedding=PLST(3)).fit(X, Y)


@pytest.mark.parametrize("feature_map", ["gaussian", "laplacian"])
def test_feature_maps_of_codes(texts, feature_map):
    X, Y, X_test, _ = texts
    model = LabelEmbeddingClassifier(Rembrandt(10), feature_map=feature_map, random_state=0)
    model.fit(X, Y)
    codes = model.transform_codes(X_test)
    p = model.decoder_.predict_proba(model.feature_map_.transform(codes))
    np.testing.assert_allclose(model.predict_proba(X_test), p, atol=1e-6)
    np.testing.assert_allclose(model.predict_topk(X_test, 1)[1][:, 0], p.max(axis=1), atol=1e-5)


def test_any_transformer_maps_codes(texts):
    X, Y, X_test, _ = texts
    theirs = RBFSampler(gamma=0.5, n_components=40)
    model = LabelEmbeddingClassifier(Rembrandt(6), feature_map=theirs, random_state=0).fit(X, Y)
    _, best = model.predict_topk(X_test, 2)
    p = model.predict_proba(X_test)
    np.testing.assert_allclose(best, -np.sort(-p, axis=1)[:, :2], atol=1e-6)
    classes_of = clone(model).fit(X, np.arange(X.shape[0]) % 7)
    assert set(classes_of.predict(X_test)) <= set(range(7))


def test_scikit_learns_regressors_of_sparse_labels(texts):
    X, Y, X_test, _ = texts
    for regressor in (LinearRegression(), TheirRidge(2.0)):
        model = LabelEmbeddingClassifier(BinaryRelevance(), regressor, decoder="linear").fit(X, Y)
        truth = clone(regressor).fit(X, Y.toarray()).predict(X_test)
        _, best = model.predict_topk(X_test, 3)
        np.testing.assert_allclose(best, -np.sort(-truth, axis=1)[:, :3], atol=1e-3)


@pytest.mark.parametrize("k", [2, 8])
@pytest.mark.parametrize(
    "regressor",
    [
        pyrpo.RandomForestClassifier(5, random_state=0),
        TheirForestClassifier(5, random_state=0),
        KNeighborsClassifier(3),
    ],
    ids=lambda r: type(r).__module__.split(".")[0] + type(r).__name__,
)
@pytest.mark.parametrize("cv", [None, 3])
def test_codes_that_are_always_the_same(texts, regressor, k, cv):
    """An empty label is never predicted, one that all rows have always is."""
    X, Y = texts[0].toarray(), texts[1].toarray()[:, :k].astype(float)
    for column, value in ((0, 0.0), (k - 1, 1.0), (0, 0.0)):
        Y[:, column] = value
        model = LabelEmbeddingClassifier(BinaryRelevance(), regressor, decoder="linear", cv=cv)
        codes = model.fit(X, Y).transform_codes(X[:50])
        np.testing.assert_array_equal(codes[:, column], value)
        np.testing.assert_array_equal(model.predict(X[:50])[:, column], value)


def test_boosting_of_codes(texts):
    X, Y, X_test, Y_test = texts
    base = precision_at_k(Y_test, np.tile(Y.mean(axis=0), (X_test.shape[0], 1)), 1)
    for regressor, embedding in (
        (pyrpo.GradientBoostingRegressor(60, random_state=0), Rembrandt(10)),
        (pyrpo.GradientBoostingClassifier(60, random_state=0), MLCSSP(10, random_state=0)),
    ):
        model = LabelEmbeddingClassifier(embedding, regressor, random_state=0).fit(X, Y)
        assert precision_at_k(Y_test, model.predict_topk(X_test, 1), 1) > 1.1 * base


@pytest.mark.parametrize("embedding", [BinaryRelevance(), PLST(5), MLCSSP(5)], ids=str)
@pytest.mark.parametrize("decoder", ["linear", "logistic"])
def test_lists_need_no_scores_of_all_rows(embedding, decoder, monkeypatch):
    """Memory beyond the lists is that of blocks; predict's beyond the labels, too."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((3000, 50), density=0.1, rng=rng, format="csr", dtype=np.float32)
    Y = sparse.random_array((3000, 900), density=0.01, rng=rng, format="csr", dtype=np.float32)
    Y.data[:] = 1.0
    decode = LogisticDecoder("logistic", max_epochs=1) if decoder == "logistic" else decoder
    model = LabelEmbeddingClassifier(embedding, decoder=decode, random_state=0).fit(X, Y)
    whole = model.predict(X), *model.predict_topk(X, 3)
    monkeypatch.setattr("pyrpo.decoder._SCORES", 100 * 900)
    monkeypatch.setattr("pyrpo.decoder._ROWS", 100)
    tracemalloc.start()
    labels, p = model.predict_topk(X, 3)
    topk = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    held = tracemalloc.get_traced_memory()[0]
    predicted = model.predict(X)
    every = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    assert topk < 3000 * 900 * 4 / 3
    assert every < 2.5 * predicted.nbytes
    np.testing.assert_array_equal(predicted, whole[0])
    np.testing.assert_allclose(p, whole[2], rtol=1e-4, atol=1e-6)
    assert labels.shape == (3000, 3)


def test_binary_relevance_is_ridge_on_every_label(texts):
    X, Y, X_test, _ = texts
    model = LabelEmbeddingClassifier(BinaryRelevance(), decoder="linear").fit(X, Y)
    full = LabelEmbeddingClassifier(PLST(60), decoder="linear").fit(X, Y)
    np.testing.assert_allclose(
        model.predict_topk(X_test, 3)[1], full.predict_topk(X_test, 3)[1], atol=1e-4
    )


def test_classes_of_any_kind():
    X, y = classes()
    names = np.array([f"class {c}" for c in range(8)])[y]
    model = LabelEmbeddingClassifier(Rembrandt(5, random_state=0), random_state=0).fit(X, names)
    assert (model.predict(X) == names).mean() > 0.6
    labels, p = model.predict_topk(X, 2)
    assert (labels[:, 0] == model.predict(X)).all()
    assert (p[:, 0] >= p[:, 1]).all()
    again = clone(model).fit(X, names)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    linear = clone(model).set_params(decoder="linear").fit(X, names)
    np.testing.assert_allclose(linear.predict_proba(X).sum(axis=1), 1.0)


def test_model_holds_k_numbers_a_feature_and_label():
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 4000), density=0.01, rng=rng, format="csr")
    Y = sparse.csr_array((np.ones(300), rng.integers(0, 3000, 300), np.arange(301)), (300, 3000))
    for decoder in ("logistic", "linear"):
        model = LabelEmbeddingClassifier(Rembrandt(10, p=5), decoder=decoder, random_state=0)
        size = len(pickle.dumps(model.fit(X, Y)))
        assert size < 8 * 11 * (4000 + 3000) + 40_000


def test_wrong_parts(texts):
    X, Y, _, _ = texts
    for options, kind, message in [
        ({"decoder": "sparse"}, ValueError, "decoder must be"),
        ({"decoder": "softmax"}, ValueError, "needs classes"),
        ({"decoder": "linear", "feature_map": "gaussian"}, ValueError, "feature_map needs"),
        ({"regressor": "lasso"}, ValueError, "regressor must be"),
        ({"embedding": "plst"}, TypeError, "embedding must be"),
        ({"embedding": PLST}, TypeError, "embedding must be"),
        ({"feature_map": 3}, TypeError, "feature_map must be"),
        ({"feature_map": "cubic"}, ValueError, "kernel must be"),
        ({"threshold": "half"}, ValueError, "threshold must be a number or an array"),
        ({"threshold": 1.5}, ValueError, r"threshold must be a number in \[0, 1\]"),
        ({"threshold": np.nan}, ValueError, r"threshold must be a number in \[0, 1\]"),
        ({"threshold": [0.5, 0.5]}, ValueError, "or 60 of them"),
    ]:
        with pytest.raises(kind, match=message):
            LabelEmbeddingClassifier(**options).fit(X, Y)
    missing = Y.toarray().astype(float)
    missing[0, 0] = np.nan
    with pytest.raises(ValueError, match="missing labels"):
        LabelEmbeddingClassifier().fit(X, missing)


def test_thresholds_by_label(texts, tmp_path):
    X, Y, X_test, _ = texts
    threshold = np.linspace(0, 1, Y.shape[1])
    model = LabelEmbeddingClassifier(PLST(8), threshold=threshold, random_state=0).fit(X, Y)
    expected = model.predict_proba(X_test) > threshold
    np.testing.assert_array_equal(model.predict(X_test), expected)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(pyrpo.load(tmp_path / "model").predict(X_test), expected)


@pytest.mark.parametrize("decoder", ["linear", "logistic"])
@pytest.mark.parametrize(
    "odd", ["constant", "empty", "duplicate", "one label", "few samples", "rank one", "singular X"]
)
def test_odd_problems(odd, decoder):
    rng = np.random.default_rng(0)
    X, Y, k = rng.normal(size=(60, 7)), (rng.random((60, 9)) < 0.4).astype(int), 5
    if odd == "constant":
        Y[:, 2] = 1
    elif odd == "empty":
        Y[:, 2] = 0
    elif odd == "duplicate":
        Y[:, 3:6] = Y[:, :3]
    elif odd == "one label":
        Y, k = sparse.csr_array(Y[:, :1]), 1  # an array would be classes
    elif odd == "few samples":
        X, Y = X[:3], Y[:3]
    elif odd == "rank one":
        Y[:] = Y[:, :1]
    else:
        X[:, 1], X[:, 2], X[:, 3] = X[:, 0], 0.0, 1.0
    for embedding in (Rembrandt(k, ridge=0.0), PLST(k), CPLST(k)):
        model = LabelEmbeddingClassifier(embedding, ridge=0.0, decoder=decoder, random_state=0).fit(
            X, Y
        )
        p, (labels, best) = model.predict_proba(X), model.predict_topk(X, 1)
        assert ((p >= 0) & (p <= 1)).all()
        if decoder == "logistic":
            np.testing.assert_allclose(best[:, 0], p.max(axis=1), atol=1e-6)
        assert labels.shape == (len(X), 1)
        if odd == "constant":
            assert (p[:, 2] > 0.5).all()
        elif odd == "empty":
            assert (p[:, 2] < 0.5).all()


def test_rows_without_weight_do_not_matter(texts):
    X, Y, X_test, _ = texts
    weight = (np.arange(X.shape[0]) % 3 > 0).astype(float)
    kept = np.flatnonzero(weight)
    a = LabelEmbeddingClassifier(Rembrandt(8), random_state=0).fit(X, Y, sample_weight=weight)
    b = LabelEmbeddingClassifier(Rembrandt(8), random_state=0).fit(X[kept], Y[kept])
    np.testing.assert_allclose(a.predict_proba(X_test), b.predict_proba(X_test), atol=1e-3)


def test_features_that_never_occur():
    """Only the labels' shares are left to learn."""
    Y = sparse.csr_array((np.arange(60)[:, None] % 4 == np.arange(4)).astype(float))
    model = LabelEmbeddingClassifier(random_state=0).fit(sparse.csr_array((60, 5)), Y)
    np.testing.assert_allclose(model.predict_proba(sparse.csr_array((2, 5))), 0.25, atol=0.05)


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "aloi-train.vw.gz").exists(), reason="ALOI is not here")
def test_aloi_error():
    """Table 2: 9.7 % for RE + LR; two seeds differ by up to 0.3 %."""
    train, test = load_vw(DATA / "aloi-train.vw.gz"), load_vw(DATA / "aloi-test.vw.gz")
    model = LabelEmbeddingClassifier(Rembrandt(50), random_state=0)
    model.fit(train.X.toarray(), train.y)
    assert (model.predict(test.X.toarray()) != test.y).mean() < 0.10


def test_rounding_is_no_code():
    """Centred one-hot classes have a rank of one less than their number: a code is rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = (X[:, :3] + rng.normal(size=(300, 3))).argmax(axis=1)
    fits = [LabelEmbeddingClassifier(random_state=0).fit(A, y) for A in (X, np.asfortranarray(X))]
    np.testing.assert_allclose(*(f.predict_proba(X) for f in fits), atol=1e-6)
    codes = np.column_stack([X[:, :2], 1e-9 * X[:, 2]])
    decoder = LogisticDecoder(random_state=0).fit(codes, np.eye(3)[y])
    assert not decoder.coef_[2].any()
