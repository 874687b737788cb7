# SPDX-License-Identifier: Apache-2.0
# Takes: torch numpy safetensors transformers pandas Pillow ml_dtypes tokenizers tiktoken sentencepiece zstandard tifffile imagecodecs h5py
"""What tests/golden and tests/data have recorded of other programs is what these programs say today: their recorders
run again into a copy of the folders. Real numbers may be 1e-5 away, as in the tests that read them; all else, texts
and pictures too, is the same to the byte.

Arguments: the build tree, which is not used.
"""
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import safetensors.numpy

SOURCE = pathlib.Path(__file__).resolve().parents[2]
RECORDERS = ("golden/make.py", "golden/transformers.py", "golden/expressions_record.py", "golden/edges_record.py",
             "golden/random_models_record.py", "golden/adversarial.py", "golden/optimizers.py",
             "golden/schedules.py", "golden/averages.py", "golden/eight_bits.py", "golden/lbfgs.py", "data/make.py", "data/make_bpe.py", "data/make_tokenizer_json.py", "data/make_gpt2.py",
             "data/make_transformers.py", "data/make_mixtures.py", "data/make_sentencepiece.py", "data/make_pt.py", "data/make_dcp.py",
             "data/make_images.py", "data/make_hdf5.py")
READ = ("data/files/bpe/vocab.json", "data/files/bpe/merges.txt", *(  # by recorders; made once
    f"data/files/tokenizer_json/{name}.json" for name in (
        "gpt2", "llama3", "llama2", "gemma", "bert", "bert_cased", "t5", "t5_bytes", "t5_map", "mixed", "words")))
NOT_RECORDED = {".py", ".lua", ".cpp", ".h", ".md", ".build"}
TOLERANCE = 1e-5


def same_numbers(ours, theirs):
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    if ours.dtype.kind == "f":
        return numpy.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE / 10, equal_nan=True)
    return ours.tobytes() == theirs.tobytes()


def same_values(ours, theirs):
    """Of JSON; the name of the framework is that of another version."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(
            key == "framework" or same_values(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same_values, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        close = math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE / 10)
        return close or math.isnan(ours) and math.isnan(theirs)
    return ours == theirs


def same(ours, theirs):
    if ours.read_bytes() == theirs.read_bytes():
        return True
    if ours.suffix == ".npy":
        return same_numbers(numpy.load(ours), numpy.load(theirs))
    if ours.suffix == ".safetensors":
        ours, theirs = map(safetensors.numpy.load_file, (ours, theirs))
        return ours.keys() == theirs.keys() and all(same_numbers(ours[name], theirs[name]) for name in ours)
    if ours.suffix == ".json":
        return same_values(*(json.loads(path.read_text()) for path in (ours, theirs)))
    return False


def copy(to):
    """The recorders and what they read, in the places that they expect."""
    for folder in ("tests/golden", "tests/data", "tests/observer"):
        for path in (SOURCE / folder).glob("*.py"):
            (to / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to / folder)
    for name in READ:
        (to / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / "tests" / name, to / "tests" / name)
    folders = [path.relative_to(SOURCE) for path in (SOURCE / "tests/data/files").rglob("*") if path.is_dir()]
    for folder in ("plugins/data/bpe", *folders):
        (to / folder).mkdir(parents=True, exist_ok=True)


def recorded(root):
    return {path.relative_to(root) for folder in ("golden", "data") for path in (root / "tests" / folder).rglob("*")
            if path.is_file() and path.suffix not in NOT_RECORDED} | {pathlib.Path("plugins/data/bpe/unicode_classes.inc")}


with tempfile.TemporaryDirectory() as folder:
    there = pathlib.Path(folder)
    copy(there)
    for recorder in RECORDERS:
        subprocess.run([sys.executable, "-B", there / "tests" / recorder], check=True, capture_output=True)
    paths, made = recorded(SOURCE), recorded(there)
    assert paths == made, f"recorded in one place only: {sorted(map(str, paths ^ made))}"
    differ = [str(path) for path in sorted(paths) if not same(SOURCE / path, there / path)]
    assert not differ, f"another program says today: {differ}"
    print(f"{len(paths)} files are what {len(RECORDERS)} recorders write today")
