# SPDX-License-Identifier: Apache-2.0
#
# Writes a tiny GPT-2 with random weights as Hugging Face's transformers save it, in one file and in several with an
# index, and what it computes: tokens.npy and logits.npy. Takes torch and transformers.
import pathlib
import shutil

import numpy
import torch
import transformers

FILES = pathlib.Path(__file__).parent / "files" / "gpt2"

torch.manual_seed(1)
config = transformers.GPT2Config(vocab_size=61, n_positions=24, n_embd=16, n_layer=2, n_head=2)
model = transformers.GPT2LMHeadModel(config).eval()
with torch.no_grad():  # biases and norms begin as zeros and ones, which would hide that they are exchanged
    for parameter in model.parameters():
        parameter.add_(0.1 * torch.randn(parameter.shape))
    ids = torch.randint(0, 61, (3, 24))
    logits = model(ids).logits
shutil.rmtree(FILES, ignore_errors=True)
model.save_pretrained(FILES)
model.save_pretrained(FILES / "sharded", max_shard_size="12KB")
for path in FILES.rglob("*config.json"):
    path.unlink()
numpy.save(FILES / "tokens.npy", ids.numpy())
numpy.save(FILES / "logits.npy", logits.numpy())
