"""The same seed gives the same bits: threads, instruction sets, batches."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

import pyrpo

# Fits models of all kinds and prints a digest of each: bytes and predictions.
SCRIPT = """
import hashlib, sys
import numpy as np
from scipy import sparse
import pyrpo

rng = np.random.default_rng(0)
n, p, d = 400, 30, 120
X = rng.normal(size=(n, p)).astype(np.float32)
X[rng.random(X.shape) < 0.02] = np.nan
S = sparse.random_array((n, 80), density=0.1, rng=rng, format="csr")
L = sparse.csr_array((rng.random((n, d)) < 0.03).astype(float))
R = rng.normal(size=(n, 9)) + np.nan_to_num(X[:, :1])
F = np.nan_to_num(X)
W = F @ rng.normal(size=(p, 70)) + rng.normal(size=(n, 70))
w = rng.random(n)
c = rng.integers(0, 30, n)
boosted = [
    ({}, X, None),
    ({"projection": None, "max_bins": 16}, S, w),
    ({"projection": "hadamard", "n_components": 7, "max_leaf_nodes": 9}, X, w),
    ({"projection": "top", "n_components": 3, "leaf": "mean"}, X, None),
    ({"projection": "norm-sampling", "max_features": 0.3}, S, None),
    ({"projection": None, "leaf": "mean", "max_depth": 3, "max_features": 4}, S, w),
    ({"relabel": False, "early_stopping": False}, X, w),
    ({"strategy": "single_target", "max_depth": 2}, X, w),
]
kinds = [
    (pyrpo.RandomForestClassifier, {}, X, L, None),
    (pyrpo.RandomForestClassifier, {"projection": "gaussian", "n_components": 5}, S, L, None),
    (pyrpo.RandomForestClassifier, {"projection": "sparse", "max_depth": 4}, X, L, w),
    (pyrpo.RandomForestClassifier, {"projection": "hadamard"}, X, L.toarray(), None),
    (pyrpo.RandomForestClassifier, {}, S, c, w),
    (pyrpo.ExtraTreesClassifier, {"projection": "achlioptas", "max_leaf_nodes": 20}, S, L, None),
    (pyrpo.RandomForestRegressor, {"max_features": 0.3, "min_samples_leaf": 3}, X, R, w),
    (pyrpo.ExtraTreesRegressor, {"ccp_alpha": 0.01}, X, R, None),
    (pyrpo.ExtraTreesRegressor, {"projection": "gaussian", "n_components": 3}, S, R, w),
    (pyrpo.RandomForestRegressor, {"max_features": 0.5}, F, W, w),
    (pyrpo.ExtraTreesRegressor, {}, F, W, None),
    (pyrpo.ExtraTreesClassifier, {"max_features": 3}, F.astype(float), c, None),
    *((pyrpo.GradientBoostingClassifier, o, A, L, v) for o, A, v in boosted),
    *((pyrpo.GradientBoostingRegressor, o, A, R, v) for o, A, v in boosted),
    (pyrpo.GradientBoostingRegressor, {"loss": "huber", "leaf": "mean"}, X, R, w),
    (pyrpo.GradientBoostingRegressor, {"loss": "absolute"}, S, R, w),
    (pyrpo.GradientBoostingClassifier, {"loss": "exponential", "leaf": "mean"}, S, L, None),
    (pyrpo.GradientBoostingClassifier, {}, X, c, w),
    (pyrpo.GradientBoostingClassifier, {"relabel": False}, S, c, None),
]
for cls, options, A, Y, weight in kinds:
    for n_jobs in map(int, sys.argv[1:]):
        model = cls(12, random_state=7, n_jobs=n_jobs, **options).fit(A, Y, weight)
        predict = getattr(model, "predict_proba", model.predict)
        if model._model.is_boosted:  # probabilities are expit or softmax, the system's, of these
            predict = model._model.predict
        index, value = model._model.predict_topk(A, 2)
        parts = [model._model.dump(), predict(A), index, value, model.weights(A).data
                 if model._model.has_rows else np.empty(0), model.feature_importances_]
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in parts))
        print(cls.__name__, options, digest.hexdigest()[:16])
"""


def digests(tmp_path, *n_jobs, **environment):
    """Of each model, for each number of threads."""
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, n_jobs)],
        env=os.environ | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()
    return [said[i :: len(n_jobs)] for i in range(len(n_jobs))]


@pytest.fixture(scope="module")
def by_threads(tmp_path_factory):
    return digests(tmp_path_factory.mktemp("reference"), 1, 2, 3, 8)


def test_threads(by_threads):
    reference, *others = by_threads
    assert len(set(reference)) == len(reference) > 30
    assert others == [reference] * 3


@pytest.mark.parametrize(
    "environment",
    [
        {"RPO_ISA": "baseline"},
        {"RPO_ISA": "avx2"},
        {"RPO_ISA": "avx512", "OPENBLAS_CORETYPE": "Haswell"},
        {
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-FMA4",
            "OMP_NUM_THREADS": "1",
        },
        {  # as older ones name them
            "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2_Usable,-FMA_Usable",
            "OMP_NUM_THREADS": "2",
        },
    ],
    ids=lambda e: ",".join(f"{k}={v}" for k, v in e.items()),
)
def test_environment(by_threads, tmp_path, environment):
    assert digests(tmp_path, 4, **environment) == by_threads[:1]


def test_instruction_sets_are_picked(tmp_path):
    def name(value):
        code = "from pyrpo import _native_call; print(_native_call.instruction_set())"
        environment = os.environ | {"RPO_ISA": value}
        run = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout.strip()

    assert name("baseline") == "baseline"
    assert name("avx2") in ("avx2", "baseline")


def models():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 8))
    labels = (rng.random((300, 40)) < 0.1).astype(float)
    holes = labels.copy()
    holes[rng.random(holes.shape) < 0.2] = np.nan
    real = rng.normal(size=(300, 5))
    classifier, regressor = pyrpo.RandomForestClassifier, pyrpo.ExtraTreesRegressor
    yield X, classifier(15, random_state=0).fit(X, sparse.csr_array(labels))
    yield X, classifier(15, random_state=0).fit(X, holes)
    yield X, classifier(15, max_depth=3, random_state=0).fit(X, labels)
    yield X, regressor(15, random_state=0).fit(X, real)
    yield X, regressor(15, max_depth=3, random_state=0).fit(X, real)


def test_a_batch_is_its_rows():
    for X, model in models():
        predict = getattr(model, "predict_proba", model.predict)
        whole = predict(X)
        np.testing.assert_array_equal(whole, np.vstack([predict(X[i : i + 1]) for i in range(300)]))
        np.testing.assert_array_equal(whole, np.vstack([predict(X[:7]), predict(X[7:])]))
        np.testing.assert_array_equal(whole[::-1], predict(X[::-1]))
        np.testing.assert_array_equal(whole, predict(np.asfortranarray(X)))
        np.testing.assert_array_equal(whole, predict(sparse.csr_array(X)))
        labels, scores = model.predict_topk(X, 4)
        np.testing.assert_array_equal(scores, -np.sort(-whole, axis=1)[:, :4])
        np.testing.assert_array_equal(np.take_along_axis(whole, labels, 1), scores)


def test_fits_repeat():
    X, Y = np.random.default_rng(0).normal(size=(2, 100, 4))
    model = pyrpo.RandomForestRegressor(5, random_state=3, projection="gaussian")
    first = hashlib.sha256(model.fit(X, Y)._model.dump().tobytes()).hexdigest()
    assert hashlib.sha256(model.fit(X, Y)._model.dump().tobytes()).hexdigest() == first
    other = model.set_params(random_state=4).fit(X, Y)
    assert hashlib.sha256(other._model.dump().tobytes()).hexdigest() != first
    shared = np.random.RandomState(0)
    model.set_params(random_state=shared)
    assert not np.array_equal(model.fit(X, Y).predict(X), model.fit(X, Y).predict(X))


@pytest.mark.parametrize(
    "estimator",
    [
        pyrpo.DecisionTreeRegressor(),
        pyrpo.RandomForestRegressor(3),
        pyrpo.GradientBoostingRegressor(3),
    ],
    ids=lambda e: type(e).__name__,
)
def test_an_int_is_the_seed(estimator):
    X, Y = np.random.default_rng(0).normal(size=(2, 120, 4))
    for seed in (0, 7, np.int64(2**32 - 1)):
        assert estimator.set_params(random_state=seed).fit(X, Y)._seed == seed
    for wrong in (-1, 2**32, "a seed"):
        with pytest.raises(ValueError, match=r"[Ss]eed"):
            estimator.set_params(random_state=wrong).fit(X, Y)
    if hasattr(estimator, "warm_start"):
        estimator.set_params(random_state=3).fit(X, Y).set_params(warm_start=True)
        with pytest.raises(ValueError, match=r"[Ss]eed"):
            estimator.set_params(n_estimators=4, random_state=-1).fit(X, Y)
        estimator.set_params(warm_start=False)
    drawn = np.random.RandomState(5).randint(2**31 - 1)
    assert estimator.set_params(random_state=np.random.RandomState(5)).fit(X, Y)._seed == drawn


def test_rows_held_out_are_not_those_a_caller_drew():
    """Of the same int: here the rows without y, a fifth, would be all that early stopping sees."""
    X = np.random.default_rng(9).normal(size=(200, 4))
    Y = X[:, :2].copy()
    Y[np.random.default_rng(0).permutation(200)[:40]] = np.nan
    model = pyrpo.GradientBoostingRegressor(50, random_state=0).fit(X, Y)
    assert model.n_estimators_ > 30


def test_trees_do_not_depend_on_how_many_there_are():
    X, Y = np.random.default_rng(0).normal(size=(2, 100, 4))
    few = pyrpo.RandomForestRegressor(3, random_state=3).fit(X, Y)
    many = pyrpo.RandomForestRegressor(9, random_state=3).fit(X, Y)
    np.testing.assert_array_equal(few.apply(X), many.apply(X)[:, :3])
