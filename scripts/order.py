"""The order of launches."""

import random
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from scripts.contract import Cell, Threads

MAX_PROOFS_AT_ONCE = 4


def order_blocks(cells: Sequence[Cell], blocks: int, seed: int) -> list[list[Cell]]:
    """Draw the order of the measured launches: randomised complete blocks.

    In every block the comparison groups come in random order, and the cells of a group one after the
    other, in random order too: what drifts slowly then hits all cells of a group alike. A cell that not all
    blocks hold is in the first ones.
    """
    ordered = []
    for block in range(blocks):
        chance = random.Random(f"{seed}/{block}")
        groups: dict[tuple[object, ...], list[Cell]] = {}
        for cell in cells:
            if block < count_launches(cell, blocks):
                groups.setdefault(group_of(cell), []).append(cell)
        members = list(groups.values())
        chance.shuffle(members)
        for group in members:
            chance.shuffle(group)
        flat = [cell for group in members for cell in group]
        ordered.append([replace(cell, block=block, position=at) for at, cell in enumerate(flat)])
    return ordered


def count_launches(cell: Cell, blocks: int) -> int:
    """Count the measured launches of a cell in a run of so many blocks."""
    return blocks if cell.blocks is None else min(blocks, cell.blocks)


def make_proofs(cells: Iterable[Cell], cpus_usable: int) -> list[Cell]:
    """Make one proof for each cell of a contest. Proofs are not timed: they run side by side, share the
    CPUs, and share a warm cache."""
    threads = max(1, cpus_usable // count_at_once(cpus_usable))
    return [
        replace(cell, purpose="proof", cache_state="warm", threads=Threads(threads, threads))
        for cell in cells
        if cell.role in ("baseline", "variant")
    ]


def count_at_once(cpus_usable: int) -> int:
    """Count the proofs that run side by side."""
    return min(cpus_usable, MAX_PROOFS_AT_ONCE)


def group_of(cell: Cell) -> tuple[object, ...]:
    """Say which comparison group a cell belongs to."""
    parameters = tuple(sorted((name, repr(value)) for name, value in cell.parameters.items()))
    return cell.workload, cell.edition, cell.device, cell.precision, parameters
