"""Lines and branches of csrc that a build with coverage has reached.

``coverage.py BUILD`` counts, by file; ``coverage.py BUILD FILE ...`` lists the lines that are not
reached (-) or whose branches are not all taken (branches taken / there).

What is counted is the source. The kernels are compiled for several instruction sets, included
files for several types, a header's functions in many objects: a line is reached if any copy of it
is, and a branch is taken if it is in any copy that has as many branches on that line. Where copies
differ in that number (a condition on a type is no branch), each kind of copy counts.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "csrc"


def reports(build: Path):
    """What gcov says of each source file of each object."""
    for note in sorted(build.resolve().rglob("*.gcno")):
        command = ["gcov", "--stdout", "--json-format", "-b", "-c", str(note)]
        run = subprocess.run(command, capture_output=True, cwd=build, check=True)
        for line in run.stdout.splitlines():
            report = json.loads(line)
            where = Path(report["current_working_directory"])
            for file in report["files"]:
                yield (where / file["file"]).resolve(), file["lines"]


def merged(build: Path) -> dict[str, tuple[dict, dict]]:
    """By file: counts of lines, and counts of branches by line and number of branches."""
    files: dict[str, tuple[dict, dict]] = {}
    for path, lines in reports(build):
        if path.parent != FOLDER:
            continue
        hits, taken = files.setdefault(path.name, (defaultdict(int), {}))
        for line in lines:
            number, branches = line["line_number"], [b["count"] for b in line["branches"]]
            hits[number] += line["count"]
            if branches:
                kind = number, len(branches)
                before = taken.get(kind, [0] * len(branches))
                taken[kind] = [a + b for a, b in zip(before, branches, strict=True)]
    return files


def totals(hits: dict, taken: dict) -> list[int]:
    """Lines reached, lines, branches taken, branches."""
    branches = [count for counts in taken.values() for count in counts]
    return [
        *(sum(h > 0 for h in hits.values()), len(hits)),
        *(sum(b > 0 for b in branches), len(branches)),
    ]


def show(name: str, lines: int, all_lines: int, branches: int, all_branches: int) -> None:
    def share(part: int, whole: int) -> str:
        return f"{part:6} of {whole:6} {100.0 * part / max(whole, 1):6.1f} %"

    print(f"{name:18} lines {share(lines, all_lines)}   branches {share(branches, all_branches)}")


def list_missing(name: str, hits: dict, taken: dict) -> None:
    source = (FOLDER / name).read_text().splitlines()
    for number in sorted(hits):
        kinds = [counts for (line, _), counts in taken.items() if line == number]
        partly = [f"{sum(c > 0 for c in k)}/{len(k)}" for k in kinds if 0 in k]
        if hits[number] == 0 or partly:
            mark = "-" if hits[number] == 0 else " ".join(partly)
            print(f"{name}:{number}: {mark:>9}  {source[number - 1]}")


def main() -> None:
    files = merged(Path(sys.argv[1]))
    for name in sys.argv[2:]:
        list_missing(name, *files[name])
    if len(sys.argv) > 2:
        return
    rows = {name: totals(*files[name]) for name in sorted(files)}
    for name, row in rows.items():
        show(name, *row)
    show("all", *(sum(column) for column in zip(*rows.values(), strict=True)))


if __name__ == "__main__":
    main()
