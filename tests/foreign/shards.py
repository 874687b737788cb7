# SPDX-License-Identifier: Apache-2.0
# Takes: webdataset numpy Pillow
"""Shards that WebDataset writes, as data.webdataset reads them and as WebDataset itself does.

Arguments: the build tree.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import webdataset as wds

BUILD = pathlib.Path(sys.argv[1]).resolve()
SCRIPT = """
local orrery = require "orrery"
local fields = { x = "jpg", y = "cls", t = "txt", a = "npy" }
local set = orrery.data.webdataset("s-{000000..000002}.tar", fields, { size = 8, dtypes = { x = "u8" } })
for i = 1, #set do
  local s = orrery.engine.sample(set, i)
  print(s.y:item(), s.t:text(), table.concat(s.a:view(-1):tolist(), " "), table.concat(s.x:view(-1):tolist(), " "))
end
"""


def main():
    if not (BUILD / "plugins/orrery-data-webdataset.so").exists():
        print("shards: the plugin webdataset is not built; it takes libarchive-dev")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        with wds.ShardWriter(f"{folder}/s-%06d.tar", maxcount=14, verbose=0) as writer:
            for i in range(40):
                rng = np.random.default_rng(i)
                writer.write({"__key__": f"set/{i:05}", "jpg": rng.integers(0, 256, (8, 8, 3), np.uint8), "cls": i - 20,
                              "txt": f"no {i}", "npy": rng.integers(-9, 9, (2, 3))})
        script = pathlib.Path(folder, "script.lua")
        script.write_text(SCRIPT)
        done = subprocess.run([BUILD / "orrery", "run", script], cwd=folder, capture_output=True, text=True, timeout=120,
                              env={"ORRERY_NO_DIR": "1", "ORRERY_PIN": "none", "PATH": "/usr/bin:/bin"})
        print(done.stderr, end="")
        lines = done.stdout.splitlines()
        wanted = list(wds.WebDataset(f"{folder}/s-{{000000..000002}}.tar", shardshuffle=False).decode("rgb8"))
    wrong = len(lines) != len(wanted)
    for line, sample in zip(lines, wanted):
        y, text, array, image = line.split("\t")
        wrong |= (int(y), text) != (sample["cls"], sample["txt"]) or array != " ".join(map(str, sample["npy"].ravel()))
        wrong |= image != " ".join(map(str, sample["jpg"].transpose(2, 0, 1).ravel()))
    print(f"shards: {len(lines)} samples of {len(wanted)}, {'some differ' if wrong else 'all alike'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
