"""Trains the model of a Lockstep run again, in one process, with torch.nn and torch.optim alone.

    pytorch_agreement.py TEXT WEIGHTS REPORT

TEXT is what the run read, WEIGHTS its weights at step 0 (safetensors), REPORT its report.json. Each
step sees the run's whole batch at once. Exits non-zero unless losses and gradient norms agree to
within TOLERANCE at every step.
"""

import json
import math
import struct
import sys

import torch
from torch import nn
from torch.nn import functional

TOLERANCE = 1e-4
LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY = 4, 128, 4, 256, 256  # gpt2-tiny on bytes
LEARNING_RATE, WEIGHT_DECAY, CLIP = 3e-4, 0.1, 1.0  # the defaults of the command line
SEQUENCE = 64  # what tests/train/run_test.cpp gives


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        query, key, value = (part.view(batch, length, HEADS, -1).transpose(1, 2)
                             for part in self.c_attn(x).split(WIDTH, dim=2))
        scores = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(future, -math.inf).softmax(dim=-1) @ value
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(WIDTH), Attention()
        self.ln_2, self.mlp = nn.LayerNorm(WIDTH), Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(VOCABULARY, WIDTH),
            "wpe": nn.Embedding(CONTEXT, WIDTH),
            "h": nn.ModuleList(Block() for _ in range(LAYERS)),
            "ln_f": nn.LayerNorm(WIDTH),
        })

    def forward(self, tokens):
        parts = self.transformer
        x = parts["wte"](tokens) + parts["wpe"](torch.arange(tokens.shape[1]))
        for block in parts["h"]:
            x = block(x)
        return functional.linear(parts["ln_f"](x), parts["wte"].weight)


def load_safetensors(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4,
                                      offset=begin)
            tensors[name] = values.view(entry["shape"]).clone()
    return tensors


MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def epoch_order(count, seed, epoch):
    """As src/data/leaf_grid.h says: Fisher-Yates over splitmix64."""
    state = mix((seed + GOLDEN) & MASK) ^ mix(epoch)
    order = list(range(count))
    for left in range(count, 1, -1):
        state = (state + GOLDEN) & MASK
        chosen = (mix(state) * left) >> 64
        order[left - 1], order[chosen] = order[chosen], order[left - 1]
    return order


def learning_rate(step, steps):
    warmup = min(100, steps // 10)
    if step < warmup:
        return LEARNING_RATE * (step + 1) / warmup
    progress = (step - warmup) / (steps - warmup)
    return LEARNING_RATE * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))


def train(text, weights, report):
    """Yields loss and gradient norm of each step."""
    model = Gpt2()
    model.load_state_dict(weights, strict=True)
    optimizer = torch.optim.AdamW([
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": WEIGHT_DECAY},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ], betas=(0.9, 0.999), eps=1e-8)
    training = text[:len(text) - len(text) // 10]
    order = epoch_order((len(training) - 1) // SEQUENCE, report["seed"], 0)
    samples = report["ranks"] * report["accumulate"] * report["micro_batch"]
    for step in range(report["steps"]):
        windows = [list(training[w * SEQUENCE:(w + 1) * SEQUENCE + 1])
                   for w in order[step * samples:(step + 1) * samples]]
        batch = torch.tensor(windows)  # [B, T + 1]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, report["steps"])
        logits = model(batch[:, :-1])  # [B, T, V]
        loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        yield loss.item(), norm.item()


def main(text_path, weights_path, report_path):
    with open(report_path, encoding="utf-8") as file:
        report = json.load(file)
    with open(text_path, "rb") as file:
        text = file.read()
    steps = list(train(text, load_safetensors(weights_path), report))
    worst = 0.0
    for step, (loss, norm) in enumerate(steps):
        apart = max(abs(loss - report["losses"][step]), abs(norm - report["grad_norms"][step]))
        worst = max(worst, apart)
        if not apart <= TOLERANCE:
            print(f"step {step}: PyTorch has loss {loss} and norm {norm}, Lockstep "
                  f"{report['losses'][step]} and {report['grad_norms'][step]}")
    print(f"{len(steps)} steps agree to within {worst:.1e}")
    return 0 if steps and worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
