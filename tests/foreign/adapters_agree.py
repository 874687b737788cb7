# SPDX-License-Identifier: Apache-2.0
# Takes: torch numpy transformers peft
"""Hugging Face's PEFT loads adapters that Orrery has saved beside a LLaMA, and Orrery those of PEFT; the logits are the same.

Arguments: the build tree.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import peft
import torch
import transformers

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent


def logits_of(model, ids):
    with torch.no_grad():
        return model.eval()(torch.from_numpy(ids)).logits.numpy()


def run(folder, *words):
    done = subprocess.run([BUILD / "orrery", "run", "--no-dir", HERE / "adapters_agree.lua", f"folder={folder}", *words],
                          env=os.environ | {"ORRERY_LUA_PATH": str(HERE.parents[1] / "examples")}, check=False,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return numpy.load(f"{folder}/logits.npy")


with tempfile.TemporaryDirectory() as folder:
    for name in ("base", "adapters"):
        pathlib.Path(folder, name).mkdir()
    ids = numpy.random.default_rng(1).integers(0, 61, (3, 24))
    numpy.save(f"{folder}/tokens.npy", ids)
    ours = run(folder)
    base = transformers.AutoModelForCausalLM.from_pretrained(f"{folder}/base")
    plain = logits_of(base, ids)
    model = peft.PeftModel.from_pretrained(base, f"{folder}/adapters")
    theirs = logits_of(model, ids)
    assert numpy.abs(theirs - plain).max() > 0.01, "the adapters change nothing"
    numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora" in name:
                parameter.add_(0.1 * torch.randn(parameter.shape))
    theirs = logits_of(model, ids)
    model.save_pretrained(f"{folder}/theirs")
    numpy.testing.assert_allclose(run(folder, f"load={folder}/theirs"), theirs, rtol=1e-5, atol=1e-5)
    print("the same logits both ways")
