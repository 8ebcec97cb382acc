"""A plugin of vLLM for the engine test; it is installed beside vLLM and imports nothing of lbopt.

It gives the communicator of CPUs the gather and the scatter of pieces of different length that data-parallel experts
need, which are what ranks meet at in every step. With LBOPT_STEP_LOG=FOLDER each rank writes `rank-R.csv`, one row a
step: when it began (epoch), the rank, requests that ran, tokens that they held when it ended, tokens of prompts and all
tokens that were computed, how long it took, and how long of that the rank waited in collectives for the others. A step
without requests, which a rank takes so that the others can go on, has zeros. `lbopt audit` reads the rows of all ranks
in one file.
"""

import os
import time
from functools import wraps
from pathlib import Path

import torch.distributed as dist

_HEAD = "time,rank,running,tokens,prefill,computed,seconds,waited\n"


def register():
    """Called by vLLM in every process."""
    _add_collectives()
    folder = os.environ.get("LBOPT_STEP_LOG")
    if folder and _is_worker():
        _log_steps(Path(folder))


def _is_worker():
    import multiprocessing

    return multiprocessing.parent_process() is not None


def _add_collectives():
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

    def group_of(self):
        return self.device_group if self.device_group is not None else self.cpu_group

    def gathered(self, piece, sizes):
        most = max(sizes)
        padded = piece.new_zeros((most, *piece.shape[1:]))
        padded[: piece.shape[0]] = piece
        pieces = padded.new_empty((len(sizes), *padded.shape))
        dist.all_gather(list(pieces.unbind(0)), padded, group=group_of(self))
        return pieces.flatten(0, 1) if min(sizes) == most else _joined(pieces, sizes)

    def all_gatherv(self, input_, dim=0, sizes=None):
        assert dim == 0
        several = isinstance(input_, list)
        pieces = input_ if several else [input_]
        found = [gathered(self, piece, sizes or [piece.shape[0]] * self.world_size) for piece in pieces]
        return found if several else found[0]

    def reduce_scatterv(self, input_, dim=-1, sizes=None):
        assert dim == 0
        total = input_.float().contiguous()
        dist.all_reduce(total, group=group_of(self))
        sizes = sizes or [total.shape[0] // self.world_size] * self.world_size
        begin = sum(sizes[: self.rank_in_group])
        return total[begin : begin + sizes[self.rank_in_group]].to(input_.dtype)

    CpuCommunicator.all_gatherv, CpuCommunicator.reduce_scatterv = all_gatherv, reduce_scatterv


def _joined(pieces, sizes):
    import torch

    return torch.cat([piece[:size] for piece, size in zip(pieces, sizes, strict=True)])


class _Step:
    """The step that a rank computes, and its file."""

    def __init__(self, folder):
        self.folder, self.file, self.row = folder, None, None
        self.waited, self.held, self.prompts = 0.0, {}, {}

    def begin(self, asked):
        """Note the requests of a step; None for one without."""
        self.epoch, self.began, self.waited = time.time(), time.perf_counter(), 0.0
        self.row = (0, 0, 0, 0) if asked is None else self._counted(asked)

    def _counted(self, asked):
        for number in asked.finished_req_ids:
            self.held.pop(number, None), self.prompts.pop(number, None)
        for new in asked.scheduled_new_reqs:
            self.held[new.req_id] = new.num_computed_tokens
            self.prompts[new.req_id] = len(new.prompt_token_ids or ())
        cached = asked.scheduled_cached_reqs
        self.held.update(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        prompt = 0
        for number, tokens in asked.num_scheduled_tokens.items():
            before = self.held[number]
            self.held[number] = before + tokens
            prompt += max(0, min(self.prompts.get(number, 0), before + tokens) - before)
        held = sum(self.held[number] for number in asked.num_scheduled_tokens)
        return len(asked.num_scheduled_tokens), held, prompt, asked.total_num_scheduled_tokens

    def end(self, rank):
        """Write the row."""
        if self.row is None:
            return
        if self.file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.file = (self.folder / f"rank-{rank}.csv").open("a", buffering=1)
            if not self.file.tell():
                self.file.write(_HEAD)
        seconds = time.perf_counter() - self.began
        counts = ",".join(map(str, self.row))
        self.file.write(f"{self.epoch:.6f},{rank},{counts},{seconds:.6f},{self.waited:.6f}\n")
        self.row = None


def _log_steps(folder):
    from vllm.v1.worker.gpu_worker import Worker

    step = _Step(folder)

    def timed(call):
        @wraps(call)
        def inner(*words, **more):
            began = time.perf_counter()
            try:
                return call(*words, **more)
            finally:
                step.waited += time.perf_counter() - began

        return inner

    def rank_of(worker):
        return worker.vllm_config.parallel_config.data_parallel_rank

    execute, sample, dummy = Worker.execute_model, Worker.sample_tokens, Worker.execute_dummy_batch

    def execute_model(self, asked):
        if asked.total_num_scheduled_tokens == 0:
            step._counted(asked)
            return execute(self, asked)
        step.begin(asked)
        found = execute(self, asked)
        if found is not None:
            step.end(rank_of(self))
        return found

    def sample_tokens(self, grammar):
        found = sample(self, grammar)
        step.end(rank_of(self))
        return found

    def execute_dummy_batch(self):
        step.begin(None)
        dummy(self)
        step.end(rank_of(self))

    Worker.execute_model, Worker.sample_tokens = execute_model, sample_tokens
    Worker.execute_dummy_batch = execute_dummy_batch
    dist.all_reduce, dist.all_gather = timed(dist.all_reduce), timed(dist.all_gather)
