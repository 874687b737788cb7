# SPDX-License-Identifier: Apache-2.0
"""Damaged files: a random bit of a file flipped, or its end cut off. Who reads it must refuse it and name it, or end well
(formats without a checksum cannot tell one value from another; checkpoints can). Nothing may crash, hang or, of a
checkpoint, be taken for what was saved.
"""
import pathlib
import shutil
import tempfile

from program import HERE, SOURCE, orrery

FILES = SOURCE / "tests/data/files"
# What reads.lua reads, below FILES: kind, path, and what is damaged of that.
NOT_ALONE = ("table.npy", "table_kinds.npy")  # refused even where nothing is wrong with them
READ = [("npy", path.name, "") for path in sorted(FILES.glob("*.npy")) if path.name not in NOT_ALONE] + [
    ("safetensors", "all.safetensors", ""), ("tokens", "tokens.bin", ""), ("cifar", "cifar10.bin", ""),
    ("csv", "table.csv", ""), ("tiktoken", "bpe/ranks.tiktoken", ""), ("bpe", "bpe", "vocab.json"), ("bpe", "bpe", "merges.txt"),
    ("idx", ".", "images.idx"), ("idx", ".", "labels.idx")] + [
    ("images", "images", str(path.relative_to(FILES / "images"))) for path in sorted((FILES / "images").glob("*/*"))]


def damage(path, chance):
    """Says what it has done."""
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    if chance.random() < 0.75:
        bit = chance.randrange(8)
        data[at] ^= 1 << bit
        path.write_bytes(data)
        return f"bit {bit} of byte {at} flipped"
    path.write_bytes(data[:at])
    return f"cut off at byte {at}"


class FileBlow:
    """`kind` is one of reads.lua, or "checkpoint"; of that, `path` was saved by restarts.lua in that stack."""
    known = {}  # what sound files are read as

    def __init__(self, case, chance):
        self.kind, path, inside = case
        with tempfile.TemporaryDirectory() as folder:
            source = path if self.kind == "checkpoint" else FILES / path
            copy = pathlib.Path(folder) / f"copy{source.suffix}"
            if source.is_dir():
                shutil.copytree(source, copy, ignore=None if inside or self.kind == "checkpoint" else shutil.ignore_patterns("*"))
            else:
                shutil.copy(source, copy)
            if case not in self.known:
                sound = self.read(copy)
                assert sound.code == 0, sound.err
                self.known[case] = sound.out
            files = sorted(p for p in copy.rglob("*") if p.is_file()) or [copy]
            target = copy / inside if inside else chance.choice(files)
            self.name = f"{self.kind}: {target.relative_to(folder)} of {path}, {damage(target, chance)}"
            self.job, self.target = self.read(copy), target.name
        self.same = self.job.out == self.known[case]

    def read(self, path):
        if self.kind == "checkpoint":
            return orrery("run", "--threads", 1, HERE / "restarts.lua", f"folder={path}", "steps=0")
        return orrery("run", "--threads", 1, HERE / "bad/reads.lua", f"kind={self.kind}", f"path={path}")

    def __str__(self):
        return self.name

    def complaints(self):
        if self.job.code == 1:
            if self.target not in self.job.err and "step-" not in self.job.err:
                yield "refused without the name of the file"
        elif self.job.code != 0:
            yield f"exit code {self.job.code}"
        elif self.kind == "checkpoint" and not self.same:
            yield "another training was loaded than the one that was saved"


def saved(folder):
    """Checkpoints of several stacks, made in `folder`: cases for FileBlow."""
    cases = []
    for stack, ranks in (("data", 2), ("zero3", 2), ("pipeline", 2)):
        path = pathlib.Path(folder) / stack
        path.mkdir()
        job = orrery("run", "-n", ranks, "--threads", 1, HERE / "restarts.lua", f"folder={path}", f"stack={stack}", "steps=8")
        assert job.code == 0, job.err
        (path / "checkpoints/checkpoint.lock").unlink(missing_ok=True)
        cases.append(("checkpoint", path, ""))
    return cases
