"""Configurations from plain data: each value of its kind, numbers of 64 bits, lists of a length that somebody wrote."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from lbopt.exceptions import InputError
from lbopt.studies.configuration import Configuration, Option, from_plain


@dataclass(frozen=True)
class Config(Configuration):
    count: Annotated[int, Option("How many.")]
    share: Annotated[float, Option("Which share.")]
    sizes: Annotated[tuple[int, ...], Option("How large.", empty=True)] = ()


def made(**data):
    return from_plain(Config, {"count": 1, "share": 0.5, "sizes": []} | data, what="a study")


def test_values_of_their_kinds_are_taken():
    assert made(count=2**63 - 1, share=-(2**63), sizes=[3] * 1000).sizes == (3,) * 1000


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"count": 2**63}, "count is 9223372036854775808; expected a finite number, whole ones of 64 bits"),
        ({"count": True}, "count is True; expected a whole number"),
        ({"share": 10**300}, "share is a whole number of 997 bits; expected a finite"),
        ({"sizes": [1, 2**64]}, "sizes is 18446744073709551616; expected a finite"),
        ({"sizes": [1] * 1001}, "sizes has 1,001 entries; expected at most 1,000"),
        ({"count": 0.5}, "count is 0.5; expected"),
    ],
)
def test_others_are_named(data, says):
    with pytest.raises(InputError, match=says):
        made(**data)
