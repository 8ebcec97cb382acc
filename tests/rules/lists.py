"""The lists of what does not follow a rule yet, and what the source says today."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests import house

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUDGETS = HERE / "budgets.toml"
INDICES = HERE / "literal_indices.txt"
TWINS = HERE / "kernel_twins.toml"


def budgets() -> dict[str, int]:
    """What a size of the package may be at most."""
    return tomllib.loads(BUDGETS.read_text(encoding="utf-8"))


#: Sizes whose limits are not lowered to what the source has: longer files, and more tests beside less code, are fine.
FIXED = {"lines of the longest file": 600, "lines of the tests, percent of the package's": 80}


def write_budgets(counts: dict[str, int]) -> None:
    """Write the budgets."""
    head = "# At most so much; `python -m tests.rules.shrink` lowers a number to what the source has.\n"
    BUDGETS.write_text(
        head + "".join(f'"{name}" = {count}\n' for name, count in {**counts, **FIXED}.items()), encoding="utf-8"
    )


def listed_indices() -> dict[str, tuple[int, int]]:
    """Literal indices into state and index constants that a family of kernels may have."""
    rows = (line.split() for line in INDICES.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {family: (int(literals), int(constants)) for family, literals, constants in rows}


def present_indices() -> dict[str, tuple[int, int]]:
    """The same as the source has them."""
    literals, constants = house.literal_indices(ROOT), house.index_constants(ROOT)
    return {family: (literals[family], constants.get(family, 0)) for family in literals}


def write_indices(counts: dict[str, tuple[int, int]]) -> None:
    """Write the list of indices."""
    head = "# family, literal indices into attributes, upper-case constants that index an array\n"
    rows = [f"{family} {a} {b}\n" for family, (a, b) in sorted(counts.items()) if a or b]
    INDICES.write_text(head + "".join(rows), encoding="utf-8")


def listed_twins() -> dict[str, str]:
    """The test of every module of kernels."""
    return tomllib.loads(TWINS.read_text(encoding="utf-8"))["twins"]


def kernel_modules() -> list[str]:
    """Files of the package that hold compiled functions."""
    return [
        file
        for file, tree in house.trees(ROOT).items()
        if file.startswith("kernels/") and any(house.is_kernel(node) for _, node in house.functions(tree))
    ]
