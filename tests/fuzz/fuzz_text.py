"""Any bytes as a data set: readers of text give arrays or a ValueError that names the file.

The first byte says of what format the rest is; for "m" the XML file that names the labels comes
first, up to a zero byte. Under atheris: ``python tests/fuzz/fuzz_text.py corpus -runs=1000000``.
"""

import sys
import tempfile
import warnings
from pathlib import Path

if __name__ == "__main__":
    import atheris

    with atheris.instrument_imports(include=["pyrpo.datasets"]):
        from pyrpo import datasets
else:
    from pyrpo import datasets

READERS = {
    "a": lambda path: datasets.load_mulan(path, n_targets=1),
    "A": lambda path: datasets.load_mulan(path, n_targets=-2, sparse=True),
    "m": lambda path: datasets.load_mulan(path, path.with_suffix(".xml")),
    "x": datasets.load_xmc,
    "v": datasets.load_vw,
    "V": lambda path: datasets.load_vw(path, n_features=9, n_classes=4, zero_based=True),
    "s": datasets.load_svmlight_multilabel,
    "S": lambda path: datasets.load_svmlight_multilabel(
        path, n_features=9, n_labels=4, zero_based=False, zero_based_labels=False
    ),
}


def check(data: bytes, folder: Path) -> str | None:
    """Read the bytes; what the reader complained of, if it did."""
    kind, rest = chr(data[0]) if data else "x", data[1:]
    path = folder / "fuzzed.txt"
    if kind == "m":
        xml, _, rest = rest.partition(b"\0")
        path.with_suffix(".xml").write_bytes(xml)
    path.write_bytes(rest)
    reader = READERS.get(kind, datasets.load_xmc)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = reader(path)
    except ValueError as error:
        complaint = error
    else:
        check_arrays(found)
        return None
    assert type(complaint) is ValueError, repr(complaint)  # not one of decoding, say
    assert "fuzzed" in str(complaint), complaint
    return str(complaint)


def check_arrays(found) -> None:
    X, y = found.X, found.Y if "Y" in found else found.y
    assert X.shape[0] == y.shape[0]
    assert len(found.feature_names) == X.shape[1]


def main() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        atheris.Setup(sys.argv, lambda data: check(data, Path(folder)) and None)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
