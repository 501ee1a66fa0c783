"""What the peers of `lockstep bench train` share.

A peer takes the words of lockstep-bench-train-rank and writes the same result file, so that the
bench reads both alike. The bench starts it, sets the ranks' environment and pins them to cores. A
stage that ends in -malloc has the malloc settings of lockstep's own ranks, without which the kernel
clears fresh pages for every gradient; the others run as their users run them.
"""

import argparse
import ctypes
import json
import os
import re
import time

import torch
import torch.distributed as dist

from gpt2 import MODELS

MALLOC = "-malloc"


def arguments(description, stages):
    """The options; `stage` without -malloc, which is done."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--stage", choices=stages + [stage + MALLOC for stage in stages],
                        required=True)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--precision", choices=("f32", "bf16"), required=True)
    for name in ("--micro-batch", "--seq", "--steps", "--threads"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--result", required=True)
    options = parser.parse_args()
    if options.stage.endswith(MALLOC):
        options.stage = options.stage.removesuffix(MALLOC)
        keep_freed_memory()
    torch.set_num_threads(options.threads)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    return options


def keep_freed_memory():
    m_trim_threshold, m_mmap_threshold, never = -1, -3, 2_000_000_000
    libc = ctypes.CDLL(None)
    libc.mallopt(m_mmap_threshold, never)
    libc.mallopt(m_trim_threshold, never)


def count_parameters(model):
    """Call it before the model is wrapped: wrappers may shard it."""
    return sum(p.numel() for p in model.parameters())


class Training:
    """One rank's training; a peer says how it does each part of a step."""

    def __init__(self, options, parameters, vocabulary):
        self.options = options
        self.parameters = parameters
        self.vocabulary = vocabulary
        self.generator = torch.Generator().manual_seed(dist.get_rank())
        self.times = {name: [] for name in ("step_ms", "forward_ms", "backward_ms", "update_ms")}
        self.losses = []

    def forward(self, tokens, targets):
        raise NotImplementedError

    def backward(self, loss):
        raise NotImplementedError

    def update(self):
        raise NotImplementedError

    def random_tokens(self):
        both = torch.randint(0, self.vocabulary,
                             (self.options.micro_batch, self.options.seq + 1),
                             generator=self.generator)
        return both[:, :-1], both[:, 1:].contiguous()

    def step(self):
        tokens, targets = self.random_tokens()
        start = time.perf_counter()
        dist.barrier()
        begun = time.perf_counter()
        loss = self.forward(tokens, targets)
        forwarded = time.perf_counter()
        self.backward(loss)
        backwarded = time.perf_counter()
        self.update()
        dist.barrier()
        end = time.perf_counter()
        for name, first, last in (("step_ms", start, end), ("forward_ms", begun, forwarded),
                                  ("backward_ms", forwarded, backwarded),
                                  ("update_ms", backwarded, end)):
            self.times[name].append(1e3 * (last - first))
        self.losses.append(loss.item())

    def resident_peak(self):
        """Bytes behind forward and behind backward, in a step of its own: looking takes time."""
        loss = self.forward(*self.random_tokens())
        most = resident_bytes()
        self.backward(loss)
        most = max(most, resident_bytes())
        self.update()
        return most

    def run(self):
        """Trains, writes the result on rank 0 and ends the process."""
        for _ in range(self.options.steps):
            self.step()
        losses = torch.tensor(self.losses, dtype=torch.float64)
        dist.all_reduce(losses)
        resident = gathered(self.resident_peak())
        if dist.get_rank() == 0:
            result = {"parameters": self.parameters, **self.times, "exposed_comm_ms": None,
                      "losses": self.losses,
                      "mean_losses": (losses / dist.get_world_size()).tolist(),
                      "resident_bytes": resident, "weights_sha256": ""}
            with open(self.options.result, "w", encoding="utf-8") as file:
                json.dump(result, file)
        dist.barrier()
        os._exit(0)  # taking gloo's threads down ends in abort() now and then


def resident_bytes():
    """As lockstep::train::resident_bytes(): without what malloc keeps, shared pages by share."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        parts = re.findall(r"^Pss_(?:Anon|Shmem): +(\d+) kB$", file.read(), re.MULTILINE)
    return 1024 * sum(int(part) for part in parts)


def gathered(value):
    """A whole number of every rank."""
    own = torch.tensor([value])
    everyones = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(everyones, own)
    return [one.item() for one in everyones]
