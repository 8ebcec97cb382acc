"""Access logs of gateways, as text and as JSON with text inside."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances.router_log import read_router_log

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "logs" / "vllm_spans.jsonl"
RIGHT = read_router_log(SAMPLE)
ORIGIN = datetime(2025, 1, 1, tzinfo=UTC).timestamp()


def rows():
    """Each request as start, milliseconds to the first token and the end, tokens, worker."""
    for place in range(len(RIGHT)):
        arrival, start, finish = RIGHT.arrival[place], RIGHT.start[place], RIGHT.finish[place]
        at = datetime.fromtimestamp(ORIGIN + arrival, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        tokens = int(RIGHT.prompt[place]) - 1, int(RIGHT.output[place]) + 1
        took = round(1000 * (start - arrival)), round(1000 * (finish - arrival))
        yield at, *took, *tokens, f"10.0.0.{RIGHT.worker[place]}:8000", f"id-{place}"


TAIL = "response_duration={} input_tokens={} output_tokens={}"


def envoy(*, tail=TAIL):
    for at, first, took, prompt, output, host, own in rows():
        head = f'[{at}] "POST /v1/completions HTTP/1.1" 200 - 5120 812 {took} {first} "10.1.1.1" "curl (x \\"y\\")" '
        yield head + f'"{own}" "gateway:80" "{host}" ' + tail.format(first, prompt, output)


def istio(*, tail=TAIL):
    for at, first, took, prompt, output, host, own in rows():
        head = f'[{at}] "POST /v1/completions HTTP/2" 200 - via_upstream - "-" 5120 812 {took} {first} "-" "python" '
        routed = "outbound|8000||m.svc 10.0.1.1:1 10.0.1.1:2 10.1.1.1:3 - default"
        yield head + f'"{own}" "gateway" "{host}" {routed} ' + tail.format(first, prompt, output)


def ai_log():
    for _, first, took, prompt, output, _, _ in rows():
        inner = {"model": "m", "input_token": str(prompt), "output_token": str(output)}
        yield json.dumps(inner | {"llm_first_token_duration": str(first), "llm_service_duration": str(took)})


def istio_with_ai_log():
    yield from (f"{line} {inner}" for line, inner in zip(istio(tail=""), ai_log(), strict=True))


def higress():
    for (at, _, took, *_, host, own), inner in zip(rows(), ai_log(), strict=True):
        line = {"ai_log": inner, "start_time": at, "duration": str(took), "upstream_host": host, "request_id": own}
        yield json.dumps(line | {"response_code": "200", "method": "POST"})


def save(tmp_path, lines, name="access.log"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def same(log):
    np.testing.assert_allclose(log.start, RIGHT.start, atol=2e-3)
    np.testing.assert_allclose(log.finish, RIGHT.finish, atol=2e-3)
    np.testing.assert_array_equal(log.prompt, RIGHT.prompt)
    np.testing.assert_array_equal(log.output, RIGHT.output)
    np.testing.assert_array_equal(log.worker, RIGHT.worker)


@pytest.mark.parametrize("lines", [envoy, istio, istio_with_ai_log, higress])
def test_an_access_log_reads_to_what_was_served(lines, tmp_path):
    log = read_router_log(save(tmp_path, lines()))
    same(log)
    assert log.left_out == {}


def test_lines_of_others_and_other_calls_are_counted(tmp_path):
    lines = list(envoy())
    health = '[2025-01-01T00:00:00.001Z] "GET /health HTTP/1.1" 200 - 0 2 0 - "-" "kube" "h" "-" "-"'
    started = "2025-01-01T00:00:00.000000Z\tinfo\tFLAG: --concurrency=0"
    log = read_router_log(save(tmp_path, [started, lines[0], health, *lines[1:], lines[-1][:90]]))
    same(log)
    assert log.left_out == {"lines of another format": 2, "calls without tokens": 1}


def test_prefixes_of_collectors_and_line_ends_of_windows(tmp_path):
    lines = [f"[pod/gateway-1/istio-proxy] {line}\r" for line in istio()]
    same(read_router_log(save(tmp_path, ["\ufeff" + lines[0], *lines[1:]])))


def test_a_last_line_that_is_cut_is_left_out(tmp_path):
    path = tmp_path / "access.log"
    path.write_text("\n".join(envoy())[:-1])
    log = read_router_log(path)
    assert (len(log), log.left_out) == (len(RIGHT) - 1, {"last line without its end": 1})


def test_an_access_log_without_tokens_says_what_to_add(tmp_path):
    for lines in (envoy(tail=""), istio(tail="")):
        with pytest.raises(InputError, match=r"access log without token counts.*add them to its format"):
            read_router_log(save(tmp_path, lines))
    with pytest.raises(InputError, match=r"when decoding started.*RESPONSE_DURATION"):
        read_router_log(save(tmp_path, envoy(tail="in={} input_tokens={} output_tokens={}")))


def kthena():
    for at, _, took, prompt, output, host, own in rows():
        routed = f"model_name=m model_route=default/r model_server=default/s selected_pod={host} request_id={own}"
        timed = f"tokens={prompt}/{output} timings={took}ms(4+{took - 5}+1)"
        yield f'[{at}] "POST /v1/completions HTTP/1.1" 200 {routed} {timed}'


def test_the_router_of_kthena_does_not_say_the_first_token(tmp_path):
    line = (
        '[2025-01-01T00:00:00.5Z] "POST /v1/completions HTTP/1.1" 503 error=timeout:no pod = left, or so '
        "model_name=m timings=30000ms(1+0+0)"
    )
    path = save(tmp_path, [*kthena(), line])
    with pytest.raises(InputError, match=r"when decoding started.*kthena's router does not log the first token"):
        read_router_log(path)
    log = read_router_log(path, columns={"queue": "duration_request_processing"})
    assert sorted(log.prompt) == sorted(RIGHT.prompt - 1)
    assert log.left_out == {"calls without tokens": 1}


def test_lines_of_json_between_others(tmp_path):
    lines = list(higress())
    lines = ["2025-01-01T00:00:00Z\tinfo\tready", lines[0], "[warning] stop", *lines[1:]]
    log = read_router_log(save(tmp_path, lines))
    same(log)
    assert log.left_out == {"lines of another format": 2}
    same(read_router_log(save(tmp_path, [f"gateway-1  | 2025-01-01T00:00:00.5Z {line}" for line in higress()])))
    with pytest.raises(InputError, match=r"line 49.*truncated"):
        read_router_log(save(tmp_path, [*lines[:1], *lines[3:], '{"ai_log": "{\\"mod']))
