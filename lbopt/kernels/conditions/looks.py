"""The work of a search for patterns: how many candidates it has looked at."""

from lbopt.kernels.compile import kernel
from lbopt.kernels.conditions.state import Search

#: Looks at a candidate that make a unit of work.
_LOOKS = 1024


@kernel
def book(s: Search, looks: int) -> None:
    """Count so many looks at a candidate as work: whatever looks at candidates has to end at the limits of a solve."""
    ticks = s.effort.ticks + looks
    s.known.work += ticks // _LOOKS
    s.effort.ticks = ticks % _LOOKS
