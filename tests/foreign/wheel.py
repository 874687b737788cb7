# SPDX-License-Identifier: Apache-2.0
"""The wheel in dist/, installed by pip into a fresh environment of a bare Debian 12: its command trains there, and brings
all libraries that it needs.

Needs root, and a wheel that `./scripts/package wheel` has made; tests/e2e/bare_root.py says where the root comes from.
"""
import pathlib
import shutil
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from bare_root import BareRoot, skip  # noqa: E402

WHEELS = sorted((SOURCE / "dist").glob("*.whl"))


class Wheel(unittest.TestCase):
    def test_its_command_trains(self):
        root = BareRoot(self)
        shutil.copy(WHEELS[-1], root.path / "root")
        root.call("apt-get", "update", "-q")
        root.call("apt-get", "install", "-q", "-y", "--no-install-recommends", "python3-venv")
        root.call("python3", "-m", "venv", "fresh")
        root.call("fresh/bin/pip", "install", "--no-index", WHEELS[-1].name)
        script = str(next(root.path.glob("root/fresh/lib/*/site-packages/orrery_engine/share/orrery/examples/mlp.lua")))
        train = ["fresh/bin/orrery", "run", script[len(str(root.path)):], "steps=20"]
        settings = ["ORRERY_PIN=none", "ORRERY_NO_DIR=1"]
        one = root.call(*settings, *train)
        self.assertRegex(one, r"digest \w{32}\n$")
        self.assertEqual(root.call(*settings, *train[:2], "-n", "2", *train[2:]), one)
        print(f"{WHEELS[-1].name}: {WHEELS[-1].stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    if not WHEELS:
        skip("no wheel in dist/; run ./scripts/package wheel")
    unittest.main(argv=sys.argv[:1])
