"""The state of a simulated fleet, and the experts that its requests use.

What the compiled loop needs to know of experts: who uses which, and which worker a request would rather go to.

Fresh arrays for a run: the truth, the rules and the state of the compiled loop. The only mutable noun in lbopt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import Records, record, records
from lbopt.kernels.routing.codes import EXTERNAL, FIRST_BY_SCORE, KEEPING_BOOKS, SMG, TENSORRT_LLM, VLLM_2026
from lbopt.kernels.routing.state import TURN, parameters_of
from lbopt.kernels.simulation.state import (
    AS_QUEUED,
    AS_TOKENS,
    ENDING,
    NOTHING,
    OPTIMISTIC,
    PROGRESS,
    REPORTS,
    Requests,
    Rows,
    Setting,
    Sight,
    State,
)
from lbopt.model import Eligibility, Fleet, RequestExperts, RequestPrefixes, Trace
from lbopt.model.integers import LARGEST_TOTAL
from lbopt.policies.policy import CompiledPolicy, Policy
from lbopt.simulator.ceiling import arrival_times
from lbopt.simulator.detail import Detail, fresh_detail
from lbopt.simulator.recorder import Telemetry
from lbopt.simulator.setting import ClosedLoop, SimulationSetting

#: A chance of 1 is taken for this much less: its logarithm has to be finite, and an estimate of 1 is one of nearly 1.
_SURELY = 2.0**-24


def unused_logs(experts: RequestExperts | None) -> NDArray[np.float32]:
    """Return the log of the chance that a step of a profile does not use an expert, float32 (M, L * E), or (0, 0)."""
    if experts is None:
        return np.zeros((0, 0), dtype=np.float32)
    chance = np.minimum(experts.decode.reshape(len(experts.decode), -1).astype(np.float64), 1 - _SURELY)
    return np.log1p(-chance).astype(np.float32)


def preference_of(policy: Policy, trace: Trace, num_workers: int, training: Trace | None) -> NDArray[np.float64]:
    """Return what the guide of a policy says of every profile and worker, float64 (M, G); (0, 0) without a guide.

    Parameters
    ----------
    training
        Requests that the guide learns from.
    """
    if not isinstance(policy, CompiledPolicy) or policy.guide is None:
        return np.zeros((0, 0))
    return np.ascontiguousarray(policy.guide.preferences(trace, num_workers, training), dtype=np.float64)


#: The calendar of endings has one entry per possible output length.
_LONGEST_OUTPUT = 50_000_000


def requests_of(
    trace: Trace, policy: Policy, setting: SimulationSetting, seed: int, training: Trace | None = None
) -> Requests:
    """Return the truth of a run as the compiled loop wants it.

    Parameters
    ----------
    training
        Requests that a guide learns from.
    """
    if int(trace.output.max()) > _LONGEST_OUTPUT:
        raise InputError(
            f"trace '{trace.name}' has a request of {int(trace.output.max())} output tokens; "
            f"the simulator takes at most {_LONGEST_OUTPUT}"
        )
    total = sum(int(array.max()) * len(trace) for array in (trace.prompt, trace.output))
    if total > LARGEST_TOTAL:
        raise InputError(f"the tokens of trace '{trace.name}' could add up to {total}, beyond 2**62")
    draws = isinstance(policy, CompiledPolicy) and policy.draws
    if isinstance(setting.arrivals, ClosedLoop):
        arrival: NDArray[np.float64] = np.zeros(0)
    else:
        arrival = arrival_times(trace, setting, setting.arrivals.load)
    return Requests(
        prompt=np.array(trace.prompt),
        output=np.array(trace.output),
        arrival=arrival,
        uniforms=np.random.default_rng(seed).random((len(trace), 2)) if draws else np.zeros((0, 2)),
        profile=np.zeros(0, dtype=np.int64) if trace.experts is None else np.array(trace.experts.profile),
        unused=unused_logs(trace.experts),
        preference=preference_of(policy, trace, setting.fleet.num_workers, training),
        **_kinds(trace.eligibility),
    )


def _kinds(eligibility: Eligibility | None) -> dict[str, NDArray[np.int64]]:
    """Return the kind of each request and which workers serve each kind; empty where all serve all."""
    if eligibility is None or eligibility.allowed.all():
        return {"kind": np.zeros(0, dtype=np.int64), "allowed": np.zeros((0, 0), dtype=np.int64)}
    return {"kind": np.array(eligibility.kind), "allowed": eligibility.allowed.astype(np.int64)}


def setting_of(policy: Policy, setting: SimulationSetting, trace: Trace) -> Setting:
    """Return the rules of a run as the compiled loop wants them."""
    reveal_target = -1
    if isinstance(setting.arrivals, ClosedLoop):
        reveal_target = min(setting.arrivals.reveal_target or 4 * setting.fleet.num_workers, len(trace))
    compiled = policy if isinstance(policy, CompiledPolicy) else CompiledPolicy(policy.name, policy.admission, EXTERNAL)
    form = setting.form_for(trace)
    parameters = dict(compiled.parameters)
    if compiled.code >= FIRST_BY_SCORE:
        parameters["front_ends"] = 1 if setting.telemetry is None else setting.telemetry.front_ends
        parameters["kv_capacity"] = setting.fleet.kv_capacity or 0
    return Setting(
        slots_per_worker=setting.fleet.slots_per_worker,
        num_slots=setting.num_slots,
        immediate=policy.admission == "immediate",
        reveal_target=reveal_target,
        fixed_seconds=float(form.fixed),
        seconds_per_token=float(form.per_token),
        seconds_per_mean_token=float(form.per_mean_token),
        seconds_of_running=form.of_running,
        seconds_of_active=form.of_active,
        seconds_per_expert=float(form.per_expert),
        expert_layers=0 if trace.experts is None else trace.experts.shape[0],
        kv_capacity=-1 if setting.fleet.kv_capacity is None else setting.fleet.kv_capacity,
        code=compiled.code,
        parameters=parameters_of(**parameters),
    )


#: Arrays of a worker that begin with zeros, and of a request that begin with -1.
_PER_WORKER = (
    *("load", "running", "queued", "queued_tokens", "queue_head", "queue_tail"),
    *("free", "scratch_load", "scratch_running", "experts_changed"),
)
_PER_REQUEST = ("next_in_queue", "pool", "worker", "start_step", "reveal_step", "choice")


def fresh_state(
    fleet: Fleet,
    requests: Requests,
    telemetry: Telemetry | None = None,
    seed: int = 0,
    code: int = EXTERNAL,
    detail: Detail | None = None,
    prefixes: RequestPrefixes | None = None,
) -> State:
    """Return the state before the first decision: an empty fleet, no request known.

    Parameters
    ----------
    telemetry, seed
        How old what routers see is, None for the truth; seed of the jitter and loss of its reports.
    code
        The rule, see `lbopt.kernels.routing.codes`.
    detail
        Workers in detail; None = none of it.
    prefixes
        Blocks of the prompts, where they are known.
    """
    N = requests.prompt.size
    num_workers, slots_per_worker = fleet.num_workers, fleet.slots_per_worker

    cells = (num_workers, requests.unused.shape[1])
    arrays: dict[str, NDArray[Any]] = {name: np.zeros(num_workers, dtype=np.int64) for name in _PER_WORKER}
    arrays |= {name: np.full(N, -1, dtype=np.int64) for name in _PER_REQUEST}
    arrays |= {name: np.full(N, np.nan) for name in ("start_clock", "reveal_clock")}
    arrays |= {name: np.zeros(cells) for name in ("unused", "experts_known_of", "experts_known_terms")}
    arrays |= {"experts": np.zeros(num_workers), "slots": _slots(fleet, detail)}
    progress = record(PROGRESS)
    progress.pause_at = -1
    arrays |= {name: np.zeros(len(requests.allowed), dtype=np.int64) for name in ("kinds", "marked")}
    arrays |= {"asked": np.zeros_like(requests.kind)}
    truth = tuple(arrays[name] for name in ("load", "running", "queued", "queued_tokens"))
    in_detail = fresh_detail(detail, fleet, requests, seed, prefixes)
    return State(
        calendar=np.full(int(requests.output.max()) + 1, -1, dtype=np.int64),
        endings=_unused_endings(min(N, num_workers * slots_per_worker)),
        progress=progress,
        sight=_sight(truth, telemetry, seed, code, (in_detail.committed.size > 0, len(requests.allowed))),
        detail=in_detail,
        size=requests.prompt if detail is None else in_detail.size,
        **arrays,
    )


def _slots(fleet: Fleet, detail: Detail | None) -> NDArray[np.int64]:
    slots = np.full(fleet.num_workers, fleet.slots_per_worker, dtype=np.int64)
    for worker, count in () if detail is None else detail.slots:
        slots[worker] = count
    return slots


#: What a front end adds of a request that it sends, by rule; other rules: one request.
_OWN_FORM = {VLLM_2026: AS_QUEUED, SMG: AS_TOKENS}


def _sight(
    truth: tuple[NDArray[np.int64], ...], telemetry: Telemetry | None, seed: int, code: int, of_run: tuple[bool, int]
) -> Sight:
    """Return what routers see of an empty fleet: arrays of their own where sight is stale, else those of the truth.

    Parameters
    ----------
    truth
        int64 (G,): load, running and queued requests, queued tokens.
    telemetry, seed, code
        As of `fresh_state`.
    of_run
        Whether memory can run out, and how many kinds of requests there are, 0 where all workers serve all.
    """
    has_memory, kinds = of_run
    reports = record(REPORTS)
    front_ends, num_workers = 1, truth[0].size
    if telemetry is not None:
        front_ends = telemetry.front_ends
        reports.stale = 1
        reports.own = _OWN_FORM.get(code, OPTIMISTIC) if telemetry.own == "optimistic" else NOTHING
        reports.gathers = code == TENSORRT_LLM
        reports.period, reports.jitter, reports.lost = telemetry.period, telemetry.jitter, telemetry.lost
        reports.seed = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        truth = tuple(np.zeros((front_ends, num_workers), dtype=np.int64) for _ in truth)
    asks = telemetry is not None and code == EXTERNAL and has_memory
    load, running, queued, queued_tokens = (seen.reshape(front_ends, num_workers) for seen in truth)
    books = np.zeros((front_ends, num_workers if code in KEEPING_BOOKS else 0), dtype=np.int64)
    turns = records(front_ends * max(1, kinds), TURN)
    if code == VLLM_2026:
        turns.next_worker = np.tile(num_workers * np.arange(front_ends) // front_ends, max(1, kinds))
    return Sight(
        *(load, running, queued, queued_tokens),
        committed=np.zeros((front_ends, num_workers if asks else 0), dtype=np.int64),
        books=books,
        own=books.copy() if reports.gathers else books,
        turns=turns,
        due=np.zeros(num_workers),
        made=np.zeros(num_workers, dtype=np.int64),
        reports=reports,
    )


def _unused_endings(count: int) -> Records:
    endings = records(count, ENDING)
    endings.following = np.arange(1, count + 1)  # the chain of unused ones starts at the first
    endings.worker = endings.tokens = endings.request = -1
    return endings


def fresh_rows(num_workers: int, count: int, with_running: bool = False) -> Rows:
    """Return room for `count` steps of output."""

    shape = (count, num_workers)
    columns: dict[str, NDArray[Any]] = {
        name: np.zeros(count, dtype=np.float64 if name in ("seconds", "clock", "experts") else np.int64)
        for name in Rows._fields[3:]
    }
    return Rows(
        barrier_loads=np.zeros(shape, dtype=np.int64),
        post_loads=np.zeros(shape, dtype=np.int64),
        running=np.zeros((count if with_running else 0, num_workers), dtype=np.int64),
        **columns,
    )
