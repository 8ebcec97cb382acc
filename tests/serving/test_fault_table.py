"""The campaign of faults in small: some of its rows before a router in this process, and its readers of answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from serving.engines import COMPILING, becomes, fleet, is_empty, run

from tests.serving.faults.__main__ import cell, main, markdown
from tests.serving.faults.campaign import Account, clients, measure
from tests.serving.faults.engine import FAULTS, HostileEngine, event_of, text_of
from tests.serving.faults.routers import columns
from tests.serving.faults.rows import ROWS
from tests.serving.faults.verdict import CANCELLED, CUT, GARBLED, REFUSED, TOLD, WHOLE, verdict

#: Rows that need no other process and no time.
IN_PROCESS = [
    row.name for row in ROWS if not row.signals and not row.goes and row.fault not in ("slow", "429-retry-after")
]


def through_a_router(name, requests=24):
    """Send the clients of a row through a router before three engines; return the row and the account."""
    (row,) = (replace(row, requests=requests) for row in ROWS if row.name == name)

    async def check():
        faulty = [HostileEngine(fault, row.spacing) for fault in row.faults]
        async with fleet(faulty, slots=8) as (router, _, base):
            account = await clients(row, base, pytest.fail)
            await becomes(lambda: is_empty(router) and not any(engine.running for engine in faulty))
            account.held = len(router.fleet.live)
            return row, account

    return run(check())


@pytest.mark.some(5)
@pytest.mark.parametrize("name", IN_PROCESS)
def test_clients_are_whole_or_told(name):
    """Nobody gets half an event, an end without a word, or nothing; all are in the account."""
    row, account = through_a_router(name)
    assert account.complaints(row) == []
    assert account.sent == account.kinds.total() == 24
    assert account.whole >= 12


def test_clients_that_go_leave_nothing():
    """Their slots come back, and engines stop."""
    _, account = through_a_router("1,000 clients that go", requests=60)
    assert account.kinds == {CANCELLED: 60}


def test_a_row_with_real_processes():
    """An engine is killed; nobody is lost, nothing is held, and the router and all engines are gone with the row."""
    (row,) = (replace(row, requests=12) for row in ROWS if row.name == "SIGKILL of an engine")
    column = next(column for column in columns("round_robin") if column.ours)
    account = run(measure(row, column), COMPILING)
    assert account.complaints(row) == []
    assert account.held == account.running == 0
    assert account.whole >= 6


def stream(*events, rest=b""):
    """Return a stream of some events."""
    return b"".join(map(event_of, events)) + rest


FIRST, SECOND = ({"choices": [{"text": text_of(number)}]} for number in range(2))
ERROR = {"error": {"message": "the engine is gone"}}
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("body", "ended", "expected"),
    [
        (stream(FIRST, SECOND, rest=DONE), True, WHOLE),
        (stream(FIRST, SECOND, rest=DONE), False, WHOLE),  # nothing is lacking
        (stream(FIRST, rest=DONE), True, GARBLED),  # says that it is whole, and is not
        (stream(FIRST, FIRST, rest=DONE), True, GARBLED),
        (stream(FIRST, ERROR), True, TOLD),
        (stream(FIRST, ERROR), False, TOLD),
        (stream(FIRST, {"error": {}}), True, GARBLED),
        (stream(FIRST), True, CUT),
        (stream(FIRST, rest=b'data: {"choi'), False, CUT),
        (stream(FIRST, rest=b'data: {"choi'), True, GARBLED),
        (stream(FIRST, rest=b'data: {"choi' + stream(ERROR)), True, GARBLED),  # an error that is glued to half an event
        (b"", True, CUT),
    ],
)
def test_a_stream_is_read_strictly(body, ended, expected):
    """A half event that an error follows cannot be read by any client."""
    assert verdict(200, b"text/event-stream; charset=utf-8", body, 2, ended=ended) == expected


@pytest.mark.parametrize(
    ("status", "body", "ended", "expected"),
    [
        (200, b'{"choices": [{"text": "t0 t1 "}]}', True, WHOLE),
        (200, b'{"choices": [{"message": {"content": "t0 t1 "}}]}', True, WHOLE),
        (200, b'{"choices": [{"text": "t0 "}]}', True, GARBLED),
        (200, b'{"choices": [{"te', False, CUT),
        (200, b"[]", True, GARBLED),
        (503, b'{"error": {"message": "no worker"}}', True, REFUSED),
        (503, b"no worker", True, REFUSED),
        (503, b"", True, GARBLED),
        (503, b'{"error": {"mess', True, GARBLED),
        (503, b'{"error": {"mess', False, CUT),
        (0, b"", False, CUT),
    ],
)
def test_an_answer_is_read_strictly(status, body, ended, expected):
    """So is what is no stream."""
    assert verdict(status, b"application/json", body, 2, ended=ended) == expected


def test_an_account_complains():
    """A row that another engine can serve has to be whole, and nobody may be missing."""
    (row,) = (row for row in ROWS if row.name == "500")
    account = Account(sent=60, held=1, slowest=8.4)
    account.kinds.update({WHOLE: 40, REFUSED: 18, GARBLED: 1})
    assert account.complaints(row) == [
        "1 garbled",
        "60 clients, 60 sent, 59 in the account",
        "40 of 60 whole",
        "1 requests still held",
    ]
    assert cell(account) == "40 + 18 refused + 1 garbled, 8 s (1 still held)"
    assert markdown(["of 60", "a"], [["500", "60"]]) == "| of 60 | a |\n|---|---|\n| 500 | 60 |\n"


@pytest.mark.parametrize("words", [["--row", "nonsense"], ["--router", "nonsense"], ["--at-once", "0"]])
def test_a_campaign_of_nothing_is_refused(words, monkeypatch, capsys):
    """It would print an empty table and end well."""
    monkeypatch.setattr("sys.argv", ["faults", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words[1] in capsys.readouterr().err


def test_rows_have_faults_that_engines_know():
    """And names of their own."""
    assert {row.fault for row in ROWS} == set(FAULTS)
    assert len({row.name for row in ROWS}) == len(ROWS)
