"""Take out of the lists what has been mended: `python -m tests.rules.shrink`. Nothing is ever added."""

from __future__ import annotations

from tests import house
from tests.rules import lists


def main() -> None:
    """Lower the budgets and shorten the lists."""
    sizes = house.sizes(lists.ROOT)
    lists.write_budgets({name: min(most, sizes[name]) for name, most in lists.budgets().items()})
    present = lists.present_indices()
    allowed = lists.listed_indices().items()
    lists.write_indices({f: tuple(map(min, counts, present[f])) for f, counts in allowed if f in present})
    modules = set(lists.kernel_modules())
    lines = lists.TWINS.read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [line for line in lines if not line.startswith('"') or line.split('"')[1] in modules]
    lists.TWINS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
