"""The forecast of each running request between refreshes: one token less to come with every token made.

BalanceRoute, section 4.3. A request is due for a refresh when it is new, when `period` tokens were made since the last
one, or when its forecast has fallen below the floor although it goes on. Between refreshes the forecast falls by the
tokens made; one that stands at the anchor H ("outlives the window") falls too, as the text has it, or is held there.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel

# columns of `seen`
AT_LAST = 0  # tokens generated when the request was last seen; -1 = never
AT_REFRESH = 1  # tokens generated at its last refresh
ANCHORED = 2  # 1 where that refresh said that it outlives the window


@kernel
def age(
    requests: Ints, generated: Ints, period: int, hold: bool, floor: float, remaining: Floats, seen: Ints, due: Ints
) -> int:
    """Let every forecast fall; write the positions of those due for a refresh into `due` and return how many.

    `requests` and `generated` are int64 (A,); `remaining` float64 (N,) and `seen` int64 (N, 3), indexed by request
    number, are changed in place.
    """
    count = 0
    for position in range(requests.size):
        i = requests[position]
        made = generated[position]
        last = seen[i, AT_LAST]
        seen[i, AT_LAST] = made
        if last >= 0:
            if not (hold and seen[i, ANCHORED]):
                remaining[i] -= made - last
            if made - seen[i, AT_REFRESH] < period and remaining[i] >= floor:
                continue
        due[count] = position
        count += 1
    return count


@kernel
def accept(
    requests: Ints,
    generated: Ints,
    due: Ints,
    p: Floats,
    mu: Floats,
    horizon: int,
    gate: float,
    floor: float,
    remaining: Floats,
    seen: Ints,
) -> None:
    """Set the forecasts of the requests at positions `due` from their p and mu, both float64 (due.size,).

    (1 - p) H + p mu, held between 0 and H, where p reaches the gate; else H, the anchor. Never below `floor`. Where H
    comes from p = 1 and mu = H it is no anchor: the request is to end with the last step of the window.
    """
    for d in range(due.size):
        position = due[d]
        i = requests[position]
        value = float(horizon)
        if p[d] >= gate:
            value = min(max((1.0 - p[d]) * horizon + p[d] * mu[d], 0.0), float(horizon))
        seen[i, ANCHORED] = 1 if p[d] < gate or p[d] == 0 else 0
        seen[i, AT_REFRESH] = generated[position]
        remaining[i] = max(value, floor)
