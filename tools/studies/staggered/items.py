"""Items of the staggering study that only its page of results needs, and the questions on them.

``python -m tools.studies study staggered needs adapting watchdog decode cache faults`` runs them beside those of lbopt.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lbopt.report import staggered_tables
from lbopt.studies.printed import Question, printed_number, printed_range, within
from lbopt.studies.staggered.places import UNITS
from lbopt.studies.staggered.questions import ELSEWHERE, SOURCE, Figure, asked
from lbopt.studies.staggered.study import FEWER, ITEMS, PACKAGE_OF, Part, StaggeredConfig, parts_of
from tools.studies.staggered import adapting, cache, decode, faults, needs, watchdog
from tools.studies.staggered.needs_tables import needs_tables
from tools.studies.staggered.other_tables import other_tables

#: Entries of a table of hits, one for each request and unit of the fleet.
_MOST_HITS = 2**24


def _needs(config: StaggeredConfig) -> list[Part]:
    plain: Part = {"reading": "unit, instance", "law": "fullest", "fixed": 0.0, "spread": 1.0, "instances": 3}
    varied = [plain | {"reading": reading} for reading in needs.READINGS]
    varied += [
        plain | {"law": "mean"} | one
        for one in parts_of({"fixed": needs.FIXED, "spread": needs.SPREADS, "instances": needs.FLEETS})
    ]
    varied += [plain | {"law": "mean", "fixed": fixed, "instances": needs.LARGE_FLEET} for fixed in needs.FIXED[1:]]
    varied += [plain | one for one in parts_of({"fixed": needs.FIXED[1:], "instances": needs.FLEETS})]
    places = [place for place in needs.PRINTED_PLACES if place in config.places]
    return [{**one, "place": place, "requests": config.requests // FEWER} for one in varied for place in places]


def _adapting(config: StaggeredConfig) -> list[Part]:
    places = [place for place in config.places if place == "short-3k"]
    changes = [name for name, change in adapting.CHANGES.items() if config.instances > max(change.less)]
    return [{"change": name, "place": place, **config.size} for place in places for name in changes]


def _watchdog(config: StaggeredConfig) -> list[Part]:
    requests = min(config.requests * config.instances, watchdog.REQUESTS)
    return parts_of({"faults": watchdog.FAULTS}, instances=config.instances, requests=requests)


def _decode(config: StaggeredConfig) -> list[Part]:
    # exact programs make these runs the dearest ones
    return parts_of({"arrivals": decode.ARRIVALS}, requests=max(4 * config.requests // 5, decode.FEWEST_REQUESTS))


def _cache(config: StaggeredConfig) -> list[Part]:
    requests = min(config.requests, _MOST_HITS // (config.instances**2 * UNITS))
    return parts_of({"place": config.places, "shared": cache.SHARED}, **config.size | {"requests": requests})


def _faults(config: StaggeredConfig) -> list[Part]:
    requests = min(config.requests, faults.MOST_REQUESTS)
    return parts_of({"place": config.places, "faults": faults.FAULTS}, **config.size | {"requests": requests})


def questions() -> Iterator[Question]:
    """Figures 7 and 8: the band of KV over units is a cut of 55.6 %, its caption says 40."""

    def change(quantity: str, arrivals: str, base: str) -> Figure:
        return lambda rows: rows.change(quantity, base, arrivals=arrivals, contender=decode.THEIRS)

    spread = printed_range(-55.6, -40.0, source=SOURCE, place="figure 7", text="−55.6, −40", unit="%")
    faster = printed_number(15.0, within(), source=SOURCE, place="figure 8", text="+15", unit="%")
    for arrivals in decode.ARRIVALS:
        for base in decode.BASELINES:
            what = f"requests {arrivals}: deviation of KV over units"
            yield asked(
                *("decode", what, spread, decode.THEIRS, base),
                change("sd_tokens", arrivals, base),
            )
            for fixed in decode.FIXED:
                what = f"requests {arrivals}: throughput, t0 = {fixed} ms"
                yield asked(
                    *("decode", what, faster, decode.THEIRS, base),
                    change(f"throughput_{fixed:02d}", arrivals, base),
                )


def register() -> None:
    """Add these items to the study."""
    mine = {
        "needs": _needs,
        "adapting": _adapting,
        "watchdog": _watchdog,
        "decode": _decode,
        "cache": _cache,
        "faults": _faults,
    }
    ITEMS.update(mine)
    PACKAGE_OF.update(dict.fromkeys(mine, __package__))
    if questions not in ELSEWHERE:
        ELSEWHERE.append(questions)
    staggered_tables.OWN.update({item: partial(other_tables, item=item) for item in mine} | {"needs": needs_tables})
