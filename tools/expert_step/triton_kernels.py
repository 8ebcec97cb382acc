"""Kernels of a decode step in Triton, imported where a device is measured.

An expert's weights are read once for each block of its rows, and blocks of one expert follow each other, so that a
second one finds them in the cache. A choice of an expert is written into that expert's bucket when it is made, hence
nothing is sorted. Rows are pairs of a request and its j-th expert, numbered request * K + j. In shapes n are requests,
H hidden, E experts, K of them a request, W their width and D a head's size.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_norm(
    residual, parts, weight, normed, counts, hidden, eps, COPIES: tl.constexpr, E: tl.constexpr, BLOCK: tl.constexpr
):
    """Add the copies of a part to the residual stream, norm the sum, and set the experts' counts to zero.

    Parameters
    ----------
    residual, parts, weight, normed
        [n, H], changed in place; [n, COPIES, H], added; [H], gains; [n, H], written.
    counts
        int32[E], set to zero.
    hidden, eps
        H, and what is added to the mean square.
    COPIES, E, BLOCK
        Parts of a request, experts, and a power of two of at least H.
    """
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < hidden
    total = tl.load(residual + row * hidden + at, mask=inside, other=0.0).to(tl.float32)
    for copy in range(COPIES):
        total += tl.load(parts + (row * COPIES + copy) * hidden + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + row * hidden + at, total, mask=inside)
    scale = 1.0 / tl.sqrt(tl.sum(total * total, axis=0) / hidden + eps)
    gain = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(normed + row * hidden + at, total * scale * gain, mask=inside)
    if row == 0:
        tl.store(counts + tl.arange(0, E), tl.zeros([E], tl.int32))


@triton.jit(do_not_specialize=["place"])
def place_heads(
    qkv,
    queries,
    keys,
    values,
    gains,
    turns,
    place,
    request_stride,
    head_stride,
    eps,
    Q: tl.constexpr,
    KV: tl.constexpr,
    HALF: tl.constexpr,
    NORMED: tl.constexpr,
):
    """Norm and turn queries and keys by their position, and write keys and values into the cache.

    Parameters
    ----------
    qkv, queries, keys, values
        [n, Q + 2 KV, D]; [n, Q, D], written; caches, of which one token is written.
    gains, turns
        [2, D], of queries and of keys; float32[2, D / 2], cosines and sines of the position.
    place, request_stride, head_stride
        Token that is written, and numbers between two requests and two heads of a cache.
    Q, KV, HALF, NORMED
        Heads, KV heads, D / 2, and whether heads are normed.
    """
    request, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = tl.arange(0, HALF)
    source = qkv + (request * (Q + 2 * KV) + head) * 2 * HALF
    low, high = tl.load(source + at).to(tl.float32), tl.load(source + HALF + at).to(tl.float32)
    if head >= Q + KV:
        target = values + request * request_stride + (head - Q - KV) * head_stride + place * 2 * HALF
        tl.store(target + at, low)
        tl.store(target + HALF + at, high)
    else:
        if NORMED:
            scale = 1.0 / tl.sqrt((tl.sum(low * low, axis=0) + tl.sum(high * high, axis=0)) / (2 * HALF) + eps)
            gain = gains + tl.where(head < Q, 0, 2 * HALF)
            low = low * scale * tl.load(gain + at).to(tl.float32)
            high = high * scale * tl.load(gain + HALF + at).to(tl.float32)
        cosine, sine = tl.load(turns + at), tl.load(turns + HALF + at)
        first, second = low * cosine - high * sine, high * cosine + low * sine
        if head < Q:
            target = queries + (request * Q + head) * 2 * HALF
        else:
            target = keys + request * request_stride + (head - Q) * head_stride + place * 2 * HALF
        tl.store(target + at, first)
        tl.store(target + HALF + at, second)


@triton.jit(do_not_specialize=["requests"])
def choose(scores, bias, chosen, shares, buckets, counts, requests, E: tl.constexpr, K: tl.constexpr):
    """Take the K experts of greatest score and bias, their shares, and put the pair into each expert's bucket.

    Parameters
    ----------
    scores, bias
        [n, E] of the router, and float32[n, E], added.
    chosen, shares
        int32[n, K] and float32[n, K], written.
    buckets, counts
        int32[E, n], written, and int32[E], counted up from zero.
    """
    request = tl.program_id(0)
    at, slot = tl.arange(0, E), tl.arange(0, K)
    score = tl.load(scores + request * E + at).to(tl.float32) + tl.load(bias + request * E + at)
    top = tl.max(score, axis=0)
    share = tl.zeros([K], tl.float32)
    which = tl.zeros([K], tl.int32)
    for place in range(K):
        best, expert = tl.max(score, axis=0), tl.argmax(score, axis=0)
        share = tl.where(slot == place, tl.exp(best - top), share)
        which = tl.where(slot == place, expert, which)
        score = tl.where(at == expert, float("-inf"), score)
    tl.store(chosen + request * K + slot, which)
    tl.store(shares + request * K + slot, share / tl.sum(share, axis=0))
    rank = tl.atomic_add(counts + which, 1)
    tl.store(buckets + which * requests + rank, request * K + slot)


@triton.jit
def list_blocks(counts, block_expert, block_place, num_blocks, MOST: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr):
    """List the blocks of rows of every expert; MOST is the number of blocks that one expert can have.

    Parameters
    ----------
    counts
        int32[E], pairs of each expert.
    block_expert, block_place, num_blocks
        int32[slots] and int32[1], written: whose rows, which block of them, how many blocks.
    MOST, E, ROWS
        Most blocks of an expert, experts, and rows of a block.
    """
    at = tl.arange(0, E)
    blocks = (tl.load(counts + at) + ROWS - 1) // ROWS
    last = tl.cumsum(blocks, axis=0)
    for place in range(MOST):
        here = place < blocks
        tl.store(block_expert + last - blocks + place, at, mask=here)
        tl.store(block_place + last - blocks + place, tl.zeros([E], tl.int32) + place, mask=here)
    tl.store(num_blocks, tl.sum(blocks, axis=0))


@triton.jit(do_not_specialize=["requests", "slots"])
def gate_up(
    tokens,
    weights,
    out,
    buckets,
    counts,
    block_expert,
    block_place,
    num_blocks,
    requests,
    slots,
    HIDDEN: tl.constexpr,
    WIDTH: tl.constexpr,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    DEEP: tl.constexpr,
):
    """Multiply the rows of an expert with its gate and up, and write silu(gate) * up.

    Parameters
    ----------
    tokens, weights, out
        [n, H]; [E, 2 W, H], gates before ups; [n K, W], written.
    buckets, counts
        int32[E, n], the pairs of each expert, and int32[E], how many.
    block_expert, block_place, num_blocks
        int32[slots], whose rows a block has, and which of them; int32[1], blocks in use.
    requests, slots
        n, and most blocks of rows.
    HIDDEN, WIDTH, K, ROWS, COLS, DEEP
        H, W, K, and the sizes of a block; COLS divides W, DEEP divides H.
    """
    block, column = tl.program_id(0) % slots, tl.program_id(0) // slots
    if block >= tl.load(num_blocks):
        return
    expert = tl.load(block_expert + block).to(tl.int64)
    row = tl.load(block_place + block) * ROWS + tl.arange(0, ROWS)
    there = row < tl.load(counts + expert)
    pair = tl.load(buckets + expert * requests + row, mask=there, other=0)
    cols, deep = column * COLS + tl.arange(0, COLS), tl.arange(0, DEEP)
    left = tokens + (pair // K)[:, None] * HIDDEN + deep[None, :]
    gate = weights + expert * 2 * WIDTH * HIDDEN + cols[None, :] * HIDDEN + deep[:, None]
    up = gate + WIDTH * HIDDEN
    of_gate = tl.zeros([ROWS, COLS], tl.float32)
    of_up = tl.zeros([ROWS, COLS], tl.float32)
    for begin in range(0, HIDDEN, DEEP):
        token = tl.load(left + begin, mask=there[:, None], other=0.0)
        of_gate = tl.dot(token, tl.load(gate + begin), of_gate)
        of_up = tl.dot(token, tl.load(up + begin), of_up)
    result = of_gate / (1.0 + tl.exp(-of_gate)) * of_up
    tl.store(out + pair[:, None] * WIDTH + cols[None, :], result.to(out.dtype.element_ty), mask=there[:, None])


@triton.jit(do_not_specialize=["requests", "slots"])
def down(
    rows,
    weights,
    out,
    shares,
    buckets,
    counts,
    block_expert,
    block_place,
    num_blocks,
    requests,
    slots,
    HIDDEN: tl.constexpr,
    WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    DEEP: tl.constexpr,
):
    """Multiply the rows of an expert with its down, times the share of the expert.

    Parameters
    ----------
    rows, weights, out, shares
        [n K, W]; [E, H, W]; [n K, H], written; float32[n K].
    buckets, counts
        int32[E, n], the pairs of each expert, and int32[E], how many.
    block_expert, block_place, num_blocks
        int32[slots], whose rows a block has, and which of them; int32[1], blocks in use.
    requests, slots
        n, and most blocks of rows.
    HIDDEN, WIDTH, ROWS, COLS, DEEP
        H, W, and the sizes of a block; COLS divides H, DEEP divides W.
    """
    block, column = tl.program_id(0) % slots, tl.program_id(0) // slots
    if block >= tl.load(num_blocks):
        return
    expert = tl.load(block_expert + block).to(tl.int64)
    row = tl.load(block_place + block) * ROWS + tl.arange(0, ROWS)
    there = row < tl.load(counts + expert)
    pair = tl.load(buckets + expert * requests + row, mask=there, other=0)
    cols, deep = column * COLS + tl.arange(0, COLS), tl.arange(0, DEEP)
    left = rows + pair[:, None] * WIDTH + deep[None, :]
    right = weights + expert * HIDDEN * WIDTH + cols[None, :] * WIDTH + deep[:, None]
    total = tl.zeros([ROWS, COLS], tl.float32)
    for begin in range(0, WIDTH, DEEP):
        part = tl.load(left + begin, mask=there[:, None], other=0.0)
        total = tl.dot(part, tl.load(right + begin), total)
    total = total * tl.load(shares + pair, mask=there, other=0.0)[:, None]
    tl.store(out + pair[:, None] * HIDDEN + cols[None, :], total.to(out.dtype.element_ty), mask=there[:, None])
