"""Keyed hashes of what prompts begin with: equal beginnings are told, and words are not."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving.engines import Engine, becomes, fleet, is_empty, run
from typer.testing import CliRunner

from lbopt.cli import app
from lbopt.exceptions import InputError
from lbopt.instances import open_trace
from lbopt.serving.record.seal import prefix_trace, seal
from lbopt.serving.record.writer import MOST_BLOCKS, PrefixHasher, default_key_path, prefix_key
from lbopt.serving.router.options import RouterOptions

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
SYSTEM = "You are a helpful assistant of the secretarial department. " * 40


def hashes(prompt, key=KEY, block=64, model="m"):
    return PrefixHasher(key, block).of({"prompt": prompt}, model, chat=False).hashes


@given(st.text(max_size=400), st.text(max_size=200), st.text(max_size=200))
def test_as_many_hashes_are_equal_as_beginnings_are(start, one, other):
    """The number of equal hashes is the number of full blocks of the common bytes."""
    first, second = (start + one).encode(), (start + other).encode()
    common = 0
    while common < min(len(first), len(second)) and first[common] == second[common]:
        common += 1
    a, b = hashes(start + one, block=16), hashes(start + other, block=16)
    assert (len(a), len(b)) == (len(first) // 16, len(second) // 16)
    equal = sum(x == y for x, y in zip(a, b, strict=False))
    assert equal == common // 16
    assert a[:equal] == b[:equal], "and they are the first ones"


def test_a_hash_depends_on_key_model_and_kind():
    """Another key, model or kind of prompt: no hash in common; the same: the same."""
    assert hashes(SYSTEM) == hashes(SYSTEM)
    others = [hashes(SYSTEM, OTHER), hashes(SYSTEM, model="n"), hashes(list(SYSTEM.encode()))]
    for other in others:
        assert not set(hashes(SYSTEM)) & set(other)
    plain = hashlib.blake2b(SYSTEM[:64].encode(), digest_size=8).hexdigest()
    assert plain not in hashes(SYSTEM)
    assert KEY.hex() not in repr(PrefixHasher(KEY, 64))
    assert len(hashes("x" * 64 * (MOST_BLOCKS + 5))) == MOST_BLOCKS


def test_a_chat_is_its_tools_and_messages_in_their_order():
    """A longer conversation begins with the shorter one; another tool is another beginning."""
    hasher = PrefixHasher(KEY, 64)

    def of(*turns, **more):
        messages = [{"role": "system", "content": SYSTEM}, *({"role": "user", "content": turn} for turn in turns)]
        return hasher.of({"messages": messages} | more, "m", chat=True)

    short, long = of("a" * 100), of("a" * 100, "b" * 300)
    assert long.hashes[: len(short.hashes)] == short.hashes
    assert len(long.hashes) > len(short.hashes)
    assert not set(of("a" * 100, tools=[{"type": "function"}]).hashes) & set(short.hashes)
    parts = [{"type": "text", "text": "x" * 200}, {"type": "image_url", "image_url": {"url": "data:..."}}]
    assert hasher.of({"messages": [{"role": "user", "content": parts}]}, "m", chat=True).hashes
    for body in ({}, {"messages": []}, {"messages": ["x"]}, {"messages": 3}):
        assert hasher.of(body, "m", chat=True) is None
    for prompt in (None, 3, ["a", "b"], [[1], [2]], [], {}, [True]):
        assert hasher.of({"prompt": prompt}, "m", chat=False) is None
    assert hasher.of({"prompt": [[1, 2, 3]]}, "m", chat=False).kind == "tokens"


def test_the_key_is_made_once_and_is_its_owners_alone(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "prefix.key"
    key = prefix_key(path)
    assert len(key) == 32
    assert prefix_key(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["prefix.key"], "nothing is left beside it"
    path.chmod(0o644)
    with pytest.raises(InputError, match="may be read by others; make it yours alone: chmod 600"):
        prefix_key(path)
    path.chmod(0o600)
    path.write_text("abc\n")
    with pytest.raises(InputError, match="is not 64 hexadecimal digits"):
        prefix_key(path)
    with pytest.raises(InputError, match="cannot be read or made"):
        prefix_key(tmp_path / "deep" / "prefix.key" / "below")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if os.name == "posix":
        assert default_key_path() == tmp_path / "data" / "lbopt" / "prefix.key"


def test_routers_that_start_at_once_have_one_key(tmp_path):
    async def check():
        made = await asyncio.gather(*(asyncio.to_thread(prefix_key, tmp_path / "key") for _ in range(16)))
        assert len(set(made)) == 1

    run(check())


def served(folder, key, **options):
    """Serve conversations that share their beginning, and return what the router logged."""
    said = []
    keeper = logging.Handler()
    keeper.emit = lambda record: said.append(record.getMessage())

    async def check():
        engine = Engine(tokens=3, prompt_tokens=600)
        given = {"record": str(folder), "prefixes": True, "prefix_key": str(key)} | options
        async with fleet([engine], slots=4, **given) as (router, client, base):
            for n in range(12):
                body = {"model": "m", "prompt": SYSTEM + f"secret-{n % 3} " * 30, "stream": True}
                body["stream_options"] = {"include_usage": True}
                async with client.post(base + "/v1/completions", json=body) as answer:
                    assert answer.status == 200
                    await answer.read()
                assert body["prompt"].encode() in engine.requests[-1][2] or n > 0
            await becomes(lambda: is_empty(router))

    logging.getLogger().addHandler(keeper)
    try:
        run(check())
    finally:
        logging.getLogger().removeHandler(keeper)
    return said


def test_a_record_tells_prefixes_and_no_words(tmp_path):
    """No word, no key and no unkeyed hash; the sealed trace has the prefixes, and a simulation goes by them."""
    key = tmp_path / "key"
    said = served(tmp_path / "record", key)
    text = b"".join(path.read_bytes() for path in (tmp_path / "record").iterdir())
    secret = key.read_text().strip().encode()
    for word in (b"secret", b"secretarial", b"helpful", secret, secret[:16]):
        assert word not in text
        assert not any(word.decode() in line for line in said)
    for size in (64, 512, len(SYSTEM)):
        for algorithm in ("md5", "sha1", "sha256", "blake2b"):
            assert hashlib.new(algorithm, SYSTEM[:size].encode()).hexdigest()[:16].encode() not in text
    rows = [json.loads(line) for line in (tmp_path / "record" / "decisions.jsonl").read_text().splitlines()]
    fingerprint = PrefixHasher(prefix_key(key), 512).fingerprint
    assert rows[0]["prefixes"] == {"bytes": 512, "key": fingerprint}
    told = [row["prefix"] for row in rows if row["kind"] == "outcome"]
    assert told[0] == told[3] != told[1]
    assert told[0][:4] == told[1][:4]

    sealed = seal(str(tmp_path / "record"), str(tmp_path / "out"))
    assert sealed.prefixes == 12
    trace = open_trace(str(tmp_path / "out" / "trace.jsonl"))
    assert trace.prefixes is not None
    assert (trace.prompt == 600).all()
    blocks = [
        trace.prefixes.blocks[a:b].tolist()
        for a, b in zip(trace.prefixes.first, trace.prefixes.first[1:], strict=False)
    ]
    assert all(len(found) == 1 for found in blocks), "600 tokens fill one block of 512"
    assert "prefix" not in (tmp_path / "out" / "requests.csv").read_text()
    done = CliRunner().invoke(app, ["export", str(tmp_path / "record"), "--out", str(tmp_path / "again")])
    assert "trace.jsonl: 12 finished requests with their prefixes" in done.output


def test_the_same_key_gives_the_same_hashes_in_another_life(tmp_path):
    key = tmp_path / "key"
    told = []
    for name in ("one", "two"):
        served(tmp_path / name, key)
        rows = [json.loads(line) for line in (tmp_path / name / "decisions.jsonl").read_text().splitlines()]
        told.append(sorted(row["prefix"] for row in rows if row["kind"] == "outcome"))
    assert told[0] == told[1]
    served(tmp_path / "three", tmp_path / "another")
    assert told[0][0][0] not in (tmp_path / "three" / "decisions.jsonl").read_text()


def test_without_the_option_there_are_no_hashes_and_no_key(tmp_path):
    served(tmp_path / "record", tmp_path / "key", prefixes=False)
    assert not (tmp_path / "key").exists()
    assert '"prefix"' not in (tmp_path / "record" / "decisions.jsonl").read_text()
    assert seal(str(tmp_path / "record")).prefixes == 0
    assert not (tmp_path / "record" / "trace.jsonl").exists()
    with pytest.raises(InputError, match="prefixes is on and there is no record"):
        RouterOptions(prefixes=True)


def outcome(arrival, prefix, size, prompt, **more):
    row = {"arrival": arrival, "prefix": prefix, "prompt_bytes": size, "prompt": prompt, "output": 3}
    return row | {"ending": "finished", "model": "m", "prefix_kind": "text"} | more


def test_blocks_of_bytes_become_blocks_of_tokens():
    """Four bytes a token: 2,048 bytes are a block of 512 tokens; ids are equal where beginnings are."""
    blocks = [f"{n:016x}" for n in range(20)]
    one = outcome(5.0, blocks[:12], 6144, 1536)
    two = outcome(7.5, [*blocks[:8], "x", "y"], 5120, 1280)
    text, count = prefix_trace([(two, 512), (one, 512), (outcome(1.0, blocks, 1, 1, ending="failed"), 512)])
    lines = [json.loads(line) for line in text.splitlines()]
    assert count == 2
    assert [line["timestamp"] for line in lines] == [0.0, 2500.0]
    assert [line["hash_ids"] for line in lines] == [[0, 1, 2], [0, 1]]
    assert prefix_trace([]) == ("", 0)
    assert prefix_trace([(one, 0), (one | {"prefix": "x"}, 512), (one | {"prompt": None}, 512)]) == ("", 0)
    assert prefix_trace([(one | {"recomputations": 1}, 512)]) == ("", 0), "its prompt is longer than what was hashed"
