# SPDX-License-Identifier: Apache-2.0
# Takes: torch safetensors numpy
"""Directories that torch.distributed.checkpoint writes, of one process and of two with shards of FSDP and DTensor, hold
for Orrery what torch reads of them itself.

Arguments: the build tree.
"""
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """
local orrery = require "orrery"
local count = 0
local function text(value)
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, each in ipairs(value) do parts[i] = text(each) end
  return "{" .. table.concat(parts, ",") .. "}"
end
for _, name in ipairs { "one", "two" } do
  local found, wanted = orrery.load(name), orrery.load(name .. ".safetensors")
  for key, tensor in pairs(wanted) do
    local same = assert(found[key], key)
    assert(same.dtype == tensor.dtype and table.concat(same.shape, ",") == table.concat(tensor.shape, ","), key)
    assert(text(same:tolist()) == text(tensor:tolist()), key)
    count = count + 1
  end
  for key in pairs(found) do assert(wanted[key], key) end
end
print(count)
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        make = ROOT / "tests/data/make_dcp.py"
        subprocess.run([sys.executable, "-W", "ignore", make, folder], check=True, timeout=300)
        script = pathlib.Path(folder, "script.lua")
        script.write_text(SCRIPT)
        done = subprocess.run([BUILD / "orrery", "run", script], cwd=folder, capture_output=True, text=True,
                              timeout=120, check=False, env={"ORRERY_NO_DIR": "1", "ORRERY_PIN": "none", "PATH": "/usr/bin:/bin"})
        print(done.stderr, end="")
        print(f"torch_checkpoints: {done.stdout.strip()} tensors are alike")
        return done.returncode or not done.stdout.strip().isdigit()


if __name__ == "__main__":
    sys.exit(main())
