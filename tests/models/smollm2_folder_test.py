"""scripts/smollm2_folder.py on a small GGUF, written as llama.cpp writes one."""

import importlib.util
import json
import os
import pathlib
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"

import gguf  # noqa: E402
import torch  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADS, KEY_HEADS, WIDTH = 4, 2, 32
BYTES = [chr(code) for code in [*range(33, 127), *range(161, 173), *range(174, 324)]]
TOKENS = ["<|endoftext|>", "<|im_start|>", *BYTES, "Ġt", "he", "Ġthe"]
MERGES = ["Ġ t", "h e", "Ġt he"]


def converter():
    spec = importlib.util.spec_from_file_location("folder", ROOT / "scripts/smollm2_folder.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def permuted(rows, heads):
    """convert_hf_to_gguf.py's LlamaModel.permute."""
    return (rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
            .swapaxes(1, 2).reshape(rows.shape))


def make_model():
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(
        num_hidden_layers=2, hidden_size=WIDTH, num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS, intermediate_size=48, max_position_embeddings=64,
        vocab_size=len(TOKENS), tie_word_embeddings=True, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval()


def write_gguf(model, path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(48)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_freq_base(100000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3] + [1] * (len(TOKENS) - 2))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    names = {value: key for key, value in converter().BLOCK_NAMES.items()}
    for name, value in model.state_dict().items():
        rows = value.numpy()
        parts = name.removesuffix(".weight").split(".", 3)
        if name == "model.embed_tokens.weight":
            writer.add_tensor("token_embd.weight", rows)
        elif name == "model.norm.weight":
            writer.add_tensor("output_norm.weight", rows)
        elif name.startswith("model.layers."):
            heads = {"self_attn.q_proj": HEADS, "self_attn.k_proj": KEY_HEADS}.get(parts[3])
            rows = permuted(rows, heads) if heads else rows
            writer.add_tensor(f"blk.{parts[2]}.{names[parts[3]]}.weight", rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Smollm2FolderTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.model = make_model()
        source = pathlib.Path(scratch.name) / "model.gguf"
        self.folder = pathlib.Path(scratch.name) / "folder"
        write_gguf(self.model, source)
        converter().main(str(source), self.folder)

    def test_logits_are_those_of_the_model_that_the_gguf_was_made_of(self):
        tokens = torch.randint(len(TOKENS), (2, 20))
        again = AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()
        with torch.no_grad():
            apart = (again(tokens).logits - self.model(tokens).logits).abs().max().item()
        self.assertLess(apart, 1e-5)
        config = json.loads((self.folder / "config.json").read_text())
        self.assertEqual(config["rms_norm_eps"], 1e-5)

    def test_the_tokenizer_merges_and_keeps_digits_and_special_tokens_apart(self):
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        text = "<|im_start|>to the 12"
        encoded = tokenizer.encode(text)
        self.assertEqual(encoded.tokens, ["<|im_start|>", "t", "o", "Ġthe", "Ġ", "1", "2"])
        self.assertEqual(tokenizer.decode(encoded.ids, skip_special_tokens=False), text)


if __name__ == "__main__":
    unittest.main()
