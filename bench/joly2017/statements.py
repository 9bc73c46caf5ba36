"""What the paper says of its tables and figures, held against ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.joly2017.plan import KINDS
from bench.joly2017.report import PLAIN, Cells, paired, scores, shown
from bench.joly2017.runs import curves
from bench.records import Records

NEAR = 0.005  # scores nearer than this count as equal in figure 6

Statement = tuple[str, str, bool | None]


def _above(p: float) -> bool | None:
    """Whether a signed p-value says "above"; None where it leaves it open."""
    return None if np.isnan(p) or abs(p) >= 0.05 else p > 0


def _versus(cells: Cells, data: str, a: str, b: str) -> tuple[str, float]:
    means = [np.mean(list(scores(cells, data, m).values())) for m in (a, b)]
    p = paired(cells, data, a, b)
    sure = "no test" if np.isnan(p) else f"p = {abs(p):.2g}"
    return f"{means[0]:.3f} against {means[1]:.3f} ({sure})", p


# What section 4.2.3 says: problem, the better method, the other one.
_BETTER = (
    ("friedman1-chain", "artificial-gbrt", "single-gbrt"),
    ("friedman1-chain", "gbrt-relabel-rpo-subsampled", "single-gbrt"),
    ("friedman1-chain", "gbrt-rpo-subsampled", "single-gbrt"),
    ("friedman1-group", "artificial-gbrt", "gbrt-rpo-subsampled"),
    ("friedman1-group", "artificial-gbrt", "gbmort"),
    ("friedman1-group", "gbrt-relabel-rpo-subsampled", "single-gbrt"),
    ("friedman1-group", "gbrt-relabel-rpo-subsampled", "gbrt-rpo-subsampled"),
    ("friedman1-ind", "single-gbrt", "gbrt-rpo-subsampled"),
    ("friedman1-ind", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"),
    ("friedman1-ind", "gbrt-relabel-rpo-subsampled", "gbmort"),
    ("friedman1-chain noisy", "gbrt-rpo-subsampled", "gbmort"),
    ("friedman1-chain noisy", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"),
    ("friedman1-chain noisy", "gbmort", "single-gbrt"),
    ("friedman1-group noisy", "gbrt-rpo-subsampled", "gbmort"),
    ("friedman1-group noisy", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"),
    ("friedman1-group noisy", "gbmort", "single-gbrt"),
    ("friedman1-ind noisy", "single-gbrt", "gbrt-rpo-subsampled"),
    ("friedman1-ind noisy", "gbrt-rpo-subsampled", "gbrt-relabel-rpo-subsampled"),
)


def artificial_statements(cells: Cells) -> list[Statement]:
    """Tables 4 to 7: who is significantly better than whom."""
    found = []
    for data, better, other in _BETTER:
        if scores(cells, data, better) and scores(cells, data, other):
            text, p = _versus(cells, data, better, other)
            name = f"{data}: {shown('', better)} is better than {shown('', other)}"
            found.append((name, text, _above(p)))
    return found


def average(records: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rounds, scores and seconds of a curve, averaged over its repetitions."""
    at = np.array(records[0]["at"])
    same = [r for r in records if r["at"] == records[0]["at"]]
    values = np.mean([r["scores"] for r in same], axis=0)
    return at, values, at * np.mean([r["pace"] for r in same])


def reached(at: np.ndarray, values: np.ndarray, level: float) -> float | None:
    """Where a curve first has a level."""
    above = np.flatnonzero(values >= level)
    return float(at[above[0]]) if len(above) else None


def _longest(results: Records, **wanted: Any) -> list[dict[str, Any]]:
    """Curves of most rounds."""
    found = curves(results, **wanted)
    most = max((r["rounds"] for r in found), default=0)
    return [r for r in found if r["rounds"] == most]


def curve(results: Records, data: str, method: str, **wanted: Any):
    """An averaged curve, or None."""
    records = _longest(results, data=data, method=method, **wanted)
    return average(records) if records else None


def of_kind(results: Records, data: str, kind: str):
    """Of gbrt-rpo (Algorithm 3) by a kind of projections."""
    plain = data in PLAIN and kind == "subsample"
    method = "gbrt-rpo-subsampled" if plain else "gbrt-rpo-gaussian"
    return curve(results, data, method, projection=None if plain else kind)


def figure_1_statements(results: Records) -> list[Statement]:
    """Convergence on the artificial problems."""
    found = []
    for data in PLAIN:
        single = curve(results, data, "single-gbrt")
        others = {m: curve(results, data, m) for m in ("gbmort", "gbrt-rpo-subsampled")}
        if single is None or None in others.values():
            continue
        level = 0.95 * single[1].max()
        slow = reached(single[2], single[1], level)
        for method, one in others.items():
            fast = reached(one[2], one[1], level)
            ratio = "never" if fast is None else f"{slow / fast:.1f} times"
            text = f"to 95 % of st-gbrt's best {single[1].max():.3f}: {ratio} as fast"
            if data == "friedman1-ind":
                name = f"Figure 1, {data}: {method} is as fast as st-gbrt"
                found.append((name, text, fast is not None and 0.5 < slow / fast < 2))
            else:
                name = f"Figure 1, {data}: {method} is more than 100 times faster than st-gbrt"
                found.append((name, text, fast is not None and slow / fast > 100))
        if data == "friedman1-ind":
            best = {"st-gbrt": single[1].max()} | {m: c[1].max() for m, c in others.items()}
            text = ", ".join(f"{m} {v:.3f}" for m, v in best.items())
            order = best["st-gbrt"] > best["gbrt-rpo-subsampled"] > best["gbmort"]
            name = f"Figure 1, {data}: st-gbrt is best, then gbrt-rpo-subsampled, then gbmort"
            found.append((name, text, bool(order)))
    return found


def kind_statements(results: Records, data: str) -> list[Statement]:
    """Figures 2 to 4: whether one subsampled output is faster or slower than mixtures of many."""
    found = {kind: of_kind(results, data, kind) for kind in KINDS}
    if None in found.values():
        return []
    level = 0.99 * min(c[1].max() for c in found.values())
    rounds = {kind: reached(c[0], c[1], level) for kind, c in found.items()}
    text = f"rounds to {level:.3f}: " + ", ".join(f"{kind} {n:.0f}" for kind, n in rounds.items())
    figure = {"friedman1-ind": "Figure 4", "delicious": "Figure 3"}.get(data, "As figure 3")
    name = f"{figure}, {data}: subsampling one output leads to faster convergence"
    return [(name, text, rounds["subsample"] <= min(rounds.values()))]


def size_statements(results: Records, data: str) -> list[Statement]:
    """Figures 5 and 6: relabelled trees of q components against gbmort."""
    records = curves(results, data=data, method="gbrt-relabel-rpo-gaussian", projection="gaussian")
    sizes = sorted({r["q"] for r in records})
    base = curve(results, data, "gbmort")
    if base is None or len(sizes) < 3:
        return []
    by_q = {
        q: curve(results, data, "gbrt-relabel-rpo-gaussian", projection="gaussian", q=q)
        for q in sizes
    }
    budget = min(c[2][-1] for c in by_q.values())
    at_time = {q: float(np.interp(budget, c[2], c[1])) for q, c in by_q.items()}
    last = {q: float(c[1][-1]) for q, c in by_q.items()}
    near = next((q for q in sizes if all(last[s] > base[1][-1] - NEAR for s in sizes if s >= q)), 0)
    middle = sizes[1]
    speed = base[2][-1] / by_q[middle][2][-1]
    some = [sizes[0], middle, sizes[-1]]
    return [
        (
            f"Figure 5, {data}: at a fixed time q = 1 is best",
            ", ".join(f"q = {q} {at_time[q]:.3f}" for q in some) + f" after {budget:.2g} s",
            at_time[sizes[0]] >= max(at_time.values()) - 1e-9,
        ),
        (
            f"Figure 6a, {data}: after 100 rounds q ≥ 20 equals gbmort",
            f"within {NEAR} of its {base[1][-1]:.3f} "
            + (f"from q = {near} on" if near else "for no q run"),
            0 < near <= 20,
        ),
        (
            f"Figure 6b, {data}: q = 20 takes 7 times less time than gbmort",
            f"{speed:.1f} times less at q = {middle}",
            speed > 5,
        ),
    ]


def rank_statements(found: dict[str, Any], metric: str) -> list[Statement]:
    """Section 4.4."""
    ours = found["sources"].get("ours")
    if ours is None:
        return []
    ranks = ours["ranks"]
    best = min(ranks, key=ranks.get)
    where = "Figure 7" if metric == "LRAP" else "Figure 8"
    pairs = (
        ("gbrt-relabel-rpo-gaussian", "gbrt-rpo-gaussian"),
        ("gbrt-relabel-rpo-subsampled", "gbrt-rpo-subsampled"),
        ("gbrt-relabel-rpo-gaussian", "gbrt-relabel-rpo-subsampled"),
        ("gbrt-rpo-gaussian", "gbrt-rpo-subsampled"),
    )
    text = f"{shown(metric, best)} {ranks[best]:.2f}, it {ranks[pairs[0][0]]:.2f}"
    out = [
        (f"{where}: gbrt-relabel-rpo-gaussian has the best mean rank", text, best == pairs[0][0])
    ]
    if metric == "LRAP":
        for a, b in pairs:
            text = f"mean ranks {ranks[a]:.2f} and {ranks[b]:.2f}"
            out.append((f"{where}: {a} is better than {b}", text, bool(ranks[a] < ranks[b])))
    worst = max(ranks, key=ranks.get)
    name = f"{where}: {shown(metric, 'single-gbrt')} has the worst mean rank"
    text = f"{shown(metric, worst)} {ranks[worst]:.2f}, it {ranks['single-gbrt']:.2f}"
    out.append((name, text, worst == "single-gbrt"))
    return out
