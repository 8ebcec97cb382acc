"""All interleavings to a small depth, with every kind of fault; longer ones from the command line of `explore`."""

import pytest
from prefill.protocol.defects import (
    HasNoWatchdog,
    HearsTheHolderOnly,
    IgnoresEpochs,
    KeepsWhatItGaveUp,
    LosesAnEarlyWatchdog,
    ServesSuspects,
)
from prefill.protocol.explore import explore
from prefill.protocol.histories import UNTIL, draw_short
from prefill.protocol.schedules import check_outcome

from lbopt.exceptions import LbOptError


@pytest.mark.parametrize("setting", [{"timer": "spacing"}, {"timer": "tick"}, {"last_token": True}], ids=str)
def test_all_interleavings_to_a_depth(setting):
    count, explorer = explore(5, 1, **setting)
    assert sum(count.values()) > 280
    assert 2.0 < explorer.worst < 15.0
    assert explorer.closest < 1


@pytest.mark.slow
@pytest.mark.parametrize("polls", [False, True])
def test_deeper_interleavings(polls):
    count, _ = explore(8, 2, polls=polls)
    assert sum(count.values()) > 20_000


@pytest.mark.parametrize("defect", [HasNoWatchdog, KeepsWhatItGaveUp, LosesAnEarlyWatchdog])
def test_a_defect_is_found(defect):
    with pytest.raises((LbOptError, AssertionError)):
        explore(5, 1, defect)


@pytest.mark.slow
@pytest.mark.parametrize("defect", [IgnoresEpochs, ServesSuspects, HearsTheHolderOnly])
def test_a_defect_is_found_deeper(defect):
    with pytest.raises((LbOptError, AssertionError)):
        explore(8, 2, defect)


def test_a_stranded_request_is_found_without_the_monitor():
    """The second witness: continuations that do not end."""

    class Blind(KeepsWhatItGaveUp):
        pass

    with pytest.raises(AssertionError, match="are stranded"):
        explore(6, 1, Blind, monitored=False)


def test_short_histories():
    """A few of the hundred thousand that `histories` runs."""
    for seed in range(60):
        world = draw_short(seed)
        check_outcome(world.run(UNTIL), len(world.plan.lapses))
