"""Model files: what comes back, mapped files, saving at once or not at all, looking into files."""

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pyrpo
from pyrpo import _native_call, _native_files, embedding
from pyrpo.decoder import LogisticDecoder
from pyrpo.feature_map import RandomFourierFeatures


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(200, 12, n_classes=15, random_state=0)
    return X, Y


FORESTS = [
    pyrpo.RandomForestClassifier(5, random_state=0),
    pyrpo.RandomForestClassifier(5, max_depth=2, random_state=0),
    pyrpo.ExtraTreesRegressor(5, random_state=0),
    pyrpo.GradientBoostingClassifier(n_estimators=5, random_state=0),
    pyrpo.GradientBoostingRegressor(n_estimators=5, relabel=False, random_state=0),
    pyrpo.DecisionTreeClassifier(random_state=0),
]

EMBEDDINGS = [
    embedding.Rembrandt(4, random_state=0),
    embedding.Rembrandt(4, center=True, whiten=True, random_state=0),
    embedding.PLST(4, center=True),
    embedding.CPLST(4),
    embedding.MLCSSP(4, random_state=0),
    embedding.KernelMLCSSP(4, random_state=0),
    embedding.MOPLMS(4),
    embedding.CompressedSensing(4, random_state=0),
    embedding.CompressedLabeling(8, random_state=0),
    embedding.BinaryRelevance(),
]


def name(value):
    return type(value).__name__


# ---- what comes back ----


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("model", FORESTS, ids=name)
def test_forests_come_back(data, tmp_path, model, mmap):
    X, Y = data
    model.fit(X, Y).save(tmp_path / "m.rpo")
    again = pyrpo.load(tmp_path / "m.rpo", mmap=mmap)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.apply(sparse.csr_array(X)), model.apply(X))
    twice = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(twice.predict(X), model.predict(X))


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("sparse_y", [False, True])
@pytest.mark.parametrize("model", EMBEDDINGS, ids=name)
def test_embeddings_come_back(data, tmp_path, model, sparse_y, mmap):
    X, Y = data
    Y = sparse.csr_array(Y.astype(float)) if sparse_y else Y
    model.fit(X, Y).save(tmp_path / "m.rpo")
    again = pyrpo.load(tmp_path / "m.rpo", mmap=mmap)
    assert type(again) is type(model)
    assert set(vars(again)) == set(vars(model))
    for key, value in vars(model).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(again, key), value)
            assert getattr(again, key).dtype == value.dtype
    codes = model.transform(Y)
    other = again.transform(Y)
    if sparse.issparse(codes):
        codes, other = codes.toarray(), other.toarray()
    np.testing.assert_array_equal(codes, other)
    np.testing.assert_array_equal(model.inverse_transform(codes), again.inverse_transform(codes))
    again.save(tmp_path / "again.rpo")
    assert (tmp_path / "again.rpo").read_bytes() == (tmp_path / "m.rpo").read_bytes()


CLASSIFIERS = [
    {},
    {"decoder": "linear"},
    {"embedding": embedding.MLCSSP(4), "decoder": "linear"},
    {"embedding": embedding.CompressedLabeling(8), "decoder": "linear"},
    {"feature_map": "gaussian"},
    {
        "feature_map": RandomFourierFeatures(20, kernel="laplacian"),
        "decoder": LogisticDecoder("logistic", max_epochs=3),
    },
    {"regressor": pyrpo.RandomForestRegressor(4)},
    {"regressor": pyrpo.GradientBoostingRegressor(n_estimators=4)},
    {"embedding": embedding.MLCSSP(4), "regressor": pyrpo.ExtraTreesClassifier(4)},
    {"regressor": SklearnRidge(0.5)},
    {"regressor": LinearRegression()},
]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("params", CLASSIFIERS, ids=str)
def test_label_embeddings_come_back(data, tmp_path, params, mmap):
    X, Y = data
    model = pyrpo.LabelEmbeddingClassifier(random_state=0, **params).fit(X, Y)
    model.save(tmp_path / "m.rpo")
    again = pyrpo.load(tmp_path / "m.rpo", mmap=mmap)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for a, b in zip(again.predict_topk(X, 3), model.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(a, b)
    assert str(again.get_params()) == str(model.get_params())
    twice = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(twice.predict_proba(X), model.predict_proba(X))


def test_classes_of_strings_come_back(data, tmp_path):
    X, Y = data
    y = np.array(["a", "bb", "ccc"])[Y[:, :2].sum(axis=1)]
    model = pyrpo.LabelEmbeddingClassifier(random_state=0).fit(X, y)
    model.save(tmp_path / "m.rpo")
    np.testing.assert_array_equal(pyrpo.load(tmp_path / "m.rpo").predict(X), model.predict(X))


def test_transformers_of_others_are_left_out_of_files(data, tmp_path):
    """Also those whose names our modules know."""
    X, Y = data
    model = pyrpo.RandomForestRegressor(5, projection=PCA(2), random_state=0).fit(X, Y)
    model.save(tmp_path / "m.rpo")
    again = pyrpo.load(tmp_path / "m.rpo")
    assert again.projection is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_a_file_cannot_hold_is_set_again_before_more_is_grown(data, tmp_path):
    """Else a model with a callable loss would go on with the default loss, and say nothing."""
    X, Y = data

    def loss(y, scores):
        return (y - scores) ** 4 / 4, (scores - y) ** 3

    def boosted(rounds):
        return pyrpo.GradientBoostingRegressor(
            loss=loss, n_estimators=rounds, learning_rate=0.03, warm_start=True, random_state=0
        )

    boosted(3).fit(X, Y).save(tmp_path / "a.rpo")
    pyrpo.load(tmp_path / "a.rpo").save(tmp_path / "b.rpo")
    for name in ("a.rpo", "b.rpo"):
        again = pyrpo.load(tmp_path / name).set_params(n_estimators=6)
        before = again.predict(X)
        with pytest.raises(ValueError, match="warm_start cannot go on with loss='squared'"):
            again.fit(X, Y)
        np.testing.assert_array_equal(again.predict(X), before)
        again.set_params(loss=loss).fit(X, Y)
        np.testing.assert_array_equal(again.predict(X), boosted(6).fit(X, Y).predict(X))
        again.set_params(loss="squared", n_estimators=7).fit(X, Y)  # one's own choice by now
    afresh = pyrpo.load(tmp_path / "a.rpo").set_params(warm_start=False).fit(X, Y)
    assert afresh.set_params(warm_start=True, n_estimators=7).fit(X, Y).n_estimators_ == 7


def test_keys_that_look_alike_have_arrays_of_their_own(data, tmp_path):
    _, Y = data
    model = embedding.PLST(3).fit(Y)
    keys = [1, "1", "1'", "", "a\0b", "a b"]
    model.extra_ = {key: np.full(2, i) for i, key in enumerate(keys)}
    model.__dict__["extra_.1"] = np.full(2, 9)
    model.save(tmp_path / "m.rpo")
    again = pyrpo.load(tmp_path / "m.rpo")
    assert list(again.extra_) == keys
    assert [int(again.extra_[key][0]) for key in keys] == list(range(len(keys)))
    assert getattr(again, "extra_.1")[0] == 9


def test_strangers_are_refused_by_name(data, tmp_path):
    X, Y = data
    strangers = [
        ("Pipeline", None, make_pipeline(StandardScaler(), LinearRegression())),
        ("LogisticRegression", embedding.MLCSSP(1), LogisticRegression()),
        (
            "base_estimator",
            None,
            pyrpo.GradientBoostingRegressor(
                n_estimators=2, relabel=False, base_estimator=LinearRegression()
            ),
        ),
    ]
    for word, part, regressor in strangers:
        model = pyrpo.LabelEmbeddingClassifier(part, regressor, random_state=0).fit(X, Y)
        with pytest.raises(TypeError, match=rf"regressor_.*{word}.*pickle"):
            model.save(tmp_path / "m.rpo")
    assert list(tmp_path.iterdir()) == []


def test_files_hold_no_code(data, tmp_path):
    """Names in a note are looked up among our classes, attributes never hide methods."""
    _, Y = data
    model = embedding.PLST(3).fit(Y)
    arrays, note = pyrpo._note.write_arrays(model)
    content = json.loads(note)
    for change in (
        {"estimator": "Popen"},
        {"estimator": "LinearRegression"},
        {"params": {"k": {"stored": "nothing"}}},
        {"params": {"k": {"projection": "system", "params": {"dict": []}}}},
        {"fitted": {"components_": {"csr": [3, 3], "parts": {"dict": []}}}},
        {"fitted": 3},
    ):
        bad = json.dumps(content | change).encode()
        _native_files.save_arrays(tmp_path / "bad.rpo", arrays, bad)
        with pytest.raises(_native_call.FormatError):
            pyrpo.load(tmp_path / "bad.rpo")
    hidden = json.dumps(content | {"fitted": content["fitted"] | {"transform": 3, "__class__": 4}})
    _native_files.save_arrays(tmp_path / "odd.rpo", arrays, hidden.encode())
    again = pyrpo.load(tmp_path / "odd.rpo")
    np.testing.assert_array_equal(again.transform(Y), model.transform(Y))


# ---- mapped files ----


def test_mapped_arrays_are_read_only(data, tmp_path):
    _, Y = data
    model = embedding.PLST(3).fit(Y)
    model.save(tmp_path / "m.rpo")
    again = pyrpo.load(tmp_path / "m.rpo", mmap=True)
    with pytest.raises(ValueError, match="read-only"):
        again.components_[0, 0] = 1.0
    again.components_.copy()[0, 0] = 1.0
    components = again.components_
    del again
    np.testing.assert_array_equal(components, model.components_)


def test_mapped_damage_is_refused_at_use(data, tmp_path):
    X, Y = data
    path = tmp_path / "m.rpo"
    pyrpo.RandomForestClassifier(5, random_state=0).fit(X, Y).save(path)
    sections = {s.name: s for s in pyrpo.inspect_model(path).sections}
    whole = path.read_bytes()
    for name in ("features", "right children", "rows", "value columns", "first rows"):
        section = sections[name]
        hostile = bytearray(whole)
        end = section.offset + section.nbytes
        hostile[section.offset : end] = b"\x7f" * section.nbytes
        path.write_bytes(hostile)
        with pytest.raises(_native_call.FormatError, match=name):
            pyrpo.load(path)
        model = pyrpo.load(path, mmap=True)
        with pytest.raises(ValueError, match="damaged model, opened unchecked"):
            model.predict_proba(X)
        with pytest.raises(ValueError, match="damaged model"):
            model.apply(X)


SHARED = """
import os, re, sys
import numpy as np, pyrpo
model = pyrpo.load(sys.argv[1], mmap=True)
X = np.random.default_rng(0).normal(size=(300, 5))
model.predict(X)
print("ready", flush=True)
sys.stdin.readline()
text = open("/proc/self/smaps").read()
block = text[text.index(os.path.basename(sys.argv[1])):]
print(*(re.search(field + r":\\s+(\\d+) kB", block).group(1)
        for field in ("Rss", "Shared_Clean", "Private_Dirty")), flush=True)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="needs Linux's smaps")
def test_processes_share_the_pages_of_a_mapped_file(tmp_path):
    path = tmp_path / "shared.rpo"
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(3000, 5)), rng.normal(size=(3000, 4))
    pyrpo.RandomForestRegressor(30, random_state=0).fit(X, Y).save(path)
    command = [sys.executable, "-c", SHARED, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": tmp_path}
    children = [subprocess.Popen(command, **pipes) for _ in range(2)]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * 2
    children[0].stdin.write("\n")  # while the other has it mapped, too
    children[0].stdin.flush()
    rss, shared, dirty = map(int, children[0].stdout.readline().split())
    for child in children:
        child.communicate("\n")
    assert rss > 1000
    assert shared > 0.8 * rss  # each maps some neighbours of what it reads
    assert dirty == 0


# ---- saving ----


def test_killed_saves_leave_the_old_or_the_new_file(data, tmp_path):
    X, Y = data
    path = tmp_path / "m.rpo"
    models = [pyrpo.RandomForestClassifier(5, random_state=s).fit(X, Y) for s in (0, 1)]
    models[0].save(path)
    expected = []
    for model in models:
        model.save(tmp_path / "one.rpo")
        expected.append((tmp_path / "one.rpo").read_bytes())
    rng = np.random.default_rng(0)
    for _ in range(20):
        child = os.fork()
        if child == 0:
            while True:
                models[1].save(path)
                models[0].save(path)
        time.sleep(rng.uniform(0.0001, 0.01))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert path.read_bytes() in expected


def test_failed_saves_leave_the_old_file_and_nothing_else(data, tmp_path):
    X, Y = data
    path = tmp_path / "m.rpo"
    embedding.PLST(3).fit(Y).save(path)
    before = path.read_bytes()
    forest = pyrpo.RandomForestClassifier(20, random_state=0).fit(X, Y)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(OSError, match="larger than files may be"):
            forest.save(path)
        with pytest.raises(OSError, match="larger than files may be"):
            embedding.PLST(12).fit(np.tile(Y, 10)).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.name for p in tmp_path.iterdir()] == ["m.rpo"]
    assert path.read_bytes() == before
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="no space left"):
            forest.save("/dev/full")


# ---- without labels ----


@pytest.mark.parametrize("sparse_y", [False, True])
def test_dropped_labels(data, tmp_path, sparse_y):
    X, Y = data
    forest = pyrpo.RandomForestClassifier(40, oob_score=True, random_state=0)
    forest.fit(X, sparse.csr_array(Y) if sparse_y else Y)
    other = forest.drop_labels()
    assert type(other) is type(forest)
    np.testing.assert_array_equal(other.predict_proba(X), forest.predict_proba(X))
    assert not hasattr(other, "oob_decision_function_")
    assert hasattr(forest, "oob_decision_function_")
    with pytest.raises(ValueError, match="X_fit is None, but the leaves of this model are kept"):
        other.weights(X)
    assert abs(other.weights(X, X) - forest.weights(X)).max() < 1e-12
    other.save(tmp_path / "m.rpo")
    names = {s.name for s in pyrpo.inspect_model(tmp_path / "m.rpo").sections}
    assert not names & {"rows", "row weights", "first rows", "row starts"}
    again = pyrpo.load(tmp_path / "m.rpo")
    np.testing.assert_array_equal(again.predict_proba(X), forest.predict_proba(X))


def test_dropped_labels_of_regression(data):
    X, _ = data
    y = np.random.default_rng(0).normal(size=(200, 3))
    for model in (pyrpo.RandomForestRegressor(10, random_state=0), pyrpo.DecisionTreeRegressor()):
        other = model.fit(X, y).drop_labels()
        np.testing.assert_allclose(other.predict(X), model.predict(X), rtol=0, atol=1e-14)
        np.testing.assert_array_equal(other.apply(X), model.apply(X))


# ---- looking into files ----


def test_inspection(data, tmp_path):
    X, Y = data
    path = tmp_path / "m.rpo"
    model = pyrpo.RandomForestClassifier(5, random_state=3).fit(X, Y)
    model.save(path)
    info = pyrpo.inspect_model(path)
    assert (info.kind, info.version, info.trees, info.inputs, info.outputs, info.rows) == (
        *("forest", 1, 5, 12, 15, 200),
    )
    assert info.nbytes == path.stat().st_size
    assert info.estimator == "RandomForestClassifier"
    assert info.params["random_state"] == 3
    assert info.damaged == []
    assert "thresholds" in str(info)
    assert "saved by RandomForestClassifier" in str(info)
    whole = bytearray(path.read_bytes())
    section = next(s for s in info.sections if s.name == "thresholds")
    whole[section.offset] ^= 1
    path.write_bytes(whole)
    assert pyrpo.inspect_model(path).damaged == ["thresholds"]
    assert "WRONG" in str(pyrpo.inspect_model(path))
    with pytest.raises(_native_call.FormatError, match="thresholds"):
        pyrpo.load(path)
    with pytest.raises(OSError):
        pyrpo.inspect_model(tmp_path / "nothing.rpo")


def test_inspection_of_arrays(data, tmp_path):
    X, Y = data
    path = tmp_path / "m.rpo"
    pyrpo.LabelEmbeddingClassifier(random_state=0).fit(X, Y).save(path)
    info = pyrpo.inspect_model(path)
    assert (info.kind, info.estimator, info.trees) == ("arrays", "LabelEmbeddingClassifier", 0)
    assert {"regressor_.coef_", "decoder_.coef_"} <= {s.name for s in info.sections}
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(_native_call.FormatError, match="its header says"):
        pyrpo.inspect_model(path)


def test_every_cut_and_flip_of_arrays_is_refused(data, tmp_path):
    _, Y = data
    path = tmp_path / "m.rpo"
    embedding.PLST(2).fit(Y[:, :4]).save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << at % 8
        for bad in (bytes(flipped), whole[:at]):
            path.write_bytes(bad)
            with pytest.raises(_native_call.FormatError):
                pyrpo.load(path)


def test_every_pickler_takes_models():
    cloudpickle = pytest.importorskip("joblib.externals.cloudpickle")
    X = np.random.default_rng(0).normal(size=(40, 3))
    for cls in (pyrpo.DecisionTreeRegressor, pyrpo.RandomForestRegressor):
        model = cls(random_state=0).fit(X, X)
        again = pickle.loads(cloudpickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    boosting = pyrpo.GradientBoostingRegressor(5, early_stopping=False).fit(X, X)
    again = pickle.loads(cloudpickle.dumps(boosting))
    np.testing.assert_array_equal(again.predict(X), boosting.predict(X))
