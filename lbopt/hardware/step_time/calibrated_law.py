"""The calibrated law in its barrier form: the nominal law of a price, for a simulation step by step.

`lbopt.hardware.calibrated` learnt the law from measured steps, all of whose workers were alike. Its parts are sums over
features, so each goes to where it belongs in a step of unequal workers:

* attention: per token of a worker's own load;
* what every worker reads whole, reductions, prompts and bookkeeping: by a worker's running requests, inside of the
  maximum; so are experts that each worker holds;
* experts that are spread over workers, dispatch and combine: by the running requests of the fleet, outside of it;
* launches and scheduler: fixed.

Where all workers hold and run the same, this is the calibrated law; `lbopt cost` prices with the same numbers. All
parameters have their mean values; a simulation has one law, and intervals are the price's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.cards import device_card, model_card
from lbopt.hardware.step_time.barrier_form import BarrierForm, number_text
from lbopt.hardware.step_time.step_work import DecodeStep, Deployment, Formats

if TYPE_CHECKING:  # it is made of the laws of this package
    from lbopt.hardware.calibrated import StepFeatures

Values = NDArray[np.float64]

#: What does not depend on load or requests.
_FIXED = ("layers", "latent", "years", "early", "family")
_ATTENTION = ("attention_read", "attention_compute")
_EXPERTS = ("expert_read", "expert_compute")
_EXCHANGE = ("exchange_calls", "exchange_send")
#: What says how the features count, and is no work itself.
_MARKS = ("spread", "beyond", "overlap")


@dataclass(frozen=True, slots=True)
class CalibratedStepTime:
    """Seconds of a step of a model on a device, by the calibrated law at its mean parameters.

    Parameters
    ----------
    device, model
        Names or paths of cards.
    deployment
        How the one stands on the other; what it says of messages counts nothing here.
    overlap
        Whether messages between experts overlap with computation; how much that hides was learnt.
    balancedness
        Mean over maximum of the tokens that devices get for their experts; None = what measured clusters have.
    prompt_share
        Prompt tokens that the same devices compute for every output token.
    """

    device: str = "h800"
    model: str = "deepseek-v3"
    deployment: Deployment = field(default_factory=Deployment)
    overlap: bool = False
    balancedness: float | None = None
    prompt_share: float = 0.0

    def __post_init__(self) -> None:
        if self.balancedness is not None:
            replace(self.deployment, balancedness=self.balancedness)  # refuses what no deployment has
        if not 0 <= self.prompt_share < math.inf:
            raise InputError(f"prompt_share is {self.prompt_share}; expected a finite number of zero or more")
        self.form(1, 1)  # asks the cards for every constant that the law needs

    @property
    def name(self) -> str:
        """As users name it."""
        queries, put = self.query_tokens, self.deployment
        parts = put.words(self.device, self.model)
        parts += [] if self.balancedness is None else [f"balancedness={number_text(self.balancedness)}"]
        parts += [] if queries == 1 else [f"query_tokens={queries}"]
        parts += ["overlap=yes"] if self.overlap else []
        parts += [f"prompt_share={number_text(self.prompt_share)}"] if self.prompt_share else []
        return "calibrated:" + ",".join(parts)

    @property
    def query_tokens(self) -> int:
        """Tokens of a request that a step computes."""
        return self.deployment.query_tokens

    def form(self, num_workers: int, slots_per_worker: int) -> BarrierForm:
        """Return the barrier form for G workers of B slots."""
        # A card of one's own is a file, which may change: what it says is part of the key.
        cards = repr((device_card(self.device), model_card(self.model)))
        return _form(self, cards, num_workers, slots_per_worker)

    def describe(self) -> dict[str, Any]:
        """Return the law as plain data, every parameter with it."""
        from lbopt.hardware.calibrated import PARAMETERS

        parameters, effects = self.parameters()
        named = {parameter.name: float(value) for parameter, value in zip(PARAMETERS, parameters, strict=True)}
        put, own = self.deployment, {f.name: getattr(self, f.name) for f in fields(self) if f.name != "deployment"}
        placed = ("devices_per_worker", "expert_parallel", "kv_bytes", "weight_bytes", "query_tokens")
        options = {"device": self.device, "model": self.model} | {name: getattr(put, name) for name in placed} | own
        return {"kind": "calibrated", **options, "parameters": named, "effects": [float(value) for value in effects]}

    def parameters(self) -> tuple[Values, Values]:
        """Return the mean parameters in the order of the calibrated law's, transformed, and the run's two effects."""
        from lbopt.hardware.calibrated import PARAMETERS, shipped_posterior

        mean = shipped_posterior().mean
        parameters = np.array(mean[:-2])
        if self.balancedness is not None:
            hot = next(place for place, parameter in enumerate(PARAMETERS) if parameter.name == "hot")
            parameters[hot] = -math.log(self.balancedness)
        return parameters, np.array(mean[-2:])

    def step(self, num_workers: int, running: float, context_tokens: float) -> DecodeStep:
        """Return a step of G workers that each run so many requests of so many tokens."""
        put = self.deployment
        formats = Formats.of(model_card(self.model), put.kv_bytes, put.weight_bytes)
        return DecodeStep(
            device=self.device,
            model=self.model,
            devices=put.devices_per_worker * num_workers,
            tp=put.devices_per_worker,
            expert_parallel=put.expert_parallel,
            expert_bytes=formats.expert_bytes,
            common_bytes=formats.common_bytes,
            kv_bytes=formats.kv_bytes,
            running=running,
            context_tokens=context_tokens,
            prompt_share=self.prompt_share,
            drafted=float(self.query_tokens),
            overlap=self.overlap,
        )


@lru_cache(maxsize=16)
def _form(law: CalibratedStepTime, cards: str, num_workers: int, slots_per_worker: int) -> BarrierForm:
    """Return the barrier form; its tables have a row for every number of running requests."""
    from lbopt.hardware.calibrated import StepFeatures, features_of, step_parts

    device, model = device_card(law.device), model_card(law.model)
    parameters, effects = law.parameters()

    def features(requests: Sequence[float]) -> StepFeatures:
        steps = (law.step(num_workers, running, 1 / running) for running in requests)
        return StepFeatures.of_rows([features_of(step, device, model) for step in steps])

    def seconds(of: StepFeatures, kept: Sequence[str]) -> Values:
        """Return the seconds of the features in `kept` and of what is fixed; all others count nothing."""
        columns = {f.name: getattr(of, f.name) for f in fields(of)}
        shown = (*kept, *_FIXED, *_MARKS)
        return step_parts(
            parameters, StepFeatures(**{name: v if name in shown else np.zeros_like(v) for name, v in columns.items()})
        ).of_run(effects)

    together = law.deployment.expert_parallel and bool(model.moe_layers)
    common = (*_EXCHANGE, *(_EXPERTS if together else ()))
    alone = [f.name for f in fields(StepFeatures) if f.name not in (*common, *_ATTENTION, *_FIXED, *_MARKS)]
    own = features(range(1, slots_per_worker + 1))
    shared = features([active / num_workers for active in range(1, num_workers * slots_per_worker + 1)])
    fixed = float(seconds(own.take(np.array([0])), ())[0])
    return BarrierForm(
        fixed,
        float(seconds(own.take(np.array([0])), _ATTENTION)[0]) - fixed,
        of_running=np.concatenate([[0.0], seconds(own, alone) - fixed]),
        of_active=np.concatenate([[0.0], seconds(shared, common) - fixed]) if together else np.zeros(0),
    )
