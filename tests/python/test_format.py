"""docs/format.md says how files are: a reader written from that page alone reads them."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest

import pyrpo

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "format.md"
FILES = sorted((ROOT / "tests" / "corpus").glob("*/*.rpo"))
DTYPES = {1: "<u1", 2: "<u2", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f4", 7: "<f8", 8: "<f2"}
WORD = (1 << 64) - 1

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the page is not here")


def page_sections():
    """Id: (name, types) of the page's table."""
    text = re.search(r"<!-- sections -->(.*)<!-- /sections -->", PAGE.read_text(), re.DOTALL)
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|", text.group(1), re.MULTILINE)
    return {int(number): (name, types) for number, name, types in rows}


def test_ids_and_names_are_those_of_the_code():
    header, source = ((ROOT / "csrc" / f"format.{kind}").read_text() for kind in "hc")
    ids = dict(re.findall(r"(RPO_SEC_\w+) =\s+(\d+)", header))
    names = dict(re.findall(r"\[(RPO_SEC_\w+)\] = \"([^\"]+)\"", source))
    assert set(names) == set(ids) - {"RPO_SEC_ARRAY"}
    assert {int(ids[k]): name for k, name in names.items()} == {
        number: name for number, (name, _) in page_sections().items()
    }
    assert ids["RPO_SEC_ARRAY"] == "256"
    version = re.search(r"#define RPO_FORMAT_VERSION (\d+)", header).group(1)
    assert f"version of the format: {version} |" in PAGE.read_text()


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def stir(s, w):
    s ^= w * 0x9E3779B97F4A7C15 & WORD
    return (s << 27 | s >> 37) * 0xD1B54A32D192ED03 & WORD


def checksum(data):
    lanes, whole = [1, 2, 3, 4], len(data) // 32 * 32
    for i, (word,) in enumerate(struct.iter_unpack("<Q", data[:whole])):
        lanes[i % 4] = stir(lanes[i % 4], word)
    for byte in data[whole:]:
        lanes[0] = stir(lanes[0], byte)
    total = len(data)
    for lane in lanes:
        total = mix(total ^ lane)
    return total


def padded(n):
    return -(-n // 64) * 64


def read(path):
    """Kind and sections of a file, by the page."""
    data = path.read_bytes()
    magic, head_sum, version, kind, count, zero, length = struct.unpack_from("<8sQIIIIQ", data)
    assert (magic, version, zero, length) == (b"RPOMODEL", 1, 0, len(data))
    at = padded(64 + 32 * count)
    assert checksum(data[16:at]) == head_sum
    assert not any(data[40:64])
    assert not any(data[64 + 32 * count : at])
    sections = {}
    for i in range(count):
        ident, kind_of, offset, numbers, total = struct.unpack_from("<IIQQQ", data, 64 + 32 * i)
        assert offset == at
        dtype = np.dtype(DTYPES[kind_of])
        size = numbers * dtype.itemsize
        assert checksum(data[at : at + padded(size)]) == total
        assert not any(data[at + size : at + padded(size)])
        assert ident not in sections
        sections[ident] = (kind_of, np.frombuffer(data, dtype, numbers, at))
        at += padded(size)
    assert at == len(data)
    return kind, sections


def allowed(types, number, sections):
    options = types.split(" (")[0].split(", ")
    if "any" in options and number <= 7:
        return True
    if types.startswith("as "):
        return number == sections[int(types[3:])][0]
    return str(number) in options


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_files_are_as_the_page_says(path):
    kind, sections = read(path)
    page = page_sections()
    for ident, (number, _) in sections.items():
        if ident < 256:
            assert allowed(page[ident][1], number, sections), page[ident]
    info = pyrpo.inspect_model(path)
    assert info.kind == {1: "forest", 2: "arrays"}[kind]
    assert [s.id for s in info.sections] == list(sections)
    if kind == 2:
        names, shapes = bytes(sections[27][1]).split(b"\0"), sections[28][1].reshape(-1, 5)
        assert len(names) == len(shapes) + 1
        for i, shape in enumerate(shapes):
            assert sections[256 + i][1].size == shape[1:].prod()
        return
    shape = {ident: array for ident, (_, array) in sections.items()}
    t, _, d, n, ratio, _ = shape[1].tolist()
    inner, leaves = shape[3][-1], shape[4][-1]
    columns = d * (2 if ratio else 1)
    counts = {2: 3 * t, 3: t + 1, 4: t + 1, 5: t + 1, 12: leaves, 13: leaves, 14: leaves}
    counts |= dict.fromkeys(range(6, 12), inner)
    counts |= {21: d, 23: leaves, 24: d, 25: t * d, 26: leaves + t}
    if 5 in shape:
        counts[15] = counts[16] = shape[5][-1]
    values = n if 15 in shape else leaves
    if 17 in shape:
        counts |= {17: values + 1, 18: shape[17][-1], 19: shape[17][-1]}
    else:
        counts[19] = values * (1 if 25 in shape else columns)
    for ident, array in shape.items():
        if ident not in (1, 22):
            assert array.size == counts[ident], page[ident]
    assert (14 in shape) == (15 not in shape)


def test_predictions_by_the_page_alone():
    """One tree of the rows form, read out by hand."""
    path = ROOT / "tests" / "corpus" / "0.1.0" / "forest-rows.rpo"
    _, sections = read(path)
    s = {ident: array for ident, (_, array) in sections.items()}
    t, _, d, n, _, _ = s[1].tolist()
    said = {}
    _, beside = read(path.with_suffix(".expected.rpo"))
    names = bytes(beside[27][1]).decode().split("\0")
    for i, shape in enumerate(beside[28][1].reshape(-1, 5)):
        said[names[i]] = beside[256 + i][1].reshape(shape[1 : 1 + shape[0]])
    values = s[19].reshape(n, d)
    for row, expected in zip(said["X"], said["scores"], strict=True):
        mean = np.zeros(d)
        for tree in range(t):
            first, node = s[3][tree], 0 if s[3][tree + 1] > s[3][tree] else -1
            while node >= 0:
                at = first + node
                x = row[s[6][at]]
                left = bool(s[10][at] & 1) if np.isnan(x) else x <= s[7][at]
                node = int(s[8][at] if left else s[9][at])
            place = s[4][tree] + tree + ~node
            rows = s[15][s[5][tree] + s[26][place] : s[5][tree] + s[26][place + 1]]
            weight = (
                s[16][s[5][tree] + s[26][place] : s[5][tree] + s[26][place + 1]]
                if 16 in s
                else np.ones(len(rows))
            )
            mean += weight @ values[rows] / weight.sum() / t
        np.testing.assert_allclose(mean, expected, rtol=1e-13)
