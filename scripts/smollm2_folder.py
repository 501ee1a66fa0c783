"""Turns SmolLM2's GGUF into a folder of Hugging Face's layout.

    smollm2_folder.py GGUF FOLDER

Weights become f32. llama.cpp reorders the rows of q_proj and k_proj, because it turns neighbouring
elements where Hugging Face's layout turns halves; that is undone here. config.json and
tokenizer.json are rebuilt from the GGUF's metadata.
"""

import json
import pathlib
import sys

import gguf
import numpy
from safetensors.numpy import save_file

# GGUF's name of a tensor in a block, and Hugging Face's.
BLOCK_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
NORMAL, CONTROL = 1, 3  # token types of GGUF


def metadata_of(reader):
    def value(key):
        return reader.fields[key].contents()
    found = {"architecture": value("general.architecture"),
             "pre_tokenizer": value("tokenizer.ggml.pre"),
             "tokenizer": value("tokenizer.ggml.model")}
    expected = {"architecture": "llama", "pre_tokenizer": "smollm", "tokenizer": "gpt2"}
    if found != expected:
        raise SystemExit(f"smollm2_folder.py: expected {expected}, found {found}")
    return value


def name_of(tensor):
    if tensor in NAMES:
        return NAMES[tensor]
    _, layer, part, _ = tensor.split(".")  # blk.3.attn_q.weight
    return f"model.layers.{layer}.{BLOCK_NAMES[part]}.weight"


def with_halves(rows, heads):
    """[heads·D, C]: neighbours (0, 1), (2, 3), … of a head become pairs (i, i + D/2)."""
    size = rows.shape[0] // heads
    return rows.reshape(heads, size // 2, 2, -1).swapaxes(1, 2).reshape(rows.shape)


def weights_of(reader, heads, key_heads):
    weights = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        name = name_of(tensor.name)
        if name.endswith("q_proj.weight"):
            values = with_halves(values, heads)
        elif name.endswith("k_proj.weight"):
            values = with_halves(values, key_heads)
        weights[name] = numpy.ascontiguousarray(values)
    return weights


def config_of(value, rows):
    heads, width = value("llama.attention.head_count"), value("llama.embedding_length")
    theta = float(value("llama.rope.freq_base"))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": rows,
        "hidden_size": width,
        "intermediate_size": value("llama.feed_forward_length"),
        "num_hidden_layers": value("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": value("llama.attention.head_count_kv"),
        "head_dim": width // heads,
        "max_position_embeddings": value("llama.context_length"),
        # GGUF holds f32; the number that was meant is the short one.
        "rms_norm_eps": float(f"{value('llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "initializer_range": 1 / 24,
        "tie_word_embeddings": True,
        "bos_token_id": value("tokenizer.ggml.bos_token_id"),
        "eos_token_id": value("tokenizer.ggml.eos_token_id"),
        "dtype": "float32",
        "torch_dtype": "float32",
    }


def tokenizer_of(value):
    """Byte-level BPE; digits stand alone before the words are split."""
    tokens, types = value("tokenizer.ggml.tokens"), value("tokenizer.ggml.token_type")
    unknown = set(types) - {NORMAL, CONTROL}
    if unknown:
        raise SystemExit(f"smollm2_folder.py: expected token types 1 and 3, found {unknown} too")
    added = [{"id": index, "content": token, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": True}
             for index, (token, kind) in enumerate(zip(tokens, types)) if kind == CONTROL]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in value("tokenizer.ggml.merges")],
        },
    }


def main(source, folder):
    reader = gguf.GGUFReader(source)
    value = metadata_of(reader)
    weights = weights_of(reader, value("llama.attention.head_count"),
                         value("llama.attention.head_count_kv"))
    folder.mkdir(parents=True, exist_ok=True)
    rows = weights["model.embed_tokens.weight"].shape[0]
    (folder / "config.json").write_text(json.dumps(config_of(value, rows), indent=2) + "\n")
    (folder / "tokenizer.json").write_text(
        json.dumps(tokenizer_of(value), ensure_ascii=False) + "\n", encoding="utf-8")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
