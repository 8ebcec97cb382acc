r"""Where the asymptotic regime begins: the slots B* from which levelling beats the noise (lbopt; BF-IO, section 4).

In one step a worker's admissions can move its load, against another's, by about p B (s_max - 1) / 2: it has p B free
slots, and each takes the smallest or the largest prompt. The ends of that step move the loads apart: a worker loses
p B E[Y] on average with a variance of p B E[Y^2], Y the size of a slot after growth, and the spread of G such losses is
about 2 e_G sqrt(p B E[Y^2]). Levelling keeps up where the first is well above the second, that is for B well above

    B* = 16 e_G^2 E[Y^2] / (p (s_max - 1)^2),

about 32 e_G^2 / (p^3 s_max^2) where outputs are longer than prompts. Practice lies below it: with B = 72 and outputs of
57 tokens, p B is 1.3, and B* is of order 10^5.
"""

from __future__ import annotations

from lbopt.theory.laws.normal_maximum import expected_maximum
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.slot_law import age_mean, snapshot_variance

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
    G
        Number of workers.
    B
        Slots of a worker.
    p
        Probability that a request ends in a step.
    law
        Law of the prompts.
    growth
        Tokens that a running request gains in a step.
    """
    begins = onset(G, p, law, growth)
    return "" if CLEAR * begins <= B else f"B = {B} is below {CLEAR} B* = {CLEAR * begins:,.0f}"
