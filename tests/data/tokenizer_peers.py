"""What PyPI's tiktoken and tokenizers make of awkward texts, for tokenizer_peers_test.cpp.

Usage: tokenizer_peers.py FOLDER GPT2_FOLDER PLAYS. Leaves in FOLDER texts, tokenizer.json files, the
ids (u32, little-endian) and cases.txt: one line per comparison with tokenizer, text and ids.
"""

import array
import json
import os
import pathlib
import random
import sys

os.environ["TIKTOKEN_CACHE_DIR"] = ""  # It would copy what it reads into a shared folder.

import tiktoken
import tokenizers
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tiktoken_ext.openai_public import r50k_pat_str

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
SPACES = [chr(code) for code in (9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
                                 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)]
NOT_SPACES = ["\x1c", "\x1f", "\u180e", "\u200b", "\u2060", "\ufeff"]
ENDINGS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'rE", "'\u017f", "'x", "'", "''",
           "\u2019s"]
PIECES = SPACES + NOT_SPACES + ENDINGS + [
    "a", "The", " the", "straße", "\u0130", "e\u0301", "\u0301", "n\u0303\u0323", "ﬁ", "1", "12345", "٣٤",
    "Ⅷ", "½", "x²", "漢字", "かな", "한국어", "ไทย", "हिन्दी", "עברית", "العربية", "😀", "👩\u200d👩\u200d👧\u200d👦",
    "🏳️\u200d🌈", "👍🏽", "🇩🇪", "\U0001F468\U0001F3FF\u200d\U0001F680", "\x00", "\x01", "\x1b[0m", "\x7f",
    "\x9b", "\r\n", "\r\n\r\n", "  ", "   ", " \n ", "\n\n", "\t\t", "...", "!?", "->", "<|endoftext|>",
    "<|im_start|>", "<|im", "|>", "_", "$", "€", "\U00020000", "\U0010FFFF", "\uFFFD", "\uE000"]


# Numbers since Unicode 17, which of the peers' parts only the Digits pre-tokenizer knows.
LATER_NUMBERS = [*range(0x11DE0, 0x11DEA), 0x16FF4, 0x16FF5, 0x16FF6]


def every_code_point(between):
    return between.join(chr(code) for code in range(0x110000)
                        if not 0xD800 <= code < 0xE000 and code not in LATER_NUMBERS)


def texts(plays):
    draw = random.Random(1)
    return {
        "plays": plays[:400_000],
        "code-points": every_code_point(""),
        "code-points-and-spaces": every_code_point(" "),
        "code-points-and-letters": every_code_point("a"),
        "pieces": "".join(draw.choice(PIECES) for _ in range(200_000)),
        "characters": "".join(chr(draw.choice([draw.randrange(0x80), draw.randrange(0x800),
                                               draw.randrange(0x2000, 0xD800)]))
                              for _ in range(200_000)),
        "spaces": "".join(draw.choice(SPACES) for _ in range(50_000)),
        "crlf": plays[:100_000].replace("\n", "\r\n"),
    }


def one_character(size):
    """Texts of so many bytes."""
    return {f"only-{name}-{size}": character * (size // len(character.encode()))
            for name, character in {"a": "a", "space": " ", "line-break": "\n", "digit": "7",
                                    "mark": "!", "emoji": "😀"}.items()}


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def byte_level(space_in_front, use_regex):
    return {"type": "ByteLevel", "add_prefix_space": space_in_front, "trim_offsets": True,
            "use_regex": use_regex}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


PRE_TOKENIZERS = {
    "gpt2": byte_level(False, True),
    "space-in-front": byte_level(True, True),
    "digits": sequence({"type": "Digits", "individual_digits": True}, byte_level(False, True)),
    "digit-runs": sequence({"type": "Digits", "individual_digits": False}, byte_level(True, True)),
    "llama3": sequence(split(LLAMA3), byte_level(False, False)),
    "qwen2": sequence(split(QWEN2), byte_level(False, False)),
}


def added_token(number, content, special):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": not special, "special": special}


def tokenizer_json(pre_tokenizer, vocabulary, merges):
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [added_token(50256, "<|endoftext|>", True),
                         added_token(50257, "<|im_start|>", True),
                         added_token(50258, "straße", False), added_token(50259, " the", False)],
        "pre_tokenizer": pre_tokenizer,
        "post_processor": byte_level(True, True), "decoder": byte_level(True, True),
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                  "ignore_merges": False, "vocab": vocabulary, "merges": merges},
    }


def hugging_face_files(folder, gpt2):
    """A tokenizer per pre-tokenizer, and one whose vocabulary has words that no merge makes."""
    vocabulary = json.loads((gpt2 / "encoder.json").read_text())
    merges = (gpt2 / "vocab.bpe").read_text().splitlines()[1:]
    files = {name: tokenizer_json(steps, vocabulary, merges)
             for name, steps in PRE_TOKENIZERS.items()}
    ignoring = tokenizer_json(PRE_TOKENIZERS["llama3"], vocabulary,
                              [merge.split(" ") for merge in merges if hash_of(merge) % 10])
    ignoring["model"]["ignore_merges"] = True
    files["whole-words"] = ignoring
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return {name: tokenizers.Tokenizer.from_file(str(folder / f"{name}.json")) for name in files}


def hash_of(text):
    return sum(text.encode())  # hash() differs from run to run


def main():
    folder, gpt2, plays = (pathlib.Path(word) for word in sys.argv[1:])
    given = texts(plays.read_text())
    single = tiktoken.Encoding(
        "gpt2-of-files", pat_str=r50k_pat_str, special_tokens={"<|endoftext|>": 50256},
        mergeable_ranks=data_gym_to_mergeable_bpe_ranks(str(gpt2 / "vocab.bpe"),
                                                        str(gpt2 / "encoder.json")))
    cases = []

    def add(spec, name, text, ids):
        (folder / f"{name}.txt").write_bytes(text.encode())
        label = f"{spec}.{name}"
        (folder / f"{label}.ids").write_bytes(array.array("I", ids).tobytes())
        cases.append(f"{spec} {name}.txt {label}.ids\n")

    vocabulary = {f"tokens-{k}": "".join(
        single.decode_single_token_bytes(number).decode("utf-8", "ignore") + between
        for number in range(50256)) for k, between in enumerate(["", "\n", " .", "1"])}
    long = {name: text for name, text in one_character(10_000_000).items()
            if name.startswith(("only-a", "only-space", "only-emoji"))}
    for name, text in (given | one_character(1_000_000) | long | vocabulary).items():
        add("gpt2", name, text, single.encode_ordinary(text))
    for spec, peer in hugging_face_files(folder, gpt2).items():
        for name, text in (given | one_character(20_000)).items():
            if not name.startswith("code-points-") or spec in ("gpt2", "llama3"):
                ids = peer.encode_batch_fast([text], add_special_tokens=False)[0].ids
                add(f"{spec}.json", name, text, ids)
    (folder / "cases.txt").write_text("".join(cases))


main()
