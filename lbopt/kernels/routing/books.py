"""What a front end notes of each request that it has sent, until the request ends: its books.

A router knows exactly what it sent itself and what of that has ended, however old its reports are. Rules differ in what
they count of a request: one, the tokens of its prompt, or their blocks. None of them counts what it generates.
"""

from lbopt.kernels.arrays import Ints
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


@kernel
def strike(i: int, w: int, code: int, prompt: Ints, books: Ints) -> None:
    """Strike request `i`, which is no longer on worker `w`, from the books of the front end that sent it.

    Parameters
    ----------
    code
        The rule, see `codes`.
    prompt
        int64 (N,), tokens.
    books
        int64 (C, G), or empty for rules without; changed in place.
    """
    if books.size > 0:
        books[i % len(books), w] -= entry_of(code, prompt[i])
