"""Ends of the ranges of options: the last value that is accepted, and the first that is refused by name."""

import pytest

from lbopt.exceptions import InputError
from lbopt.policies import make_policy

MOST = 2**31

#: (rule, option, values that are accepted, values that are refused); a rule may need other options to be asked.
RANGES = [
    ("auto", "age_weight", [0, 1000], [-1, "1000.1", "nan", "inf"]),
    ("auto", "age_bound", ["none", 0, MOST], [-1, MOST + 1]),
    ("br-0", "stage_switch", [0, MOST], [-1, MOST + 1]),
    ("br-0", "window", [1, 16], [0, 17]),
    ("br-0", "age_bound", ["none", 0, MOST], [-1, MOST + 1]),
    ("br-h", "stage_switch", [0, MOST], ["none", -1, MOST + 1]),
    ("br-h", "window", [1, 16], ["none", 0, 17]),
    ("br-h", "age_bound", ["none", 0, MOST], [-1, MOST + 1]),
    ("br-h", "alpha", ["1e-9", "1e6"], [0, -1, "1000001", "nan"]),
    ("br-h", "beta", [0, "1e6"], [-1, "1000001", "nan"]),
    ("br-h", "gamma", ["0.001", 1], [0, "1.001", "nan"]),
    ("br-h", "growth", [0, 1, 1_000_000], ["none", -1, 1_000_001]),
    ("br-h", "gate", [0, 1], ["-0.1", "1.1"]),
    ("br-h", "floor", [0, 1], [-1]),
    ("br-h", "refresh", ["none", 1], [0]),
    ("br-h", "horizon", [0, 1], [-1]),
    ("br-0-bypass", "overbooking", ["none", 0, MOST], [-1, MOST + 1]),
    ("iqr", "multiplier", [0, "1000"], [-1, "1000.001"]),
    ("bf-io", "age_bound", ["none", 0, MOST], [-1, MOST + 1]),
    ("bf-io", "seed", [0, MOST], [-1, MOST + 1]),
    ("bf-io", "room", [0, MOST], ["none", -1, MOST + 1]),
    ("bf-io", "gamma", [1], [0, "1.001"]),
    ("barrier-time", "alpha", [0, MOST - 1], [-1, MOST]),
    ("barrier-time", "beta", [0, MOST - 1], [-1, MOST]),
    ("fast-phi", "nodes", ["all", 0, 1, MOST], [-1, MOST + 1]),
    ("fast-phi", "longest", ["none", "mean", 0, MOST], [-1, MOST + 1]),
    ("fast-phi:weights=geometric", "gamma", ["0.001", 1], [0, "1.001"]),
    ("fast-phi", "percentile", ["0.001", 100], [0, "100.1"]),
    ("fast-phi", "drift", [0, MOST], [-1, MOST + 1]),
    ("eldr", "tau", [0, 1], ["-0.001", "1.001"]),
]
SPECS = [(rule, option, value, True) for rule, option, good, _ in RANGES for value in good]
SPECS += [(rule, option, value, False) for rule, option, _, bad in RANGES for value in bad]


@pytest.mark.parametrize(("rule", "option", "value", "is_accepted"), SPECS)
def test_the_ends_of_a_range(rule, option, value, is_accepted):
    spec = f"{rule}{',' if ':' in rule else ':'}{option}={value}"
    if is_accepted:
        make_policy(spec)
    else:
        with pytest.raises(InputError, match=rf"{rule.partition(':')[0]}.*{option}|{option} is"):
            make_policy(spec)
