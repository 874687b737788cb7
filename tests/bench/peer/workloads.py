# SPDX-License-Identifier: Apache-2.0
"""What is raced: models, batch shapes, how many steps a turn takes, and the matrix products in a step."""
import os
import pathlib
from dataclasses import dataclass

STEPS = 20  # compared losses; also the number of different batches
RATE, DECAY, B1, B2, EPS = 3e-4, 0.1, 0.9, 0.95, 1e-8

LLAMA = dict(vocab=32000, positions=8192, dim=2048, heads=32, kv_heads=8, hidden=8192, layers=16)


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    batch: int
    turn: tuple  # (unrecorded, recorded) steps between two hand-overs
    rounds: int
    widths: tuple = ()  # an MLP
    gpt: dict = None
    larger: tuple = ()  # a model of larger.py: its name, what it is made with, the shape of a sample, classes
    ctx: int = 0
    device: str = "cpu"
    half: bool = False  # products in bf16, over f32 weights
    rounding: float = 1e-4  # how far losses may be from PyTorch's in f32, relative
    compared: int = STEPS  # of so many steps

    @property
    def tolerance(self):
        return 2e-2 if self.half else 1e-3 if self.device != "cpu" else self.rounding

    @property
    def tokens(self):
        """Of a batch; 0 of one without text."""
        shape = self.larger[2] if self.larger else ()
        return self.batch * (shape[0] if len(shape) == 1 else self.ctx)

    @property
    def directory(self):
        cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        return pathlib.Path(cache) / "orrery" / "bench" / self.name

    def script_arguments(self):
        """key=value words for worker.lua."""
        words = [f"batch={self.batch}"] + (["compute=bf16"] if self.half else [])
        if self.widths:
            return words + ["widths=" + "-".join(map(str, self.widths))]
        model = [f"model={self.larger[0]}"] if self.larger else []
        return words + model + [f"{key}={value}" for key, value in (self.gpt or self.larger[1]).items()]

    def linears(self):
        """[(rows, outputs, inputs, how often, whether the input needs a gradient)]; none: not known"""
        if self.larger:
            return []
        if self.widths:
            return [(self.batch, o, i, 1, place > 0)
                    for place, (i, o) in enumerate(zip(self.widths, self.widths[1:]))]
        rows, dim, layers = self.batch * self.ctx, self.gpt["dim"], self.gpt["layers"]
        shapes = [(3 * dim, dim), (dim, dim), (4 * dim, dim), (dim, 4 * dim)]
        return ([(rows, o, i, layers, True) for o, i in shapes] +
                [(rows, self.gpt["vocab"], dim, 1, True)])


WORKLOADS = {w.name: w for w in (
    Workload("gpt2", "GPT-2 124M, batch 4 x 64", 4, (1, 2), 10, ctx=64,
             gpt=dict(vocab=50257, positions=1024, dim=768, heads=12, layers=12)),
    Workload("char-gpt", "char-GPT 4L/4h/128, batch 12 x 64", 12, (4, 16), 20, ctx=64,
             gpt=dict(vocab=65, positions=64, dim=128, heads=4, layers=4)),
    Workload("wide-gpt", "GPT 6L/8h/512, batch 12 x 64", 12, (1, 3), 8, ctx=64,
             gpt=dict(vocab=65, positions=64, dim=512, heads=8, layers=6)),
    Workload("deep-gpt", "GPT 16L/8h/256, batch 16 x 64", 16, (1, 3), 4, ctx=64,
             gpt=dict(vocab=65, positions=64, dim=256, heads=8, layers=16)),
    Workload("mlp", "MLP 784-512-512-10, batch 128", 128, (20, 80), 20,
             widths=(784, 512, 512, 10)),
    Workload("gpt2-bf16", "GPT-2 124M in bf16, batch 4 x 64", 4, (1, 2), 10, ctx=64, half=True,
             gpt=dict(vocab=50257, positions=1024, dim=768, heads=12, layers=12)),
    Workload("resnet", "ResNet-18 for 32 x 32, batch 32", 32, (1, 2), 12,
             larger=("resnet", dict(width=64, blocks=2, classes=10), (3, 32, 32), 10),
             # Batchnorm under AdamW makes rounding grow: in step 18 PyTorch's compile is 2 % from its eager.
             rounding=1e-3, compared=4),
    # Four images leave batchnorm more of that: PyTorch's own ways differ by 0.2 % in step 2 and by 0.6 % in step 3.
    Workload("resnet50", "ResNet-50 for 224 x 224, batch 4", 4, (1, 1), 10, compared=3, rounding=1e-2,
             larger=("resnet50", dict(width=64, classes=1000), (3, 224, 224), 1000)),
    Workload("mobilenet", "MobileNet's blocks for 32 x 32, batch 32", 32, (1, 4), 10, compared=4, rounding=1e-3,
             larger=("mobilenet", dict(width=64, classes=10), (3, 32, 32), 10)),
    Workload("convnext", "ConvNeXt's blocks for 32 x 32, batch 32", 32, (1, 4), 10, compared=4, rounding=1e-3,
             larger=("convnext", dict(width=96, blocks=2, classes=10), (3, 32, 32), 10)),
    Workload("lstm", "LSTM 256-512, 64 steps, batch 32", 32, (1, 3), 12,
             larger=("lstm", dict(vocab=256, width=256, hidden=512, layers=1), (64,), 256)),
    Workload("bert", "BERT base, batch 8 x 128", 8, (1, 1), 10,
             larger=("bert", dict(vocab=30522, positions=512, dim=768, heads=12, layers=12), (128,), 30522)),
    Workload("cuda-gpt2", "GPT-2 124M in bf16, batch 64 x 1024", 64, (1, 4), 10, ctx=1024, device="cuda",
             half=True, gpt=dict(vocab=50257, positions=1024, dim=768, heads=12, layers=12)),
    Workload("cuda-gpt2-xl", "GPT-2 1.5B in bf16, batch 16 x 1024", 16, (1, 4), 5, ctx=1024, device="cuda",
             half=True, gpt=dict(vocab=50257, positions=1024, dim=1600, heads=25, layers=48)),
    Workload("cuda-char-gpt", "char-GPT 4L/4h/128, batch 12 x 64", 12, (20, 200), 10, ctx=64, device="cuda",
             gpt=dict(vocab=65, positions=64, dim=128, heads=4, layers=4)),
    Workload("cuda-llama-4096", "LLaMA 1.1B in bf16, batch 4 x 4096", 4, (1, 4), 5, device="cuda", half=True, compared=3,
             larger=("llama", LLAMA, (4096,), LLAMA["vocab"])),
    Workload("cuda-llama-1024", "LLaMA 1.1B in bf16, batch 16 x 1024", 16, (1, 4), 5, device="cuda", half=True, compared=3,
             larger=("llama", LLAMA, (1024,), LLAMA["vocab"])),
    Workload("cuda-bert", "BERT base in bf16, batch 64 x 128", 64, (2, 10), 8, device="cuda", half=True, compared=3,
             larger=("bert", dict(vocab=30522, positions=512, dim=768, heads=12, layers=12), (128,), 30522)),
    Workload("cuda-resnet18", "ResNet-18 for 32 x 32 in bf16, batch 256", 256, (2, 10), 8, device="cuda", half=True, compared=3,
             larger=("resnet", dict(width=64, blocks=2, classes=10), (3, 32, 32), 10)),
    # Rounding grows through its 53 batchnorms: two layouts of PyTorch's are 6e-4 apart in step 2, in f32.
    Workload("cuda-resnet50", "ResNet-50 for 224 x 224 in bf16, batch 128", 128, (1, 4), 8, device="cuda", half=True, compared=2,
             larger=("resnet50", dict(width=64, classes=1000), (3, 224, 224), 1000)),
    Workload("cuda-lstm", "LSTM 256-512, 64 steps in bf16, batch 256", 256, (5, 40), 8, device="cuda", half=True, compared=3,
             larger=("lstm", dict(vocab=256, width=256, hidden=512, layers=1), (64,), 256)),
    Workload("cuda-switch", "GPT 6L/12h/768 of 8 experts in bf16, batch 32 x 1024", 32, (1, 4), 8, device="cuda", half=True,
             compared=3, larger=("switch", dict(vocab=32000, positions=1024, dim=768, heads=12, layers=6, experts=8),
                                 (1024,), 32000)),
    Workload("cuda-mlp", "MLP 784-512-512-10, batch 128", 128, (20, 500), 10, device="cuda",
             widths=(784, 512, 512, 10)),
)}
