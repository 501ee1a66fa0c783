"""PyTorch's side of `lockstep bench train --peers`: every rank trains the same GPT-2 alone.

Takes the words of lockstep-bench-train-rank and writes the same result file, so that the bench
reads both alike. Started by the bench, which sets the ranks' environment and pins them to cores.
Stage pytorch-none is PyTorch as users run it; pytorch-none-malloc has the malloc settings of
lockstep's own ranks, without which the kernel clears fresh pages for every gradient.
"""

import argparse
import ctypes
import json
import os
import resource
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

# layers, width, heads, context, vocabulary rows
MODELS = {
    "gpt2-tiny": (4, 128, 4, 256, 256),
    "gpt2-124m": (12, 768, 12, 1024, 50257),
    "gpt2-350m": (24, 1024, 16, 1024, 50257),
    "gpt2-774m": (36, 1280, 20, 1024, 50257),
}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width)
        self.attention_in = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def attend(self, x):  # [B, T, C] -> [B, T, C]
        batch, length, width = x.shape
        parts = [part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                 for part in self.attention_in(x).split(width, 2)]
        mixed = F.scaled_dot_product_attention(*parts, is_causal=True)
        return self.attention_out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm_1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers, width, heads, context, vocabulary):
        super().__init__()
        self.vocabulary = vocabulary
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def loss(self, tokens, targets):  # both [B, T]
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight).float()
        return F.cross_entropy(logits.view(-1, self.vocabulary), targets.reshape(-1))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", choices=("pytorch-none", "pytorch-none-malloc"), required=True)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--precision", choices=("f32", "bf16"), required=True)
    for name in ("--micro-batch", "--seq", "--steps", "--threads"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--result", required=True)
    return parser.parse_args()


def keep_freed_memory():
    m_trim_threshold, m_mmap_threshold, never = -1, -3, 2_000_000_000
    libc = ctypes.CDLL(None)
    libc.mallopt(m_mmap_threshold, never)
    libc.mallopt(m_trim_threshold, never)


def step(model, optimizer, tokens, targets, times):
    start = time.perf_counter()
    dist.barrier()
    begun = time.perf_counter()
    loss = model.loss(tokens, targets)
    forwarded = time.perf_counter()
    loss.backward()
    backwarded = time.perf_counter()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    dist.barrier()
    end = time.perf_counter()
    for name, first, last in (("step_ms", start, end), ("forward_ms", begun, forwarded),
                              ("backward_ms", forwarded, backwarded),
                              ("update_ms", backwarded, end)):
        times[name].append(1e3 * (last - first))
    times["exposed_comm_ms"].append(0.0)
    times["losses"].append(loss.item())


def peak_of_ranks():
    own = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024])
    peaks = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(peaks, own)
    return [peak.item() for peak in peaks]


def main():
    options = arguments()
    if options.stage == "pytorch-none-malloc":
        keep_freed_memory()
    torch.set_num_threads(options.threads)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = GPT2(*MODELS[options.model])
    if options.precision == "bf16":
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    generator = torch.Generator().manual_seed(dist.get_rank())
    times = {name: [] for name in ("step_ms", "forward_ms", "backward_ms", "update_ms",
                                   "exposed_comm_ms", "losses")}
    for _ in range(options.steps):
        both = torch.randint(0, model.vocabulary, (options.micro_batch, options.seq + 1),
                             generator=generator)
        step(model, optimizer, both[:, :-1], both[:, 1:].contiguous(), times)
    peaks = peak_of_ranks()
    if dist.get_rank() == 0:
        result = {"parameters": sum(p.numel() for p in model.parameters()), **times,
                  "resident_bytes": peaks, "weights_sha256": ""}
        with open(options.result, "w", encoding="utf-8") as file:
            json.dump(result, file)
    dist.barrier()
    os._exit(0)  # taking gloo's threads down ends in abort() now and then


if __name__ == "__main__":
    main()
