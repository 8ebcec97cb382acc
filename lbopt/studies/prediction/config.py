"""What a prediction study is asked to do, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.files import repeated
from lbopt.predictors import check_predictor
from lbopt.predictors.predictor import LONGEST_HORIZON
from lbopt.studies.configuration import Option, Without, from_plain
from lbopt.studies.requests import RequestSource

DEFAULT_PREDICTORS = ("survival", "memorised", "memorised:bins=20", "learned")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionConfig:
    """Configuration of a prediction study.

    Parameters
    ----------
    requests
        Which requests; always in order, because drawing with replacement would put a request into both parts.
    horizon
        H, the window that predictors speak of, steps, at least 1.
    predictors
        Texts for `make_predictor`, in the order in which tables show them.
    train_share
        Share of the requests, the first ones, that predictors learn from; the others judge them.
    stride
        Tokens between two ages at which a request is asked about.
    seed
        Draws the requests of a family.
    """

    requests: Annotated[RequestSource, Without.of("draw", "train_share", "train_on")] = field(
        default_factory=RequestSource
    )
    horizon: Annotated[int, Option("Steps that predictors look ahead.", names=("--horizon", "-H"))] = 80
    predictors: Annotated[
        tuple[str, ...], Option("Predictor to judge, e.g. `memorised:bins=20`; may be given again.", key="predictor")
    ] = DEFAULT_PREDICTORS
    train_share: Annotated[float, Option("Share of the requests, the first, to learn from.")] = 0.5
    stride: Annotated[int, Option("Tokens between two ages at which a request is asked about.")] = 10
    seed: Annotated[int, Option("First seed.", first=True)] = 0

    def __post_init__(self) -> None:
        if not 1 <= self.horizon <= LONGEST_HORIZON:
            raise InputError(f"horizon is {self.horizon}; expected 1 to {LONGEST_HORIZON} steps")
        if not 0 < self.train_share < 1:
            raise InputError(f"train share is {self.train_share}; expected a share of the requests between 0 and 1")
        if not 1 <= self.stride <= LONGEST_HORIZON:
            raise InputError(f"stride is {self.stride}; expected 1 to {LONGEST_HORIZON} tokens")
        if self.seed < 0:
            raise InputError(f"seed is {self.seed}; expected zero or more")
        if not self.predictors:
            raise InputError("no predictor is named; name some, such as survival and memorised")
        for spec in self.predictors:
            check_predictor(spec)
        if (doubled := repeated(self.predictors)) is not None:
            raise InputError(f"predictor '{doubled}' is named twice")
        if self.requests.draw == "resample":
            raise InputError("a resampled trace has the same request before and after; take requests in order")
        object.__setattr__(self, "requests", replace(self.requests, draw="order"))

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return data | {"requests": self.requests.describe(), "predictors": list(self.predictors)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, source: str = "the configuration") -> PredictionConfig:
        """Rebuild a configuration."""
        return from_plain(cls, data, what="a prediction study", source=source, parts={"requests": RequestSource.of})
