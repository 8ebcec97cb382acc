"""One configuration with one draw of prompts and gaps, on which every contender can be run at any rate."""

from __future__ import annotations

from collections.abc import Callable

from lbopt.prefill import PassTime, PrefillRequests, PrefillSetting, simulate_prefill
from lbopt.prefill.run import PrefillMetrics
from lbopt.studies.staggered.places import PLACES, RULES, SPREAD, UNITS, Place, most_rate, prompts, values_of
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


#: Growth of the rate in a step, and how near the two ends come in the end.
STEP, NEAR = 1.06, 0.002


def highest_rate(
    measure: Callable[[float], PrefillMetrics], limit: float, lowest: float, highest: float
) -> tuple[float, PrefillMetrics] | None:
    """Return the rate and what was measured there; None where even the lowest rate exceeds the limit.

    Parameters
    ----------
    measure
        From a rate to what happens at it.
    lowest, highest
        Where to begin and where to stop looking.
    """
    rate, found = lowest, measure(lowest)
    if not found.first_token_mean_seconds <= limit:
        return None
    while True:
        if rate >= highest:
            return rate, found
        beyond = min(highest, rate * STEP)
        above = measure(beyond)
        if not above.first_token_mean_seconds <= limit:
            break
        rate, found = beyond, above
    while beyond - rate > NEAR * rate:
        middle = (rate + beyond) / 2
        between = measure(middle)
        if between.first_token_mean_seconds <= limit:
            rate, found = middle, between
        else:
            beyond = middle
    return rate, found
