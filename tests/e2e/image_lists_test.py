# SPDX-License-Identifier: Apache-2.0
"""Images that a table in CSV names, as those of a directory, with other columns beside them; what is refused. Images that
cannot be read are left out, alike on any number of ranks and in a run that goes on.

Arguments: the build tree.
"""
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from program import SOURCE, orrery

IMAGES = SOURCE / "tests/data/files/images"


class ImageLists(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        shutil.copytree(IMAGES, self.folder / "all")

    def run_script(self, text, ranks=1):
        script = self.folder / "script.lua"
        script.write_text('local orrery = require "orrery"\nlocal data = orrery.data\n' + text)
        return orrery("run", "-n", ranks, script, cwd=self.folder)

    def printed(self, text, ranks=1):
        done = self.run_script(text, ranks)
        self.assertEqual(done.code, 0, done.err)
        return done.out

    def refused(self, call, *parts):
        done = self.run_script(f"local set = data.images({call})")
        self.assertNotEqual(done.code, 0, call)
        for part in parts:
            self.assertIn(part, done.err)

    def test_images_of_a_table_are_those_of_their_files(self):
        files = sorted(p.relative_to(self.folder / "all").as_posix() for p in (self.folder / "all").rglob("*.*"))
        rows = [f"{name},{name.split('/')[0]},{i / 2}" for i, name in enumerate(files)]
        (self.folder / "list.csv").write_text("\n".join(["file,animal,weight"] + rows) + "\n")
        out = self.printed("""
local listed = data.images("list.csv", { size = 6, dtype = "u8", column = "file", folder = "all",
  fields = { y = "animal", w = "weight" }, dtypes = { y = "class" } })
local folders = data.images("all", { size = 6, dtype = "u8" })
for i = 1, #listed do
  local a, b = orrery.engine.sample(listed, i), orrery.engine.sample(folders, i)
  assert(orrery.engine.bytes(a.x) == orrery.engine.bytes(b.x) and a.y:item() == b.y:item() and a.w:item() == (i - 1) / 2)
end
print(#listed, #folders, table.concat(listed.classes, " "))
""")
        self.assertEqual(out, "7\t7\tcat dog\n")

    def test_names_without_endings_beside_the_table(self):
        (self.folder / "all/list.csv").write_text("id\ncat/rgb\n cat/grey\n")
        out = self.printed('print(#data.images("all/list.csv", { size = 4, column = "id", ending = ".png" }))')
        self.assertEqual(out, "2\n")
        self.refused('"all/list.csv", { size = 4, column = "id" }', "list.csv: line 2: column 'id': there is no file all/cat/rgb")
        self.refused('"all/list.csv", { size = 4, column = "name" }', "there is no column 'name'; it has id")
        self.refused('"all/list.csv", { size = 4, column = "id", ending = ".png", fields = { x = "id" } }', "x is the images")
        self.refused('"all", { size = 4, ending = ".png" }', "ending is for tables")
        (self.folder / "all/list.csv").write_text("id,n\ncat/rgb,1\n,2\n")
        self.refused('"all/list.csv", { size = 4, column = "id", ending = ".png" }', "line 3: column 'id' is empty")

    def test_what_cannot_be_read_is_left_out_alike_everywhere(self):
        for name in ("cat/broken.png", "dog/empty.jpg"):
            (self.folder / "all" / name).write_bytes(b"")

        def digest(ranks, *parts):
            out = self.printed("""
local set, left = data.images("all", { size = 4 }):readable { file = "readable.txt" }
assert(#set == 7 and left == 2)
orrery.seed(1)
local net = orrery.nn.linear(48, 2)
local run = orrery.compile(function(b) return orrery.nn.cross_entropy(net(b.x:view(-1, 48)), b.y) end,
  { params = net, optimizer = orrery.optim.sgd { lr = 0.1 }, microbatches = 2 })
""" + "\n".join(parts) + '\norrery.log("digest %s", orrery.digest(net))', ranks)
            self.assertEqual(out.count("2 of 9 samples are left out"), 1, out)
            return re.search(r"digest (\w+)", out)[1]
        loop = "for _, batch in set:batches { size = 4, steps = %d, from = run.steps + 1 } do run:step(batch) end"
        whole = digest(1, loop % 6)
        (self.folder / "readable.txt").unlink()
        self.assertEqual(digest(2, loop % 6), whole)
        digest(2, loop % 3, 'run:save "saved"')
        (self.folder / "all/cat/broken.png").write_bytes((IMAGES / "cat/rgb.png").read_bytes())  # mended meanwhile
        self.assertEqual(digest(1, 'run:load "saved"', loop % 6), whole)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
