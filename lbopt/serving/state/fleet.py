"""The events of a fleet, and the exact ledger that they keep.

Every event is a method; times are arguments. An event about a request that has ended, or about an earlier dispatch of
one that was sent again, is *late*: it changes nothing, is counted, and the method returns False. So events may come
twice, too late, or in any order.

After every event these hold (`tests/serving` recounts them by loops):

* a request is in one place: before prefill, at a prefiller, in the pool, at a worker, or ended;
* the load of a worker is the sum of prompt and generated tokens of the requests in its slots;
* slots, queues and the blocks of prefillers are those of the requests that hold them;
* the endings add up to the requests that have ended.

Source: BalanceRoute (arXiv 2605.06113), section 5 and appendix D.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from lbopt.serving.state.engines import Ending, Engine, Health, Prefiller, RequestTracker, Stage, WorkerMirror
from lbopt.serving.state.group import BarrierGroup, Pool

Ended = Callable[[RequestTracker, WorkerMirror | None], None]

_BOUND = (Stage.QUEUED, Stage.RUNNING)


class FleetState:
    """Pools, barrier groups, prefillers, and the requests between arrival and end.

    Parameters
    ----------
    seed
        Of the numbers that rules draw.
    draws
        Whether a rule draws at all.
    ended
        Told of each request that has ended, and of the worker that had it; None = nothing is.
    """

    def __init__(self, *, seed: int = 0, draws: bool = False, ended: Ended | None = None) -> None:
        self.pools: dict[str, Pool] = {}
        self.groups: dict[str, BarrierGroup] = {}
        self.prefillers: dict[str, Prefiller] = {}
        self._by_model: defaultdict[str, list[Prefiller]] = defaultdict(list)
        self.live: dict[int, RequestTracker] = {}
        self.endings: Counter[Ending] = Counter()
        self.arrivals = 0
        self.recomputations = 0
        self.late_events = 0
        self._ended = ended
        self._random = np.random.default_rng(seed) if draws else None

    # -- the fleet

    def add_group(self, name: str, model: str) -> BarrierGroup:
        """Add a barrier group that serves a model."""
        pool = self.pools.setdefault(model, Pool(model))
        group = BarrierGroup(name, pool)
        for tracker in pool:
            tracker.revealed.append(group.step)
        self.groups[name] = group
        return group

    def worker_up(self, group: str, name: str, slots: int) -> WorkerMirror:
        """Let a worker join, or one that drains or was down take requests again."""
        found = self.worker(group, name)
        if found is None:
            return self.groups[group].add(name, slots)
        found.health, found.leaving, found.slots = Health.UP, False, slots
        found.fill()
        return found

    def worker(self, group: str, name: str) -> WorkerMirror | None:
        """Return a worker by its name."""
        return next((worker for worker in self.groups[group].workers if worker.name == name), None)

    def draining(self, worker: WorkerMirror, *, leave: bool = False) -> None:
        """Let a worker take nothing new; with `leave` it is removed as soon as it has nothing."""
        if worker.health in (Health.UP, Health.RESTING):
            worker.health = Health.DRAINING
        worker.leaving = worker.leaving or leave
        self._remove_if_done(worker)

    def resting(self, engine: Engine) -> bool:
        """Let an engine take nothing new for now; False for the last one of its model that does, which goes on."""
        if not engine.is_open or not any(other.is_open for other in engine.peers if other is not engine):
            return False
        engine.health = Health.RESTING
        return True

    def down(self, worker: WorkerMirror, at: float) -> tuple[list[RequestTracker], list[RequestTracker]]:
        """Take a worker out of the steps: what it had not begun returns to the pool, what it had begun has failed.

        Returns
        -------
        tuple
            The requests that returned, and those that failed.
        """
        held = [*worker.running.values(), *worker.queue.values()]
        worker.health = Health.DOWN
        returned = [tracker for tracker in held if tracker.produced == 0]
        failed = [tracker for tracker in held if tracker.produced > 0]
        for tracker in failed:
            self._end(tracker, Ending.FAILED, at)
        for tracker in reversed(held):
            if tracker.produced == 0:
                self.returned(tracker)
        self._remove_if_done(worker)
        return returned, failed

    def add_prefiller(self, name: str, threshold: float, most: int | None = None, *, model: str = "") -> Prefiller:
        """Add a prefill instance.

        Parameters
        ----------
        name, threshold, most
            As of `Prefiller`.
        """
        self.prefillers[name] = Prefiller(name, threshold, most, self._by_model[model])
        return self.prefillers[name]

    # -- a request, from arrival to its end

    def arrived(self, model: str, prompt: int, at: float, sequences: int = 1) -> RequestTracker:
        """Make a request known, of so many prompt tokens in all its sequences. `prefilled` puts it into the pool."""
        draws = (0.0, 0.0)
        if self._random is not None:
            first, second = self._random.random(2).tolist()
            draws = (first, second)
        tracker = RequestTracker(self.arrivals, self.pools[model], prompt, at, draws, sequences)
        self.arrivals += 1
        self.live[tracker.number] = tracker
        return tracker

    def prefilling(self, tracker: RequestTracker, prefiller: Prefiller, blocks: int = 0) -> bool:
        """Note that a prefiller computes the request, and reserve blocks there."""
        if tracker.stage is not Stage.ARRIVED:
            return self._late()
        self._give_back(tracker)  # one that was withdrawn may still hold blocks
        prefiller.hold(tracker, blocks)
        tracker.stage = Stage.PREFILLING
        return True

    def prefill_failed(self, tracker: RequestTracker) -> bool:
        """Note that the prefiller gave no answer: another may be asked."""
        if tracker.stage is not Stage.PREFILLING:
            return self._late()
        self._give_back(tracker)
        tracker.stage = Stage.ARRIVED
        return True

    def prefilled(self, tracker: RequestTracker, at: float, *, prompt: int | None = None, blocks: int = 0) -> bool:
        """Put a request into the pool.

        Parameters
        ----------
        prompt
            Its prompt tokens, where the prefiller counted them.
        blocks
            Blocks that it holds at the prefiller, where it has one.
        """
        if tracker.stage not in (Stage.ARRIVED, Stage.PREFILLING):
            return self._late()
        prefiller = tracker.prefiller
        if prefiller is not None:
            prefiller.give_back(tracker)
        if prompt is not None:
            tracker.prompt, tracker.estimated = prompt, False
        if prefiller is not None:
            prefiller.hold(tracker, blocks)
        tracker.pool.join(tracker, at)
        return True

    def dispatched(self, tracker: RequestTracker, worker: WorkerMirror, at: float) -> bool:
        """Bind a waiting request to a worker."""
        if tracker.stage is not Stage.WAITING or not worker.is_open:
            return self._late()
        tracker.pool.leave(tracker)
        tracker.attempt += 1
        tracker.dispatched_at = at
        worker.bind(tracker)
        return True

    def corrected(self, tracker: RequestTracker, prompt: int) -> bool:
        """Replace estimated prompt tokens by those that an engine counted."""
        if tracker.stage is Stage.ENDED:
            return self._late()
        tracker.estimated = False
        if tracker.worker is not None:
            tracker.worker.correct(tracker, prompt)
        else:
            tracker.prompt = prompt
        return True

    def first_chunk(self, tracker: RequestTracker, at: float, attempt: int) -> bool:
        """Note the first streamed chunk: the request runs, and its blocks at the prefiller are free."""
        if tracker.attempt != attempt or tracker.stage not in _BOUND:
            return self._late()
        if tracker.stage is Stage.QUEUED:
            assert tracker.worker is not None
            tracker.worker.seat_early(tracker)
        if tracker.first_at == 0.0:
            tracker.first_at = at
        self._give_back(tracker)
        return True

    def tokens(self, tracker: RequestTracker, count: int, attempt: int) -> bool:
        """Count tokens that a running request has made."""
        if tracker.attempt != attempt or tracker.stage is not Stage.RUNNING:
            if tracker.stage is Stage.QUEUED and tracker.attempt == attempt:  # its first chunk was lost
                self.first_chunk(tracker, tracker.dispatched_at, attempt)
            else:
                return self._late()
        worker = tracker.worker
        assert worker is not None
        generated = tracker.generated + count
        tracker.generated = generated
        tracker.produced += count
        worker.load += count
        group, step = worker.group, tracker.started_step - (-generated // tracker.sequences)
        if step > group.step:
            group.step = step
        return True

    def recomputed(self, tracker: RequestTracker, at: float, attempt: int) -> bool:
        """Note that the engine pre-empted the request: its tokens join the prompt, and it the end of the pool."""
        if tracker.attempt != attempt or tracker.stage not in _BOUND:
            return self._late()
        self._leave_worker(tracker)
        self._give_back(tracker)
        tracker.prompt += tracker.generated
        tracker.generated = 0
        tracker.recomputations += 1
        self.recomputations += 1
        tracker.pool.join(tracker, at)
        return True

    def returned(self, tracker: RequestTracker) -> bool:
        """Put a request that was dispatched in vain back to its place in the pool."""
        return self.withdrawn(tracker, tracker.attempt) and self.resumed(tracker)

    def withdrawn(self, tracker: RequestTracker, attempt: int) -> bool:
        """Take a request that was dispatched in vain from its worker, before `resumed` puts it into the pool again.

        Tokens that it has made there have reached no client, and count no more.
        """
        if tracker.attempt != attempt or tracker.stage not in _BOUND:
            return self._late()
        self._leave_worker(tracker)
        tracker.produced -= tracker.generated
        tracker.generated = 0
        if tracker.produced == 0:
            tracker.first_at = 0.0
        tracker.stage = Stage.ARRIVED
        return True

    def resumed(self, tracker: RequestTracker) -> bool:
        """Put a withdrawn request back to its place in the pool."""
        if tracker.stage is not Stage.ARRIVED or tracker.ticket < 0:
            return self._late()
        tracker.pool.rejoin(tracker)
        return True

    def finished(self, tracker: RequestTracker, at: float, attempt: int) -> bool:
        """Note that the engine has answered in full."""
        if tracker.attempt != attempt or tracker.stage not in _BOUND:
            return self._late()
        return self._end(tracker, Ending.FINISHED, at)

    def cancelled(self, tracker: RequestTracker, at: float) -> bool:
        """Note that the client has gone, wherever the request is."""
        return self._end(tracker, Ending.CANCELLED, at)

    def expired(self, tracker: RequestTracker, at: float) -> bool:
        """Note that the request waited longer than it may; one that a worker has is left alone."""
        if tracker.stage in _BOUND:
            return self._late()
        return self._end(tracker, Ending.EXPIRED, at)

    def failed(self, tracker: RequestTracker, at: float, *, rejected: bool = False) -> bool:
        """Note that the request cannot be answered; with `rejected` because of what it asks."""
        return self._end(tracker, Ending.REJECTED if rejected else Ending.FAILED, at)

    # -- within

    def _end(self, tracker: RequestTracker, ending: Ending, at: float) -> bool:
        if tracker.stage is Stage.ENDED:
            return self._late()
        worker = tracker.worker
        if tracker.stage is Stage.WAITING:
            tracker.pool.leave(tracker)
        elif tracker.stage in _BOUND:
            self._leave_worker(tracker)
        self._give_back(tracker)
        tracker.stage = Stage.ENDED
        tracker.ending = ending
        tracker.ended_at = at
        del self.live[tracker.number]
        self.endings[ending] += 1
        if self._ended is not None:
            self._ended(tracker, worker)
        return True

    def _leave_worker(self, tracker: RequestTracker) -> None:
        worker = tracker.worker
        assert worker is not None
        worker.release(tracker)
        if worker.leaving:
            self._remove_if_done(worker)

    def _give_back(self, tracker: RequestTracker) -> None:
        if tracker.prefiller is not None:
            tracker.prefiller.give_back(tracker)

    def _remove_if_done(self, worker: WorkerMirror) -> None:
        if worker.leaving and worker.bound == 0 and worker in worker.group.workers:
            worker.group.workers.remove(worker)

    def _late(self) -> bool:
        self.late_events += 1
        return False
