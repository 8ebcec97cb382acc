"""What an operator may set of a router; every default is chosen so that the router is safe to start with none."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lbopt.exceptions import InputError
from lbopt.files import shown

#: Options that come from the environment alone, and that nothing shows.
KEYS = ("api_key", "admin_token", "route_token")

#: Options that are numbers, with the ends between which they have a meaning.
_ENDS: dict[str, tuple[float, float]] = {
    "seed": (0, 2**62),
    "port": (0, 65535),
    "ttl": (0.1, 86400),
    "age_bound": (0, 86400),
    "max_waiting": (1, 1_000_000),
    "retries": (0, 20),
    "retry_seconds": (0.001, 60),
    "retry_cap": (0.001, 600),
    "decision_seconds": (0.001, 10),
    "settle_seconds": (0, 1),
    "step_seconds": (0.001, 60),
    "connect_seconds": (0.01, 600),
    "idle_seconds": (0.05, 86400),
    "request_seconds": (0.05, 604800),
    "body_bytes": (1024, 2**31),
    "body_seconds": (0.05, 3600),
    "header_bytes": (1024, 2**20),
    "held_bytes": (2**16, 2**45),
    "max_connections": (0, 1_000_000),
    "slow_client_seconds": (0.05, 3600),
    "poll_seconds": (0.02, 600),
    "poll_timeout": (0.02, 600),
    "failures": (1, 1000),
    "drain_seconds": (0, 86400),
    "prefix_bytes": (64, 2**20),
    "locality_memory": (0, 1_000_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterOptions:
    """Options of a router, times in seconds.

    Parameters
    ----------
    policy, seed
        The rule, in the text form of `make_policy`, and the seed of rules that draw.
    fallback, decision_seconds
        Rule that decides where one in Python has not answered in so many seconds.
    decide
        When a group decides: on "arrival" of a request and whenever a slot is free, or at the end of a "step".
    settle_seconds, step_seconds
        With "step": how long after its first token a step counts as ended, and how long its end is waited for.
    train_on
        Trace from which predictors learn, where the rule looks ahead.
    host, port
        Where to listen; port 0 = any free one.
    ttl
        Longest wait in the pool, then 503.
    age_bound
        Wait in the pool after which a request is placed before all younger ones, whatever the rule says; 0 = none.
    max_waiting
        Requests that may wait, then 429.
    retries, retry_seconds, retry_cap
        Further attempts, the delay before the first of them, which doubles, and the longest delay.
    connect_seconds, idle_seconds, request_seconds
        Limits for a connection to an engine, for the time between two chunks, and for a request in all.
    body_bytes, body_seconds, header_bytes
        Largest body of a request, the time it may take to arrive, and the largest line of its header.
    held_bytes
        What bodies of requests and whole answers may take in all, then 503.
    max_connections
        Connections of clients, then 503; 0 = half of the files that the process may open, less a reserve, and no more
        than 16,384.
    slow_client_seconds
        Longest time that a client may leave its answer unread.
    poll_seconds, poll_timeout, failures
        How often engines are looked at, how long an answer may take, and failures in a row after which one counts as
        down.
    drain_seconds
        How long running requests may go on after SIGTERM.
    ask_usage
        Whether `stream_options` is added to requests that stream and have none, so that engines send usage with every
        chunk.
    tokenize
        Whether an engine is asked for the length of a prompt (`/tokenize`) before it is placed.
    api_key, admin_token, route_token
        Key of clients, None = no key is asked for; token for `/workers`, and one for `/route`, which the first opens,
        too: without one such a door is closed.
    record
        Folder for the record of decisions; None = none is kept.
    prefixes, prefix_bytes, prefix_key
        Whether the record tells in keyed hashes what prompts begin with, the bytes of a block, and the file of the key;
        None = the installation's, see `prefix_key`.
    locality_memory
        Signatures that a rule that goes by experts remembers of each model, by beginnings of prompts of `prefix_bytes`
        a block and by keys; 0 = none.
    shadow
        Rule by which requests really are forwarded while `policy` decides beside it; None = `policy` decides.
    """

    policy: str = "auto"
    seed: int = 0
    fallback: str = "jsq-load"
    decision_seconds: float = 0.05
    decide: str = "arrival"
    settle_seconds: float = 0.001
    step_seconds: float = 0.25
    train_on: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    ttl: float = 120.0
    age_bound: float = 10.0
    max_waiting: int = 1024
    retries: int = 5
    retry_seconds: float = 0.05
    retry_cap: float = 2.0
    connect_seconds: float = 5.0
    idle_seconds: float = 120.0
    request_seconds: float = 3600.0
    body_bytes: int = 16 * 2**20
    body_seconds: float = 30.0
    header_bytes: int = 16 * 2**10
    held_bytes: int = 512 * 2**20
    max_connections: int = 0
    slow_client_seconds: float = 60.0
    poll_seconds: float = 1.0
    poll_timeout: float = 2.0
    failures: int = 3
    drain_seconds: float = 30.0
    ask_usage: bool = False
    tokenize: bool = False
    api_key: str | None = None
    admin_token: str | None = None
    route_token: str | None = None
    record: str | None = None
    prefixes: bool = False
    prefix_bytes: int = 512
    prefix_key: str | None = None
    locality_memory: int = 4096
    shadow: str | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in _ENDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(f"{name} is {shown(value)}; expected {least:g} to {most:g}")
        if self.body_bytes > self.held_bytes - self.held_bytes // 8:
            raise InputError(f"body_bytes is {self.body_bytes}; expected 7/8 of held_bytes ({self.held_bytes}) or less")
        if self.prefixes and self.record is None:
            raise InputError("prefixes is on and there is no record to tell them; name its folder by --record")
        if self.decide not in ("arrival", "step"):
            raise InputError(f"decide is '{self.decide[:40]}'; expected arrival or step")
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
