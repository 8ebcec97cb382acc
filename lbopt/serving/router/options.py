"""What an operator may set of a router, from three places: the fleet file, named options, and `--set NAME=VALUE`.

A later place wins. Keys are taken from the environment alone, so that they stand in no file and in no list of
processes, and nothing shows them. Every default is chosen so that the router is safe to start with none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from lbopt.exceptions import InputError
from lbopt.kinds import kinds_of, refuse
from lbopt.spec import unknown
from lbopt.studies.configuration import Configuration, Option

#: Options that come from the environment alone, and that nothing shows.
KEYS = ("api_key", "admin_token", "route_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterOptions(Configuration):
    """Options of a router, times in seconds.

    Parameters
    ----------
    api_key
        Key of clients; None = no key is asked for.
    admin_token, route_token
        Token for `/workers`, and one for `/route`, which the first opens, too; without one such a path is closed.
    """

    policy: Annotated[str, Option("Rule, in the text form of `make_policy`.", first=True)] = "auto"
    seed: Annotated[int, Option("Seed of rules that draw.", low=0, high=2**62)] = 0
    fallback: Annotated[str, Option("Rule that decides where one in Python does not in time.")] = "jsq-load"
    decision_seconds: Annotated[float, Option("The time for that.", low=0.001, high=10)] = 0.05
    decide: Annotated[
        str,
        Option(
            "When a group decides: on **arrival** of a request and when a slot is free, or at the end of a **step**.",
            among=("arrival", "step"),
        ),
    ] = "arrival"
    settle_seconds: Annotated[
        float, Option("With step: how long after its first token a step counts as ended.", low=0, high=1)
    ] = 0.001
    step_seconds: Annotated[
        float, Option("With step: how long the end of a step is waited for.", low=0.001, high=60)
    ] = 0.25
    train_on: Annotated[
        str | None, Option("Trace from which predictors learn, where the rule looks ahead.", shown="none")
    ] = None
    host: Annotated[str, Option("Where to listen.", first=True)] = "127.0.0.1"
    port: Annotated[int, Option("Where to listen; 0 = any free one.", first=True, low=0, high=65535)] = 8000
    ttl: Annotated[float, Option("Longest wait in the pool, then 503.", low=0.1, high=86400)] = 120.0
    age_bound: Annotated[
        float,
        Option(
            "Wait in the pool after which a request goes before all younger ones, whatever the rule says; 0 = none.",
            low=0,
            high=86400,
        ),
    ] = 10.0
    max_waiting: Annotated[int, Option("Requests that may wait, then 429.", low=1, high=1_000_000)] = 1024
    retries: Annotated[int, Option("Further attempts.", low=0, high=20)] = 5
    retry_seconds: Annotated[float, Option("Delay before the first of them, which doubles.", low=0.001, high=60)] = 0.05
    retry_cap: Annotated[float, Option("Longest delay.", low=0.001, high=600)] = 2.0
    connect_seconds: Annotated[float, Option("Limit for a connection to an engine.", low=0.01, high=600)] = 5.0
    idle_seconds: Annotated[float, Option("Limit for the time between two chunks.", low=0.05, high=86400)] = 120.0
    request_seconds: Annotated[float, Option("Limit for a request in all.", low=0.05, high=604800)] = 3600.0
    body_bytes: Annotated[int, Option("Largest body of a request.", low=1024, high=2**31)] = 16 * 2**20
    body_seconds: Annotated[float, Option("Time that it may take to arrive.", low=0.05, high=3600)] = 30.0
    header_bytes: Annotated[int, Option("Largest line of its header.", low=1024, high=2**20)] = 16 * 2**10
    held_bytes: Annotated[
        int, Option("What bodies and whole answers may take in all, then 503.", low=2**16, high=2**45)
    ] = 512 * 2**20
    max_connections: Annotated[
        int,
        Option(
            "Connections of clients, then 503; 0 = half of the files that the process may open, less a reserve, and no "
            "more than 16,384.",
            low=0,
            high=1_000_000,
        ),
    ] = 0
    slow_client_seconds: Annotated[
        float, Option("Longest time that a client may leave its answer unread.", low=0.05, high=3600)
    ] = 60.0
    poll_seconds: Annotated[float, Option("How often engines are looked at.", low=0.02, high=600)] = 1.0
    poll_timeout: Annotated[float, Option("How long an answer to that may take.", low=0.02, high=600)] = 2.0
    failures: Annotated[int, Option("In a row, after which an engine counts as down.", low=1, high=1000)] = 3
    drain_seconds: Annotated[float, Option("How long running requests may go on after SIGTERM.", low=0, high=86400)] = (
        30.0
    )
    ask_usage: Annotated[
        bool | None,
        Option(
            "Add `stream_options` to streams that have none, so that engines send usage with every chunk, which is cut "
            "out again.",
            shown="of engines with vLLM's metrics",
        ),
    ] = None
    tokenize: Annotated[bool, Option("Ask an engine for the length of a prompt (`/tokenize`) before it is placed.")] = (
        False
    )
    api_key: str | None = None
    admin_token: str | None = None
    route_token: str | None = None
    record: Annotated[str | None, Option("Folder for the record of decisions.", first=True, shown="none is kept")] = (
        None
    )
    prefixes: Annotated[bool, Option("Record in keyed hashes what prompts begin with.")] = False
    prefix_bytes: Annotated[int, Option("Bytes of a block of these.", low=64, high=2**20)] = 512
    prefix_key: Annotated[str | None, Option("File of the key.", shown="the installation's")] = None
    locality_memory: Annotated[
        int,
        Option(
            "Signatures that a rule that goes by experts remembers of each model, by beginnings of prompts of "
            "`prefix_bytes` a block and by keys; 0 = none.",
            low=0,
            high=1_000_000,
        ),
    ] = 4096
    shadow: Annotated[
        str | None,
        Option(
            "Rule by which requests are forwarded while `policy` decides beside it.",
            first=True,
            shown="`policy` decides",
        ),
    ] = None

    def check(self) -> None:
        """Refuse limits that contradict each other, and keys that are none."""
        if self.body_bytes > self.held_bytes - self.held_bytes // 8:
            raise InputError(f"body_bytes is {self.body_bytes}; expected 7/8 of held_bytes ({self.held_bytes}) or less")
        if self.prefixes and self.record is None:
            raise InputError("prefixes is on and there is no record to tell them; name its folder by --record")
        for name in KEYS:
            value = getattr(self, name)
            if value is not None and (len(value) < 8 or not value.isprintable() or " " in value):
                raise InputError(
                    f"{name} (LBOPT_{name.upper()} in the environment) is too short or not one word; expected at least "
                    "8 printable characters without a space"
                )

    def __repr__(self) -> str:
        values = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in KEYS)
        return f"RouterOptions({', '.join(values)})"


def options_from(table: Mapping[str, Any], given: Mapping[str, Any]) -> RouterOptions:
    """Return the options.

    Parameters
    ----------
    table
        `[router]` of the fleet file.
    given
        Values by name, which go before those of the table; None = not given.

    Raises
    ------
    InputError
        Where a name is unknown or a value cannot be.
    """
    known = [field.name for field in fields(RouterOptions) if field.name not in KEYS]
    for name in table:
        if name in KEYS:
            raise InputError(f"[router] of the fleet file sets {name}; keys come from the environment alone")
        if name not in known:
            raise unknown("option of [router]", name, known)
        refuse(f"[router] {name}", table[name], kinds_of(RouterOptions)[name])
    return RouterOptions(**dict(table) | {name: value for name, value in given.items() if value is not None})
