# SPDX-License-Identifier: Apache-2.0
"""WebDataset's shards, as Python's tarfile writes them in all its formats: every field of every sample, on ranks and
after a restart; what is refused, and that archives with some bytes changed are read or refused.

Arguments: the build tree.
"""
import gzip
import io
import json
import pathlib
import random
import re
import struct
import sys
import tarfile
import tempfile
import unittest

from program import BUILD, SOURCE, orrery

IMAGES = sorted((SOURCE / "tests/data/files/images").rglob("*.png"))
DUMP = """
local orrery = require "orrery"
local data = orrery.data
local function dump(set)
  for i = 1, #set do
    local names, parts, sample = {}, {}, orrery.engine.sample(set, i)
    for name in pairs(sample) do names[#names + 1] = name end
    table.sort(names)
    for k, name in ipairs(names) do
      local x = sample[name]
      local value = #x.shape == 0 and { x:item() } or x.dtype == "u8" and #x.shape == 1 and { ("%q"):format(x:text()) }
        or x:view(-1):tolist()
      parts[k] = ('"%s": [%s]'):format(name, table.concat(value, ","))
    end
    print("{" .. table.concat(parts, ", ") .. "}")
  end
end
"""


def npy(numbers):
    """An array of f32 as numpy.save writes it."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    head += " " * (53 - len(head) % 64 + (64 if len(head) % 64 > 53 else 0)) + "\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(numbers)}f", *numbers)


def tar(members, form=tarfile.USTAR_FORMAT):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type = tarfile.DIRTYPE
            entry.size = len(content or b"")
            archive.addfile(entry, io.BytesIO(content or b""))
    return file.getvalue()


def members(first, count, folder=""):
    """Samples and, as they are in shards of others, a directory, a file about the shard and one without an ending."""
    yield "dir/", None
    yield "__index__.json", b"{}"
    yield "README", b"nothing"
    for i in range(first, first + count):
        stem = f"{folder}{i:04}"
        yield f"{stem}.Png", IMAGES[i % len(IMAGES)].read_bytes()
        yield f"{stem}.cls", f"{i * 7 - 3}\n".encode()
        yield f"{stem}.txt", ("\u00e4 text " * (i % 5)).encode()
        yield f"{stem}.seg.npy", npy([i / 4, -i, 1.5])
        yield f"{stem}.json", json.dumps({"caption": i}).encode()


class Shards(unittest.TestCase):
    def setUp(self):
        if not (BUILD / "plugins/orrery-data-webdataset.so").exists():
            self.skipTest("the plugin webdataset is not built: there is no libarchive-dev")
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def run_script(self, text, ranks=1):
        script = self.folder / "script.lua"
        script.write_text(DUMP + text)
        return orrery("run", "-n", ranks, script, cwd=self.folder)

    def rows(self, call):
        done = self.run_script(f"dump({call})")
        self.assertEqual(done.code, 0, done.err)
        return [json.loads(line) for line in done.out.splitlines()]

    def refused(self, call, *parts):
        done = self.run_script(f"dump({call})")
        self.assertNotEqual(done.code, 0, call)
        for part in parts:
            self.assertIn(part, done.err)

    def write(self, name, content):
        (self.folder / name).write_bytes(content)

    def test_every_field_of_every_sample(self):
        long = "a/" * 70  # longer than the name of a header of ustar
        for k, (form, folder) in enumerate(((tarfile.USTAR_FORMAT, ""), (tarfile.GNU_FORMAT, long), (tarfile.PAX_FORMAT, long + "\u00e4/"))):
            self.write(f"s-{k:03}.tar", tar(members(4 * k, 4, folder), form))
        self.write("packed.tar", gzip.compress(tar(members(12, 2))))
        fields = "{ x = { 'jpg', 'png' }, y = 'cls', text = 'txt', array = 'seg.npy', json = 'json' }"
        found = self.rows(f"data.webdataset({{ 's-{{000..002}}.tar', 'packed.tar' }}, {fields}, {{ size = 6 }})")
        self.assertEqual(len(found), 14)
        for i, row in enumerate(found):
            self.assertEqual(row["y"], [i * 7 - 3])
            self.assertEqual((len(row["x"]), row["array"]), (108, [i / 4, -i, 1.5]))
            self.assertEqual(row["text"], ["\u00e4 text " * (i % 5)])
            self.assertEqual(json.loads(row["json"][0]), {"caption": i})
        self.refused(f"data.webdataset('s-000.tar', {fields})", "'x' is of images: give size = 224")

    def test_arrays_and_images_are_those_of_files(self):
        for i, image in enumerate(IMAGES):
            (self.folder / "plain/one").mkdir(parents=True, exist_ok=True)
            (self.folder / f"plain/one/{i:04}.png").write_bytes(image.read_bytes())
        self.write("s.tar", tar((name.replace("seg.npy", "npy"), content) for name, content in members(0, len(IMAGES))))
        done = self.run_script("""
local set, plain = data.webdataset("s.tar", { x = "png", a = "npy" }, { size = 5 }), data.images("plain", { size = 5 })
for i = 1, #set do
  local sample = orrery.engine.sample(set, i)
  assert(tostring(sample.a) == ("HostTensor f32[3] {%s, %s, 1.5}"):format((i - 1) / 4, 1.0 - i), tostring(sample.a))
  assert(orrery.engine.bytes(sample.x) == orrery.engine.bytes(orrery.engine.sample(plain, i).x))
end
print(#set)
""")
        self.assertEqual((done.err, done.out), ("", f"{len(IMAGES)}\n"))

    def test_ranks_and_restarts_change_no_bit(self):
        for k in range(2):
            self.write(f"s-{k}.tar", tar((name.replace("seg.npy", "npy"), content) for name, content in members(6 * k, 6)))

        def digest(ranks, *parts):
            done = self.run_script("""
local set = data.webdataset("s-{0..1}.tar", { x = "npy" })
local net = orrery.nn.linear(3, 1)
local run = orrery.compile(function(b) return orrery.nn.mse(net(b.x), b.x:slice(-1, 1, 1)) end,
  { params = net, optimizer = orrery.optim.sgd { lr = 0.001 }, microbatches = 2 })
""" + "\n".join(parts) + '\norrery.log("digest %s", orrery.digest(net))', ranks)
            self.assertEqual(done.code, 0, done.err)
            return re.search(r"digest (\w+)", done.out)[1]
        loop = "for _, batch in set:batches { size = 4, steps = %d, from = run.steps + 1 } do run:step(batch) end"
        whole = digest(1, loop % 7)
        self.assertEqual(digest(2, loop % 7), whole)
        digest(2, loop % 3, 'run:save "saved"')
        self.assertEqual(digest(1, 'run:load "saved"', loop % 7), whole)
        self.assertNotEqual(digest(1, loop % 6), whole)

    def test_what_is_wrong_is_named(self):
        good = list(members(0, 3))
        self.write("s.tar", tar(good))
        self.refused("data.webdataset('s.tar', { x = 'mp4' })", "s.tar: sample '0000' has no file .mp4")
        self.refused("data.webdataset('s.tar', { x = 'pyd' })", ".pyd is pickled by Python")
        self.refused("data.webdataset('s.tar', { x = { 'txt', 'json' } })", "s.tar: sample '0000' has both .txt and .json")
        self.refused("data.webdataset('s-{2..1}.tar', { x = 'cls' })", "{2..1} is no range")
        self.refused("data.webdataset('nowhere-{0..1}.tar', { x = 'cls' })", "nowhere-0.tar is missing")
        self.write("s.tar", tar(good + [("0002.cls", b"7")]))
        self.refused("data.webdataset('s.tar', { x = 'cls' })", "s.tar: two files of sample '0002' end in .cls")
        self.write("s.tar", tar(good + [("0003.cls", b"seven")]))
        self.refused("data.webdataset('s.tar', { x = 'cls' })", "s.tar: 0003.cls: it has 'seven', a whole number")
        self.write("s.tar", tar([("a.npy", npy([1, 2, 3])), ("b.npy", npy([1, 2]))]))
        self.refused("data.webdataset('s.tar', { x = 'npy' })", "s.tar: b.npy: the array has other dims", "s.tar: a.npy")
        self.write("s.tar", tar([("README", b"x")]))
        self.refused("data.webdataset('s.tar', { x = 'cls' })", "s.tar: there are no samples")
        self.write("s.tar", b"no archive" * 200)
        self.refused("data.webdataset('s.tar', { x = 'cls' })", "s.tar: it is no tar archive")
        self.write("s.tar", b"")
        self.refused("data.webdataset('s.tar', { x = 'cls' })", "s.tar: ")

    def test_archives_that_are_cut_short_or_altered_are_refused_or_read(self):
        whole, rng, lines = tar(members(0, 3)), random.Random(3), []
        end = len(whole.rstrip(b"\0"))
        for kept in (100, 512, 1500, end // 2 // 512 * 512, end // 2, (end + 511) // 512 * 512):
            self.write("s.tar", whole[:kept])
            self.refused("data.webdataset('s.tar', { x = 'cls' })", "s.tar: ")
        for i in range(200):
            damaged = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(end)
                damaged[at:at + rng.choice((0, 1, 1, 1, 4))] = bytes(rng.choices((0, 48, 255, rng.randrange(256)), k=rng.randint(1, 4)))
            self.write(f"damaged-{i}.tar", damaged)
            lines.append(f"try 'damaged-{i}.tar'")
        done = self.run_script("""
local refused, read = 0, 0
local function try(path)
  local ok, why = pcall(function()
    local set = data.webdataset(path, { x = 'png', y = 'cls', t = 'txt', a = 'seg.npy' }, { size = 4 })
    for i = 1, #set do orrery.engine.sample(set, i) end
  end)
  if ok then read = read + 1 return end
  refused = refused + 1
  assert(why:find(path, 1, true), why)
end
""" + "\n".join(lines) + "\nprint(refused, read)")
        self.assertEqual(done.err, "")
        refused, read = map(int, done.out.split())
        self.assertEqual(refused + read, 200)
        self.assertGreater(refused, 100)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
