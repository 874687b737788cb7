# SPDX-License-Identifier: Apache-2.0
"""A file of ONNX has the nodes of a function, its weights and the names and shapes of its ends; what ONNX cannot say is
refused by name. tests/foreign/onnx_agree.py runs such files in onnxruntime. Arguments: the build tree.
"""
import pathlib
import resource
import sys
import tempfile
import unittest

from program import orrery
from weights_test import tensors

MODEL = """local orrery = require "orrery"
local nn = orrery.nn
local folder = orrery.args { folder = "" }.folder
local x = orrery.tensor { { 1, 2.5 }, { 3, 4 } }
local net = nn.sequential { nn.linear(2, 3), nn.relu, nn.linear(3, 1) }
"""


def varint(raw, at):
    value = shift = 0
    while True:
        value |= (raw[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if raw[at - 1] < 0x80:
            return value, at


def fields(raw):
    """field -> what it holds, in order: numbers, or bytes."""
    found, at = {}, 0
    while at < len(raw):
        key, at = varint(raw, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(raw, at)
        else:
            size, at = varint(raw, at) if kind == 2 else (4, at)
            value, at = raw[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def shape_of(info):
    name, = fields(info)[1]
    tensor = fields(fields(fields(info)[2][0])[1][0])
    return name.decode(), tensor[1][0], [fields(dim)[1][0] for dim in fields(tensor[2][0])[1]]


class Onnx(unittest.TestCase):
    def run_script(self, text, ranks=1):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        place = pathlib.Path(folder.name)
        (place / "script.lua").write_text(MODEL + text)
        done = orrery("run", "-n", ranks, place / "script.lua", f"folder={place}")
        self.assertEqual(done.code, 0, done.err)
        return place, done.out.splitlines()

    def test_nodes_weights_and_names(self):
        place, _ = self.run_script("""
net:save_weights(folder .. "/net.safetensors")
orrery.save_onnx(folder .. "/net.onnx", net, { x }, { inputs = { "pixels" }, outputs = { "score" } })
""")
        model = fields((place / "net.onnx").read_bytes())
        self.assertEqual(fields(model[8][0])[2], [20])  # the version of the ops
        graph = fields(model[7][0])
        nodes = [fields(node) for node in graph[1]]
        self.assertEqual([node[4][0].decode() for node in nodes],
                         ["Transpose", "MatMul", "Add", "Max", "Transpose", "MatMul", "Add", "Identity"])
        self.assertEqual([shape_of(each) for each in graph[11]], [("pixels", 1, [2, 2])])
        self.assertEqual([shape_of(each) for each in graph[12]], [("score", 1, [2, 1])])
        weights = {tensor[8][0].decode(): tensor[9][0] for tensor in map(fields, graph[5])}
        for name, (_, _, data) in tensors(place / "net.safetensors").items():
            self.assertIn((name, data), {(key.split("sequential.")[-1], value) for key, value in weights.items()})
        made = {b"pixels", *(tensor[8][0] for tensor in map(fields, graph[5]))}
        for node in nodes:  # nodes come after those that they read
            self.assertLessEqual(set(node.get(1, [])), made)
            made |= set(node[2])

    def test_ranks_that_hold_pieces_write_what_one_rank_writes(self):
        written = []
        for ranks in (1, 2):
            place, _ = self.run_script("""
local strategy = orrery.strategy
local run = orrery.compile(function(b) return (net(b.x) ^ 2):mean() end, { params = net, microbatches = 2,
  optimizer = orrery.optim.sgd { lr = 0.1 }, strategy = { strategy.data {}, strategy.zero { stage = 3 } } })
for _, batch in orrery.data.arrays { x = x }:batches { size = 2, steps = 2 } do run:step(batch) end
orrery.save_onnx(folder .. "/net.onnx", net, { x })
""", ranks)
            written.append((place / "net.onnx").read_bytes())
        self.assertEqual(*written)

    def test_what_onnx_cannot_say(self):
        cases = {
            "function(a) return a + orrery.uniform { 2, 2 } end, { x }": "ONNX has no op here for random numbers of ",
            "function(a) return a * rate end, { x }": "the run-time number 'rate'",
            "function(a) count:update(count + 1) return a + count end, { x }": "the function changes buffers",
            "function() end, {}": "returns no tensor",
            "function(a) return a:scatter_add(a:argmax(), a) end, { x }": "'scatter_add'",
            "net, { x }, { inputs = { 'a', 'b' } }": "inputs has 2 names, of 1 tensors",
            "net, { x }, { inputs = { 'a' }, outputs = { 'a' } }": "two tensors have the name 'a'",
        }
        calls = "\n".join(f"refused({case})" for case in cases)
        place, lines = self.run_script(f"""
local rate, count = orrery.input("rate", 0.5), orrery.buffer {{ 1 }}
local function refused(...)
  local there, why = pcall(orrery.save_onnx, folder .. "/net.onnx", ...)
  orrery.log("%s %s", tostring(there), tostring(why))
end
{calls}
""")
        for line, wanted in zip(lines, cases.values(), strict=True):
            self.assertTrue(line.startswith("false "), line)
            self.assertIn(wanted, line)
        self.assertIn("script.lua:", lines[0])
        self.assertEqual([path.name for path in place.iterdir()], ["script.lua"])

    def test_a_full_disk_is_named_and_keeps_the_old_file(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "net.onnx").write_bytes(b"old")
            (place / "script.lua").write_text('''local orrery = require "orrery"
local wide = orrery.nn.linear(100, 100)
local row = orrery.func(function() return orrery.iota(100):cast "f32":reshape(1, 100) end)()
orrery.save_onnx("net.onnx", wide, { row })''')
            done = orrery("run", "script.lua", cwd=place,
                          limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
            self.assertEqual(done.code, 1, done.err)
            self.assertRegex(done.err, r"script\.lua:4: net\.onnx: cannot write: File too large")
            self.assertEqual((place / "net.onnx").read_bytes(), b"old")
            self.assertEqual({path.name for path in place.iterdir()}, {"net.onnx", "script.lua"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
