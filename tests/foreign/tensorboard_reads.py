# SPDX-License-Identifier: Apache-2.0
# Takes: tensorboard
"""TensorBoard's own reader reads what a run has written. Arguments: the build tree.

Skips, with exit code 77, where the package is not installed: pip install tensorboard, and start this with that Python.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as missing:
    print(f"skipped: {missing}; pip install tensorboard")
    sys.exit(77)

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([BUILD / "orrery", "run", "--dir", folder, "--observe", "tensorboard=histograms:5", SOURCE / "examples/gpt.lua",
                    "steps=10"], check=True, capture_output=True)
    reader = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    lines = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    for tag in sorted({key for line in lines for key in line} - {"step", "time"}):
        read = {event.step: event.value for event in reader.Scalars(tag)}
        for line in lines:
            if tag in line:
                assert abs(read[line["step"]] - line[tag]) <= 1e-6 * abs(line[tag]), (tag, line, read[line["step"]])
    tensors = reader.Tags()["tensors"]
    weights = [tag for tag in tensors if tag != "configuration"]
    assert len(weights) > 10 and [event.step for event in reader.Tensors(weights[0])] == [5, 10], tensors
    assert "config/layers" in reader.Tensors("configuration")[-1].tensor_proto.string_val[0].decode()
    print(f"read {len(reader.Tags()['scalars'])} scalars, {len(weights)} histograms and the configuration")
