"""The other side of hugging_face_test.cpp: PyPI's transformers.

    transformers_agreement.py write ROOT     small random models as folders of ROOT, each with
                                             expected.safetensors: tokens and transformers' logits
    transformers_agreement.py check ROOT     loads ROOT/*/exported and holds its logits to
                                             expected.safetensors; exits non-zero beyond TOLERANCE
"""

import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel,  # noqa: E402
                          LlamaConfig, LlamaForCausalLM)

TOLERANCE = 1e-4
VOCABULARY, LENGTH = 61, 23


def randomised(model):
    """Weights large enough that logits differ visibly; also those that begin as ones and zeros."""
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn_like(parameter) * 0.15
            parameter.copy_(noise if parameter.dim() > 1 else parameter + noise)
    return model.eval()


def gpt2():
    return randomised(GPT2LMHeadModel(GPT2Config(
        n_layer=2, n_embd=32, n_head=4, n_positions=32, vocab_size=VOCABULARY)))


def llama(key_heads, tied, **more):
    return randomised(LlamaForCausalLM(LlamaConfig(
        num_hidden_layers=2, hidden_size=32, num_attention_heads=4, num_key_value_heads=key_heads,
        intermediate_size=40, max_position_embeddings=32, vocab_size=VOCABULARY,
        tie_word_embeddings=tied, **more)))


def save_without_prefix(model, folder):
    """As a model without its head was saved in 2019: no prefix, with masks, in f16."""
    model.save_pretrained(folder)
    state = {name.removeprefix("transformer."): value.to(torch.float16).contiguous()
             for name, value in model.state_dict().items() if name != "lm_head.weight"}
    state["h.0.attn.bias"] = torch.ones(1, 1, 32, 32).tril().bool()
    state["h.1.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def save_with_tied_head(model, folder):
    """Embedding and head are one tensor, and the file holds it twice."""
    model.save_pretrained(folder)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def save_as_before_5(model, folder):
    """The base of the rotary angles at the top of config.json, and no object for it."""
    model.save_pretrained(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["rope_scaling"] = None
    path.write_text(json.dumps(config))


CASES = {
    "gpt2": (gpt2, lambda model, folder: model.save_pretrained(folder)),
    "gpt2-f16-without-prefix": (gpt2, save_without_prefix),
    "llama-4-untied": (lambda: llama(4, False),
                       lambda model, folder: model.save_pretrained(folder)),
    "llama-1-untied-head-size": (lambda: llama(1, False, head_dim=16, rms_norm_eps=1e-3),
                                 lambda model, folder: model.save_pretrained(folder)),
    "llama-2-tied-bf16-shards": (lambda: llama(2, True).to(torch.bfloat16),
                                 lambda model, folder: model.save_pretrained(
                                     folder, max_shard_size="10KB")),
    "llama-2-tied-twice": (lambda: llama(2, True, rope_parameters={
        "rope_type": "default", "rope_theta": 500.0}), save_with_tied_head),
    "llama-4-tied-old": (lambda: llama(4, True, rope_parameters={
        "rope_type": "default", "rope_theta": 700.0}), save_as_before_5),
}


def load(folder):
    """The model in f32 from its folder; every tensor must find its place."""
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    loose = {key: value for key, value in info.items() if value and "buffers" not in key}
    return model.eval(), loose


def logits_of(model, tokens):
    with torch.no_grad():
        return model(input_ids=tokens).logits.contiguous()


def write(root):
    torch.manual_seed(1)
    for name, (make, save) in CASES.items():
        folder = root / name
        save(make(), folder)
        tokens = torch.randint(VOCABULARY, (3, LENGTH))
        expected = logits_of(load(folder)[0], tokens)
        assert expected.abs().max() > 1, name
        save_file({"tokens": tokens, "logits": expected}, folder / "expected.safetensors")
    return 0


def check(root):
    failures = []
    for name in CASES:
        expected = load_file(root / name / "expected.safetensors")
        model, loose = load(root / name / "exported")
        apart = (logits_of(model, expected["tokens"]) - expected["logits"]).abs().max().item()
        if loose or not apart <= TOLERANCE:
            failures.append(f"{name}: logits {apart:.1e} apart, not in their place: {loose}")
    print("\n".join(failures) or f"{len(CASES)} exported folders give the same logits")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit({"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2])))
