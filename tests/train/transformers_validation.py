"""Holds an exported model to the run that it came from: the run's last validation loss, computed
again with PyPI's transformers.

    transformers_validation.py RUN FOLDER TEXT

RUN is the run folder, FOLDER what `lockstep checkpoint export` made of it, TEXT what it was trained
on. A tokenizer.json in FOLDER says what the tokens are, without one they are bytes. Exits non-zero
unless the losses agree to within TOLERANCE.
"""

import json
import os
import pathlib
import sys
import tomllib

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from torch.nn import functional  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

TOLERANCE = 1e-4


def tokens_of(folder, text):
    path = folder / "tokenizer.json"
    if path.exists():
        tokenizer = Tokenizer.from_file(str(path))
        return tokenizer.encode(text.read_text(encoding="utf-8"), add_special_tokens=False).ids
    return list(text.read_bytes())


def windows_of(tokens, options):
    """As Trainer::validate of src/train chooses them, over the last tenth of the text."""
    sequence = options["seq"]
    part = tokens[len(tokens) - len(tokens) // 10:]
    available = (len(part) - 1) // sequence
    chosen = min(available, options["eval-batches"] * options["micro-batch"])
    starts = [i * available // chosen * sequence for i in range(chosen)]
    return [part[start:start + sequence + 1] for start in starts]


def loss_of(model, windows):
    total = 0.0
    with torch.no_grad():
        for window in windows:
            row = torch.tensor([window])  # [1, T + 1]
            logits = model(input_ids=row[:, :-1]).logits[0]
            total += functional.cross_entropy(logits, row[0, 1:]).item()
    return total / len(windows)


def main(run, folder, text):
    options = tomllib.loads((run / "config.toml").read_text())
    report = json.loads((run / "report.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    loss = loss_of(model, windows_of(tokens_of(folder, text), options))
    told = report["validation"][-1]["loss"]
    print(f"validation loss {loss:.6f} in transformers, {told:.6f} in Lockstep")
    return 0 if abs(loss - told) <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main(*(pathlib.Path(word) for word in sys.argv[1:])))
