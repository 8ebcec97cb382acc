"""What a front end notes of each request that it has sent, until the request ends: its books.

A router knows exactly what it sent itself and what of that has ended, however old its reports are. Rules differ in what
they count of a request: one, the tokens of its prompt, or their blocks. None of them counts what it generates.
"""

from lbopt.kernels.compile import kernel
from lbopt.kernels.routing.codes import BLOCK, DYNAMO, TENSORRT_LLM, VLLM_ASCEND


@kernel
def entry_of(code: int, prompt: int) -> int:
    """Return what the rule counts of a request of `prompt` tokens.

    Parameters
    ----------
    code
        The rule, see `codes`.
    prompt
        Tokens of its prompt.
    """
    if code in (VLLM_ASCEND, TENSORRT_LLM):
        return prompt
    if code == DYNAMO:
        return (prompt + BLOCK - 1) // BLOCK
    return 1
