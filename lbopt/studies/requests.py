"""Which requests a study runs: a trace, how many of it, and in which draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.instances import families, open_trace
from lbopt.model import Trace
from lbopt.predictors.rules import LEAST_TRAINING
from lbopt.studies.configuration import Configuration, Option

DRAWS = ("auto", "order", "resample")
DEFAULT_COUNT = 10_000

#: What the seeds of requests to learn from are apart from those of requests that are run.
_OTHER_SEED = 1_000_003


def understood_column(column: str) -> None:
    """Refuse a column without a quantity or without a name."""
    quantity, sign, name = column.partition("=")
    if not (quantity and sign and name):
        raise InputError(f"column '{column}' is not understood; expected QUANTITY=NAME, such as prompt=tokens_in")


def by_quantity(columns: tuple[str, ...]) -> dict[str, str]:
    """Return columns that are given as QUANTITY=NAME, by their quantity."""
    return {text.partition("=")[0]: text.partition("=")[2] for text in columns}


#: The option that names columns of a file.
COLUMN = Option(
    "Column of a quantity of a file, e.g. `prompt=tokens_in`; may be given again.",
    names=("--column",),
    key="column",
    each=understood_column,
    empty=True,
    later="left out",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSource(Configuration):
    """Requests of a study: the first `count` of a file in order, or drawn with replacement by seed.

    Drawn as fits, they are in order where that is enough for one seed. `train_share` is the first share of a file,
    which predictors learn from and which is not run; None leaves it to the study.
    """

    what = "requests"

    trace: Annotated[
        str, Option("A trace file, a fetched trace, or a family: azure-like, burstgpt-like.", argument=True)
    ] = "burstgpt-like"
    count: Annotated[
        int | None,
        Option(
            "How many requests.",
            names=("--requests", "-n"),
            key="requests",
            first=True,
            shown="all of a file, 10000 of a family",
            low=1,
        ),
    ] = None
    draw: Annotated[
        str,
        Option(
            "**order**: as they stand; **resample**: with replacement, by seed; **auto**: as fits.",
            among=DRAWS,
        ),
    ] = "auto"
    format: Annotated[str, Option("Trace format; auto tells it from the content.")] = "auto"
    prompt_column: Annotated[str | None, Option("The same as `--column prompt=`.")] = None
    output_column: Annotated[str | None, Option("The same as `--column output=`.")] = None
    arrival_column: Annotated[str | None, Option("The same as `--column arrival=`.")] = None
    named: Annotated[tuple[str, ...], COLUMN] = ()
    unit: Annotated[
        str | None,
        Option("Unit of arrival times: s, ms, us or ns.", shown="the format's", later="left out"),
    ] = None
    skip_malformed: Annotated[bool, Option("Leave malformed rows out, counted.", names=("--skip-malformed",))] = False
    train_share: Annotated[
        float | None,
        Option(
            "First share of a file to train predictors on, not run.",
            shown="0.2 where one learns in order",
            low=0,
            high=1,
            expected="a share from 0 to less than 1",
        ),
    ] = None
    train_on: Annotated[str | None, Option("Other requests to train predictors on: a file or a family.")] = None

    def check(self) -> None:
        """Refuse requests to learn from that are those that are run."""
        if self.train_share == 1:
            raise InputError("train_share is 1.0; expected a share from 0 to less than 1")
        if self.is_family and self.train_share:
            raise InputError(f"train_share is for files; predictors learn from other requests of '{self.trace}'")
        if self.train_on is not None:
            self._check_other()

    def _check_other(self) -> None:
        """Refuse requests to learn from that are those that are run."""
        if self.train_share:
            raise InputError(
                f"predictors cannot learn both from '{self.train_on}' and from the first {self.train_share:g} of "
                f"'{self.trace}'; give train_on or train_share"
            )
        if not self.is_family and self.train_on is not None and _version(self.train_on)[0] == _version(self.trace)[0]:
            raise InputError(
                f"predictors would learn from the requests of '{self.trace}' that are run; "
                "give train_share, which keeps its first ones for them, or another trace by train_on"
            )

    @property
    def is_family(self) -> bool:
        """Whether the requests are generated, anew for each seed."""
        return self.trace in families.ALL_NAMES

    def draw_for(self, seed: int, *, num_seeds: int = 1) -> Trace:
        """Return the requests of one seed."""
        if self.is_family and self.columns():
            raise InputError(f"columns are of a file, and '{self.trace}' is a family, whose requests are drawn")
        if self.is_family:
            return open_trace(self.trace, count=self.count or DEFAULT_COUNT, seed=seed)
        whole = self._whole()
        whole = whole.part(self._num_training(whole), len(whole))
        count = self.count or len(whole)
        if not self._in_order(len(whole), num_seeds):
            return whole.resampled(count, seed, keep_times=True)
        if num_seeds > 1:
            raise InputError(
                f"{num_seeds} seeds of the same requests in order would be {num_seeds} equal runs; use draw=resample"
            )
        return whole.first(count)

    def in_order(self, *, num_seeds: int = 1) -> bool:
        """Return whether the requests of a file are run as they stand."""
        return not self.is_family and self._in_order(self.num_to_run, num_seeds)

    @property
    def knows_experts(self) -> bool:
        """Whether the requests of a file come with the experts that they use."""
        return self._whole().experts is not None

    @property
    def num_to_run(self) -> int:
        """How many requests of a file are not kept to learn from."""
        whole = self._whole()
        return len(whole) - self._num_training(whole)

    def _in_order(self, size: int, num_seeds: int) -> bool:
        enough = (self.count or size) <= size
        return self.draw == "order" or (self.draw == "auto" and num_seeds == 1 and enough)

    def training_for(self, seed: int, *, num_seeds: int = 1) -> Trace:
        """Return requests to learn from, none of which is run with this seed; see `train_on` and `train_share`.

        Without either, a family and a file that is resampled are drawn from once more, with another seed.
        """
        source = self.trace if self.train_on is None else self.train_on
        if source in families.ALL_NAMES:
            return open_trace(source, count=DEFAULT_COUNT, seed=seed + _OTHER_SEED)
        if self.train_on is not None:
            other = replace(self, trace=self.train_on, train_on=None, train_share=None, count=None, draw="order")
            return other.draw_for(seed + _OTHER_SEED)
        whole = self._whole()
        if self.train_share:
            kept = self._num_training(whole)
            if kept < LEAST_TRAINING:
                raise InputError(
                    f"a share of {self.train_share:g} of the {len(whole)} requests of '{self.trace}' leaves {kept} to "
                    f"train a predictor on; expected at least {LEAST_TRAINING}: give a larger train_share, or other "
                    "requests by train_on"
                )
            return whole.part(0, kept)
        if self._in_order(len(whole), num_seeds):
            raise InputError(
                f"nothing is left of '{self.trace}' to train a predictor on; "
                "give train_share, say 0.2, or other requests by train_on"
            )
        return whole.resampled(DEFAULT_COUNT, seed + _OTHER_SEED)

    def _whole(self) -> Trace:
        return _read_once(replace(self, train_share=None, train_on=None), _version(self.trace))

    def _num_training(self, whole: Trace) -> int:
        return int((self.train_share or 0.0) * len(whole))

    def columns(self) -> dict[str, str] | None:
        """Return the user's columns by their quantity, if there are any."""
        columns = {"prompt": self.prompt_column, "output": self.output_column, "arrival": self.arrival_column}
        return {key: name for key, name in columns.items() if name} | by_quantity(self.named) or None

    def describe(self) -> dict[str, Any]:
        """Return the source as plain data, for `run.json`."""
        return self.to_dict()

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> RequestSource:
        """Rebuild a source from plain data; wrong names raise TypeError."""
        return cls(**data)


def _version(trace: str) -> tuple[str, int, int]:
    """Return what tells one content of a file from another, so that an edited file is read again."""
    try:
        path = Path(trace).resolve()
        status = path.stat()
    except (OSError, ValueError):
        return trace, 0, 0
    return str(path), status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4)
def _read_once(source: RequestSource, _version: tuple[str, int, int]) -> Trace:
    return open_trace(
        source.trace,
        format=source.format,
        columns=source.columns(),
        unit=source.unit,
        skip_malformed=source.skip_malformed,
    )
