"""A race through its store: resumed, extended, interrupted, and with runs that raise or die."""

from dataclasses import replace

import pytest

from lbopt.exceptions import InputError
from lbopt.runner import Isolated, Serial
from lbopt.studies.progress import Silent
from tests.benchmarks.race import race
from tests.benchmarks.race.config import RaceConfig
from tests.benchmarks.race.race import run_race
from tests.benchmarks.race.small_race import DIES, HANGS, RAISES, instance

SCRIPTED = "tests.benchmarks.race.small_race:scripted"


@pytest.fixture(autouse=True)
def scripted(monkeypatch):
    monkeypatch.setattr(race, "MEASURE", SCRIPTED)
    monkeypatch.setattr(race, "Isolated", lambda *given, **named: Serial())
    monkeypatch.setattr(race, "_compile", lambda *given: None)


def standings(outcome):
    return {(r.instance, r.solver): r.status for r in outcome.records}


class Counting(Silent):
    """Counts what is run now, and presses Ctrl-C at a chosen count."""

    def __init__(self, stop_at=None):
        self.done, self.stop_at = 0, stop_at

    def advance(self, units=1):
        self.done += units
        if units and self.stop_at is not None and self.done >= self.stop_at:
            raise KeyboardInterrupt


THREE = [instance("a"), instance("b", first=11), instance("c", "other", first=12)]
PAIR = RaceConfig(solvers=("exact", "highs"), time_limit=1.0)


def test_every_solver_on_every_instance(tmp_path):
    """Six records in the order of instances and solvers, and the numbers of the scripted answers."""
    outcome = run_race(PAIR, THREE, tmp_path / "race.sqlite")
    assert list(standings(outcome)) == [(i, s) for i in "abc" for s in ("exact", "highs")]
    assert {r.status for r in outcome.of("exact")} == {"proved"}
    assert {r.status for r in outcome.of("highs")} == {"claimed"}
    assert [r.median.low for r in outcome.ratio_summaries()] == [500.0] * 3  # two groups and all
    assert outcome.contradictions == []
    assert not outcome.interrupted


def test_what_is_stored_is_not_run_again(tmp_path, monkeypatch):
    """The second time no process is started, and the numbers are the same; a third solver alone is run."""
    store = tmp_path / "race.sqlite"
    before = run_race(PAIR, THREE, store)
    counting = Counting()
    run_race(RaceConfig(solvers=("exact", "highs", "cp-sat"), time_limit=1.0), THREE, store, counting)
    assert counting.done == 9
    monkeypatch.setattr(Serial, "run", lambda self, tasks: pytest.fail("something is run"))
    assert run_race(PAIR, THREE, store).records == before.records


def test_names_do_not_move_keys_and_limits_do(tmp_path):
    """An instance under another name is known already; another limit, seed or solver is another run."""
    store = tmp_path / "race.sqlite"
    run_race(PAIR, THREE[:1], store)
    keys = {task.key for task in race._tasks(PAIR, THREE[:1]).values()}
    renamed = [instance("z", "elsewhere")]
    assert {task.key for task in race._tasks(PAIR, renamed).values()} == keys
    for changes in ({"time_limit": 2.0}, {"seed": 1}, {"solvers": ("cp-sat",)}):
        other = RaceConfig(**({"solvers": PAIR.solvers, "time_limit": 1.0} | changes))
        assert not keys & {task.key for task in race._tasks(other, THREE[:1]).values()}


@pytest.mark.more
def test_a_run_that_raises_or_dies_costs_itself_alone(tmp_path, monkeypatch):
    """It is stored as a failure with its reason; the others of the batch have their answers."""
    monkeypatch.setattr(race, "Isolated", Isolated)
    outcome = run_race(
        RaceConfig(solvers=("exact",), time_limit=1.0),
        [instance("bad", workers=RAISES), instance("good"), instance("dead", workers=DIES), instance("last", first=13)],
        tmp_path / "race.sqlite",
    )
    found = {r.instance: r for r in outcome.records}
    assert [found[name].status for name in ("bad", "good", "dead", "last")] == ["failed", "proved", "failed", "proved"]
    assert "this problem is refused" in found["bad"].failure
    assert found["dead"].stop == "died"
    assert "exit code 7" in found["dead"].failure


@pytest.mark.more
def test_a_run_that_hangs_is_killed(tmp_path, monkeypatch):
    """After its limit and the grace; it is not tried again unless that is asked for."""
    monkeypatch.setattr(race, "Isolated", Isolated)
    monkeypatch.setattr(race, "GRACE_SECONDS", 5.0)
    config = RaceConfig(solvers=("exact",), time_limit=1.0)
    instances, store = [instance("deaf", workers=HANGS), instance("good")], tmp_path / "race.sqlite"
    deaf, good = run_race(config, instances, store).records
    assert (deaf.status, deaf.stop, good.status) == ("failed", "killed", "proved")
    monkeypatch.setattr(race, "Isolated", lambda *given, **named: Serial())
    monkeypatch.setattr(Serial, "run", lambda self, tasks: pytest.fail("something is run"))
    assert run_race(config, instances, store).records == [deaf, good]
    with pytest.raises(pytest.fail.Exception, match="something is run"):
        run_race(replace(config, retry_failures=True), instances, store)


@pytest.mark.parametrize("stop_at", [1, 3, 5])
def test_interrupted_and_gone_on(tmp_path, stop_at):
    """Ctrl-C keeps what is done; the rest is missing, and the next call makes just that."""
    store = tmp_path / "race.sqlite"
    first = run_race(PAIR, THREE, store, Counting(stop_at))
    assert first.interrupted
    done = {who for who, status in standings(first).items() if status != "missing"}
    assert len(done) == stop_at
    again = run_race(PAIR, THREE, store)
    assert not again.interrupted
    assert "missing" not in standings(again).values()
    seconds = {(r.instance, r.solver): r.version for r in first.records if r.status != "missing"}
    assert seconds.items() <= {(r.instance, r.solver): r.version for r in again.records}.items()


def test_a_contradiction_is_found(tmp_path):
    """With seed 1 the scripted rivals claim a bound of 10, and exact has a placement of 9."""
    config = RaceConfig(solvers=("exact", "highs"), time_limit=1.0, seed=1)
    outcome = run_race(config, THREE[:1], tmp_path / "race.sqlite")
    assert [one.solver for one in outcome.contradictions] == ["highs"]
    assert standings(outcome) == {("a", "exact"): "proved", ("a", "highs"): "refuted"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"solvers": ()}, "no solver takes part"),
        ({"solvers": ("exact", "exact")}, "'exact' is named twice"),
        ({"solvers": ("exat",)}, "did you mean 'exact'"),
        ({"time_limit": 0.0}, "time_limit is 0"),
        ({"time_limit": float("inf")}, "finite"),
        ({"reference": "cp-sat", "solvers": ("exact",)}, "takes no part"),
        ({"count": 0}, "count is 0"),
        ({"jobs": 0}, "jobs is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_cannot_be_raced(changes, message):
    """One sentence that names the value."""
    with pytest.raises(InputError, match=message):
        RaceConfig(**changes)
