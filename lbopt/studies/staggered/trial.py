"""One configuration with one draw of prompts and gaps, on which every contender can be run at any rate."""

from __future__ import annotations

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.prefill.metrics import PrefillMetrics
from lbopt.studies.staggered.contenders import RULES, values_of
from lbopt.studies.staggered.highest_rate import highest_rate
from lbopt.studies.staggered.places import PLACES, SPREAD, UNITS, Place, most_rate, prompts
from lbopt.studies.staggered.rows import Key, Row

#: Shares of the saturating rate between which the highest rate is looked for.
LOWEST, HIGHEST = 0.05, 1.25


class Trial:
    """A place with its requests.

    Parameters
    ----------
    place
        A name from `PLACES`, or a configuration of one's own.
    instances
        N.
    requests
        Of an instance.
    seed
        Of gaps, prompts, phases and chance.
    pass_time
        Of a pass.
    spread
        Of the logarithm of prompts.
    latency
        s, from the scheduler to an instance.
    """

    def __init__(
        self,
        place: str | Place,
        instances: int,
        requests: int,
        seed: int,
        pass_time: PassTime,
        *,
        spread: float = SPREAD,
        latency: float = 0.0,
    ) -> None:
        self.place = PLACES[place] if isinstance(place, str) else place
        self.instances, self.seed, self.pass_time, self.latency = instances, seed, pass_time, latency
        count = requests * instances
        self._whole = PrefillRequests.poisson(1.0, prompts(self.place, count, seed, spread), seed=seed)

    def requests(self, rate: float) -> PrefillRequests:
        """Return the requests, `rate` a second of an instance."""
        whole = self._whole
        return PrefillRequests(whole.arrival / (rate * self.instances), whole.length, name=whole.name)

    def run(self, contender: str, rate: float) -> PrefillMetrics:
        """Return what a contender does at `rate` requests a second of an instance."""
        policy, allocation = RULES[contender]
        setting = PrefillSetting(
            self.instances,
            UNITS,
            policy,
            allocation,
            self.pass_time,
            chunk_tokens=self.place.chunk,
            latency=self.latency,
        )
        return simulate_prefill(self.requests(rate), setting, seed=self.seed).metrics()

    def highest_rate(self, contender: str, limit: float | None = None) -> tuple[float, PrefillMetrics] | None:
        """Return the highest rate within the limit (the place's, if none is given), and what happens there."""
        most = most_rate(self.place, self.pass_time)
        return highest_rate(
            lambda rate: self.run(contender, rate),
            self.place.limit if limit is None else limit,
            LOWEST * most,
            HIGHEST * most,
        )


def served_row(keys: dict[str, Key], found: tuple[float, PrefillMetrics] | None) -> Row:
    """Return the row of a rate and of what happened at it; None where no rate is low enough."""
    if found is None:
        return keys, {"rate": None}
    rate, metrics = found
    return keys, {"rate": rate} | values_of(metrics)
