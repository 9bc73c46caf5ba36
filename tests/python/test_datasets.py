"""Readers and generators of pyrpo.datasets: every rule of the formats, and the real files."""

import gzip
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import label_ranking_average_precision_score

from pyrpo.datasets import (
    load_mulan,
    load_svmlight_multilabel,
    load_vw,
    load_xmc,
    make_friedman1_chain,
    make_friedman1_group,
    make_friedman1_ind,
    make_multilabel,
    make_xmc,
)

DATA = Path(os.environ.get("PYRPO_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data")

round_trip = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def write(tmp_path):
    def write_file(name, text):
        data = text if isinstance(text, bytes) else text.encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_file


@pytest.fixture
def mulan(write):
    """Write an ARFF file and, if labels are given, its XML file; return the former's path."""

    def write_both(header, rows, labels=(), name="set.arff"):
        if labels:
            items = "".join(f'<label name="{label}"></label>\n' for label in labels)
            xml = f'<labels xmlns="http://mulan.sourceforge.net/labels">\n{items}</labels>\n'
            write("set.xml", '<?xml version="1.0" encoding="utf-8"?>\n' + xml)
        declared = "".join(f"@attribute {line}\n" for line in header)
        return write(name, f"@relation r\n{declared}@data\n" + "".join(r + "\n" for r in rows))

    return write_both


def dense(values):
    return values.toarray() if sparse.issparse(values) else values


def assert_error(load, path, line, found):
    """The error names the file, the line, and what was found."""
    with pytest.raises(ValueError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    assert found in message


# Mulan: rows and values


LABELLED = ["a numeric", "b numeric", "x {0,1}", "y {0,1}"]


def test_dense_rows(mulan):
    data = load_mulan(mulan(LABELLED, ["1,2.5,0,1", " -3e2 ,\t0 , 1 , 0 "], ["x", "y"]))
    np.testing.assert_array_equal(data.X, [[1, 2.5], [-300, 0]])
    np.testing.assert_array_equal(data.Y, [[0, 1], [1, 0]])
    assert isinstance(data.X, np.ndarray)
    assert isinstance(data.Y, np.ndarray)
    assert data.X.dtype == np.float32
    assert data.Y.dtype == np.int8
    assert data.X.flags.c_contiguous
    assert data.Y.flags.c_contiguous
    assert data.feature_names == ["a", "b"]
    assert data.target_names == ["x", "y"]
    assert data.name == "set"


def test_sparse_rows(mulan):
    rows = ["{0 1,2 1}", "{}", "{ 1  2.5 , 3 1 }", "{3 1,0 -4}", "{0 0, 2 0}"]
    data = load_mulan(mulan(LABELLED, rows, ["x", "y"]))
    assert isinstance(data.X, sparse.csr_array)
    assert isinstance(data.Y, sparse.csr_array)
    assert data.X.dtype == np.float32
    assert data.Y.dtype == np.int8
    assert data.X.indices.dtype == data.X.indptr.dtype == np.int32
    np.testing.assert_array_equal(data.X.toarray(), [[1, 0], [0, 0], [0, 2.5], [-4, 0], [0, 0]])
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0], [0, 0], [0, 1], [0, 1], [0, 0]])
    assert data.X.nnz == 3
    assert data.Y.nnz == 3


@pytest.mark.parametrize("rows", [["1,2,0,1", "0,0,1,0"], ["{0 1,1 2,3 1}", "{2 1}"]])
@pytest.mark.parametrize("as_sparse", [True, False])
def test_sparse_forces_the_format_of_x_and_y(mulan, rows, as_sparse):
    path = mulan(LABELLED, rows, ["x", "y"])
    data = load_mulan(path, sparse=as_sparse, dtype=np.float64)
    assert sparse.issparse(data.X) == sparse.issparse(data.Y) == as_sparse
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(dense(data.X), [[1, 2], [0, 0]])
    np.testing.assert_array_equal(dense(data.Y), [[0, 1], [1, 0]])


def test_labels_stand_anywhere_and_keep_the_order_of_the_arff_file(mulan):
    header = ["x {0,1}", "a numeric", "y {0,1}", "b numeric"]
    data = load_mulan(mulan(header, ["1,2,0,3", "0,4,1,5"], ["y", "x"]))
    np.testing.assert_array_equal(data.X, [[2, 3], [4, 5]])
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1]])
    assert data.target_names == ["x", "y"]


def test_missing_values_are_nan(mulan):
    header = ["a numeric", "c {red,green}", "d {0,1}", "x {0,1}"]
    data = load_mulan(mulan(header, ["?,green,?,0", "1, ? ,1,1"], ["x"]))
    np.testing.assert_array_equal(data.X, [[np.nan, 1, np.nan], [1, np.nan, 1]])
    data = load_mulan(mulan(header, ["{0 ?,1 ?}", "{2 ?,3 1}"], ["x"]))
    nan = np.nan
    np.testing.assert_array_equal(data.X.toarray(), [[nan, nan, 0], [0, 0, nan]])


def test_nominal_features_are_codes_in_order_of_declaration(mulan):
    header = ["c {' very big ', small , \"it's\"}", "n {2,10,1}", "i {0,1,2}", "x {0,1}"]
    rows = ["' very big ',10,2,0", "small,2,0,1", '"it\'s" , 1 ,1,0']
    data = load_mulan(mulan(header, rows, ["x"]))
    np.testing.assert_array_equal(data.X, [[0, 1, 2], [1, 0, 0], [2, 2, 1]])
    assert data.categories == {
        "c": (" very big ", "small", "it's"),
        "n": ("2", "10", "1"),
        "i": ("0", "1", "2"),
    }


def test_sparse_rows_mean_the_first_category_by_leaving_it_out(mulan):
    header = ["c {red,green}", "n {2,10}", "x {0,1}"]
    data = load_mulan(mulan(header, ["{0 green}", "{1 10, 2 1}", "{0 'green', 1 2}"], ["x"]))
    np.testing.assert_array_equal(data.X.toarray(), [[1, 0], [0, 1], [1, 0]])
    assert data.X.nnz == 3


def test_labels_have_the_number_they_spell_in_whatever_order_declared(mulan):
    header = ["a numeric", "x {1,0}", "y { 0 , 1 }", "z numeric"]
    data = load_mulan(mulan(header, ["1,1,0,1", "1,0,1,0"], ["x", "y", "z"]))
    np.testing.assert_array_equal(data.Y, [[1, 0, 1], [0, 1, 0]])
    data = load_mulan(mulan(header, ["{0 1}", "{1 0,2 1}", "{1 1,3 1}"], ["x", "y", "z"]))
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0, 0], [0, 1, 0], [1, 0, 1]])
    assert data.Y.dtype == np.int8
    assert data.Y.nnz == 4


def test_comments_empty_lines_and_keywords_in_any_case(write):
    text = (
        "% about\n\n@RELATION 'a b'\n\n@ATTRIBUTE a REAL % unit\n@Attribute\tb\tinteger [0,9]\n"
        "@attribute x{0,1} % label\n%\n@DATA\n\n% row\n1,2,1\r\n   \n3,4,0"
    )
    write("set.xml", "<labels><label name='x'/></labels>")
    data = load_mulan(write("set.arff", text))
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(data.Y, [[1], [0]])


def test_a_file_without_rows(mulan):
    data = load_mulan(mulan(LABELLED, [], ["x", "y"]))
    assert data.X.shape == (0, 2)
    assert data.Y.shape == (0, 2)
    assert load_mulan(mulan(LABELLED, [], ["x", "y"]), sparse=True).Y.shape == (0, 2)


def test_many_batches(mulan, monkeypatch):
    monkeypatch.setattr("pyrpo.datasets._text._BATCH_CHARS", 20)
    X = np.arange(60).reshape(30, 2)
    data = load_mulan(mulan(LABELLED, [f"{a},{b},{a % 3 // 2},0" for a, b in X], ["x", "y"]))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y[:, 0], X[:, 0] % 3 // 2)
    rows = [f"{{0 {a},1 {b}}}" for a, b in X]
    np.testing.assert_array_equal(load_mulan(mulan(LABELLED, rows, ["x"])).X.toarray()[:, :2], X)
    assert_error(load_mulan, mulan(LABELLED, [*rows, "{0 z}"], ["x"]), 37, "'z'")


# Mulan: names


@pytest.mark.parametrize(
    ("declared", "label"),
    [
        ("plain-name.1", "plain-name.1"),
        ("'with space'", "with space"),
        ("'Swainson\\'s Thrush'", "Swainson's Thrush"),
        ('"Stellar\'s Jay"', "Stellar's Jay"),
        ("\"'departwb'\"", "'departwb'"),
        ("'say \"hi\"'", "say &quot;hi&quot;"),
        ('"say \\"hi\\""', "say &quot;hi&quot;"),
        ("'back\\\\slash'", "back\\slash"),
        ("'tab\\tend\\u001E'", None),
        ("TAG_m\\'usica", "TAG_m\\'usica"),
        ("TAG_??", "TAG_??"),
        ("R&B", "R&amp;B"),
        ("'a < b'", "a &lt; b"),
        ("caf\u00e9", "caf&#233;"),
        ("'{0,1} % x'", "{0,1} % x"),
    ],
)
def test_names_quoted_escaped_and_with_entities(mulan, declared, label):
    path = mulan(["a numeric", f"{declared} {{0,1}}"], ["5,1"], [label] if label else [])
    data = load_mulan(path, n_targets=None if label else 1)
    assert data.feature_names == ["a"]
    assert len(data.target_names) == 1
    if label is None:
        assert data.target_names == ["tab\tend\x1e"]
    np.testing.assert_array_equal(data.Y, [[1]])


def test_latin1_and_byte_order_mark(write):
    body = "@relation r\n@attribute caf\u00e9 numeric\n@attribute x {0,1}\n@data\n2,1\n"
    for encoding in ("latin-1", "utf-8-sig"):
        data = load_mulan(write("set.arff", body.encode(encoding)), n_targets=1)
        assert data.feature_names == ["caf\u00e9"]


NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1, max_size=8)


def quote(text, mark):
    return mark + text.replace("\\", "\\\\").replace(mark, "\\" + mark) + mark


@round_trip
@given(
    values=hnp.arrays(
        np.float32,
        st.tuples(st.integers(0, 5), st.just(3)),
        elements=st.floats(width=32, allow_infinity=False),
    ),
    names=st.lists(NAMES, min_size=4, max_size=4, unique=True),
    mark=st.sampled_from("'\""),
    as_sparse=st.booleans(),
    data=st.data(),
)
def test_mulan_round_trip(mulan, values, names, mark, as_sparse, data):
    codes = data.draw(hnp.arrays(np.int8, len(values), elements=st.integers(0, 1)))
    kinds = tuple(f"k{name}" for name in names[:2])  # no numbers
    categories = ",".join(quote(kind, mark) for kind in kinds)
    header = [quote(name, mark) + " numeric" for name in names[:3]]
    header.append(quote(names[3], mark) + f"{{{categories}}}")
    rows = []
    for row, code in zip(values.tolist(), codes, strict=True):
        items = ["?" if np.isnan(v) else repr(v) for v in row] + [quote(kinds[code], mark)]
        if as_sparse:
            rows.append("{" + ",".join(f"{i} {item}" for i, item in enumerate(items)) + "}")
        else:
            rows.append(",".join(items))
    loaded = load_mulan(mulan(header, rows), n_targets=1)
    assert sparse.issparse(loaded.X) == (as_sparse and len(values) > 0)
    np.testing.assert_array_equal(dense(loaded.X), values)
    np.testing.assert_array_equal(loaded.Y[:, 0], codes)
    assert loaded.feature_names + loaded.target_names == names
    assert loaded.categories == {names[3]: kinds}


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("categories", "numbers"),
    [
        ("1,0", [1, 0]),
        ("-1, 1", [-1, 1]),
        ("1,2,5", [1, 2, 5]),
        ("TRUE,FALSE", [1, 0]),
        ("false,true", [0, 1]),
        ("'0.0','1.0'", [0, 1]),
        ("lo,hi", [0, 1]),
        ("1,01", [0, 1]),
    ],
)
def test_nominal_targets_have_the_numbers_they_spell(mulan, categories, numbers, is_sparse):
    spelled = categories.replace(" ", "").replace("'", "").split(",")
    header = ["a numeric", f"y {{{categories}}}"]
    rows = [f"{{1 {c}}}" if is_sparse else f"1,{c}" for c in [*spelled, "?"]]
    data = load_mulan(mulan(header, [*rows, *(["{}"] if is_sparse else [])]), n_targets=1)
    expected = [*numbers, np.nan, *numbers[:is_sparse]]  # left out: the first category
    np.testing.assert_array_equal(data.Y[:, 0], expected)
    assert list(data.categories) == (["y"] if categories in ("lo,hi", "1,01") else [])
    if set(numbers) == {0, 1} and not data.categories:
        labels = load_mulan(mulan(header, rows[:-1], ["y"]))
        np.testing.assert_array_equal(dense(labels.Y)[:, 0], numbers)
        with pytest.raises(ValueError, match="a label cannot be missing"):
            load_mulan(mulan(header, rows, ["y"]))


@pytest.mark.parametrize("row", ["1\t0\t2.5", "1 0  2.5", " 1 \t0 2.5 "])
def test_rows_of_tabs_or_spaces(mulan, row):
    data = load_mulan(mulan(["a numeric", "y {0,1}", "b numeric"], [row], ["y"]))
    np.testing.assert_array_equal(data.X, [[1, 2.5]])
    np.testing.assert_array_equal(data.Y, [[0]])


# Mulan: which attributes are the targets


@pytest.mark.parametrize("name", ["set-train.arff", "set-test.arff.gz", "set.arff", "set.ARFF.GZ"])
def test_xml_is_found_beside_the_file(mulan, name):
    path = mulan(LABELLED, ["1,2,0,1"], ["x"], name="set-train.arff")
    data = path.read_bytes()
    other = path.with_name(name)
    other.write_bytes(gzip.compress(data) if name.lower().endswith(".gz") else data)
    loaded = load_mulan(str(other))
    assert loaded.target_names == ["x"]
    assert loaded.name == name.split(".")[0]


def test_xml_given_and_nested_labels(mulan, write):
    text = '<m:labels xmlns:m="u"><m:label name="y"><m:label name="x"/></m:label></m:labels>'
    xml = write("other.xml", text)
    data = load_mulan(mulan(LABELLED, ["1,2,0,1"]), xml)
    assert data.target_names == ["x", "y"]


def test_neither_xml_nor_n_targets(mulan):
    path = mulan(LABELLED, ["1,2,0,1"], name="set-train.arff")
    with pytest.raises(ValueError, match=r"found no set-train\.xml or set\.xml .*n_targets="):
        load_mulan(path)


@pytest.mark.parametrize(
    ("n_targets", "X", "Y"),
    [(1, [[1, 2]], [[3]]), (2, [[1]], [[2, 3]]), (-1, [[2, 3]], [[1]]), (-2, [[3]], [[1, 2]])],
)
@pytest.mark.parametrize("row", ["1,2,3", "{0 1,1 2,2 3}"])
def test_n_targets(mulan, n_targets, X, Y, row):
    data = load_mulan(mulan(["a numeric", "b numeric", "c numeric"], [row]), n_targets=n_targets)
    np.testing.assert_array_equal(dense(data.X), X)
    np.testing.assert_array_equal(data.Y, Y)
    assert isinstance(data.Y, np.ndarray)
    assert data.Y.dtype == np.float64
    assert data.feature_names + data.target_names == (
        list("abc") if n_targets > 0 else list("abc"[-n_targets:] + "abc"[:-n_targets])
    )


def test_missing_targets_are_nan_and_precise(mulan):
    data = load_mulan(mulan(["a numeric", "b numeric"], ["1,?", "2,0.1"]), n_targets=1)
    np.testing.assert_array_equal(data.Y, [[np.nan], [0.1]])


@pytest.mark.parametrize(
    ("relation", "labels"),
    [
        ("'Music: -C 2'", "ab"),
        ("'Music-weka.filters -C -1 -split-percentage 60'", "c"),
        ("Music:-C\t1", "a"),
    ],
)
def test_relation_of_meka(write, relation, labels):
    header = "".join(f"@attribute {name} {{0,1}}\n" for name in "abc")
    data = load_mulan(write("set.arff", f"@relation {relation}\n{header}@data\n1,0,1\n"))
    assert data.target_names == list(labels)
    assert data.Y.dtype == np.int8
    assert data.Y.tolist() == [[dict(zip("abc", (1, 0, 1), strict=True))[name] for name in labels]]


@pytest.mark.parametrize("count", [0, 3, -3])
def test_bad_relation_of_meka(write, count):
    text = (
        f"@relation 'x: -C {count}'\n"
        + "@attribute a {0,1}\n@attribute b {0,1}\n@attribute c {0,1}\n@data\n1,0,1\n"
    )
    with pytest.raises(ValueError, match=rf"so -C must be between 1 and 2 .* got {count}"):
        load_mulan(write("set.arff", text))


@pytest.mark.parametrize("n_targets", [0, 4, -4, 1.5, True])
def test_bad_n_targets(mulan, n_targets):
    with pytest.raises(ValueError, match="n_targets must be"):
        load_mulan(mulan(LABELLED, ["1,2,0,1"]), n_targets=n_targets)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sparse": "yes"}, "sparse must be"),
        ({"dtype": np.int32}, "dtype must be"),
        ({"xml": "set.xml", "n_targets": 1}, "either xml or n_targets"),
    ],
)
def test_bad_options(mulan, options, message):
    with pytest.raises(ValueError, match=message):
        load_mulan(mulan(LABELLED, ["1,2,0,1"], ["x"]), **options)


def test_no_such_file(tmp_path):
    for load in (load_mulan, load_xmc, load_vw, load_svmlight_multilabel):
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "nothing")


# Mulan: malformed files


# The header of five lines ends with @data on line 6.
@pytest.mark.parametrize(
    ("rows", "line", "found"),
    [
        (["1,2,0,1", "1,2,0"], 8, "expected 4 values, found 3"),
        (["1,2,0,1,1"], 7, "expected 4 values, found 5"),
        (["1,2,0,1,"], 7, "expected 4 values, found 5"),
        (["1,2,0,1", "", "1,two,0,1"], 9, "attribute 'b': expected a number, found 'two'"),
        (["1,,0,1"], 7, "attribute 'b': expected a number, found ''"),
        (["1,1_0,0,1"], 7, "found '1_0'"),
        (["1,2,0,2"], 7, "attribute 'y': 2 is not one of the declared categories"),
        (["1,2,0.5,1"], 7, "attribute 'x': 0.5"),
        (["1,2,0,?"], 7, "attribute 'y': a label cannot be missing"),
        (["1,2,0,'1"], 7, 'unbalanced quotes in "1,2,0,\'1"'),
        (["1,2,0,1", "{0 1}"], 8, "a sparse row in a file of dense rows"),
        (["{0 1}", "1,2,0,1"], 8, "a dense row in a file of sparse rows"),
        (["{0 1}", "{0 1,2"], 8, "without its closing brace, it ends in '{0 1,2'"),
        (["{0 1,2}"], 7, "expected 'index value', found '2'"),
        (["{0 1,,2 1}"], 7, "expected 'index value', found ''"),
        (["{0 1 2 1}"], 7, "found '0 1 2 1'"),
        (["{a 1}"], 7, "expected 'index value', found 'a 1'"),
        (["{-1 1}"], 7, "found '-1 1'"),
        (["{0 1}", "{99999999999999999999 1}"], 8, "found '99999999999999999999 1'"),
        (["{0 1}", "{0 1,4 1}"], 8, "index 4 is beyond the 4 attributes"),
        (["{1 1,0 2,1 3}"], 7, "index 1 occurs twice"),
        (["{0 1}", "{1 x}"], 8, "attribute 'b': expected a number, found 'x'"),
        (["{0 1}", "{0 1,2 7}"], 8, "attribute 'x': 7 is not"),
        (["{0 1}}"], 7, "found '1}'"),
    ],
)
def test_malformed_rows(mulan, rows, line, found):
    assert_error(load_mulan, mulan(LABELLED, rows, ["x", "y"]), line, found)


@pytest.mark.parametrize("row", ["blue,0", "{0 blue}", "'blue',0", "Red,0"])
def test_unknown_category(mulan, row):
    path = mulan(["c {red,green}", "x {0,1}"], [row], ["x"])
    assert_error(load_mulan, path, 5, "is not one of the declared categories")


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("", 1, "ends without @data"),
        ("@relation r\n@attribute a numeric\n", 3, "ends without @data"),
        ("@relation r\n@data\n1\n", 2, "without any @attribute"),
        ("@relation r\n1,2\n", 2, "expected @attribute or @data, found '1,2'"),
        (
            "@attribute a string\n",
            1,
            "attribute 'a' must be numeric or nominal, found type 'string'",
        ),
        ("@attribute a date 'y-M'\n", 1, "found type \"date 'y-M'\""),
        ("@attribute a\n", 1, "found type ''"),
        ("@attribute\n", 1, "expected '@attribute name type'"),
        ("@attribute 'a numeric\n", 1, "expected '@attribute name type'"),
        ("@attribute a {0,1\n", 1, "found type '{0,1'"),
        ("@attribute a {0,0}\n", 1, "bad or repeated categories of attribute 'a': '0,0'"),
        ("@attribute a {'0,1}\n", 1, "bad or repeated categories"),
        ("@attribute a numeric\n@attribute a numeric\n", 2, "'a' is declared on line 1 too"),
    ],
)
def test_malformed_header(write, text, line, found):
    assert_error(lambda path: load_mulan(path, n_targets=1), write("set.arff", text), line, found)


def test_label_with_other_categories(mulan):
    path = mulan(["a numeric", "x {no,yes}"], ["1,no"], ["x"])
    assert_error(load_mulan, path, 3, "label 'x' must have the values 0 and 1, found 'no,yes'")


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("<labels>\n<label name='x'>\n</labels>", 3, "not well-formed XML"),
        (
            "<labels>\n<label name='a' />\n<label name='no'/></labels>",
            3,
            "'no' is not an attribute",
        ),
        ("<labels>\n<label/>\n</labels>", 2, "a label without a name"),
        ("<labels>\n<label name='x'/>\n<label name='x'/></labels>", 3, "'x' occurs twice"),
        ("<labels>\n</labels>", 2, "names no label"),
    ],
)
def test_malformed_xml(mulan, write, text, line, found):
    path = mulan(LABELLED, ["1,2,0,1"])
    xml = write("set.xml", text)
    with pytest.raises(ValueError) as caught:
        load_mulan(path)
    assert str(caught.value).startswith(f"{xml}, line {line}: ")
    assert found in str(caught.value)


def test_damaged_gzip(mulan):
    rows = [f"{i},{i * i},0,1" for i in range(3000)]
    path = mulan(LABELLED, rows, ["x", "y"], name="set.arff.gz")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"set\.arff\.gz, line \d+: damaged gzip data"):
        load_mulan(path)


# Extreme classification repository


@pytest.mark.parametrize("name", ["set.txt", "set.txt.gz"])
def test_xmc(write, name):
    data = load_xmc(write(name, "5 4 3\n0,2 0:1 3:0.5\n 1:2e-1\n1\n\n2 3:1 0:-1 3:1\n\n"))
    np.testing.assert_array_equal(
        data.X.toarray(),
        np.float32([[1, 0, 0, 0.5], [0, 0.2, 0, 0], [0] * 4, [0] * 4, [-1, 0, 0, 2]]),
    )
    np.testing.assert_array_equal(
        data.Y.toarray(), [[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]
    )
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.dtype == np.float32
    assert data.Y.dtype == np.int8
    assert data.X.indices.dtype == data.Y.indptr.dtype == np.int32
    assert data.X.has_canonical_format
    assert data.feature_names == ["0", "1", "2", "3"]
    assert data.target_names == ["0", "1", "2"]
    assert data.name == "set"


def test_xmc_repeated_label_counts_once(write):
    labels = ",".join(["1"] * 256)
    assert load_xmc(write("set.txt", f"1 1 2\n{labels} 0:1\n")).Y.toarray().tolist() == [[0, 1]]


def test_xmc_without_rows(write):
    data = load_xmc(write("set.txt", "0 4 3\n"))
    assert data.X.shape == (0, 4)
    assert data.Y.shape == (0, 3)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("", 1, "expected a header"),
        ("2 3\n0 1:1\n", 1, "expected a header 'n_samples n_features n_labels', found '2 3'"),
        ("0 1:1\n", 1, "expected a header"),
        ("3 4 3\n0 1:1\n1 1:1\n", 4, "header says 3 samples, the file ends after 2"),
        ("1 4 3\n0 1:1\n\n1 1:1\n", 4, "more rows than the 1 of the header"),
        ("2 4 3\n0 1:1\n0,3 1:1\n", 3, "label 3 is beyond the 3 of the header"),
        ("2 4 3\n0 1:1\n0 1:1 4:1\n", 3, "feature 4 is beyond the 4 of the header"),
        ("2 4 3\n0 1:1\n0 1:x\n", 3, "expected a number, found 'x'"),
        ("2 4 3\n0 1:1\n0 1:1_0\n", 3, "expected a number, found '1_0'"),
        ("1 4 3\n0 1:1 2\n", 2, "expected 'feature:value', found '2'"),
        ("1 4 3\n0 1:1 2:\n", 2, "found '2:'"),
        ("1 4 3\n0 1:1:1\n", 2, "found '1:1:1'"),
        ("1 4 3\n0 1 2:3:4\n", 2, "found '1'"),
        ("1 4 3\n0 -1:1\n", 2, "found '-1:1'"),
        ("1 4 3\n1:1 2:1\n", 2, "expected 'label,label' or a leading space, found '1:1'"),
        ("1 4 3\n0,,1 2:1\n", 2, "found '0,,1'"),
        ("1 4 3\n0, 1:1\n", 2, "found '0,'"),
        ("1 4 3\nzero 1:1\n", 2, "found 'zero'"),
        ("1 4 3\n0 1:1\x0b2:1\n", 2, "expected 'feature:value'"),
    ],
)
def test_malformed_xmc(write, text, line, found):
    assert_error(load_xmc, write("set.txt", text), line, found)


MATRICES = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.just(0) | st.floats(width=32, allow_infinity=False, allow_nan=False),
)


def pairs(row, first=0):
    return "".join(f" {i + first}:{row[i]!r}" for i in np.flatnonzero(row))


@round_trip
@given(X=MATRICES, data=st.data())
def test_xmc_round_trip(write, X, data):
    n_labels = data.draw(st.integers(1, 4))
    Y = data.draw(hnp.arrays(np.int8, (len(X), n_labels), elements=st.integers(0, 1)))
    text = f"{len(X)} {X.shape[1]} {n_labels}\n" + "".join(
        ",".join(map(str, np.flatnonzero(y))) + pairs(x) + "\n"
        for x, y in zip(X.astype(object), Y, strict=True)
    )
    loaded = load_xmc(write("set.txt", text))
    np.testing.assert_array_equal(loaded.X.toarray(), X)
    np.testing.assert_array_equal(loaded.Y.toarray(), Y)


# Vowpal Wabbit


@pytest.mark.parametrize("name", ["set.vw", "set.vw.gz"])
def test_vw(write, name):
    data = load_vw(write(name, "3 | 1:0.5 4:2\n\n1 | 2\n3 |\n7 | 4:1 4:1 1\n"))
    np.testing.assert_array_equal(
        data.X.toarray(), [[0.5, 0, 0, 2], [0, 1, 0, 0], [0] * 4, [1, 0, 0, 2]]
    )
    np.testing.assert_array_equal(data.y, [3, 1, 3, 7])
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.dtype == np.float32
    assert data.y.dtype == np.int64
    assert data.sample_weight is None
    assert data.feature_names == ["1", "2", "3", "4"]
    assert data.target_names == ["1", "3", "7"]


@pytest.mark.parametrize(
    ("zero_based", "text", "names"),
    [
        ("auto", "1 | 0:1 2:1", ["0", "1", "2"]),
        ("auto", "1 | 1:1 2:1", ["1", "2"]),
        (True, "1 | 1:1 2:1", ["0", "1", "2"]),
        (False, "1 | 1:1 2:1", ["1", "2"]),
    ],
)
def test_vw_first_index(write, zero_based, text, names):
    data = load_vw(write("set.vw", text), zero_based=zero_based)
    assert data.feature_names == names
    assert data.X.shape == (1, len(names))
    assert data.X[0, names.index("2")] == 1


def test_vw_sizes_given(write):
    data = load_vw(write("set.vw", "2 | 2:1\n"), n_features=4, n_classes=3)
    assert data.X.shape == (1, 4)
    assert data.feature_names == ["1", "2", "3", "4"]
    assert data.target_names == ["1", "2", "3"]
    data = load_vw(write("set.vw", "2 | a\n"), n_features=2)
    assert data.X.shape == (1, 2)
    assert len(data.feature_names) == 2


def test_vw_names_in_the_order_first_seen(write):
    data = load_vw(write("set.vw", "1 | 7:2 b_1\n2 | a:3 7\n"))
    assert data.feature_names == ["7", "b_1", "a"]
    np.testing.assert_array_equal(data.X.toarray(), [[2, 1, 0], [1, 0, 3]])


def test_vw_namespaces(write):
    one = load_vw(write("set.vw", "1 |n 1:2\n2 |n 2\n"))
    assert one.feature_names == ["1", "2"]
    two = load_vw(write("set.vw", "1 |n 1:2 |m:2 1:3 x | 1\n2 |m x:0.5\n2 |empty\n"))
    assert two.feature_names == ["n^1", "m^1", "m^x", "1"]
    np.testing.assert_array_equal(two.X.toarray(), [[2, 6, 2, 1], [0, 0, 0.5, 0], [0] * 4])


def test_vw_weights_and_tags(write):
    data = load_vw(
        write("set.vw", "1 2.5 'tag| 1\n2 'only| 1\n3 .5 | 1\n4 2 touching| 1\n5 't | 1\n")
    )
    np.testing.assert_array_equal(data.y, [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(data.sample_weight, [2.5, 1, 0.5, 2, 1])


def test_vw_without_rows(write):
    data = load_vw(write("set.vw", "\n"))
    assert data.X.shape == (0, 0)
    assert data.y.shape == (0,)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("1 | 1:1\n\n1 1:1\n", 3, "expected 'label | feature:value ...', found '1 1:1'"),
        ("1 | 1:1\n| 1:1\n", 2, "expected an integer label"),
        ("one | 1:1\n", 1, "found 'one'"),
        ("1.5 | 1:1\n", 1, "found '1.5'"),
        ("1 2 3 | 1:1\n", 1, "found '1 2 3'"),
        ("1 w | 1:1\n", 1, "expected a number, found 'w'"),
        ("1 -2 | 1:1\n", 1, "expected a weight of at least 0, found '-2'"),
        ("1 nan | 1:1\n", 1, "expected a weight"),
        ("1 | 1:1\n1 | 1:x\n", 2, "expected a number, found 'x'"),
        ("1 | 1:1 2:\n", 1, "expected 'feature' or 'feature:value', found '2:'"),
        ("1 | 1:1 :2\n", 1, "found ':2'"),
        ("1 | 1:2:3\n", 1, "found '1:2:3'"),
        ("1 |:2 1:1\n", 1, "expected a namespace or a space after '|', found ':2'"),
        ("1 |n:x 1:1\n", 1, "expected a number, found 'x'"),
        ("1 | 1:1\n1 | 1:1 6:1\n", 2, "feature '6' is not one of 5"),
        ("1 | 1:1\n6 | 1:1\n", 2, "label 6 is not between 1 and 4"),
        ("0 | 1:1\n", 1, "label 0 is not between 1 and 4"),
    ],
)
def test_malformed_vw(write, text, line, found):
    path = write("set.vw", text)
    assert_error(lambda path: load_vw(path, n_features=5, n_classes=4), path, line, found)


def test_vw_index_zero_in_a_file_counted_from_one(write):
    path = write("set.vw", "1 | 1:1\n1 | 0:1\n")
    assert_error(lambda path: load_vw(path, zero_based=False), path, 2, "feature '0'")


@round_trip
@given(X=MATRICES, data=st.data())
def test_vw_round_trip(write, X, data):
    y = data.draw(hnp.arrays(np.int64, len(X), elements=st.integers(-9, 9)))
    rows = zip(X.astype(object), y, strict=True)
    text = "".join(f"{label} |{pairs(x, first=1)}\n" for x, label in rows)
    loaded = load_vw(write("set.vw", text), n_features=X.shape[1])
    np.testing.assert_array_equal(loaded.X.toarray(), X)
    np.testing.assert_array_equal(loaded.y, y)


# svmlight


@pytest.mark.parametrize("name", ["set.svm", "set.svm.gz"])
def test_svmlight(write, name):
    text = "# about\n1,3 2:0.5 4:-1\n 1:1 # no label\n\n0 1:1\n"
    data = load_svmlight_multilabel(write(name, text))
    np.testing.assert_array_equal(data.X.toarray(), [[0, 0.5, 0, -1], [1, 0, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(data.Y.toarray(), [[0, 1, 0, 1], [0] * 4, [1, 0, 0, 0]])
    assert isinstance(data.X, sparse.csr_array)
    assert isinstance(data.Y, sparse.csr_array)
    assert data.X.dtype == np.float32
    assert data.Y.dtype == np.int8
    assert data.X.indices.dtype == np.int32
    assert data.target_names == ["0", "1", "2", "3"]


def test_svmlight_options(write):
    path = write("set.svm", "1,3 1:1\n2 2:1\n")
    data = load_svmlight_multilabel(
        path, n_features=5, n_labels=4, zero_based=True, zero_based_labels=False, dtype=np.float64
    )
    np.testing.assert_array_equal(data.X.toarray(), [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0]])
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0, 1, 0], [0, 1, 0, 0]])
    assert data.X.dtype == np.float64


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("1 2:x", "'1 2:x'"),
        ("1 x:2", "x"),
        ("1,,2 1:1", "1,,2"),
        ("1 2", "1 2"),
        ("1 -1:3", "Invalid index -1"),
        ("1 3:1 2:1", "sorted"),
        ("a 1:1", "a"),
        ("1.5 1:1", "expected labels from 0 to 3, found 1.5"),
        ("-1 1:1", "found -1"),
        ("4 1:1", "found 4"),
        ("1 9:1", "n_features"),
        ("1 99999999999:1", "99999999999"),
    ],
)
def test_malformed_svmlight(write, row, found):
    path = write("set.svm", f"1 1:1\n# comment\n\n{row}\n2 1:1\n")

    def load(path):
        return load_svmlight_multilabel(path, n_features=5, n_labels=4)

    assert_error(load, path, 4, found)


def test_damaged_gzip_svmlight(write):
    path = write("set.svm.gz", "".join(f"1 1:{i}\n" for i in range(3000)))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(ValueError, match=r"set\.svm\.gz, line \d+: damaged gzip data"):
        load_svmlight_multilabel(path)


@round_trip
@given(X=MATRICES, data=st.data())
def test_svmlight_round_trip(tmp_path, X, data):
    Y = data.draw(hnp.arrays(np.int8, (len(X), 3), elements=st.integers(0, 1)))
    # A row with neither labels nor features is a blank line, which scikit-learn skips.
    X[:, 0] = 1
    path = str(tmp_path / "set.svm")
    dump_svmlight_file(X, Y, path, multilabel=True)
    loaded = load_svmlight_multilabel(path, n_features=X.shape[1], n_labels=3, zero_based=True)
    np.testing.assert_allclose(loaded.X.toarray(), X, rtol=1e-6)
    np.testing.assert_array_equal(loaded.Y.toarray(), Y)


# Generated problems


def friedman1(X):
    return (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )


FRIEDMAN = [make_friedman1_chain, make_friedman1_group, make_friedman1_ind]


@pytest.mark.parametrize("make", FRIEDMAN)
def test_friedman_without_noise(make):
    X, Y = make(50, 3, noise=0.0, random_state=0)
    for target in range(3):
        x = X[:, 5 * target :] if make is make_friedman1_ind else X
        np.testing.assert_allclose(Y[:, target], friedman1(x))
    assert X.min() >= 0
    assert X.max() <= 1


def test_friedman_noise():
    n, d = 20000, 4
    X, Y = make_friedman1_chain(n, d, random_state=0)
    steps = np.diff(np.column_stack([friedman1(X), Y]), axis=1)
    np.testing.assert_allclose(np.cov(steps.T), np.eye(d), atol=0.05)
    X, Y = make_friedman1_group(n, d, noise=2.0, random_state=0)
    np.testing.assert_allclose(np.cov((Y - friedman1(X)[:, None]).T), 4 * np.eye(d), atol=0.2)
    X, Y = make_friedman1_ind(n, d, random_state=0)
    noise = Y - np.column_stack([friedman1(X[:, 5 * j :]) for j in range(d)])
    np.testing.assert_allclose(np.cov(noise.T), np.eye(d), atol=0.05)


@pytest.mark.parametrize("make", FRIEDMAN)
def test_friedman_shapes_seeds_and_errors(make):
    X, Y = make(random_state=3)
    assert X.shape == (100, 80 if make is make_friedman1_ind else 5)
    assert Y.shape == (100, 16)
    again = make(random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(Y, again[1])
    assert not np.array_equal(X, make(random_state=4)[0])
    for bad in ({"n_samples": -1}, {"n_targets": 0}, {"noise": -1.0}, {"noise": np.nan}):
        with pytest.raises(ValueError, match="at least"):
            make(**bad)


def test_multilabel_shape_density_and_skew():
    data = make_multilabel(3000, 500, 400, cardinality=7.0, density=0.05, random_state=0)
    assert data.X.shape == (3000, 500)
    assert data.Y.shape == (3000, 400)
    assert isinstance(data.X, sparse.csr_array)
    assert isinstance(data.Y, sparse.csr_array)
    assert data.X.dtype == np.float32
    assert data.Y.dtype == np.int8
    assert np.unique(data.X.data).tolist() == [1]
    assert np.unique(data.Y.data).tolist() == [1]
    assert data.X.nnz / data.X.shape[0] / data.X.shape[1] == pytest.approx(0.05, rel=0.05)
    sizes = np.diff(data.Y.indptr)
    assert sizes.min() >= 1
    assert sizes.mean() == pytest.approx(7, rel=0.05)
    counts = np.sort(data.Y.sum(axis=0))
    assert counts[-1] > 10 * np.median(counts)
    assert len(data.feature_names) == 500
    assert len(data.target_names) == 400


def test_multilabel_flat_frequencies():
    counts = make_multilabel(4000, 50, 100, exponent=0.0, random_state=0).Y.sum(axis=0)
    assert counts.max() < 2 * counts.min()


@pytest.mark.parametrize(
    "sizes",
    [
        {"n_samples": 1},
        {"n_features": 1, "density": 0.5},
        {"n_labels": 1, "cardinality": 1},
        {"n_labels": 3, "cardinality": 3},
    ],
)
def test_multilabel_extreme_sizes(sizes):
    data = make_multilabel(**{"n_samples": 20, "random_state": 0, **sizes})
    assert np.diff(data.Y.indptr).min() >= 1


def test_multilabel_seed():
    first, same = (make_multilabel(50, random_state=5) for _ in range(2))
    assert (first.X != same.X).nnz == 0
    assert (first.Y != same.Y).nnz == 0
    assert (first.Y != make_multilabel(50, random_state=6).Y).nnz > 0


@pytest.mark.parametrize(
    "bad",
    [
        {"n_samples": 0},
        {"n_labels": 0},
        {"cardinality": 0.5},
        {"cardinality": 1001},
        {"density": 0.0},
        {"density": 1.0},
        {"exponent": -1.0},
        {"exponent": float("nan")},
    ],
)
def test_multilabel_bad_options(bad):
    with pytest.raises(ValueError, match=r"must (not )?be"):
        make_multilabel(**bad)


def test_multilabel_is_learnable():
    data = make_multilabel(3000, random_state=0)
    X, Y = data.X, data.Y.toarray()
    forest = RandomForestRegressor(20, max_features="sqrt", random_state=0).fit(X[:2500], Y[:2500])
    score = label_ranking_average_precision_score(Y[2500:], forest.predict(X[2500:]))
    frequencies = np.tile(Y[:2500].mean(axis=0), (500, 1))
    prior = label_ranking_average_precision_score(Y[2500:], frequencies)
    assert 0.3 < score < 0.5
    assert score > prior + 0.15


# Real files


def data_file(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not in {DATA}")
    return path


def load_quietly(load, name, **options):
    path = data_file(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load(path, **options)


@pytest.mark.parametrize(
    ("name", "n_samples", "n_features", "n_labels", "is_sparse"),
    [
        ("delicious-train", 12920, 500, 983, True),
        ("delicious-test", 3185, 500, 983, True),
        ("bibtex-train", 4880, 1836, 159, True),
        ("bibtex-test", 2515, 1836, 159, True),
        ("scene-train", 1211, 294, 6, False),
        ("scene-test", 1196, 294, 6, False),
        ("yeast-train", 1500, 103, 14, False),
        ("yeast-test", 917, 103, 14, False),
        ("emotions-train", 391, 72, 6, False),
        ("emotions-test", 202, 72, 6, False),
        ("cal500", 502, 68, 174, False),
        ("birds-train", 322, 260, 19, False),
        ("birds-test", 323, 260, 19, False),
    ],
)
def test_real_labels(name, n_samples, n_features, n_labels, is_sparse):
    data = load_quietly(load_mulan, f"{name}.arff.gz")
    assert data.X.shape == (n_samples, n_features)
    assert data.Y.shape == (n_samples, n_labels)
    assert sparse.issparse(data.X) == sparse.issparse(data.Y) == is_sparse
    assert len(data.feature_names) == n_features
    assert len(data.target_names) == n_labels
    assert data.name == name
    assert set(np.unique(dense(data.Y))) == {0, 1}
    assert np.isfinite(dense(data.X)).all()


@pytest.mark.parametrize(
    ("name", "n_samples", "n_features", "n_targets"),
    [
        ("atp1d", 337, 411, 6),
        ("oes97", 334, 263, 16),
        ("wq", 1060, 16, 14),
        ("edm", 154, 16, 2),
    ],
)
def test_real_targets(name, n_samples, n_features, n_targets):
    data = load_quietly(load_mulan, f"{name}.arff.gz", n_targets=n_targets)
    assert data.X.shape == (n_samples, n_features)
    assert data.Y.shape == (n_samples, n_targets)
    assert data.Y.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.Y).all()


def test_real_names():
    birds = load_quietly(load_mulan, "birds-train.arff.gz")
    assert "Swainson's Thrush" in birds.target_names
    assert birds.categories["location"][:3] == ("2", "10", "1")
    assert np.unique(birds.X[:, birds.feature_names.index("location")]).max() == 11
    atp1d = load_quietly(load_mulan, "atp1d.arff.gz", n_targets=6)
    assert atp1d.feature_names[0] == "'departwb'"
    delicious = load_quietly(load_mulan, "delicious-test.arff.gz")
    assert "TAG_m\\'usica" in delicious.target_names


def test_real_first_row():
    data = load_quietly(load_mulan, "delicious-train.arff.gz")
    assert data.X[[0]].indices.tolist() == [60, 248, 279, 316, 490]
    assert (data.Y[[0]].indices + 500).tolist()[:3] == [577, 591, 815]


@pytest.mark.parametrize(("part", "n_samples"), [("train", 97200), ("test", 10800)])
def test_real_vw(part, n_samples):
    data = load_quietly(load_vw, f"aloi-{part}.vw.gz")
    assert data.X.shape == (n_samples, 128)
    assert data.y.shape == (n_samples,)
    np.testing.assert_array_equal(np.unique(data.y), np.arange(1, 1001))
    assert len(data.target_names) == 1000


# ---- generated extreme classification ----


def test_make_xmc_has_a_hierarchy_and_power_laws():
    data = make_xmc(20_000, 3000, 333, cardinality=2.0, random_state=0)
    assert (data.X.shape, data.Y.shape) == ((20_000, 3000), (20_000, 333))
    assert (data.X.dtype, data.Y.dtype) == (np.float32, np.int8)
    np.testing.assert_allclose(np.sqrt(data.X.multiply(data.X).sum(axis=1)), 1.0, rtol=1e-5)
    assert set(data.Y.data) == {1}
    assert np.diff(data.Y.indptr).min() >= 1
    assert 1.7 < data.Y.nnz / 20_000 < 2.0  # some labels are drawn twice
    parents, root = data.parents, len(data.parents) - 1
    assert parents[root] == root
    assert (parents[:root] > np.arange(root)).all()
    assert np.bincount(parents[:333]).max() == 10
    for counts in (np.bincount(data.Y.indices), np.bincount(data.X.indices)):
        assert counts.max() > 5 * np.median(counts)
    with_siblings = data.Y @ (parents[:333, None] == parents[:333]).astype(float)
    assert (with_siblings.max(axis=1) >= 2).mean() > 0.2


def test_make_xmc_is_repeatable_and_learnable():
    data = make_xmc(3000, 500, 40, noise=0.5, own=0.2, random_state=3)
    again = make_xmc(3000, 500, 40, noise=0.5, own=0.2, random_state=3)
    assert (data.X != again.X).nnz == (data.Y != again.Y).nnz == 0
    y = data.Y.indices
    center = np.stack([data.X[:2000][y[:2000] == c].mean(axis=0) for c in range(40)])
    assert ((data.X[2000:] @ center.T).argmax(axis=1) == y[2000:]).mean() > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 0}, "at least 1"),
        ({"cardinality": 0.5}, "cardinality must be"),
        ({"branching": 1}, "branching must be"),
        ({"exponent": -1.0}, "exponent must not"),
        ({"noise": 0.9, "own": 0.2}, "noise and own must be shares"),
    ],
)
def test_make_xmc_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        make_xmc(**options)


@pytest.mark.parametrize("size", [(1, 1, 1), (5, 2, 2), (50, 30, 11)])
def test_make_xmc_of_small_sizes(size):
    data = make_xmc(*size, words=3, random_state=0)
    assert data.X.shape[1] == size[1]
    assert len(data.parents) >= size[2]


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (lambda *a, **k: load_mulan(*a, n_targets=1, **k), "{}@data\n-1e52,1\n"),
        (lambda *a, **k: load_mulan(*a, n_targets=1, **k), "{}@data\n{{0 1e52}}\n"),
        (load_xmc, "1 3 2\n0 0:1e52\n"),
        (load_vw, "1 | a:1e52 b:2\n"),
        (load_svmlight_multilabel, "1 1:1e52\n"),
    ],
)
def test_numbers_beyond_the_type(write, reader, text):
    path = write(
        "set.txt", text.format("@relation r\n@attribute a numeric\n@attribute b numeric\n")
    )
    with pytest.raises(ValueError, match=r"set\.txt: a value is infinite in float32"):
        reader(path)
    X = reader(path, dtype=np.float64).X
    assert abs(X).max() == 1e52
