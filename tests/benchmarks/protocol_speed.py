"""Time of an event of the triple check after many requests: thread CPU time, with the past and without it.

    python tests/benchmarks/protocol_speed.py 1000000
    python tests/benchmarks/protocol_speed.py 1000000 ahead

A request is three events: it arrives, its first token comes, the pass ends.
"""

import sys
import time

from lbopt.prefill.protocol import ProtocolSetting, TripleCheck, initial_state
from lbopt.prefill.protocol.messages import Arrival, EndForward, FirstToken, Send

#: Requests that are timed together.
BATCH = 20_000


def main(requests: int, dispatch: str = "ready", instances: int = 10, remembered: int = 4096) -> None:
    """Print microseconds an event, early and late in the run."""
    setting = ProtocolSetting(instances, window=50, batch_tokens=3000, remembered=remembered, dispatch=dispatch)
    scheduler = TripleCheck(setting)
    state, now, held = initial_state(scheduler.setting), 0.0, {}
    for first in range(0, requests, BATCH):
        began, events = time.thread_time(), 0
        for request in range(first, min(first + BATCH, requests)):
            now += 0.02
            state, actions = scheduler.step(state, Arrival(now, request, 100))
            events += 1
            for (g, seq), (waiting, ends) in tuple(held.items()):
                if now < ends:
                    continue
                del held[g, seq]
                for one in waiting:
                    state, more = scheduler.step(state, FirstToken(now, g, seq, one, 1))
                    actions += more
                state, more = scheduler.step(state, EndForward(now, g, seq, 0.9, 0, 1))
                actions += more
                events += len(waiting) + 1
            for action in actions:
                if isinstance(action, Send):
                    g = action.instance
                    # Whoever comes while a pass runs is in the next one.
                    busy = max((until for (other, _), (_, until) in held.items() if other == g), default=now)
                    held[g, action.seq] = action.requests, busy + 0.9
        spent = time.thread_time() - began
        if first % (10 * BATCH) == 0 or first + BATCH >= requests:
            each, still = 1e6 * spent / events, len(state.ledger.entries)
            print(f"{first + BATCH:>9,} requests: {each:5.1f} us an event, {still} open")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, *sys.argv[2:3])
