"""DeepSpeed's side of `lockstep bench train`: the same GPT-2 by ZeRO-1, ZeRO-2 and ZeRO-3 on CPUs,
with PyTorch's AdamW as the other peers have it."""

import os
import sys

os.dup2(2, 1)  # DeepSpeed talks to standard output, which is the bench's
# It compiles its collective through shared memory when it first starts; scripts/deepspeed did that.
os.environ.setdefault("TORCH_EXTENSIONS_DIR", os.path.join(sys.prefix, "torch_extensions"))
os.environ["PATH"] = os.path.join(sys.prefix, "bin") + os.pathsep + os.environ["PATH"]  # its ninja

import deepspeed
import torch

import gpt2
import peer

STAGES = ["deepspeed-zero1", "deepspeed-zero2", "deepspeed-zero3"]
NEVER = 10**9


def configuration(options):
    return {"train_micro_batch_size_per_gpu": options.micro_batch,
            "gradient_accumulation_steps": 1,
            "gradient_clipping": 0.0,
            "steps_per_print": NEVER,
            "bf16": {"enabled": options.precision == "bf16"},
            "zero_optimization": {"stage": int(options.stage[-1])},
            "zero_allow_untrusted_optimizer": True,
            "zero_force_ds_cpu_optimizer": False}


class Training(peer.Training):
    def __init__(self, options):
        model = gpt2.make_model(options.model)
        super().__init__(options, peer.count_parameters(model), model.vocabulary)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        self.engine = deepspeed.initialize(model=model, optimizer=optimizer,
                                           model_parameters=model.parameters(),
                                           config=configuration(options))[0]

    def forward(self, tokens, targets):
        return self.engine(tokens, targets)

    def backward(self, loss):
        self.engine.backward(loss)

    def update(self):
        self.engine.step()


def main():
    options = peer.arguments(__doc__, STAGES)
    deepspeed.utils.logger.setLevel("ERROR")
    deepspeed.init_distributed("gloo", verbose=False)
    Training(options).run()


if __name__ == "__main__":
    main()
