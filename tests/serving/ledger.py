"""Random courses of events on a fleet, and a recount of its ledger by plain loops over an independent diary."""

from __future__ import annotations

import random

from lbopt.serving.state import Ending, FleetState, Health, Stage

MODELS = ("a", "b")


class Course:
    """One random course. The diary is kept from the events that were accepted, by another way than the ledger's."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.fleet = FleetState(seed=seed, draws=True)
        self.seen = []  # every tracker that ever was
        self.ended_ways = {}  # number -> endings that were accepted
        self.made = {}  # number -> tokens accepted since its last start
        self.size = {}  # number -> prompt tokens as told
        self.at = 0.0
        for index, (model, slots) in enumerate((("a", 2), ("a", 1), ("b", 3))):
            name = f"g{index}"
            self.fleet.add_group(name, model)
            for g in range(self.rng.randint(1, 3)):
                self.fleet.worker_up(name, f"w{g}", slots)
        for p in range(2):
            self.fleet.add_prefiller(f"p{p}", 0.9)

    def any_tracker(self):
        """Anybody, ended ones too, so that events come late."""
        if not self.seen:
            return self.arrive()
        recent = self.seen[-12:] if self.rng.random() < 0.8 else self.seen
        return self.rng.choice(recent)

    def any_attempt(self, tracker):
        return tracker.attempt if self.rng.random() < 0.9 else tracker.attempt - 1

    def arrive(self):
        many = self.rng.choice((1, 1, 1, 2, 5))
        tracker = self.fleet.arrived(self.rng.choice(MODELS), self.rng.randint(1, 40), self.at, many)
        self.seen.append(tracker)
        self.size[tracker.number], self.made[tracker.number] = tracker.prompt, 0
        return tracker

    def end(self, tracker, accepted, ending):
        if accepted:
            assert tracker.number not in self.ended_ways, "a request ended twice"
            self.ended_ways[tracker.number] = ending

    def step(self):
        """One event."""
        rng, fleet, at = self.rng, self.fleet, self.at
        self.at += rng.random()
        kind = rng.randrange(17)
        tracker = self.any_tracker() if kind else self.arrive()
        number = tracker.number
        workers = [w for group in fleet.groups.values() for w in group.workers]
        if kind == 1:
            fleet.prefilling(tracker, rng.choice([*fleet.prefillers.values()]), rng.randint(0, 5))
        elif kind == 2:
            fleet.prefill_failed(tracker)
        elif kind in (3, 4):
            size = rng.randint(1, 40) if rng.random() < 0.5 else None
            if fleet.prefilled(tracker, at, prompt=size, blocks=rng.randint(0, 5)) and size is not None:
                self.size[number] = size
        elif kind in (5, 6, 7):
            own = [w for group in tracker.pool.groups for w in group.workers]
            if own:
                fleet.dispatched(tracker, rng.choice(own), at)
        elif kind == 8:
            fleet.first_chunk(tracker, at, self.any_attempt(tracker))
        elif kind in (9, 10):
            count = rng.randint(1, 4)
            if fleet.tokens(tracker, count, self.any_attempt(tracker)):
                self.made[number] += count
        elif kind == 11:
            self.end(tracker, fleet.finished(tracker, at, self.any_attempt(tracker)), Ending.FINISHED)
        elif kind == 12:
            if fleet.recomputed(tracker, at, self.any_attempt(tracker)):
                self.size[number] += self.made[number]
                self.made[number] = 0
        elif kind == 13:
            ending = rng.choice([Ending.CANCELLED, Ending.EXPIRED, Ending.FAILED, Ending.REJECTED])
            if ending is Ending.REJECTED:
                self.end(tracker, fleet.failed(tracker, at, rejected=True), ending)
            else:
                self.end(tracker, getattr(fleet, ending.value)(tracker, at), ending)
        elif kind == 14:
            if rng.random() < 0.3:
                fleet.resumed(tracker)
                if fleet.withdrawn(tracker, self.any_attempt(tracker)):
                    self.made[number] = 0
            elif rng.random() < 0.5:
                if fleet.returned(tracker):
                    self.made[number] = 0
            elif (size := rng.randint(1, 40)) and fleet.corrected(tracker, size):
                self.size[number] = size
        elif kind == 15 and workers:
            worker = rng.choice(workers)
            if rng.random() < 0.5:
                _, failed = fleet.down(worker, at)
                for lost in failed:
                    self.end(lost, True, Ending.FAILED)
            else:
                fleet.draining(worker, leave=rng.random() < 0.5)
        elif kind == 16:
            name = rng.choice([*fleet.groups])
            fleet.worker_up(name, f"w{rng.randrange(4)}", rng.randint(1, 3))

    def recount(self):
        """Count everything anew, and compare."""
        fleet = self.fleet
        at_worker, in_pool, at_prefiller = {}, {}, {}
        for group in fleet.groups.values():
            for worker in group.workers:
                load = queued = prompts = blocks = 0
                for tracker in worker.running.values():
                    at_worker[tracker.number] = worker
                    assert tracker.stage is Stage.RUNNING
                    load += self.size[tracker.number] + self.made[tracker.number]
                for tracker in worker.queue.values():
                    at_worker[tracker.number] = worker
                    assert tracker.stage is Stage.QUEUED
                    queued += self.size[tracker.number]
                for tracker in [*worker.running.values(), *worker.queue.values()]:
                    assert tracker.worker is worker
                    prompts += self.size[tracker.number]
                    blocks += tracker.sequences * -(-self.size[tracker.number] // (16 * tracker.sequences))
                assert (worker.load, worker.queued_tokens) == (load, queued)
                assert (worker.prompts_bound, worker.blocks_bound) == (prompts, blocks)
                assert worker.seated == sum(tracker.sequences for tracker in worker.running.values())
                assert worker.bound == worker.seated + sum(tracker.sequences for tracker in worker.queue.values())
                assert not worker.queue or worker.seated >= worker.slots, "a slot leaked"
                assert worker.health is not Health.DOWN or worker.bound == 0
                assert not (worker.leaving and worker.bound == 0), "it should have gone"
        for pool in fleet.pools.values():
            tickets = [tracker.ticket for tracker in pool]
            assert tickets == sorted(tickets)
            in_pool |= {tracker.number: pool for tracker in pool}
        for prefiller in fleet.prefillers.values():
            holders = prefiller.holders.values()
            assert prefiller.blocks == sum(t.blocks for t in holders)
            at_prefiller |= {tracker.number: prefiller for tracker in holders}
        endings = {}
        for tracker in self.seen:
            number = tracker.number
            places = (number in at_worker) + (number in in_pool)
            early = tracker.stage in (Stage.ARRIVED, Stage.PREFILLING)
            assert places + early + tracker.has_ended == 1, f"{tracker} is in {places} places"
            assert tracker.has_ended == (number in self.ended_ways) == (number not in fleet.live)
            assert tracker.ending == self.ended_ways.get(number)
            assert (tracker.prefiller is None) == (number not in at_prefiller)
            assert tracker.stage is not Stage.PREFILLING or number in at_prefiller
            assert not tracker.has_ended or number not in at_prefiller, "blocks leaked"
            if tracker.has_ended:
                endings[tracker.ending] = endings.get(tracker.ending, 0) + 1
        assert dict(fleet.endings) == endings

    def finish(self):
        """End whoever is left: nothing may remain anywhere."""
        for tracker in list(self.fleet.live.values()):
            self.end(tracker, self.fleet.cancelled(tracker, self.at), Ending.CANCELLED)
        self.recount()
        assert not any(len(pool) for pool in self.fleet.pools.values())
        assert all(w.bound == w.load == 0 for group in self.fleet.groups.values() for w in group.workers)
        assert all(not p.holders and p.blocks == 0 for p in self.fleet.prefillers.values())


def run_course(seed, events=60):
    """Run a course of `events`, recounted after each of them."""
    course = Course(seed)
    for _ in range(events):
        course.step()
        course.recount()
    course.finish()
    return course
