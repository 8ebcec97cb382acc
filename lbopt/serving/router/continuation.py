"""A request that an engine pre-empted, made ready to go on elsewhere: what was generated becomes part of its prompt.

The text joins the prompt of a completion. In a chat it becomes the last message, of the assistant, which the engine is
asked to continue; where the client's last message was such a one already, the text joins it. The limit of tokens is
reduced by what was generated. A body is written anew here, the only case in which the router does that.
"""

from __future__ import annotations

import json
from typing import Any

from lbopt.serving.router.ask import read_fields
from lbopt.serving.router.job import Job


def continued(job: Job) -> bool:
    """Change a job so that its next attempt goes on; False where that cannot be done.

    Several answers at once, and prompts in tokens, cannot be continued from text.
    """
    try:
        data: dict[str, Any] = {name: json.loads(bytes(value)) for name, value in job.ask.data.items()}
    except ValueError:  # a number has too many digits
        return False
    text = "".join(job.text)
    made = job.tracker.generated
    if data.get("n") not in (None, 1) or data.get("best_of") not in (None, 1):
        return False
    if job.chat:
        messages = data.get("messages")
        if not isinstance(messages, list) or (made > 0 and not text):
            return False  # tools were called, or something else than text was generated
        messages = list(messages)
        last = messages[-1] if messages else None
        goes_on = data.get("continue_final_message") is True and isinstance(last, dict)
        if goes_on and isinstance(last, dict) and isinstance(last.get("content"), str):
            messages[-1] = {**last, "content": last["content"] + text}
        elif text:
            messages.append({"role": "assistant", "content": text})
        data["messages"] = messages
        if text:
            data["continue_final_message"], data["add_generation_prompt"] = True, False
    else:
        if not isinstance(data.get("prompt"), str):
            return False
        data["prompt"] += text
    for name in ("max_tokens", "max_completion_tokens", "min_tokens"):
        if isinstance(data.get(name), int) and not isinstance(data[name], bool):
            data[name] = max(1 if name != "min_tokens" else 0, data[name] - made)
    data.pop("kv_transfer_params", None)
    job.extra.pop("kv_transfer_params", None)
    job.text.clear()
    job.body = json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")
    job.ask.data = read_fields(job.body)
    return True
