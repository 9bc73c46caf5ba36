"""Which fits the paper's tables and figures are made of, the most important ones first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import floor, log, sqrt
from typing import Any

from bench.joly2014.data import Problem
from bench.joly2014.runs import Fit, Results, Timing

PROJECTIONS = ("rademacher", "hadamard", "achlioptas", "sparse", "subsample", "pca")
SIZES = (1, 2, 3, 5, 10, 25, 50, 75, 100, 200, 500)
IDENTITY_TREES = 10  # of the forest on dense sums of all outputs, of which only the time counts


@dataclass(frozen=True)
class Options:
    """How much of the paper's protocol is run; the defaults are all of it."""

    splits: int = 10
    repeats: int = 10
    max_m: int | None = None
    short: bool = False
    parts: tuple[str, ...] = ()

    def wants(self, part: str) -> bool:
        return not self.parts or part in self.parts


def log_size(d: int) -> int:
    """⌊½ + ln d⌋."""
    return max(1, floor(0.5 + log(d)))


def m_grid(d: int, options: Options) -> list[int]:
    """Sizes of the projected space in figures 1 and 3."""
    sizes = (1, 25) if options.short else SIZES
    limit = min(d, options.max_m or d)
    return sorted(m for m in {*sizes, log_size(d), d} if m <= limit)


def k_grid(p: int, options: Options) -> list[int]:
    """Numbers of drawn features in figures 2 and 4: √p times powers of 2, and p."""
    powers = (0, 2) if options.short else range(-2, 12)
    ks = {max(1, int(sqrt(p) * 2.0**i)) for i in powers}
    return sorted({k for k in ks if k < p} | (set() if options.short else {1, p}))


def table_columns(d: int) -> list[dict[str, Any]]:
    """The settings of `paper.COLUMNS`."""
    sizes = (1, log_size(d), d)
    return [{}] + [{"projection": "gaussian", "m": m} for m in sizes]


def tables(problems: list[Problem], options: Options, columns: tuple[int, ...]) -> Iterator[Fit]:
    for split in range(options.splits):
        for problem in problems:
            settings = table_columns(problem.Y.shape[1])
            for model in ("forest", "extra-trees"):
                for rule in (False, True):
                    for column in columns:
                        common = {"split": split, "seed": split, "draw_non_constant": rule}
                        yield Fit(problem.name, model, **settings[column], **common)


def figure_1(problem: Problem, options: Options) -> Iterator[Fit]:
    """Single trees, and forests on shared and own subspaces."""
    yield Fit(problem.name, "tree")
    yield Fit(problem.name)
    for m in m_grid(problem.Y.shape[1], options):
        gaussian = {"projection": "gaussian", "m": m}
        yield Fit(problem.name, "tree", **gaussian)
        yield Fit(problem.name, **gaussian)
        yield Fit(problem.name, **gaussian, shared=True)


def figure_3(problem: Problem, options: Options) -> Iterator[Fit]:
    """Other projections; PCA has no more components than there are training rows."""
    n_train = len(problem.split(0)[0])
    for m in m_grid(problem.Y.shape[1], options):
        for projection in PROJECTIONS:
            if projection != "pca" or m <= n_train:
                yield Fit(problem.name, projection=projection, m=m)


def figure_2(problem: Problem, options: Options) -> Iterator[Fit]:
    """Precision against k; figure 4 is the same on another data set."""
    m = log_size(problem.Y.shape[1])
    for k in k_grid(problem.X.shape[1], options):
        yield Fit(problem.name, k=k)
        for components in (1, m, 2 * m):
            yield Fit(problem.name, projection="gaussian", m=components, k=k)


def timed_sizes(d: int) -> list[int]:
    """Sizes whose times section 4.6 gives, and ln d for data sets with few outputs."""
    return sorted({m for m in (1, log_size(d), 25, 250) if m <= d})


def section_46(problem: Problem) -> Iterator[Any]:
    """Times."""
    yield Timing(problem.name)
    yield Fit(problem.name)
    yield Fit(problem.name, projection="identity", trees=IDENTITY_TREES)
    for m in timed_sizes(problem.Y.shape[1]):
        yield Timing(problem.name, m)
        yield Fit(problem.name, projection="gaussian", m=m)


def equal_trees(data: str, m: int, results: Results) -> int | None:
    """Trees on m components that take the CPU time of 100 on the original outputs."""
    original, projected = Fit(data), Fit(data, projection="gaussian", m=m)
    if original not in results or projected not in results:
        return None
    ratio = results[original]["fit_cpu"] / max(results[projected]["fit_cpu"], 1e-3)
    return max(1, round(100 * ratio))


def equal_time(problem: Problem, results: Results, splits: int) -> Iterator[Fit]:
    """Forests on m components and of the time of 100 trees on the original outputs."""
    for m in timed_sizes(problem.Y.shape[1]):
        if trees := equal_trees(problem.name, m, results):
            fit = Fit(problem.name, projection="gaussian", m=m, trees=trees)
            for split in range(splits):
                yield replace(fit, split=split, seed=split)


def stages(problems: list[Problem], options: Options, results: Results) -> Iterator[tuple]:
    """Names and units of work, in the order in which they matter."""

    def repeated(*figures) -> Iterator[Fit]:
        for seed in range(options.repeats):
            for problem in problems:
                for figure in figures:
                    for fit in figure(problem, options):
                        yield replace(fit, seed=seed)

    if options.wants("tables"):
        yield "Tables 1 and 3", list(tables(problems, options, (0, 1, 2)))
    if options.wants("figures"):
        yield "Figures 1 and 3", list(repeated(figure_1, figure_3))
    if options.wants("times"):
        yield "Section 4.6", [unit for problem in problems for unit in section_46(problem)]
        more = [equal_time(problem, results, options.splits) for problem in problems]
        yield "Section 4.6, equal times", [fit for fits in more for fit in fits]
    if options.wants("tables"):
        yield "Tables 1 and 3, m = d", list(tables(problems, options, (3,)))
    if options.wants("figures"):
        yield "Figures 2 and 4", list(repeated(figure_2))
