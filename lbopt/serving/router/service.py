"""The router itself: the state of the fleet, the rules that decide on it, and what happens to workers and requests.

A request's life begins with `admit`, or a refusal; `carry.py` brings it to its end.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from aiohttp import web

from lbopt import __version__
from lbopt.model import Trace
from lbopt.serving.http_client import Wires
from lbopt.serving.record.writer import DecisionRecord, hasher_of
from lbopt.serving.router.ask import Ask, PromptEstimate, Refusal, over_budget
from lbopt.serving.router.carry import continued
from lbopt.serving.router.clients import Budget
from lbopt.serving.router.dispatcher import Dispatcher, StepEnds, fallback_for, rule_for, warm
from lbopt.serving.router.endpoint import KEPT, Endpoint, Poller
from lbopt.serving.router.fleet_file import FleetPlan, WorkerAddress
from lbopt.serving.router.job import ADVICE, RETRY_AFTER, SAID, Job, Stop, reap
from lbopt.serving.router.metrics import RouterMetrics
from lbopt.serving.router.options import RouterOptions
from lbopt.serving.router.prefill import PrefillHop
from lbopt.serving.router.shadow import Shadow
from lbopt.serving.router.signatures import signatures_of
from lbopt.serving.rule import LiveRule
from lbopt.serving.state import Engine, FleetState, Health, RequestTracker, WorkerMirror

_log = logging.getLogger(__name__)


class Router:
    """A router over a fleet.

    Parameters
    ----------
    plan
        The fleet.
    options
        Of the operator.
    training
        Requests from which predictors learn, where the rule looks ahead.

    Raises
    ------
    InputError
        Where the rule is unknown, or needs what a live router has not.
    """

    wires: Wires

    def __init__(self, plan: FleetPlan, options: RouterOptions, training: Trace | None = None) -> None:
        self.plan = plan
        self.options = options
        real = options.policy if options.shadow is None else options.shadow
        self.rule_name = real
        rules = {group.name: rule_for(real, group, training) for group in plan.groups}
        fallbacks = {group.name: fallback_for(options.fallback, group) for group in plan.groups}
        draws = any(rule.draws for rule in rules.values())
        self.fleet = FleetState(seed=options.seed, draws=draws, ended=self._ended)
        self.endpoints: dict[WorkerMirror, Endpoint] = {}
        self.models: dict[str, str] = {}  # by the name that clients use, the model
        self.groups = {group.name: group for group in plan.groups}
        for group in plan.groups:
            self.fleet.add_group(group.name, group.model)
            self.models |= dict.fromkeys((group.model, *group.aliases), group.model)
            for address in group.workers:
                self.add_worker(group.name, address)
        self.estimates = {model: PromptEstimate() for model in self.fleet.pools}
        self.metrics = RouterMetrics(self)
        self.prefixes = hasher_of(options.prefixes, options.prefix_key, options.prefix_bytes)
        by_group = {group.name: (group.model, rules[group.name]) for group in plan.groups}
        self.signatures = signatures_of(by_group, options.locality_memory, options.prefix_bytes)
        self.record = None
        if options.record is not None:
            self.record = DecisionRecord(options.record, self._versions(), plan, prefixes=self.prefixes)
        self.shadow = None if options.shadow is None else Shadow(self, options.policy, training)
        self.dispatcher = Dispatcher(
            self.fleet,
            rules,
            fallbacks,
            self.now,
            options,
            look=self._look,
            step_ends=StepEnds(self.now, options.step_seconds) if options.decide == "step" else None,
        )
        self.prefill = PrefillHop(self) if plan.prefillers else None
        self.poller = Poller(self)
        self.jobs: set[Job] = set()
        self.advised: dict[str, Job] = {}  # by key, those that a gateway forwards
        self.budget = Budget(options.held_bytes)
        self.is_draining = False
        self.has_compiled = False
        self._clock: Callable[[], float] = lambda: 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._prefix = secrets.token_hex(8)  # requests of another life of this router have other keys

    # -- life of the router

    async def start(self) -> None:
        """Compile what the rules need, look at all engines, and take requests from then on."""
        loop = asyncio.get_running_loop()
        self._clock = loop.time
        self.wires = Wires(KEPT, self.options.connect_seconds)
        self._tasks = [loop.create_task(self._get_ready()), loop.create_task(reap(self))]

    async def _get_ready(self) -> None:
        await asyncio.to_thread(self._compile)
        self.has_compiled = True
        await self.poller.look_at_all()
        self.dispatcher.is_ready = True
        self.dispatcher.wake()
        self._tasks.append(asyncio.get_running_loop().create_task(self.poller.run()))

    def _compile(self) -> None:
        """Let every rule decide once on a fleet like the real one, so that its kernels are compiled."""
        for name, rule in [*self.dispatcher.rules.items(), *self.dispatcher.fallbacks.items()]:
            try:
                warm(rule, self.groups[name])
            except Exception as error:  # a rule of the user's: each decision will say so, and the fall-back decide
                _log.warning("rule '%s' failed on a small fleet: %s", rule.name, error)
        if self.shadow is not None:
            self.shadow.warm()

    @property
    def rules(self) -> list[LiveRule]:
        """All that decide here, and beside it."""
        beside = [] if self.shadow is None else self.shadow.rules
        return [*self.dispatcher.rules.values(), *self.dispatcher.fallbacks.values(), *beside]

    @property
    def engines(self) -> list[Endpoint]:
        """All engines: workers and prefillers."""
        return [*self.endpoints.values(), *(() if self.prefill is None else self.prefill.endpoints)]

    @property
    def is_ready(self) -> bool:
        """Whether the rules are compiled and a worker is up."""
        return self.dispatcher.is_ready and not self.is_draining and self.has_worker()

    def has_worker(self, model: str | None = None) -> bool:
        """Return whether a worker takes requests, now or after its rest, of a model or at all."""
        pools = self.fleet.pools.values() if model is None else (self.fleet.pools[model],)
        workers = (worker for pool in pools for group in pool.groups for worker in group.workers)
        return any(worker.health in (Health.UP, Health.RESTING) for worker in workers)

    async def drain(self, seconds: float) -> None:
        """Take no new request, and give those that run so many seconds to end.

        Requests that a gateway forwards are not waited for once they have a place: they do not run through here.
        """
        self.is_draining = True
        if not await self._are_answered(seconds):
            for job in self.unanswered:
                job.stop(Stop.DRAIN)
            if not await self._are_answered(2.0):
                _log.warning("%d requests did not end in time", len(self.unanswered))
        left = len(self.jobs) - len(self.unanswered)
        if left:
            _log.info("%d requests that a gateway forwards are not waited for", left)

    @property
    def unanswered(self) -> list[Job]:
        """The requests whose client, or whose gateway, still waits for an answer of the router."""
        return [job for job in self.jobs if job.path != ADVICE or not job.placed.done()]

    async def _are_answered(self, seconds: float) -> bool:
        """Wait until no answer is awaited, at most so long; return whether that is so."""
        end = self.now() + seconds
        while self.unanswered:
            if self.now() >= end:
                return False
            await asyncio.sleep(min(0.05, max(0.0, end - self.now())))
        return True

    async def close(self) -> None:
        """End what runs beside requests."""
        await self.dispatcher.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.record is not None:
            await self.record.close()
        self.wires.close()
        self.poller.close()

    def now(self) -> float:
        """Return the time of the event loop, s."""
        return self._clock()

    # -- engines

    def add_worker(self, group: str, address: WorkerAddress) -> WorkerMirror:
        """Add a worker; it takes requests from the first answer to a look at its health."""
        plan = self.groups[group]
        mirror = self.fleet.worker_up(group, address.name, plan.slots)
        self.fleet.down(mirror, 0.0)
        self.endpoints[mirror] = Endpoint(address, mirror, self.options, plan.kv_capacity)
        return mirror

    def up(self, endpoint: Endpoint) -> None:
        """Let an engine take requests."""
        mirror = endpoint.mirror
        if isinstance(mirror, WorkerMirror):
            self.fleet.worker_up(mirror.group.name, mirror.name, mirror.slots)
            _log.info("worker %s is up", mirror.name)
        else:
            mirror.health = Health.UP
        self.wake()

    def wake(self) -> None:
        """Let those go on who wait for room, in the pool or before it."""
        self.dispatcher.wake()
        if self.prefill is not None:
            self.prefill.room.set()

    def down(self, endpoint: Endpoint) -> None:
        """Take an engine out: what a worker had not begun is placed again, what it had begun ends with an error."""
        mirror = endpoint.mirror
        _log.warning("%s is down", endpoint.called)
        if isinstance(mirror, WorkerMirror):
            held = [t.payload for t in (*mirror.running.values(), *mirror.queue.values()) if isinstance(t.payload, Job)]
            self.fleet.down(mirror, self.now())
            for job in held:
                if job.path == ADVICE:
                    self.failed(job)  # its gateway cannot be told of another place
                elif not job.tracker.has_ended:
                    job.renew()
                job.stop(Stop.DOWN)
        else:
            mirror.health = Health.DOWN
        self.finds_more(mirror.peers, ())
        self.wake()

    def retire(self, worker: WorkerMirror, *, leave: bool) -> None:
        """Let a worker end what it has, and then be gone with `leave`."""
        self.endpoints[worker].retired = True
        self.fleet.draining(worker, leave=leave)

    def note_fault(self, endpoint: Endpoint) -> None:
        """Note that an engine gave no answer."""
        endpoint.breaker.fail(self.now())
        if endpoint.breaker.is_open(endpoint.last_heard) and endpoint.mirror.is_open:
            self.down(endpoint)

    def taken(self, endpoint: Endpoint, tried: Mapping[Engine, float]) -> None:
        """Note that an engine took a request, and is well: those that refused it before are to blame, and rest.

        Parameters
        ----------
        tried
            Who refused it, and the seconds for which each asked to be left alone.
        """
        endpoint.breaker.succeed()
        for mirror, asked in tried.items():
            if mirror is not endpoint.mirror:
                self.let_rest(mirror.payload, asked)

    def let_rest(self, endpoint: Endpoint, asked: float = 0.0) -> None:
        """Give an engine no new request for a while: it refused what another takes, or broke off a stream."""
        if self.fleet.resting(endpoint.mirror):
            seconds = endpoint.rest.refuse(asked)
            _log.info("%s refuses or breaks off, and rests for %.3g s", endpoint.called, seconds)
            asyncio.get_running_loop().call_later(seconds, self._rested, endpoint)

    def _rested(self, endpoint: Endpoint) -> None:
        if endpoint.mirror.health is Health.RESTING:
            self.up(endpoint)

    def finds_more(self, peers: Sequence[Engine], tried: Collection[Engine]) -> bool:
        """Return whether an engine takes more that has not refused a request; where none does, who rests is woken."""
        untried = [mirror for mirror in peers if mirror not in tried]
        if not any(mirror.takes_more for mirror in untried):
            for mirror in untried:
                self._rested(mirror.payload)
        return any(mirror.takes_more for mirror in untried)

    # -- a request

    def model_of(self, name: str | None) -> str | None:
        """Return the model that clients mean by a name, or by none where there is one; None where it is unknown."""
        if name is None and len(self.fleet.pools) == 1:
            return next(iter(self.fleet.pools))
        return self.models.get(name or "")

    def addressed(self, model: str) -> list[Endpoint]:
        """Return the engines of a model that take requests and have an address, the lightest first."""
        workers = [worker for group in self.fleet.pools[model].groups for worker in group.open_workers]
        workers.sort(key=lambda worker: worker.virtual_load)
        return [self.endpoints[worker] for worker in workers if self.endpoints[worker].address.url]

    def known_model(self, name: str | None) -> str:
        """Return the model that a client means, see `model_of`, or raise a refusal."""
        if (model := self.model_of(name)) is None:
            known = f"Valid aliases: {', '.join(self.models)}."
            raise Refusal("model", 404, f"The model `{(name or '')[:200]}` does not exist. {known}", param="model")
        return model

    def admit(self, ask: Ask, body: bytes, path: str, headers: dict[str, str], *, chat: bool) -> Job:
        """Make a request known, or raise a refusal.

        Parameters
        ----------
        ask, body, path, headers, chat
            As of `Job`.

        Raises
        ------
        Refusal
            With the answer to the client.
        """
        model = self.known_model(ask.model)
        is_advised = any(group.advised for group in self.plan.groups if group.model == model)
        if is_advised != (path == ADVICE):
            what = "is not advised: send its requests to /v1" if path == ADVICE else "is advised: a gateway forwards it"
            raise Refusal("model", 404, f"the model '{model[:200]}' {what}")
        if self.is_draining or not self.dispatcher.is_ready:
            what = "the router ends" if self.is_draining else "the router is not ready yet"
            raise Refusal("not_ready", 503, what, retry_after=2)
        apart = () if self.prefill is None else self.prefill.models
        if path != ADVICE and model in apart and not path.startswith(("/v1/completions", "/v1/chat/")):
            raise Refusal("model", 404, f"the prompts of {model[:200]} go to prefillers, which take no such request")
        if not self.has_worker(model):
            status, what = SAID[Stop.NO_WORKER]
            raise Refusal("no_worker", status, what, retry_after=RETRY_AFTER)
        if len(self.fleet.live) >= self.options.max_waiting:  # else no more can wait
            waiting = self.num_waiting - sum(group.free_slots for group in self.fleet.pools[model].groups)
            if waiting >= self.options.max_waiting:  # beyond those who will have a slot in a moment
                seconds, message = self.metrics.seconds_to_place(waiting), f"{waiting} requests wait already"
                raise Refusal("queue_full", 429, message, retry_after=seconds)
        exact = ask.exact and not chat
        tokens = max(1, ask.units) if exact else self.estimates[model].tokens(ask.units)
        tracker = self.fleet.arrived(model, tokens * ask.choices, self.now(), ask.choices * ask.prompts)
        tracker.estimated = not exact
        tracker.signature = None if ask.experts is None else ask.experts.signature
        job = Job(tracker, ask, body, path, headers, chat=chat)
        job.limit = self.now() + self.options.request_seconds
        job.key = f"{self._prefix}-{tracker.number}"
        self.jobs.add(job)
        if self.shadow is not None:
            self.shadow.arrived(tracker)
        return job

    @property
    def num_waiting(self) -> int:
        """Requests that hold no slot."""
        seated = sum(len(worker.running) for group in self.fleet.groups.values() for worker in group.workers)
        return len(self.fleet.live) - seated

    def may_retry(self, job: Job) -> bool:
        """Return whether another attempt may be made."""
        return job.retries < self.options.retries and not self.is_draining

    def finds_untried(self, job: Job) -> bool:
        """Return whether a worker takes requests that has not refused this one, see `finds_more`."""
        workers = [worker for group in job.tracker.pool.groups for worker in group.workers]
        return self.finds_more(workers, job.tried)

    def counted(self, job: Job, prompt: int, *, learns: bool = True) -> None:
        """Take in the tokens of its prompts that an engine counted; the estimate of others learns from it."""
        tracker, held = job.tracker, prompt * job.ask.choices
        if tracker.estimated and tracker.recomputations == 0:
            self.metrics.note_estimate(tracker.prompt, held)
            if learns and not job.ask.exact:
                self.estimates[tracker.pool.model].learn(job.ask.units, prompt)
            if not tracker.has_ended:
                self.fleet.corrected(tracker, held)
            tracker.estimated = False

    def finished(self, job: Job, attempt: int) -> None:
        """Note that the engine has answered in full; the slot is free."""
        tracker = job.tracker
        worker = tracker.worker
        if not tracker.has_ended and self.fleet.finished(tracker, self.now(), attempt) and worker is not None:
            self.dispatcher.rules[worker.group.name].tell_ended(tracker)
            self.endpoints[worker].rest.end()

    def failed(self, job: Job, *, rejected: bool = False) -> None:
        """Note that the request cannot be answered; with `rejected` because an engine found fault with it."""
        if not job.tracker.has_ended:
            self.fleet.failed(job.tracker, self.now(), rejected=rejected)

    def forget(self, job: Job) -> None:
        """Let go of a request that a gateway forwarded; one that has not ended has failed."""
        self.failed(job)
        self.advised.pop(job.key, None)
        self.jobs.discard(job)

    def recomputed(self, job: Job, attempt: int) -> None:
        """Let a pre-empted request wait in the pool again, its tokens in its prompt."""
        if continued(job):
            self.fleet.recomputed(job.tracker, self.now(), attempt)
            job.renew()
            self.dispatcher.wake()
        else:
            self.failed(job)

    @property
    def keeps_text(self) -> bool:
        """Whether what is generated is kept until a request ends, because an engine may ask for it again."""
        return self.prefill is not None

    def _ended(self, tracker: RequestTracker, worker: WorkerMirror | None) -> None:
        """Tell what keeps account of requests that one has ended."""
        self.metrics.note_end(tracker)
        if self.record is not None:
            self.record.ended(tracker, worker)
        if self.shadow is not None:
            self.shadow.ended(tracker, worker)
        self.dispatcher.wake()

    # -- beside requests

    def over_budget(self) -> web.Response:
        """Count and return the refusal of a request for whose answer there is no room."""
        refusal = over_budget()
        self.metrics.refused[refusal.why] += 1
        return refusal.answer

    def _look(self, sight: Any, decision: Any, rule: str, stages: Any) -> None:
        self.metrics.note_decision(stages)
        if self.record is not None:
            self.record.decided(sight, decision, rule, stages, self._ages(sight))

    def _ages(self, sight: Any) -> list[float]:
        now = self.now()
        return [now - e.last_heard if e.last_heard >= 0 else -1.0 for e in (w.payload for w in sight.workers)]

    def _versions(self) -> dict[str, str]:
        return {"lbopt": __version__, "rule": self.rule_name, "fallback": self.options.fallback}
