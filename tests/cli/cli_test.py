# SPDX-License-Identifier: Apache-2.0
"""The program as a user meets it: exit codes, help, JSON, and finding its plugins in both places.

Arguments: the build tree.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")} | {"ORRERY_NO_DIR": "1"}


def orrery(*words, program=BUILD / "orrery", **variables):
    return subprocess.run([program, *words], capture_output=True, text=True, cwd="/",
                          env=ENVIRONMENT | variables)


def names_of(done):
    return {(p["kind"], p["name"]): p for p in json.loads(done.stdout)}


class Usage(unittest.TestCase):
    def test_version_and_help_succeed_on_stdout(self):
        for word in ("--version", "--help"):
            done = orrery(word)
            self.assertEqual((done.returncode, done.stderr), (0, ""), word)
        self.assertTrue(orrery("--help").stdout.startswith("Examples:"))

    def test_usage_errors_exit_with_2(self):
        for words in ([], ["doctor", "--jsn"], ["plugins", "extra"], ["--colour"]):
            done = orrery(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertNotEqual(done.stderr, "")

    def test_closed_streams_are_no_files_of_the_script(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "notes.lua"
            script.write_text("""local file = io.open("notes", "w")
for i = 1, 3 do require "orrery".log("noise") io.stderr:write "noise" end
file:write(io.read "a" or "") file:write "mine" file:close()""")
            for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
                with self.subTest(closed=closed):
                    done = subprocess.run(["sh", "-c", f"exec {BUILD}/orrery run notes.lua {closed}"], cwd=folder,
                                          env=ENVIRONMENT, capture_output=True, stdin=subprocess.DEVNULL)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual((pathlib.Path(folder) / "notes").read_text(), "mine")

    def test_output_that_a_full_disk_did_not_take_is_an_error(self):
        for words in (["plugins"], ["--help"], ["doctor"]):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                done = subprocess.run([BUILD / "orrery", *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                      env=ENVIRONMENT)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("the output could not be written: No space left on device", done.stderr)

    def test_a_text_longer_than_the_buffer_says_why_it_was_not_written(self):
        with tempfile.TemporaryDirectory() as folder:
            for length in (1, 4095, 4096, 4097, 100000):
                script = pathlib.Path(folder) / "long.lua"
                script.write_text(f"print(('x'):rep({length}))")
                with self.subTest(length=length), open("/dev/full", "w") as full:
                    done = subprocess.run([BUILD / "orrery", "run", script], stdout=full, stderr=subprocess.PIPE,
                                          text=True, env=ENVIRONMENT)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertIn("the output could not be written: No space left on device", done.stderr)

    def test_help_is_a_word_too(self):
        self.assertEqual(orrery("help").stdout, orrery("--help").stdout)
        self.assertIn("there is no subcommand 'help'", orrery("help", "run").stderr)

    def test_unknown_subcommand_offers_the_nearest(self):
        done = orrery("plugin")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no subcommand 'plugin' (did you mean 'plugins'?)", done.stderr)


class Doctor(unittest.TestCase):
    def test_json(self):
        report = json.loads(orrery("doctor", "--json").stdout)
        for key in ("compiler", "lua", "cpu", "cores", "memory", "shared memory", "gpu"):
            self.assertNotEqual(report[key], "", key)
        self.assertTrue(report["plugins"])

    def test_what_was_left_out_of_the_build(self):
        left_out = json.loads(orrery("doctor", "--json").stdout)["left out"]
        here = names_of(orrery("plugins", "--json"))
        for name in ("tokenizer_json", "sentencepiece", "webdataset", "http", "hdf5", "arrow"):
            named = [line for line in left_out if line.startswith(f"data {name}")]
            self.assertEqual(len(named), 0 if ("data", name) in here else 1, name)
            for line in named:
                self.assertIn("left out       " + line.replace(": ", ": it takes ", 1) + "; install that", orrery("doctor").stdout)

    def test_shares_of_ranks(self):
        done = orrery("doctor", "-n", "3", HWLOC_SYNTHETIC="pack:2 [numa] core:3 pu:2")
        self.assertIn("2 packages, 2 NUMA nodes; allowed: 6 cores, 12 hardware threads (not this machine)", done.stdout)
        for rank, cpus in enumerate(("0-3", "4-7", "8-11")):
            self.assertRegex(done.stdout, rf"(?m)^rank {rank} +pinned to CPUs {cpus}, 2 threads$")
        crowd = orrery("doctor", "-n", "13", HWLOC_SYNTHETIC="pack:2 [numa] core:3 pu:2")
        self.assertRegex(crowd.stdout, r"(?m)^rank 12 +not pinned: CPUs cannot be shared evenly, 1 thread$")
        crowd = orrery("doctor", "-n", "24", HWLOC_SYNTHETIC="pack:2 [numa] core:3 pu:2")
        self.assertRegex(crowd.stdout, r"(?m)^rank 23 +pinned to CPUs 11, 1 thread$")

    def test_launcher(self):
        done = orrery("doctor", OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="4")
        self.assertRegex(done.stdout, "(?m)^launched by +Open MPI, as rank 1 of 4$")
        done = orrery("doctor", OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="4", RANK="0", WORLD_SIZE="4")
        self.assertRegex(done.stdout, "(?m)^launched by +two launchers disagree: RANK=0 of WORLD_SIZE=4 .torchrun., but OMPI")


class Plugins(unittest.TestCase):
    def test_build_tree_without_variables(self):
        found = names_of(orrery("plugins", "--json"))
        self.assertTrue(found[("observer", "progress")]["on"])

    def test_plugin_that_ends_its_process_is_off(self):
        done = orrery("plugins", "--json", ORRERY_PLUGIN_PATH=str(BUILD / "tests/plugin"))
        self.assertEqual(done.returncode, 0, done.stderr)
        off = names_of(done)["observer", "ends"]
        self.assertFalse(off["on"])
        self.assertIn("loading it ended a process: signal 6 (Aborted); the file may be damaged", off["reason"])

    def test_first_of_two_equal_names_wins(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "mine.so"
            copy.write_bytes((BUILD / "plugins/orrery-observer-progress.so").read_bytes())
            done = orrery("plugins", "--json", ORRERY_PLUGIN_PATH=folder)
            both = [p for p in json.loads(done.stdout) if p["name"] == "progress"]
        self.assertEqual([p["on"] for p in both], [True, False])
        self.assertEqual(both[0]["path"], str(copy))
        self.assertIn(f"hidden by {copy}", both[1]["reason"])

    def test_broken_file_is_listed_with_its_reason(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "bad.so").write_text("text")
            done = orrery("plugins", ORRERY_PLUGIN_PATH=folder)
        self.assertEqual(done.returncode, 0)
        self.assertIn("is not a shared object (no ELF header)", done.stdout)

    def test_installed_without_variables(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                            folder], check=True, capture_output=True)
            program = next(pathlib.Path(folder).rglob("bin/orrery"))
            found = names_of(orrery("plugins", "--json", program=program))
            # Of the two observers none may come from the build tree.
            self.assertTrue(found[("observer", "progress")]["on"])
            for plugin in found.values():
                self.assertTrue(plugin["path"].startswith(os.path.realpath(folder)), plugin["path"])


TRAIN = """
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local model = nn.linear(1, 1)
local run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
  { params = model, optimizer = optim.sgd { lr = 0.1 } })
run:step { x = orrery.tensor({ { 1.0 } }, "f32"), y = orrery.tensor({ { 2.0 } }, "f32") }
"""
ABSENT = BUILD / "tests/plugin/orrery-test-absent.so"
FAULTY = BUILD / "tests/plugin/orrery-test-faulty.so"


def train(*words, script=TRAIN, command="run", **variables):
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "train.lua").write_text(script)
        return orrery(command, *words, f"{folder}/train.lua", **variables)


class Asked(unittest.TestCase):
    """What is asked for by name is what one gets, or an error."""

    def test_what_is_not_here_on_any_number_of_ranks(self):
        for ranks, words in (("1", ("--comm", "absent")), ("2", ("--comm", "absent")), ("1", ("--kernels", "absent"))):
            done = train("-n", ranks, *words, script="", ORRERY_PLUGIN_PATH=str(ABSENT))
            self.assertEqual(done.returncode, 69, done.stderr)
            self.assertRegex(done.stderr, f"{words[0][2:]} 'absent' .* here: there is no such machine")

    def test_several_ranks_of_a_backend_that_joins_nobody(self):
        done = train("-n", "2", "--comm", "null")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("comm 'null' joins at most 1 rank: 2 would train nothing together", done.stderr)
        self.assertNotIn("train.lua", done.stderr)
        self.assertEqual(train("--comm", "null").returncode, 0)

    def test_the_plugin_of_a_name_that_two_have_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "mine.so"
            copy.write_bytes((BUILD / "plugins/orrery-observer-progress.so").read_bytes())
            done = train("-n", "2", ORRERY_PLUGIN_PATH=folder)
        self.assertEqual(done.stderr.count("observer 'progress' is not used: plugin "), 1, done.stderr)
        self.assertIn(f"hidden by {copy}, which comes first", done.stderr)
        self.assertNotIn("is not used", train().stderr)

    def test_a_new_plugin_has_a_name_of_its_own(self):
        for kind, name in (("strategy", "data"), ("strategy", "average"), ("comm", "local"), ("kernel", "cpu")):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([BUILD / "orrery", "new", "plugin", kind, name], cwd=folder, env=ENVIRONMENT,
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, os.listdir(folder)), (2, []), name)
                self.assertIn(f"there is a {kind} '{name}' already, in /", done.stderr)

    def test_who_computes_an_op_is_said(self):
        plan = train(command="plan").stdout
        self.assertRegex(plan, r"(?m)^ +\d+ +\S+ +\S+  pointwise +cpu \(\d+\)$")
        table = train("--profile", script=TRAIN + TRAIN.splitlines()[-1]).stdout
        self.assertRegex(table, r"(?m)  by cpu \(\d+, lanes16/\S+\)$")


class Faults(unittest.TestCase):
    """Of a plugin: it is named, and the run has not succeeded."""

    def test_exit_is_no_success(self):
        for ranks in ("1", "2"):
            done = train("-n", ranks, ORRERY_PLUGIN_PATH=str(FAULTY), ORRERY_TEST_FAULT="exit")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"observer 'faulty' ({FAULTY}) has called exit() in its 'start'", done.stderr)

    # Once: the next line would come after two deadlines. The threads of a pool are in it together.
    def test_one_that_may_loop_for_ever_is_named(self):
        for fault in ("long", "long in threads"):
            done = train("--threads", "2", ORRERY_PLUGIN_PATH=str(FAULTY), ORRERY_TEST_FAULT=fault, ORRERY_DEADLINE="0.8")
            self.assertEqual(done.returncode, 0, done.stderr)
            told = [line for line in done.stderr.splitlines() if line.endswith("it may be in an endless loop")]
            self.assertEqual(len(told), 1, done.stderr)
            self.assertRegex(told[0], rf"orrery: this process has been in 'start' of observer 'faulty' \({FAULTY}\) for 1 s, ")

    def test_observers_get_their_end_after_an_error_of_the_script(self):
        done = train(script=TRAIN + "error 'cheese'", ORRERY_PLUGIN_PATH=str(FAULTY), ORRERY_TEST_EVENTS="1")
        self.assertEqual(done.returncode, 1)
        told = [line for line in done.stdout.splitlines() if line.startswith(("event 5", "event 6", "stopped"))]
        self.assertEqual(len(told), 3, done.stdout)
        self.assertIn("cheese", told[0])
        self.assertEqual(told[1:], ["event 6 ", "stopped"])

    def test_and_after_an_error_of_their_own(self):
        done = train(ORRERY_PLUGIN_PATH=str(FAULTY), ORRERY_TEST_EVENTS="1", ORRERY_TEST_EVENTS_FAIL="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("observer faulty: no more", done.stderr)
        self.assertEqual(done.stdout.splitlines()[-2:], ["event 6 ", "stopped"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
