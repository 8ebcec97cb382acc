"""What the barrier of each step of a run is at least, for runs of any size.

Two modules bound single steps by the same three sentences (volume, pigeonhole, company):

- this one is compiled, goes from step to step, and keeps the sizes of what runs sorted. It looks for up to four
  requests on one worker. It serves intervals and the local search, in runs of 100,000 requests as well;
- `lbopt.hindsight.bounds.step_bounds`, in NumPy, goes from event to event, between which every bound is a straight
  line, and looks for any number of requests on one worker. It serves the exact search of small runs.

So the second is never below the first. More than four requests on a worker hardly ever prove more than the mean does:
in the runs of 100,000 requests of the results' page both are equal in every step.
"""

from __future__ import annotations

from lbopt.hindsight.timetable import IntArray, Timetable
from lbopt.kernels.hindsight import local_search_bounds


def least_barriers(timetable: Timetable) -> IntArray:
    """Return what the barrier of each step cannot be below, in whole tokens, (K,)."""
    return local_search_bounds.least_barriers(
        timetable.start, timetable.prompt, timetable.output, timetable.num_workers, timetable.slots_per_worker
    )
