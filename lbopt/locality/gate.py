"""The gates of a synthetic mixture-of-experts model: what the score of an expert is made of.

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
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError

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
        for field in fields(self):
            check_whole(field.name, getattr(self, field.name), 1)
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
        check_whole("generalists", self.generalists, 0)
        for field in fields(self):
            value = getattr(self, field.name)
            if not np.isfinite(value) or (value < 0 and field.name != "generalist_height"):
                raise InputError(f"{field.name} is {value!r}; expected a finite number, 0 or more")


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
    check_whole("num_domains", num_domains, 1)
    check_whole("topics_per_domain", topics_per_domain, 1)
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


def check_whole(name: str, value: int, least: int) -> None:
    """Refuse a `value` that is no whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number, {least} or more")


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
