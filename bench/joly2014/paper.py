"""What the paper prints, and what is known of where it cannot be met."""

from __future__ import annotations

import re
from dataclasses import dataclass

COLUMNS = ("original", "m = 1", "m = ln d", "m = d")

# Training rows, test rows ("cv": ten folds), p, d; mean and deviation by COLUMNS. As scanned
# it has a column too many (ln d, or d for medical, twice). scene has 294 features: the paper's 2407
# is its number of rows.
_TABLE_1 = """
emotions              391   202    72    6  0.800 0.014  0.800 0.010  0.810 0.014  0.810 0.016
scene                1211  1196   294    6  0.870 0.003  0.875 0.007  0.872 0.004  0.872 0.004
yeast                1500   917   103   14  0.759 0.008  0.748 0.006  0.758 0.004  0.758 0.005
tmc2007             21519  7077 49060   22  0.756 0.003  0.741 0.003  0.748 0.003  0.757 0.003
genbase               463   199  1186   27  0.992 0.004  0.994 0.002  0.994 0.004  0.993 0.004
reuters              2500  5000 19769   34  0.865 0.004  0.864 0.003  0.863 0.004  0.862 0.004
medical               333   645  1449   45  0.848 0.009  0.836 0.011  0.842 0.014  0.841 0.009
enron                1123   579  1001   53  0.683 0.009  0.680 0.006  0.685 0.009  0.686 0.008
mediamill           30993 12914   120  101  0.779 0.001  0.772 0.001  0.777 0.002  0.779 0.002
yeast-go             2310  1155  5930  132  0.420 0.010  0.353 0.008  0.381 0.005  0.420 0.010
bibtex               4880  2515  1836  159  0.566 0.004  0.513 0.006  0.548 0.007  0.564 0.008
cal500                376   126    68  174  0.504 0.011  0.504 0.004  0.506 0.007  0.502 0.010
wipo                 1352   358 74435  188  0.490 0.010  0.430 0.010  0.460 0.010  0.480 0.010
eurlex-sm           19348    cv  5000  201  0.840 0.005  0.814 0.004  0.828 0.005  0.840 0.004
bookmarks           65892 21964  2150  208  0.453 0.001  0.436 0.002  0.445 0.002  0.453 0.002
diatoms              2065  1054   371  359  0.700 0.010  0.650 0.010  0.670 0.010  0.710 0.020
corel5k              4500   500   499  374  0.303 0.012  0.309 0.011  0.307 0.011  0.299 0.013
eurlex-dc           19348    cv  5000  412  0.814 0.006  0.782 0.008  0.796 0.009  0.813 0.007
scop-go              6507  3336  2003  465  0.811 0.004  0.808 0.005  0.811 0.004  0.806 0.004
delicious           12920  3185   500  983  0.384 0.004  0.381 0.003  0.382 0.002  0.383 0.004
drug-interaction     1396   466   660 1554  0.379 0.014  0.384 0.009  0.378 0.013  0.367 0.016
protein-interaction  1165   389   876 1862  0.330 0.015  0.337 0.016  0.337 0.017  0.335 0.014
expression-go        2485   551  1288 2717  0.235 0.005  0.211 0.005  0.219 0.005  0.232 0.005
eurlex-ev           19348    cv  5000 3993  0.523 0.008  0.485 0.008  0.497 0.009  0.523 0.007
"""

_TABLE_3 = """
emotions            0.81 0.01  0.81 0.014  0.80 0.013  0.81 0.014
scene               0.873 0.004  0.876 0.003  0.877 0.007  0.878 0.006
yeast               0.757 0.008  0.746 0.004  0.752 0.009  0.757 0.01
tmc2007             0.782 0.003  0.759 0.004  0.77 0.002  0.779 0.002
genbase             0.987 0.005  0.991 0.004  0.992 0.001  0.992 0.005
reuters             0.88 0.003  0.88 0.003  0.878 0.004  0.88 0.004
medical             0.855 0.008  0.867 0.009  0.872 0.006  0.862 0.008
enron               0.66 0.01  0.65 0.01  0.663 0.008  0.66 0.01
mediamill           0.786 0.002  0.778 0.002  0.781 0.002  0.784 0.001
yeast-go            0.49 0.009  0.47 0.01  0.482 0.008  0.48 0.01
bibtex              0.584 0.005  0.538 0.005  0.564 0.004  0.583 0.004
cal500              0.5 0.007  0.502 0.008  0.499 0.007  0.503 0.009
wipo                0.52 0.01  0.474 0.007  0.49 0.01  0.515 0.006
eurlex-sm           0.845 0.006  0.834 0.004  0.838 0.003  0.845 0.005
bookmarks           0.453 0.002  0.436 0.002  0.444 0.003  0.452 0.002
diatoms             0.73 0.01  0.69 0.01  0.71 0.01  0.73 0.01
corel5k             0.285 0.009  0.313 0.011  0.309 0.009  0.285 0.011
eurlex-dc           0.815 0.007  0.805 0.006  0.807 0.009  0.815 0.007
scop-go             0.778 0.005  0.782 0.004  0.782 0.006  0.778 0.005
delicious           0.354 0.003  0.36 0.004  0.358 0.004  0.355 0.003
drug-interaction    0.353 0.011  0.375 0.017  0.364 0.014  0.355 0.016
protein-interaction 0.299 0.013  0.307 0.009  0.305 0.012  0.306 0.017
expression-go       0.231 0.007  0.218 0.005  0.228 0.005  0.235 0.005
"""

# Gradient tree boosting with random output projections (Joly, Wehenkel and Geurts, 2017), Tables 10
# to 12: multi-output random forests ("mo-rf") on the original outputs, five other splits. The paper
# on forests has no regression; there k = p/3, n_min = 5, half of the rows for testing, outputs
# standardised.
_BOOSTING_PAPER = """
cal500 0.502 0.003
bibtex 0.553 0.005
birds 0.789 0.012
bookmarks 0.4312 0.0023
corel5k 0.294 0.010
delicious 0.373 0.004
diatoms 0.653 0.010
drug-interaction 0.308 0.007
emotions 0.810 0.010
enron 0.676 0.004
genbase 0.995 0.004
mediamill 0.7793 0.0015
medical 0.827 0.006
protein-interaction 0.288 0.009
reuters 0.9337 0.0021
scene 0.865 0.003
scop-go 0.800 0.006
wipo 0.624 0.018
yeast 0.757 0.008
yeast-go 0.415 0.014
atp1d 0.82 0.03
atp7d 0.60 0.06
edm 0.51 0.02
oes10 0.76 0.04
oes97 0.69 0.05
scm1d 0.898 0.004
scm20d 0.849 0.007
wq 0.16 0.01
"""

# Targets of the multi-output regression sets, which stand last in their files.
TARGETS = {
    "atp1d": 6,
    "atp7d": 6,
    "edm": 2,
    "jura": 3,
    "oes10": 16,
    "oes97": 16,
    "rf1": 8,
    "rf2": 8,
    "scm1d": 16,
    "scm20d": 16,
    "wq": 14,
}

# Section 4.6, delicious: CPU seconds to load the data and fit 100 trees; to draw and apply a
# Gaussian projection. By m; None: the original outputs.
FIT_SECONDS = {None: 3348, 1: 236, 25: 311, 250: 1088}
PROJECTION_SECONDS = {1: 0.07, 25: 0.25, 250: 1.0}


@dataclass(frozen=True)
class Sizes:
    """A line of Table 1; `n_test` is None where ten folds were used."""

    n_train: int
    n_test: int | None
    p: int
    d: int


def identity(name: str) -> str:
    """Name of a data set as files and papers may both write it: CAL500, cal500."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _pairs(words: list[str]) -> list[tuple[float, float]]:
    numbers = [float(word) for word in words]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


SIZES = {
    identity(name): Sizes(int(n), None if test == "cv" else int(test), int(p), int(d))
    for name, n, test, p, d, *_ in _lines(_TABLE_1)
}
# By model and data set: (mean, deviation) of each column.
TABLES = {
    "forest": {identity(words[0]): _pairs(words[5:]) for words in _lines(_TABLE_1)},
    "extra-trees": {identity(words[0]): _pairs(words[1:]) for words in _lines(_TABLE_3)},
}
BOOSTING_PAPER = {identity(words[0]): _pairs(words[1:])[0] for words in _lines(_BOOSTING_PAPER)}


# The rule nearest to that of the scikit-learn the paper used: see the page.
RULES = {"Table 1": "default", "Table 3": "until k"}


def reason(table: str, data: str, column: str, rules: dict[str, dict]) -> str:
    """Why ours differs by more than a deviation, as far as it is known."""
    name, mine = identity(data), rules.get(RULES[table])
    if mine and mine["agrees"]:
        return _RULE
    if (table, name, column) == ("Table 1", "yeast", "m = ln d"):
        return _YEAST
    if (table, name, column) in _ROUNDED_CELLS:
        return _ROUNDED
    if name in _REASONS:
        return _REASONS[name]
    distances = [row["distance"] for row in rules.values()]
    return "Ours is higher; why is not known:" if min(distances) > 0 else "Not known:"


_RULE = (
    "By the rule that is near the paper's (see above) these agree; the other one looks at more or "
    "fewer features:"
)
_YEAST = (
    "The paper's 0.758 for yeast at m = ln d equals its m = d column, though it loses 0.011 at "
    "m = 1, and 0.005 at m = ln d with extra-trees; a slip in print is likely:"
)
_ROUNDED_CELLS = {("Table 3", "emotions", "m = ln d"), ("Table 3", "delicious", "m = 1")}
_ROUNDED = (
    "The paper prints two decimals in these cells: 0.80 stands for up to 0.805, and 0.36 for 0.357 "
    "or more (it is bold: above 0.354 by more than 0.003). From there ours are +0.7 and -0.4 "
    "deviations away; rounding may be all there is:"
)
_REASONS = {
    "scene": "All cells of scene are higher here. The paper gives it 2407 features, which is the "
    "number of its rows; the Mulan file has 294. Perhaps other features were used:",
}
# What is known of data sets that only the paper on boosting has.
NOTES = {
    "birds": "294 of the 645 rows of birds have no label. They are left out of the score here, as "
    "the paper on forests does; where they count as 1, as in scikit-learn's metric, forests on 322 "
    "rows have 0.796 ± 0.018 (6 splits), which agrees with the paper on boosting.",
}
