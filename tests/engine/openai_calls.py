"""Calls of the openai package against a router: ``python openai_calls.py URL``; a line each, `ok` or `not`.

It runs in the environment of the engine and imports nothing of lbopt.
"""

import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0, timeout=120)
SAYS = [{"role": "user", "content": "hi there"}]
WHOLE = {"ignore_eos": True}


def chat(**more):
    return client.chat.completions.create(model="tiny", messages=SAYS, extra_body=WHOLE, **more)


def streamed(**more):
    """Return the chunks and the last usage."""
    chunks = list(chat(stream=True, **more))
    return len(chunks), next((chunk.usage for chunk in reversed(chunks) if chunk.usage), None)


def refused(call, kind):
    """Return whether a call ends in this error."""
    try:
        call()
    except kind:
        return True
    return False


def leaves():
    """Close a stream after its first chunk."""
    stream = chat(max_tokens=1500, stream=True)
    next(iter(stream))
    stream.close()
    return True


CALLS = {
    "models": lambda: [one.id for one in client.models.list()] == ["tiny"],
    "chat": lambda: chat(max_tokens=5).usage.completion_tokens == 5,
    "stream": lambda: streamed(max_tokens=9)[1] is None,
    "stream with usage": lambda: (
        streamed(max_tokens=9, stream_options={"include_usage": True})[1].completion_tokens == 9
    ),
    "n=2": lambda: len(chat(n=2, max_tokens=5).choices) == 2,
    "n=2, stream": lambda: streamed(n=2, max_tokens=5)[0] > 2,
    "max_completion_tokens": lambda: chat(max_completion_tokens=3).choices[0].finish_reason == "length",
    "logprobs": lambda: len(chat(max_tokens=3, logprobs=True, top_logprobs=3).choices[0].logprobs.content) == 3,
    "ids": lambda: client.completions.create(model="tiny", prompt=[1, 2, 3], max_tokens=3).usage.prompt_tokens == 3,
    "too long": lambda: refused(
        lambda: client.completions.create(model="tiny", prompt="x" * 9000, max_tokens=3), openai.BadRequestError
    ),
    "unknown model": lambda: refused(
        lambda: client.chat.completions.create(model="no", messages=SAYS), openai.NotFoundError
    ),
    "responses": lambda: client.responses.create(model="tiny", input="hi", max_output_tokens=4).output is not None,
    "a stream that is closed": leaves,
}

for name, call in CALLS.items():
    try:
        print("ok " if call() else "not", name)
    except Exception as error:
        print("not", name, type(error).__name__, str(error)[:150])
