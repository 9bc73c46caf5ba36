"""Which fits the paper's tables and figures are made of, the most important ones first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.joly2017.data import Artificial, Problem
from bench.joly2017.methods import BOOSTING, drawn
from bench.joly2017.runs import MULTIPLE, Clock, Convergence, Final, Forest, Trial, Unit

KINDS = ("gaussian", "achlioptas", "sparse", "subsample")
ARTIFICIAL = (
    "artificial-gbrt",
    "gbmort",
    "gbrt-relabel-rpo-subsampled",
    "gbrt-rpo-subsampled",
    "single-gbrt",
)
MANY = 100  # outputs from which on figures 2, 3, 5 and 6 are made


@dataclass(frozen=True)
class Options:
    """How much of the paper's protocol is run; the defaults are all of it."""

    splits: int = 5
    settings: int = 40
    models: int = 10_000
    multiple: float = 1.0  # of the paper's multiple of T
    rounds: int = 10_000  # of figures 1 and 4
    many_rounds: int = 1000  # of figures 2 and 3
    parts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()  # of the tables; none: all

    def chosen(self, methods: Iterable[str]) -> list[str]:
        return [method for method in methods if not self.methods or method in self.methods]

    def wants(self, part: str) -> bool:
        return not self.parts or part in self.parts


def search(problem: Problem, method: str, split: int, options: Options, **limit: int):
    """Trials of random settings, then the best of them."""
    settings = drawn(problem.metric, problem.shape["p"], options.settings, split)
    trials = [Trial(problem.name, method, split, setting, **limit) for setting in settings]
    yield from trials
    yield Final(problem.name, method, split, tuple(trials))


def artificial(problems: list[Artificial], options: Options) -> Iterator[Unit]:
    """Tables 4 to 7; artificial-gbrt is not among those of noisy outputs."""
    for split in range(options.splits):
        for problem in problems:
            for method in options.chosen(ARTIFICIAL[problem.noisy :]):
                yield from search(problem, method, split, options, models=options.models)


def tables(problems: list[Problem], options: Options, split: int) -> Iterator[Unit]:
    """One split of tables 8 to 12: forests, then boosting."""
    for problem in problems:
        yield Clock(problem.name)
        for method in options.chosen(["mo-rf"]):
            yield Forest(problem.name, method, split)
    for problem in problems:
        for method in options.chosen(["single-rf"]):
            yield Forest(problem.name, method, split)
        limit = {"multiple": round(options.multiple * MULTIPLE[problem.metric])}
        for method in options.chosen(BOOSTING):
            yield from search(problem, method, split, options, **limit)


def figures_1_4(options: Options) -> Iterator[Unit]:
    """Of the artificial problems: three methods, and kinds of projections."""
    ind = "friedman1-ind"
    for split in range(options.splits):
        for name in ("friedman1-chain", "friedman1-group", ind):
            for method in ("gbmort", "gbrt-rpo-subsampled", "single-gbrt"):
                rounds = max(10, options.rounds // (4 if method == "single-gbrt" else 1))
                yield Convergence(name, method, split, None, 1, rounds)
        for kind in KINDS:
            if kind != "subsample":
                yield Convergence(ind, "gbrt-rpo-gaussian", split, kind, 1, options.rounds)


def sizes(d: int) -> list[int]:
    """Numbers q of figures 5 and 6: of delicious 1, 20, 98, 196, 491."""
    return sorted({1, min(20, d // 2), d // 10, d // 5, d // 2})


def figures_2_6(problems: list[Problem], options: Options) -> Iterator[Unit]:
    """Of data sets with many labels: kinds of projections, then their sizes."""
    for split in range(options.splits):
        for problem in problems:
            rounds = min(100, options.many_rounds)
            name = problem.name
            for kind in KINDS:
                yield Convergence(name, "gbrt-rpo-gaussian", split, kind, 1, options.many_rounds)
            yield Convergence(name, "gbmort", split, None, 1, rounds)
            for q in sizes(problem.shape["d"]):
                for kind in ("gaussian", "subsample"):
                    method = "gbrt-relabel-rpo-gaussian"
                    yield Convergence(name, method, split, kind, q, rounds)


def stages(problems: list[Problem], options: Options) -> Iterator[tuple[str, list[Any]]]:
    """Names and units of work, in the order in which they matter."""
    if options.wants("artificial"):
        plain = [Artificial(kind) for kind in ("chain", "group", "ind")]
        yield "Tables 4 and 5", list(artificial(plain, options))
        noisy = [Artificial(kind, noisy=True) for kind in ("chain", "group", "ind")]
        yield "Tables 6 and 7", list(artificial(noisy, options))
    if options.wants("tables"):
        yield "Tables 8 to 12, one split", list(tables(problems, options, 0))
    if options.wants("figures"):
        yield "Figures 1 and 4", list(figures_1_4(options))
        labels = [p for p in problems if p.metric == "LRAP" and p.shape["d"] >= MANY]
        yield "Figures 2, 3, 5 and 6", list(figures_2_6(labels, options))
    if options.wants("tables"):
        splits = range(1, options.splits)
        rest = [unit for split in splits for unit in tables(problems, options, split)]
        yield "Tables 8 to 12", rest
