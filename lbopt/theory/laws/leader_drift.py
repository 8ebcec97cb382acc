r"""What is left by the exact rule below the onset: a law where the theorems say nothing (lbopt).

Far below B* the ends of a step move loads by much more than its admissions can mend. The optimum for a replete pool
(`replete`) then gives the smallest prompts to the worker in front, which sets the pace, and the largest to all others.
So the worker in front drifts, against every other, by

    gamma = p B (s_max - 1)   tokens a step,

and no other worker is steered. Each load makes a random walk: an end takes away s_max + A + 1 tokens, of a request that
came in with the largest prompt, and brings in s_max, so a step has the variance v = p B E[(A+1)^2] = p B (2-p)/p^2.
Workers with equal noise of which the leading one alone has a drift are a model of Atlas (Banner, Fernholz and Karatzas
2005): in the long run the gap between ranks k and k+1 is exponential with mean v G / (2 gamma (G - k)), whatever the
others are. The imbalance counts that gap G - k times, so its G - 1 gaps contribute equally:

    E[Imb] = G (G-1) v / (2 gamma) = G (G-1) (2-p) / (2 p^2 (s_max - 1)).

It does not depend on B. FCFS's imbalance grows as sqrt(B), so the improvement does as well, with another constant than
Theorem 2's. Three things are left out, and bound the range. With b = (2-p) / (p^2 (s_max-1)^2), slots:

* loads also forget themselves, at the rate p; that is slow against the drift where B is well above G^2 b;
* a step's admissions mend a small gap at once; gaps are larger than that where B is well below b / p, and beyond it the
  imbalance collapses to nothing: b / p is of the order of the onset B*;
* a walk whose steps are as long as the gaps is no diffusion; steps are short where b is well above 1, which says that
  outputs are longer than the longest prompt.
"""

from __future__ import annotations


def step_noise(p: float) -> float:
    """Return E[(A+1)^2] = (2-p)/p^2, tokens squared: what one end adds to the variance of a load."""
    return (2 - p) / p**2


def levelled_imbalance(G: int, p: float, s_max: int) -> float:
    """Return the law's imbalance in tokens, for any number of slots in its range."""
    return G * (G - 1) * step_noise(p) / (2 * (s_max - 1))


def natural_slots(p: float, s_max: int) -> float:
    """Return b = (2-p) / (p^2 (s_max-1)^2), in slots: the law needs it to be well above 1."""
    return step_noise(p) / (s_max - 1) ** 2


def levelled_range(G: int, p: float, s_max: int) -> tuple[float, float]:
    """Return the slots well above which, and well below which, the law holds."""
    natural = natural_slots(p, s_max)
    return G**2 * natural, natural / p
