"""What the generators of large problems share."""

from collections.abc import Iterator

_CHUNK_ITEMS = 1 << 22


def at_least_one(**sizes: int) -> None:
    """Refuse sizes below 1 by name."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def chunks(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of rows of a bounded number of items."""
    step = max(1, _CHUNK_ITEMS // width)
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def numbered(kind: str, count: int) -> list[str]:
    """Names of words or labels."""
    return [f"{kind}_{i}" for i in range(count)]
