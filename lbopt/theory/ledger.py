"""Every claim, by name, and how each is proved.

Which claims of the ledger are proved, where, and which theorems of `proofs/theories` a machine has checked of them.

One table says it for all: the ledger's tables and reports read it, the manual's table of proofs repeats it, and
`tests/theory/test_proofs_of_claims.py` compares it with the Coq files and with the pages. An `anchor` is a label of the
manual's chapter *Proofs*, or of *What no rule that does not see the future can do*. `checked` says how much of the
claim the Coq theorems cover: the whole of it, a case that refutes it, or a part, which is named. A claim that is not
here is measured and not proved.

The ledger: every claim by its name, in the order of the report.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.theory.claim import Claim
from lbopt.theory.claims import (
    binding,
    fcfs,
    lemma_1,
    lemma_2,
    lemma_2_steps,
    lemma_3,
    lemma_4,
    moments,
    online,
    pools,
    spacing,
    stale,
    theorems,
    waiting,
    waiting_published,
)

#: The Coq theorems say all that the claim says.
WHOLE = "the whole claim"

#: The claim is false, and the Coq theorem is a counterexample.
REFUTED = "a counterexample"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The proof of a claim, or its refutation.

    Parameters
    ----------
    anchor
        Label in the manual, without the leading ``proof-``.
    coq
        Theorems, as ``File.name`` for ``proofs/theories/File.v``; empty where a machine checked nothing.
    checked
        What these theorems cover: `WHOLE`, `REFUTED`, or the part in a few words.
    """

    anchor: str
    coq: tuple[str, ...] = ()
    checked: str = ""

    def __post_init__(self) -> None:
        if bool(self.coq) != bool(self.checked):
            raise ValueError(f"proof '{self.anchor}': coq is {self.coq} and checked is '{self.checked}'; give both")

    @property
    def label(self) -> str:
        """The label in the manual."""
        return f"proof-{self.anchor}"

    @property
    def names(self) -> tuple[str, ...]:
        """The theorems' names without their files."""
        return tuple(theorem.partition(".")[2] for theorem in self.coq)


_GAPS = ("Lemma2.gap_leximax", "Lemma2.gap_exchange_stable", "Lemma2.gap_plentiful")
_STEP = ("Lemma4.lemma4_step", "Lemma4.lemma4_run", "Lemma4.run_leximax", "Lemma4.run_plentiful")
_AVERAGE = ("Lemma4.lemma4_imbalance", "Lemma4.run_leximax", "Lemma4.run_plentiful")
_CHAIN = "the steps and their average, without the probabilities"

PROOFS: dict[str, Proof] = {
    "theorem-1": Proof(
        anchor="theorem-1",
        coq=("Lemma1.lemma1_every_optimum",),
        checked="the imbalance of a round",
    ),
    "theorem-2": Proof(anchor="theorem-2", coq=_AVERAGE, checked=_CHAIN),
    "theorem-3": Proof(
        anchor="theorem-3", coq=("Lemma2.gap_leximax_fractional",), checked="Lemma 2 for loads that are not whole"
    ),
    "theorem-2-pools": Proof(anchor="theorem-2", coq=_AVERAGE, checked=_CHAIN),
    "fcfs-any-arrivals": Proof(anchor="fcfs-exact"),
    "spacing-law": Proof(anchor="spacing-law"),
    "spacing-floor": Proof(
        anchor="spacing-floor",
        coq=("Spacing.spacing_floor", "Spacing.same_residues"),
        checked="a step, without the ages",
    ),
    "spacing-rate": Proof(anchor="spacing-rate"),
    "lemma-1-printed": Proof(
        anchor="lemma-1-printed", coq=("Counterexamples.printed_lemma1_is_false",), checked=REFUTED
    ),
    "lemma-1": Proof(
        anchor="lemma-1",
        coq=("Lemma1.optimal_least_maximum", "Lemma1.lemma1_leximax", "Lemma1.lemma1_every_optimum"),
        checked=WHOLE,
    ),
    "lemma-2-printed": Proof(
        anchor="lemma-2-printed", coq=("Counterexamples.printed_lemma2_is_false",), checked=REFUTED
    ),
    "lemma-2-leximax": Proof(
        anchor="lemma-2-leximax", coq=("Counterexamples.printed_lemma2_is_false",), checked=REFUTED
    ),
    "lemma-2": Proof(anchor="lemma-2", coq=("Lemma2.gap_replete",), checked=WHOLE),
    "lemma-2-sharp": Proof(anchor="lemma-2-sharp"),
    "lemma-2-two": Proof(anchor="lemma-2", coq=("Lemma2.gap_two_plentiful",), checked=WHOLE),
    "lemma-2-every": Proof(
        anchor="lemma-2-every", coq=("Counterexamples.plain_optimum_above_the_bound",), checked=REFUTED
    ),
    "lemma-2-definition-1": Proof(
        anchor="lemma-2-definition-1", coq=(*_GAPS, "Exchange.least_squares_exchange_stable"), checked=WHOLE
    ),
    "lemma-2-definition-1-sharp": Proof(anchor="lemma-2-definition-1-sharp"),
    "replete-optimum": Proof(anchor="replete-optimum"),
    "lemma-2-steps": Proof(anchor="lemma-2", coq=("Lemma2.gap_replete",), checked="the first of the two bounds"),
    "lemma-2-event": Proof(anchor="lemma-2-event"),
    "lemma-3": Proof(anchor="lemma-3"),
    "lemma-4-printed": Proof(anchor="lemma-4-printed"),
    "lemma-4": Proof(anchor="lemma-4", coq=_STEP, checked=_CHAIN),
    "slot-law": Proof(anchor="slot-law"),
    "fcfs-exact": Proof(anchor="fcfs-exact"),
    "fcfs-drift": Proof(anchor="fcfs-exact"),
    "lemma-8": Proof(anchor="lemma-8"),
    "waiting-single-server": Proof(anchor="waiting-single-server"),
    "waiting-many-servers": Proof(anchor="waiting-many-servers"),
    "waiting-immediate": Proof(anchor="waiting-immediate"),
    "waiting-bounded-passes": Proof(anchor="waiting-bounded-passes"),
    "waiting-round-robin": Proof(anchor="waiting-round-robin"),
    "waiting-round-robin-no-worse": Proof(anchor="waiting-round-robin-no-worse"),
    "waiting-lattice": Proof(anchor="waiting-lattice"),
    "waiting-frozen-pool": Proof(anchor="waiting-lattice"),
    "waiting-spacing": Proof(anchor="waiting-lattice"),
    "waiting-saturated-pool": Proof(anchor="waiting-saturated-pool"),
    "waiting-published": Proof(anchor="waiting-published"),
    "waiting-published-any-load": Proof(anchor="waiting-published-any-load"),
    "waiting-tick-never-worse": Proof(anchor="waiting-tick-never-worse"),
    "waiting-tick-light-load": Proof(anchor="waiting-tick-light-load"),
    "round-robin-adversary": Proof(anchor="round-robin-adversary"),
    "online-barriers": Proof(anchor="online-barriers"),
    "online-placing": Proof(anchor="online-placing"),
    "online-steps": Proof(anchor="online-steps"),
    "online-binding": Proof(anchor="online-binding"),
    "online-randomised": Proof(anchor="online-randomised"),
    "online-randomised-placing": Proof(anchor="online-randomised-placing"),
}


def how_proved(claim: str) -> str:
    """Return how a claim is known, in a few words for a table: ``checked by Coq: gap_replete``, ``proved``, ``–``."""
    proof = PROOFS.get(claim)
    if proof is None:
        return "–"
    if not proof.coq:
        return "proved"
    part = "" if proof.checked == WHOLE else f" ({proof.checked})"
    return f"checked by Coq{part}: {', '.join(proof.names)}"


def briefly_proved(claim: str) -> str:
    """Return the same for a narrow column: ``Coq: gap_leximax and 3 more``, ``Coq, in part: lemma4_imbalance``."""
    proof = PROOFS.get(claim)
    if proof is None or not proof.coq:
        return how_proved(claim)
    first, *more = proof.names
    part = "" if proof.checked in (WHOLE, REFUTED) else ", in part"
    return f"Coq{part}: {first}" + (f" and {len(more)} more" if more else "")


_ALL: tuple[Claim, ...] = (
    *theorems.CLAIMS,
    *pools.CLAIMS,
    *spacing.CLAIMS,
    *lemma_1.CLAIMS,
    *lemma_2.PRINTED,
    *lemma_2.CORRECTED,
    *lemma_2_steps.CLAIMS,
    *lemma_3.CLAIMS,
    *lemma_4.CLAIMS,
    *fcfs.CLAIMS,
    *moments.CLAIMS,
    *stale.CLAIMS,
    *binding.CLAIMS,
    *waiting.CLAIMS,
    *waiting_published.CLAIMS,
    *online.CLAIMS,
)

CLAIMS: dict[str, Claim] = {claim.name: claim for claim in _ALL}

#: Names of earlier versions: commands and stored configurations that have them find the claim that took its place.
ALIASES = {"lemma-2-open": "lemma-2-definition-1"}


def find_claim(name: str) -> Claim:
    """Return the claim of that name or alias; an InputError names the nearest ones."""
    name = ALIASES.get(name, name)
    if name not in CLAIMS:
        near = difflib.get_close_matches(name, CLAIMS, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(f"unknown claim {shown(name, 80)}: {hint}`lbopt show claims` shows all {len(CLAIMS)}")
    return CLAIMS[name]
