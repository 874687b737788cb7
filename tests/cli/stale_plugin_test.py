# SPDX-License-Identifier: Apache-2.0
"""A plugin in the folder that cannot be loaded stops no run that has not named it: one warning names file and reason. Where
it is named, or only it could give what is missing, the error says so.

Arguments: the build tree.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from program import SOURCE, orrery  # noqa: E402

# A plugin of a later interface, and one that needs a function that no library has.
PLUGIN = """
#include <orrery/plugin.h>
extern int nobody_has_this(void);
static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  (void)boot, (void)out;
#if NEEDS
  nobody_has_this();
#endif
  return 0;
}
ORR_PLUGIN(ORR_KIND_%s, "old", "1.0.0", "of another time", entry, 1, {{"%s", MAJOR, MAJOR}})
"""
SCRIPT = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { op = false }
local model = nn.linear(2, 1)
local run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
  { params = model, optimizer = optim.sgd { lr = 0.01 } })
for _ = 1, 2 do run:step { x = orrery.tensor { { 1.0, 2.0 } }, y = orrery.tensor { { 3.0 } } } end
if args.op then print(orrery.ops.unheard) end
print "trained"
"""


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler here")
class StalePlugin(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.script = self.root / "train.lua"
        self.script.write_text(SCRIPT)

    def build(self, kind, major, needs):
        source, path = self.root / "old.c", self.root / f"orrery-{kind}-old.so"
        source.write_text(PLUGIN % (kind.upper(), kind))
        subprocess.run(["cc", "-shared", "-fPIC", f"-DMAJOR={major}", f"-DNEEDS={needs}", f"-I{SOURCE}/core/include", source, "-o", path,
                        f"-Wl,--version-script={SOURCE}/plugins/plugin.map"], check=True)
        return path

    def run_it(self, *words, **options):
        return orrery("run", *words, ORRERY_PLUGIN_PATH=str(self.root), **options)

    def test_it_is_told_once_and_left(self):
        for kind in ("observer", "kernel", "op"):
            for major, needs, why in ((2, 0, f"it serves {kind}/2 to {kind}/2 and this program speaks {kind}/1"),
                                      (1, 1, "nobody_has_this")):
                with self.subTest(kind=kind, why=why):
                    for old in self.root.glob("*.so"):
                        old.unlink()
                    path = self.build(kind, major, needs)
                    for ranks in (1, 2):
                        words = [self.script, "op=true"] if kind == "op" else [self.script]
                        done = self.run_it("-n", ranks, *words)
                        warned = [line for line in done.err.splitlines() if "warning" in line]
                        self.assertEqual(len(warned), 1, done.err)
                        self.assertIn(f"{kind} 'old' is not used: plugin {path}", warned[0])
                        self.assertIn(why, warned[0])
                        if kind == "op":
                            self.assertEqual(done.code, 1)
                            self.assertIn("there is no op ops.unheard", done.err)
                            self.assertIn(f"; op 'old' could not be loaded: plugin {path}", done.err)
                        else:
                            self.assertEqual((done.code, done.out.count("trained")), (0, ranks), done.err)

    def test_one_that_is_named_is_an_error(self):
        for kind, words in (("observer", ("--observe", "old=loud")), ("kernel", ("--kernels", "old"))):
            path = self.build(kind, 2, 0)
            done = self.run_it(*words, self.script)
            self.assertNotIn(done.code, (0, None))
            self.assertNotIn("trained", done.out)
            self.assertIn(f"plugin {path}: interface: it serves {kind}/2", done.err)
        self.assertEqual(self.run_it("--observe", "old=off", "--kernels", "cpu,reference", self.script).err.count("old"), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
