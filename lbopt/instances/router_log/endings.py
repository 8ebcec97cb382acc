"""Words of status columns as endings: finish reasons of engines, states of routers, codes of HTTP and of spans."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.instances.router_log.distinct import coded
from lbopt.instances.router_log.guess import Choice
from lbopt.instances.router_log.log import CANCELLED, FINISHED, PREEMPTED, RETRIED, TIMED_OUT
from lbopt.instances.router_log.numbers import NOTHING
from lbopt.instances.router_log.table import Table

UNKNOWN = "unknown"

#: Share of rows with an unknown word from which on the log is refused.
LARGEST_UNKNOWN = 0.01

_WORDS = {
    FINISHED: "finished finish stop stopped length lengthcapped ok success successful succeeded complete completed "
    "done eos eostoken endoftext endturn maxtokens stopsequence stopstring toolcalls toolcall tooluse functioncall "
    "contentfilter finishedstopped finishedlengthcapped statuscodeok true served matched unset statuscodeunset",
    CANCELLED: "abort aborted cancel canceled cancelled clientdisconnect clientdisconnected disconnect disconnected "
    "clientclosedrequest finishedaborted interrupted killed",
    TIMED_OUT: "timeout timedout deadlineexceeded gatewaytimeout requesttimeout expired",
    PREEMPTED: "preempt preempted preemption evict evicted recompute recomputed swapped retracted",
    RETRIED: "retry retried resubmitted redispatched rerouted",
    "error": "error failed fail failure exception internalerror internalservererror statuscodeerror rejected dropped "
    "unavailable serviceunavailable badgateway oom crashed false finishederror finishedignored ignored",
    "": "running inprogress active decoding pending streaming started",
}
_ENDING_OF = {word: ending for ending, words in _WORDS.items() for word in words.split()}


def read_endings(table: Table, choice: Choice | None) -> tuple[NDArray[np.object_], list[str]]:
    """Return the ending that the status columns say of each row, and notes.

    An ending is "" where no word is or the word says that the request still ran, and `UNKNOWN` for few unknown words.
    """
    said = np.full(len(table), "", dtype=object)
    notes: list[str] = []
    errors = np.zeros(len(table), dtype=bool)
    for name in choice.names if choice else ():
        words, codes = coded(table.columns[name])
        meanings = np.array([_meaning(word) for word in words], dtype=object)
        found = meanings[codes]
        unknown = found == UNKNOWN
        if unknown.mean() >= LARGEST_UNKNOWN:
            row = int(np.argmax(unknown))
            raise InputError(
                f"{table.where(row)}: {name} is {shown(table.columns[name][row])}, which says no ending that is known; "
                "expected words such as finished, cancelled, timeout, or name another column: --column status=NAME "
                "(--column status=- reads none)"
            )
        errors |= found == "error"
        found[found == "error"] = CANCELLED
        better = (said == "") | ((said == FINISHED) & (found != ""))
        said[better] = found[better]
    if count := int(np.count_nonzero(errors)):
        notes.append(f"{count:,} attempts failed with an error; they count as cancelled")
    return said, notes


def _meaning(text: str) -> str:
    bare = text.strip().lower()
    if bare in NOTHING:
        return ""
    if match := re.search(r"['\"]type['\"]\s*:\s*['\"](\w+)['\"]", bare):  # a dictionary written as text
        bare = match[1]
    if re.fullmatch(r"[1-5]\d\d(\.0)?", bare):
        code = int(bare[:3])
        if code in (408, 504):
            return TIMED_OUT
        return CANCELLED if code == 499 else FINISHED if code < 400 else "error"
    word = re.sub(r"[^a-z0-9]", "", bare.rsplit(".", 1)[-1])
    return _ENDING_OF.get(word, UNKNOWN)
