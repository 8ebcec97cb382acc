"""The forecast of each running request between refreshes: one token less to come with every token made.

BalanceRoute, section 4.3. A request is due for a refresh when it is new, when `period` tokens were made since the last
one, or when its forecast has fallen below the floor although it goes on. Between refreshes the forecast falls by the
tokens made; one that stands at the anchor H ("outlives the window") falls too, as the text has it, or is held there.
"""

from lbopt.kernels.arrays import Floats, Ints
from lbopt.kernels.compile import kernel
from lbopt.kernels.forecast.state import Gate, Seen


@kernel
def age(
    requests: Ints, generated: Ints, period: int, hold: bool, floor: float, remaining: Floats, seen: Seen, due: Ints
) -> int:
    """Let every forecast fall; write the positions of those due for a refresh into `due` and return how many.

    Parameters
    ----------
    requests, generated
        int64 (A,), numbers of the running requests, and their tokens so far.
    period, hold, floor
        Tokens between refreshes; whether a forecast of H is held; least forecast, tokens.
    remaining
        float64 (N,), forecast of each request, tokens; changed in place.
    seen
        Arrays of N; changed in place.
    due
        int64 (A,), written.
    """
    count = 0
    for position in range(requests.size):
        i = requests[position]
        made = generated[position]
        last = seen.at_last[i]
        seen.at_last[i] = made
        if last >= 0:
            if not (hold and seen.anchored[i]):
                remaining[i] -= made - last
            if made - seen.at_refresh[i] < period and remaining[i] >= floor:
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
    gate: Gate,
    remaining: Floats,
    seen: Seen,
) -> None:
    """Set the forecasts of the requests at positions `due` from their p and mu, both float64 (due.size,).

    (1 - p) H + p mu, held between 0 and H, where p reaches the gate; else H, the anchor. Never below `floor`. Where H
    comes from p = 1 and mu = H it is no anchor: the request is to end with the last step of the window.

    Parameters
    ----------
    requests, generated
        int64 (A,), numbers of the running requests, and their tokens so far.
    due
        int64, positions among them.
    p, mu
        float64 (due.size,), chance to end within the window, and the mean steps until then.
    remaining
        float64 (N,), forecast of each request, tokens; changed in place.
    seen
        Arrays of N; changed in place.
    """
    horizon = gate.horizon
    for d in range(due.size):
        position = due[d]
        i = requests[position]
        value = float(horizon)
        if p[d] >= gate.least:
            value = min(max((1.0 - p[d]) * horizon + p[d] * mu[d], 0.0), float(horizon))
        seen.anchored[i] = 1 if p[d] < gate.least or p[d] == 0 else 0
        seen.at_refresh[i] = generated[position]
        remaining[i] = max(value, gate.floor)
