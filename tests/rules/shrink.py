"""Take out of the lists what has been mended: `python -m tests.rules.shrink`. Nothing is ever added."""

from __future__ import annotations

from tests import house
from tests.rules import lists


def main() -> None:
    """Shorten the three lists."""
    lacking = set(house.without_parameters(lists.ROOT))
    kept = [name for name in lists.listed_without_parameters() if name in lacking]
    lists.PARAMETERS.write_text("".join(f"{name}\n" for name in kept), encoding="utf-8")
    present = lists.present_indices()
    allowed = lists.listed_indices().items()
    lists.write_indices({f: tuple(map(min, counts, present[f])) for f, counts in allowed if f in present})
    modules = set(lists.kernel_modules())
    lines = lists.TWINS.read_text(encoding="utf-8").splitlines(keepends=True)
    lines = [line for line in lines if not line.startswith('"') or line.split('"')[1] in modules]
    lists.TWINS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
