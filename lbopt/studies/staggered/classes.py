"""Classes of fleets, prompts and passes on which rules that send ahead of the end of a pass are compared.

The classes of `TUNED` were looked at while such a rule was made, with seeds from 1000 on. Those of `JUDGED` and the
seeds 0 to 19 were written down before, and no choice was made on them: other chunks, prompts, fleets and laws of a
pass, one of which goes by the mean unit too, so that a law of the fullest unit alone does not describe it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lbopt.prefill import PassTime
from lbopt.studies.staggered.places import PLACES, SPREAD, Place

#: Shares of the rate at which instances in full passes are saturated.
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
#: s, from the scheduler to an instance.
LATENCIES = (0.0, 0.001, 0.005, 0.02)
#: Standard deviation of a predicted pass time, as a share of it.
ERRORS = (0.0, 0.02, 0.1)
SEEDS = tuple(range(20))
#: Seeds of the runs that choices were made on begin here.
TUNING_SEED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetClass:
    """A fleet with the prompts that it gets.

    Parameters
    ----------
    place
        Chunk and prompts.
    instances
        N.
    pass_time
        Of a pass.
    spread
        Of the logarithm of prompts.
    """

    place: Place
    instances: int = 3
    pass_time: PassTime = field(default_factory=PassTime)
    spread: float = SPREAD


TUNED: dict[str, FleetClass] = {name: FleetClass(place=place) for name, place in PLACES.items()}
JUDGED: dict[str, FleetClass] = {
    "chat-2k": FleetClass(
        place=Place(chunk=2048, shortest=1, longest=4096, mean=600.0, limit=0.6),
        instances=4,
        pass_time=PassTime(0.06, 60e-6),
    ),
    "mixed-8k": FleetClass(
        place=Place(chunk=8192, shortest=32, longest=16_384, mean=2500.0, limit=2.0),
        instances=6,
        pass_time=PassTime(0.08, 50e-6, 0.0, 40e-6),
        spread=1.2,
    ),
    "fleet-4k": FleetClass(place=Place(chunk=4096, shortest=1, longest=8192, mean=1500.0, limit=1.0), instances=12),
}
CLASSES = TUNED | JUDGED
