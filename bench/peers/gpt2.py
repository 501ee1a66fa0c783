"""GPT-2 as PyTorch's users write it: the peers' model, of the same shape as Lockstep's."""

import torch
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
    """Returns the loss: data-parallel wrappers see what goes through forward()."""

    def __init__(self, layers, width, heads, context, vocabulary):
        super().__init__()
        self.vocabulary = vocabulary
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens, targets):  # both [B, T]
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight).float()
        return F.cross_entropy(logits.view(-1, self.vocabulary), targets.reshape(-1))


def make_model(name):
    """The same weights on every rank and in every peer."""
    torch.manual_seed(0)
    return GPT2(*MODELS[name])
