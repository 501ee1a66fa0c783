"""tiktoken's side of `lockstep bench tokenize`: encodes a text with GPT-2's files.

Usage: tiktoken_encode.py FOLDER GPT2_FOLDER THREADS time|ids. FOLDER holds the text and the ends of
its parts (u64); the seconds of encode_ordinary_batch() go into FOLDER/seconds, and with `ids` the
tokens (u32) into FOLDER/ids.
"""

import array
import os
import pathlib
import sys
import time

os.environ["TIKTOKEN_CACHE_DIR"] = ""  # It would copy what it reads into a shared folder.

import tiktoken
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tiktoken_ext.openai_public import r50k_pat_str


def main():
    folder, gpt2 = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    encoding = tiktoken.Encoding(
        "gpt2-of-files", pat_str=r50k_pat_str, special_tokens={"<|endoftext|>": 50256},
        mergeable_ranks=data_gym_to_mergeable_bpe_ranks(str(gpt2 / "vocab.bpe"),
                                                        str(gpt2 / "encoder.json")))
    text = (folder / "text").read_bytes()
    ends = array.array("Q", (folder / "ends").read_bytes())
    parts = [text[begin:end].decode() for begin, end in zip([0, *ends], ends)]
    start = time.perf_counter()
    ids = encoding.encode_ordinary_batch(parts, num_threads=int(sys.argv[3]))
    (folder / "seconds").write_text(repr(time.perf_counter() - start))
    if sys.argv[4] == "ids":
        with open(folder / "ids", "wb") as file:
            for part in ids:
                file.write(array.array("I", part).tobytes())


main()
