# SPDX-License-Identifier: Apache-2.0
# Takes: onnx onnxruntime numpy
"""onnxruntime computes what Orrery computes of functions and models that it has written as ONNX, and onnx.checker finds
nothing wrong with them.

Arguments: the build tree.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

BUILD = pathlib.Path(sys.argv[1]).resolve()
HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = {"half": 2e-2}


def check(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {each.name: numpy.load(f"{path.with_suffix('')}.{each.name}.npy") for each in session.get_inputs()}
    results = session.run(None, given)
    worst = 0
    for i, theirs in enumerate(results):
        ours = numpy.load(f"{path.with_suffix('')}.y{i + 1}.npy")
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, (path.stem, i + 1, ours.dtype, theirs.dtype)
        if ours.dtype.kind == "f":
            worst = max(worst, numpy.abs(ours.astype("f8") - theirs).max())
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=TOLERANCE.get(path.stem, 1e-5), err_msg=path.stem)
        else:
            assert (ours == theirs).all(), (path.stem, i + 1)
    return worst


with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run([BUILD / "orrery", "run", "--no-dir", HERE / "onnx_agree.lua", f"folder={folder}"], check=False,
                          env=os.environ | {"ORRERY_LUA_PATH": str(HERE.parents[1] / "examples")}, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    worst = {path.stem: check(path) for path in sorted(pathlib.Path(folder).glob("*.onnx"))}
    assert len(worst) > 40, worst
    name = max(worst, key=worst.get)
    print(f"{len(worst)} functions and models, at most {worst[name]:.1e} apart ({name})")
