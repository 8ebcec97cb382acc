"""A synthetic mixture-of-experts model: its gate, and requests that use its experts.

The gates of a synthetic mixture-of-experts model: what the score of an expert is made of.

For request r of domain d, at layer l and expert e,

    score = base_spread * beta(l, e) + domain_strength * delta(d, l, e)
            + topic_strength * zeta(topic, l, e) + request_spread * epsilon(r, l, e)

with every Greek letter standard normal. `generalists` experts of a layer, drawn at random, have the base value
`generalist_height` and neither domain nor topic. Prefill adds one number a request, `generalist_swing * xi(r)`, to all
of its generalists: a nuisance that decode does not share. Decode adds `decode_shift * eta(l, e)` to all others. A token
takes the k experts of greatest score + Gumbel noise, which is sampling without replacement with softmax weights.

Why generalists: without experts that fire in nearly every request, and whose counts swing, IDF weights only magnify
rare, noisy cells, and the order of transforms that ELDR (arXiv 2607.00466, section on signatures) reports is reversed.
A nearly uniform base (base_spread <= 0.5) would saturate the union of a batch of 128.

Shares of traffic that belong to each domain: four tasks, or many languages of which few are common.

ELDR (arXiv 2607.00466), evaluation: the task data set has 11,668 prompts of four kinds; of 14,000 WildChat prompts in
68 languages, two languages are 75 %, four are 87.6 %. No single Zipf law meets both, so the language shares are a table
for the four, and a Zipf tail for the others.

A synthetic expert workload: what a capture of calibration requests on a real model would have written down.

Every request is given a domain, its scores are drawn (`gate`), and its prompt and decode tokens choose their experts.
Source of the facts to which the defaults are calibrated: ELDR (arXiv 2607.00466), motivation and signature sections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.locality.forward_selection import pick
from lbopt.kinds import whole

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MoEShape:
    """A mixture-of-experts model as routing sees it: Qwen3-30B-A3B by default.

    Parameters
    ----------
    num_layers
        L >= 1 layers with experts.
    num_experts
        E >= 1 routed experts a layer.
    experts_per_token
        k, from 1 to E.
    """

    num_layers: int = 48
    num_experts: int = 128
    experts_per_token: int = 8

    def __post_init__(self) -> None:
        for one in fields(self):
            whole(one.name, getattr(self, one.name), 1)
        if self.experts_per_token > self.num_experts:
            raise InputError(
                f"experts_per_token is {self.experts_per_token}, but a layer has {self.num_experts} experts; "
                f"expected at most {self.num_experts}"
            )


@dataclass(frozen=True, slots=True)
class GateLaw:
    """How far scores spread, and why; the terms are those of the module's formula, all of them in units of a logit.

    The settings of the two workloads are in `workload`.
    """

    base_spread: float = 1.5
    domain_strength: float = 1.55
    topic_strength: float = 0.0
    request_spread: float = 0.5
    generalists: int = 4
    generalist_height: float = 5.0
    generalist_swing: float = 2.0
    decode_shift: float = 1.0

    def __post_init__(self) -> None:
        whole("generalists", self.generalists, 0)
        for one in fields(self):
            value = getattr(self, one.name)
            if not np.isfinite(value) or (value < 0 and one.name != "generalist_height"):
                raise InputError(f"{one.name} is {value!r}; expected a finite number, 0 or more")


@dataclass(frozen=True, slots=True)
class World:
    """One draw of everything that requests share.

    Parameters
    ----------
    base
        float64 (L, E), base values, generalists included.
    generalist
        bool (L, E).
    domain, topic
        float64 (D, L, E) and (D * T, L, E), already times their strength; 0 at generalists. Topic t of domain d is row
        d * T + t.
    shift
        float64 (L, E), what decode adds; 0 at generalists.
    """

    shape: MoEShape
    law: GateLaw
    base: Floats
    generalist: Bools
    domain: Floats
    topic: Floats
    shift: Floats

    @property
    def num_domains(self) -> int:
        """Number of domains, D."""
        return len(self.domain)

    @property
    def topics_per_domain(self) -> int:
        """Number of topics of a domain, T."""
        return len(self.topic) // self.num_domains


def draw_world(
    shape: MoEShape, law: GateLaw, num_domains: int, rng: np.random.Generator, topics_per_domain: int = 1
) -> World:
    """Draw a world of `num_domains` domains with `topics_per_domain` topics each.

    Parameters
    ----------
    shape
        Layers, experts, and experts of a token.
    law
        Law of the gate.
    num_domains, topics_per_domain
        Domains, and topics of each.
    rng
        Draws the world.
    """
    whole("num_domains", num_domains, 1)
    whole("topics_per_domain", topics_per_domain, 1)
    L, E = shape.num_layers, shape.num_experts
    if law.generalists > E:
        raise InputError(f"generalists is {law.generalists}, but a layer has {E} experts; expected at most {E}")
    generalist = np.zeros((L, E), dtype=np.bool_)
    np.put_along_axis(generalist, rng.random((L, E)).argsort(axis=1)[:, : law.generalists], True, axis=1)
    base = np.where(generalist, law.generalist_height, law.base_spread * rng.standard_normal((L, E)))
    special = ~generalist
    return World(
        shape,
        law,
        base,
        generalist,
        law.domain_strength * rng.standard_normal((num_domains, L, E)) * special,
        law.topic_strength * rng.standard_normal((num_domains * topics_per_domain, L, E)) * special,
        law.decode_shift * rng.standard_normal((L, E)) * special,
    )


def draw_scores(world: World, domain: Ints, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the scores of requests in prefill and in decode, float64 (n, L, E) each.

    Parameters
    ----------
    domain
        int64 (n,), the domain of each request; its topic is drawn evenly.
    """
    n = domain.size
    topic = domain * world.topics_per_domain + rng.integers(world.topics_per_domain, size=n)
    scores = world.law.request_spread * rng.standard_normal((n, *world.base.shape))
    scores += world.base + world.domain[domain] + world.topic[topic]
    swing = world.law.generalist_swing * rng.standard_normal((n, 1, 1))
    return scores + swing * world.generalist, scores + world.shift


def check_choices(choices: ArrayLike, shape: MoEShape) -> Ints:
    """Return choices as int64 (n, L, k), n >= 1; refuse those that are not of the model, and one expert twice."""
    experts = np.asarray(choices)
    L, E, k = shape.num_layers, shape.num_experts, shape.experts_per_token
    if experts.ndim != 3 or experts.shape[1:] != (L, k) or len(experts) == 0 or experts.dtype.kind not in "iu":
        raise InputError(
            f"choices are of shape {experts.shape} and type {experts.dtype}; expected whole numbers (n, {L}, {k})"
        )
    if experts.min() < 0 or experts.max() >= E:
        wrong = experts.min() if experts.min() < 0 else experts.max()
        raise InputError(f"a token chose expert {wrong}; expected 0 to {E - 1}")
    ordered = np.sort(experts, axis=2)
    if (ordered[:, :, 1:] == ordered[:, :, :-1]).any():
        raise InputError("a token chose one expert twice in a layer; expected different ones")
    return experts.astype(np.int64, copy=False)


def counted(choices: NDArray[np.integer[Any]], num_experts: int) -> Ints:
    """Return how often tokens chose each expert, int64 (L, E), by checked choices (n, L, k)."""
    L = choices.shape[1]
    cells = choices.astype(np.int64, copy=False) + num_experts * np.arange(L)[:, np.newaxis]
    return np.bincount(cells.ravel(), minlength=L * num_experts).reshape(L, num_experts).astype(np.int64, copy=False)


#: Prompts of each task.
TASK_PROMPTS = {"legal": 3600, "code": 2779, "math": 2744, "medical": 2545}
#: The two commonest languages sum to the published 75 %, four to 87.6 %; the split within each two is assumed.
LANGUAGE_HEAD = (0.50, 0.25, 0.08, 0.046)
NUM_LANGUAGES = 68
#: Exponent of the tail; between those that would give the published shares of the top two and the top four.
TAIL_EXPONENT = 1.98


def task_shares() -> Floats:
    """Return the share of each task, float64 (4,), in the order of `TASK_PROMPTS`."""
    prompts = np.array(list(TASK_PROMPTS.values()), dtype=np.float64)
    shares: Floats = prompts / prompts.sum()
    return shares


def zipf_shares(number: int, exponent: float) -> Floats:
    """Return shares proportional to rank ** -exponent, float64 (number,)."""
    whole("number of domains", number, 1)
    if not np.isfinite(exponent):
        raise InputError(f"the Zipf exponent is {exponent!r}; expected a finite number")
    weights = np.arange(1, number + 1, dtype=np.float64) ** -exponent
    shares: Floats = weights / weights.sum()
    return shares


def language_shares(number: int = NUM_LANGUAGES) -> Floats:
    """Return the shares of `number` languages, float64 (number,), descending; number exceeds the four of the table."""
    whole("number of languages", number, len(LANGUAGE_HEAD) + 1)
    head = np.array(LANGUAGE_HEAD)
    ranks = np.arange(head.size + 1, number + 1, dtype=np.float64) ** -TAIL_EXPONENT
    return np.concatenate([head, (1 - head.sum()) * ranks / ranks.sum()])


def draw_domains(shares: Floats, number: int, rng: np.random.Generator) -> Ints:
    """Draw the domain of `number` requests, int64 (number,), each by itself.

    Raises
    ------
    InputError
        if the shares are not 0 or more, or do not sum to 1.
    """
    shares = np.asarray(shares, dtype=np.float64)
    if shares.ndim != 1 or not (shares >= 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise InputError(f"domain shares are {shares.tolist()}; expected numbers of 0 or more that sum to 1")
    return rng.choice(shares.size, size=number, p=shares).astype(np.int64)


#: Scores that are drawn at a time: 32 MiB of float32.
CELLS_AT_A_TIME = 2**23


@dataclass(frozen=True, slots=True)
class WorkloadConfig:
    """What to draw.

    Parameters
    ----------
    shares
        float64 (D,), the share of each domain.
    requests, prompt_tokens
        Calibration requests, and prompt tokens of each.
    decode_steps
        Steps from which the decode activation is estimated; each request runs them alone, so that any number of them
        gives an unbiased estimate of the union of a batch.
    topics_per_domain
        Topics that a domain is split into; they matter where `law.topic_strength` > 0.
    """

    shares: tuple[float, ...]
    shape: MoEShape = field(default_factory=MoEShape)
    law: GateLaw = field(default_factory=GateLaw)
    requests: int = 1000
    prompt_tokens: int = 256
    decode_steps: int = 64
    topics_per_domain: int = 1

    def __post_init__(self) -> None:
        for name in ("requests", "prompt_tokens", "decode_steps"):
            whole(name, getattr(self, name), 1)


@dataclass(frozen=True, slots=True)
class ExpertActivity:
    """What requests did to the experts, by request, layer and expert: arrays (N, L, E).

    Parameters
    ----------
    counts
        int64, prompt tokens that chose the expert: each layer of a request sums to k * its prompt tokens.
    gate_prob, gate_logit
        float64, sums over prompt tokens of the gate's softmax over all experts, and of its raw score; None where they
        were not taken down.
    decode
        float64 in [0, 1], fraction of decode steps that chose the expert: each layer of a request sums to k.
    domain
        int64 (N,), the label that signatures do not see.
    """

    counts: Ints
    gate_prob: Floats | None
    gate_logit: Floats | None
    decode: Floats
    domain: Ints


#: Domain strengths are calibrated to the published unions of same-domain batches. Topic strength and request spread are
#: of the size with which ELDR with 16 workers activates about as many fewer experts as published for tasks (22 %), and
#: blocks of workers for languages gain about as little (3 %); what else the study finds was not aimed at.
TASK_LAW = GateLaw(domain_strength=1.63, topic_strength=0.7, request_spread=1.0)
LANGUAGE_LAW = GateLaw(domain_strength=0.5, topic_strength=1.1, request_spread=0.9)
TOPICS = 4


def task_workload(**changes: object) -> WorkloadConfig:
    """Return the task setting: four domains of nearly equal shares, strongly marked, of four topics each."""
    settings: dict[str, object] = {
        "shares": tuple(task_shares()),
        "law": TASK_LAW,
        "topics_per_domain": TOPICS,
        **changes,
    }
    return WorkloadConfig(**settings)  # type: ignore[arg-type]


def language_workload(**changes: object) -> WorkloadConfig:
    """Return the language setting: 68 domains of very uneven shares, weakly marked, of four stronger topics each."""
    settings: dict[str, object] = {
        "shares": tuple(language_shares()),
        "law": LANGUAGE_LAW,
        "topics_per_domain": TOPICS,
        **changes,
    }
    return WorkloadConfig(**settings)  # type: ignore[arg-type]


def draw_workload(config: WorkloadConfig, seed: int) -> tuple[World, ExpertActivity]:
    """Draw a world and the activity of `config.requests` requests in it; both follow from the seed alone."""
    whole("seed", seed, 0)
    in_world, in_requests = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    world = draw_world(config.shape, config.law, len(config.shares), in_world, config.topics_per_domain)
    domain = draw_domains(np.array(config.shares), config.requests, in_requests)
    return world, draw_activity(world, domain, config.prompt_tokens, config.decode_steps, in_requests)


def draw_activity(
    world: World, domain: Ints, prompt_tokens: int | Ints, decode_steps: int, rng: np.random.Generator
) -> ExpertActivity:
    """Draw the activity of one request for each entry of `domain`.

    Parameters
    ----------
    world
        The gate.
    domain
        int64, (N,): domain of each request.
    prompt_tokens
        Tokens of a prompt: one number for all, or (N,).
    decode_steps
        Steps of each request.
    rng
        Draws topics and tokens.
    """
    domain = np.asarray(domain, dtype=np.int64)
    if domain.size and not 0 <= domain.min() <= domain.max() < world.num_domains:
        wrong = domain.min() if domain.min() < 0 else domain.max()
        raise InputError(f"a request is of domain {wrong}; expected 0 to {world.num_domains - 1}")
    k = world.shape.experts_per_token
    N, L, E = domain.size, *world.base.shape
    tokens = np.broadcast_to(np.asarray(prompt_tokens, dtype=np.int64), N)
    counts = np.empty((N, L, E), dtype=np.int64)
    prob, logit, decode = np.empty((N, L, E)), np.empty((N, L, E)), np.empty((N, L, E))
    for part in _parts(N, CELLS_AT_A_TIME // (L * E) + 1):
        in_prefill, in_decode = draw_scores(world, domain[part], rng)
        of_part = tokens[part, np.newaxis, np.newaxis]
        counts[part] = picks(in_prefill, tokens[part, np.newaxis], k, rng)
        prob[part] = of_part * _softmax(in_prefill)
        logit[part] = of_part * in_prefill
        decode[part] = picks(in_decode, decode_steps, k, rng) / decode_steps
    return ExpertActivity(counts, prob, logit, decode, domain)


def picks(scores: Floats, tokens: int | Ints, k: int, rng: np.random.Generator) -> Ints:
    """Return how many of `tokens` tokens choose each expert: int64, of the shape of `scores`, (..., E).

    A token takes the k greatest of score + Gumbel noise. Those are the k smallest of X * exp(-score) with X standard
    exponential, which costs one exponential a score and not a logarithm a token.

    Parameters
    ----------
    scores
        float64, (..., E): scores of the experts.
    tokens
        Tokens of each row: one number, or broadcast to the shape of `scores` without its last axis.
    k
        Experts of a token.
    rng
        Draws the noise.
    """
    E = scores.shape[-1]
    if not 1 <= k <= E:
        raise InputError(f"a token is to choose {k} of {E} experts; expected 1 to {E}")
    rows = scores.reshape(-1, E)
    # the greatest score of a row becomes 0, and the least no less than -60: nothing over- or underflows in float32
    scale = np.exp(np.minimum(rows.max(axis=1, keepdims=True) - rows, 60.0)).astype(np.float32)
    chosen = np.zeros(rows.shape, dtype=np.int64)
    of_token = np.repeat(np.arange(len(rows)), np.broadcast_to(tokens, scores.shape[:-1]).ravel())
    for part in _parts(of_token.size, CELLS_AT_A_TIME // E + 1):
        keys = rng.standard_exponential((of_token[part].size, E), dtype=np.float32)
        pick(keys, scale, of_token[part], k, chosen)
    return chosen.reshape(scores.shape)


def expected_union(decode: NDArray[np.float64]) -> Floats:
    """Return the expected distinct experts at each layer in a step of these requests, float64 (L,).

    Requests choose independently, so that is the sum over experts of 1 - prod over requests of (1 - p). With `decode`,
    float64 (B, L, E), estimated from any number of steps of each request alone, the product stays unbiased.
    """
    union: Floats = (1 - np.prod(1 - decode, axis=0)).sum(axis=-1)
    return union


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def _parts(size: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, size)) for start in range(0, size, step))
