"""PyTorch's side of `lockstep bench train`: the same GPT-2 alone, by DDP, with
ZeroRedundancyOptimizer, and by FSDP2 with each block sharded for itself."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import gpt2
import peer

STAGES = ["pytorch-none", "pytorch-ddp", "pytorch-zero1", "pytorch-fsdp2"]
ADAMW = {"lr": 1e-4, "fused": True}


def shard(model, precision):
    """FSDP2 keeps fp32 parameters and computes in bf16 where that is asked for."""
    settings = {"mesh": init_device_mesh("cpu", (dist.get_world_size(),))}
    if precision == "bf16":
        settings["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                     reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, **settings)
    return fully_shard(model, **settings)


def wrap(model, options):
    """The model and its optimizer."""
    if options.stage == "pytorch-fsdp2":
        model = shard(model, options.precision)
    elif options.precision == "bf16":
        model = model.bfloat16()
    if options.stage in ("pytorch-ddp", "pytorch-zero1"):
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    if options.stage == "pytorch-zero1":
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **ADAMW)
    return model, torch.optim.AdamW(model.parameters(), **ADAMW)


class Training(peer.Training):
    def __init__(self, options):
        model = gpt2.make_model(options.model)
        super().__init__(options, peer.count_parameters(model), model.vocabulary)
        self.model, self.optimizer = wrap(model, options)

    def forward(self, tokens, targets):
        return self.model(tokens, targets)

    def backward(self, loss):
        loss.backward()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def main():
    options = peer.arguments(__doc__, STAGES)
    dist.init_process_group("gloo")
    Training(options).run()


if __name__ == "__main__":
    main()
