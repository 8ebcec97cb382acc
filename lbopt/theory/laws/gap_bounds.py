"""How far apart loads stay under exact BF-IO, and from how many slots on that says something.

Where the asymptotic regime begins: the slots B* from which levelling beats the noise (lbopt; BF-IO, section 4).

In one step a worker's admissions can move its load, against another's, by about p B (s_max - 1) / 2: it has p B free
slots, and each takes the smallest or the largest prompt. The ends of that step move the loads apart: a worker loses
p B E[Y] on average with a variance of p B E[Y^2], Y the size of a slot after growth, and the spread of G such losses is
about 2 e_G sqrt(p B E[Y^2]). Levelling keeps up where the first is well above the second, that is for B well above

    B* = 16 e_G^2 E[Y^2] / (p (s_max - 1)^2),

about 32 e_G^2 / (p^3 s_max^2) where outputs are longer than prompts. Practice lies below it: with B = 72 and outputs of
57 tokens, p B is 1.3, and B* is of order 10^5.

How far apart loads stay under exact BF-IO: the constants of Lemmas 2 to 4, with nothing left unspecified.

A slot ends with probability p in every step, independently of all else, so the free slots c_g of a step are independent
Bin(B, p) given the past, and its noise R_g - E[R_g] is a sum of B independent terms of at most the envelope M(k-1), the
largest size in a slot after growth.

*Regular steps* (Lemma 2). E_k: every c_g lies within (1 +- delta) p B. By Chernoff its complement has a probability of
2 G exp(-delta^2 p B / 3) at most. With delta = (1 - eta) / (2 s_max - 1) and sizes up to s <= s_max, on E_k

    s min c - (s - 1) max c >= p B (1 - (2 s - 1) delta) >= eta p B,

so a replete pool takes eta p B off the gap, down to s_max - 2.

*Noise* (Lemma 3). D_pre(k) <= (1-p) D(k-1) + 2 max_g |R_g - E R_g|. Bernstein with the variance p (1-p) B M^2 gives,
with t(Lambda) = 4 M sqrt(p (1-p) B Lambda) + (8/3) M Lambda,

    P(D_pre(k) > (1-p) D(k-1) + t(Lambda) | past) <= 2 G exp(-Lambda).

*Average* (Lemma 4, corrected). Ages are at most geometric, so M(k-1) <= M_T = s_max + T + 1 unless a slot is older than
T. Where eta p B - t_B >= (1-p) (s_max - 2), t_B being t(Lambda) at M_T, a step that is regular, quiet and young has
(D(k) - h)^+ <= (1-p) (D(k-1) - h)^+ with h = s_max - 2; any step has D(k) <= B max(M(k-1), s_max). Expectations,
iterated:

    limsup E[D(k)] <= s_max - 2 + eps_B / p,
    eps_B = 2 G B M_T (exp(-delta^2 p B / 3) + exp(-Lambda)) + G B^2 (1-p)^(T+1) (s_max + T + 2 + 1/p),

the last term being B E[(s_max + A + 1) 1{A > T}] over the G B ages A, geometric. eta, Lambda and T are free: the least
bound over them is what the lemma says of a fleet. It is finite only where B is large: with G = 8, from 2^12 slots on at
p = 0.95 and s_max = 2, from 2^20 on at p = 0.5 and s_max = 4.

Source: BF-IO (arXiv 2601.17855), section 4; the correction and the constants are lbopt's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lbopt.theory.laws.normal_maximum import expected_maximum
from lbopt.theory.laws.slot_law import PromptLaw, age_mean, snapshot_variance

#: A theorem for large B is held to account from so many times B* on.
CLEAR = 4


def onset(G: int, p: float, law: PromptLaw, growth: float = 1.0) -> float:
    """Return B*, in slots a worker, for prompts that differ.

    Parameters
    ----------
    G
        Number of workers.
    p
        Probability that a request ends in a step.
    law
        Law of the prompts.
    growth
        Tokens a step.
    """
    mean = float(law.mean) + growth * age_mean(p) + growth  # of a slot's size after growth
    square = snapshot_variance(law, p, growth) + mean**2
    return 16 * expected_maximum(G) ** 2 * square / (p * (law.largest - 1) ** 2)


def outside_onset(G: int, B: int, p: float, law: PromptLaw, growth: float = 1.0) -> str:
    """Return why a fleet lies outside the regime, or nothing where it is inside.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    growth
        Tokens that a running request gains in a step.
    """
    begins = onset(G, p, law, growth)
    return "" if CLEAR * begins <= B else f"B = {B} is below {CLEAR} B* = {CLEAR * begins:,.0f}"


@dataclass(frozen=True, slots=True)
class GapBound:
    """What the corrected Lemma 4 says for one choice of its free parameters.

    Parameters
    ----------
    eta, exponent, age
        eta in (0, 1), Lambda >= 0 and T >= 0 (steps).
    noise
        t_B, tokens.
    holds
        Whether eta p B - t_B >= (1-p) (s_max - 2).
    epsilon
        eps_B, tokens.
    bound
        s_max - 2 + eps_B / p, tokens; infinite where the condition does not hold.
    """

    eta: float
    exponent: float
    age: int
    noise: float
    holds: bool
    epsilon: float
    bound: float


def least_gap(s_max: int) -> int:
    """Return s_max - 2, down to which a good step brings the gap, tokens; loads are whole."""
    return max(0, s_max - 2)


def deviation(eta: float, s_max: int) -> float:
    """Return delta = (1 - eta) / (2 s_max - 1)."""
    return (1 - eta) / (2 * s_max - 1)


def irregular(G: int, B: int, p: float, delta: float) -> float:
    """Return 2 G exp(-delta^2 p B / 3), at most which P(E_k^c) is; 1 or more says nothing.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    """
    return 2 * G * math.exp(-(delta**2) * p * B / 3)


def noise(B: int, p: float, envelope: float, exponent: float) -> float:
    """Return t(Lambda) in tokens, for an envelope in tokens; (18).

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    envelope
        Largest load, tokens.
    """
    return 4 * envelope * math.sqrt(p * (1 - p) * B * exponent) + 8 / 3 * envelope * exponent


def gap_bound(G: int, B: int, p: float, s_max: int, eta: float, exponent: float, age: int) -> GapBound:
    """Return the bound for one choice of eta, Lambda and T.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    eta
        In (0, 1): a regular step takes at least eta p B off the gap.
    age
        T, steps: a slot with an older request counts as old.
    """
    envelope = s_max + age + 1
    t = noise(B, p, envelope, exponent)
    rare = irregular(G, B, p, deviation(eta, s_max)) + 2 * G * math.exp(-exponent)
    old = G * B**2 * (1 - p) ** (age + 1) * (s_max + age + 2 + 1 / p)
    epsilon = B * envelope * rare + old
    left = least_gap(s_max)
    holds = eta * p * B - t >= (1 - p) * left
    return GapBound(eta, exponent, age, t, holds, epsilon, left + epsilon / p if holds else math.inf)


def usual_bound(G: int, B: int, p: float, s_max: int, eta: float = 0.5) -> GapBound:
    """Return the bound for Lambda = 4 log(G B) and T = (4/p) log(G B), the usual choice.

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    eta
        In (0, 1): a regular step takes at least eta p B off the gap.
    """
    log = math.log(G * B)
    return gap_bound(G, B, p, s_max, eta, 4 * log, math.ceil(4 * log / p))


def least_bound(G: int, B: int, p: float, s_max: int) -> GapBound:
    """Return the least bound over a grid of eta and T, each with the largest Lambda that its condition allows.

    With x = sqrt(Lambda) the condition is (8/3) M x^2 + 4 M sqrt(p (1-p) B) x <= eta p B - (1-p) (s_max - 2).

    Parameters
    ----------
    p
        Probability that a request ends in a step.
    s_max
        Largest prompt, tokens.
    """
    etas = np.arange(1, 100) / 100
    longest = max(1, math.ceil(2 * math.log(1e6 * G * B) / -math.log1p(-p)))
    best = gap_bound(G, B, p, s_max, 0.5, 0.0, 0)
    for age in sorted({round(t) for t in np.linspace(0, longest, 200)}):
        M = s_max + age + 1
        linear = 4 * M * math.sqrt(p * (1 - p) * B)
        for eta in etas.tolist():
            room = eta * p * B - (1 - p) * least_gap(s_max)
            if room > 0:
                x = (math.sqrt(linear**2 + 32 / 3 * M * room) - linear) / (16 / 3 * M)
                found = gap_bound(G, B, p, s_max, eta, (1 - 1e-9) * x**2, age)
                best = min(best, found, key=lambda one: one.bound)
    return best
