# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in buckets: saved, continued and removed as in a directory, by ranks that have no file system in common;
whatever breaks on the way leaves the old checkpoint or the new one.

Arguments: the build tree.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import bucket
from program import BUILD, HERE, Job, orrery, wait_for

SCRIPT = HERE / "checkpoints.lua"
AT = "s3://bucket/run 1/ckpt"


class RemoteCheckpoints(unittest.TestCase):
    def setUp(self):
        if not (BUILD / "plugins/orrery-data-http.so").exists():
            self.skipTest("the plugin http is not built: there is no libcurl4-openssl-dev")
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = bucket.serve(self)

    def env(self, **more):
        return {"XDG_CACHE_HOME": str(self.folder / "cache"), "HOME": str(self.folder), "no_proxy": "*", "ORRERY_DEADLINE": "60",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server.server_port}", "AWS_ACCESS_KEY_ID": bucket.KEY,
                "AWS_SECRET_ACCESS_KEY": bucket.SECRET} | more

    def words(self, case, words=(), ranks=2, **arguments):
        return ["run", "-n", ranks, *words, SCRIPT, *(f"{name}={value}" for name, value in {"case": case, "at": AT, **arguments}.items())]

    def run_case(self, case, env=None, **how):
        return orrery(*self.words(case, **how), **self.env(**(env or {})))

    def done(self, case, **how):
        done = self.run_case(case, **how)
        self.assertEqual(done.code, 0, done.err)
        return re.search(r"digest (.*)", done.out)[1]

    def refused(self, case, *texts, **how):
        done = self.run_case(case, **how)
        self.assertEqual(done.code, 1, done.err)
        for text in texts:
            self.assertIn(text, done.err)
        self.assertNotIn(bucket.SECRET, done.err)
        return done

    def keys(self, ending=""):
        return sorted(key for key in self.server.files if key.endswith(ending))

    def copies(self):
        return list((self.folder / "cache/orrery/checkpoints").iterdir())

    def test_as_in_a_directory(self):
        for zero in (0, 2):
            here = self.folder / f"here{zero}"
            self.server.files.clear()
            self.assertEqual(self.done("save", zero=zero), self.done("save", zero=zero, at=here))
            self.assertEqual(len(self.keys(".safetensors")), 2)
            wanted = self.done("load", at=here, ranks=1)
            for ranks in (1, 2, 3):
                self.assertEqual(self.done("load", ranks=ranks), wanted)
        self.assertEqual(self.copies(), [])  # neither of what was sent nor of what came
        # What is in the bucket is a checkpoint as a directory has it.
        for key, body in self.server.files.items():
            path = self.folder / "fetched" / key.removeprefix("run 1/ckpt/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        self.assertEqual(self.done("load", at=self.folder / "fetched"), wanted)

    def test_a_save_replaces_the_one_before(self):
        self.done("save", steps=1)
        before = self.keys(".safetensors")
        wanted = self.done("save", steps=3)
        self.assertEqual(len(self.keys(".safetensors")), 2)
        self.assertFalse(set(before) & set(self.keys()))
        self.assertEqual(self.done("load", steps=0), wanted)

    def test_series(self):
        here = self.folder / "here"
        wanted = [self.done("series", steps=steps, at=here, best="loss") for steps in (6, 10)]
        self.server.files["run 1/ckpt/notes.txt"] = b"somebody's"
        self.assertEqual(self.done("series", steps=6, best="loss"), wanted[0])
        done = self.run_case("series", steps=10, best="loss", ranks=1)
        self.assertIn("from 6", done.out)
        self.assertEqual(re.search(r"digest (.*)", done.out)[1], wanted[1])
        names = sorted({key.split("/")[2] for key in self.server.files})
        self.assertEqual(names, sorted(path.name for path in here.glob("step-*")) + ["notes.txt"] if names[0] > "notes.txt"
                         else ["notes.txt"] + sorted(path.name for path in here.glob("step-*")))
        self.assertEqual(len(self.keys("checkpoint.json")), 3)
        self.assertTrue(any(key == "run 1/ckpt/" or key == "bucket" for method, key in self.server.requests if method == "GET"))
        self.refused("series", "there is a checkpoint of that address; give another one", at=f"{AT}/step-00000010")

    def test_fit_and_a_stop(self):
        job = Job(*self.words("series", steps=10_000), **self.env())
        wait_for(lambda: self.keys("checkpoint.json"), 60)
        job.process.send_signal(15)
        job.finish()
        self.assertRegex(job.err, rf'run:load "{AT}/step-\d+" continues from there')
        step = int(re.search(r"after step (\d+)", job.err)[1])
        done = self.run_case("series", steps=step + 1, ranks=1)
        self.assertIn(f"from {step}\n", done.out)

    def test_two_writers(self):
        first = self.done("save", steps=1)
        entered = []

        def fault(method, key):  # the second saves as a whole while the manifest of the first waits
            if method == "PUT" and key.endswith("checkpoint.json") and not entered:
                entered.append(key)
                return 6.0
            return None
        self.server.fault = fault
        slow = Job(*self.words("save", steps=2, ranks=1), **self.env())
        wait_for(lambda: entered, 30)
        wanted = self.done("save", steps=3, ranks=1)
        slow.finish()
        self.assertEqual(slow.code, 1, slow.err)
        self.assertIn(f"checkpoint '{AT}': another process has saved there since this save began", slow.err)
        self.assertEqual(len(self.keys()), 2)  # what it had sent is gone
        self.assertEqual(self.done("load", steps=0), wanted)
        self.assertNotEqual(first, wanted)

    def test_killed_between_files_and_manifest(self):
        wanted = self.done("save", steps=1)
        files = dict(self.server.files)
        self.server.requests.clear()
        self.server.fault = lambda method, key: 60.0 if method == "PUT" and key.endswith("json") else None
        job = Job(*self.words("save", steps=3), **self.env())
        wait_for(lambda: ("PUT", "run 1/ckpt/checkpoint.json") in self.server.requests[-1:], 60)
        job.end()
        self.server.fault = lambda *_: None
        self.assertEqual({key: self.server.files[key] for key in files}, files)
        self.assertEqual(len(self.keys(".safetensors")), 4)
        self.assertEqual(self.done("load", steps=0), wanted)

    def test_faults(self):
        wanted = self.done("save", steps=1)
        count = len(self.server.files)
        # A rank that cannot send its file: one error on all, and nothing of the new one stays.
        self.server.fault = lambda method, key: 403 if method == "PUT" and "shard-00002" in key else None
        self.refused("save", "shard-00002-model-00001-of-00001.safetensors: the server says 403", f"{AT}/", "check what the key may do")
        self.assertEqual(len(self.server.files), count)
        self.assertEqual(self.done("load", steps=0), wanted)
        # What passes is tried again; also where the reply to the manifest is lost.
        tried = {}

        def once(method, key):
            tried[method, key] = tried.get((method, key), 0) + 1
            return 503 if tried[method, key] == 1 else None
        self.server.fault = once
        self.server.kept = lambda key: key.endswith(".json") and tried[("PUT", key)] == 2
        self.assertEqual(self.done("save", steps=2), self.done("load", steps=0))

    def test_refusals(self):
        self.refused("save", f"{AT}", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", env={"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""})
        self.refused("save", "(SignatureDoesNotMatch); check what the key may do", env={"AWS_SECRET_ACCESS_KEY": "other"})
        self.refused("save", "s3://other/ckpt/checkpoint.json: the server says 404 Not Found (NoSuchBucket); check the address",
                     at="s3://other/ckpt")
        self.refused("load", f"checkpoint '{AT}': checkpoint.json is missing; check the address")
        self.refused("load", "Failed to connect", "(tried 5 times)", ranks=1, env={"AWS_ENDPOINT_URL": "http://127.0.0.1:9"})
        self.refused("save", "'gs://bucket/ckpt': no plugin keeps files at such addresses", at="gs://bucket/ckpt")
        (self.folder / "file").touch()
        self.refused("save", "file/orrery/checkpoints' cannot be made: Not a directory; XDG_CACHE_HOME",
                     env={"XDG_CACHE_HOME": str(self.folder / "file")})
        self.server.files["run 1/ckpt/checkpoint.json"] = b"{}"
        self.refused("save", "checkpoint.json there is not of a checkpoint; save under another address")
        self.assertEqual(self.keys(), ["run 1/ckpt/checkpoint.json"])

    def test_damaged_files(self):
        wanted = self.done("series", steps=4)
        self.done("series", steps=6)
        [key] = [key for key in self.keys(".safetensors") if "step-00000006" in key and "shard-00001" in key]
        whole = self.server.files[key]
        name = "/".join(key.split("/")[-2:])
        for body, text in ((whole[:-1], f"is truncated: {len(whole) - 1} of {len(whole)} bytes"),
                           (whole + b"x", "has 1 bytes after"), (whole[:-1] + b"x", "was altered"), (None, "is missing")):
            if body is None:
                del self.server.files[key]
            else:
                self.server.files[key] = body
            self.refused("load", f"checkpoint '{AT}/step-00000006': {name} {text}", "orrery run --fallback")
        done = self.run_case("load", words=["--fallback"], steps=0)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn(f"going on from {AT}/step-00000004", done.err)
        self.assertIn(wanted, done.out)
        manifest = "run 1/ckpt/step-00000006/checkpoint.json"
        text = self.server.files[manifest]
        hostile = json.loads(text)
        hostile["files"] = {"../../../../etc/passwd": next(iter(hostile["files"].values()))}
        for body, said in ((text.replace(b'"step": 6', b'"step": 7'), "was altered"), (b"[" * 100_000, "is not a JSON object"),
                           (json.dumps(hostile).encode(), "checkpoint.json"), (b"", "is not a JSON object")):
            self.server.files[manifest] = body
            self.refused("load", said, at=f"{AT}/step-00000006")

    def test_long_files_are_sent_in_parts(self):
        script = self.folder / "long.lua"
        script.write_text("""local orrery = require "orrery"
local args = orrery.args { at = "", load = false }
local row = {}
for i = 1, 4200 do row[i] = i % 5 / 5 end
local model = orrery.nn.linear(4200, 4200)
local run = orrery.compile(function(b) return model(b.x):mean() end, { params = model, optimizer = orrery.optim.sgd { lr = 0.1 } })
if args.load then run:load(args.at) else run:step { x = orrery.tensor { row } } run:save(args.at) end
orrery.log("digest %s", orrery.digest(model))
""")
        saved, loaded = (orrery("run", script, f"at={AT}", *more, **self.env()) for more in ((), ("load=true",)))
        self.assertEqual((saved.code, loaded.code), (0, 0), saved.err + loaded.err)
        self.assertEqual(saved.out.split("digest")[1], loaded.out.split("digest")[1])
        [file] = self.keys(".safetensors")
        sent = [method for method, key in self.server.requests if key == file]
        self.assertEqual(sent, ["POST", "PUT", "PUT", "POST", "GET"])
        self.server.fault = lambda method, key: 403 if method == "PUT" and [len(parts) for parts in self.server.uploads.values()] == [1] else None
        refused = orrery("run", script, f"at={AT}/other", **self.env())
        self.assertIn("the server says 403", refused.err)
        self.assertEqual(self.server.uploads, {})  # given up

    def test_read_from_a_web_server(self):
        wanted = self.done("save", steps=2)
        refusal = bucket.Handler.refusal
        bucket.Handler.refusal = lambda *_: None  # everybody may read
        self.addCleanup(setattr, bucket.Handler, "refusal", refusal)
        at = f"http://127.0.0.1:{self.server.server_port}/bucket/run%201/ckpt"
        for case in ("save", "series"):
            self.refused(case, "files of this server can only be read; save to a directory or to s3://BUCKET/KEY", at=at + "2")
        self.assertEqual(self.done("load", steps=0, at=at, env={"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}), wanted)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
