# SPDX-License-Identifier: Apache-2.0
"""The arguments of a script: what `--help` behind it lists, files of arguments, `arg`, and words that are refused.

Arguments: the build tree.
"""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from program import SOURCE, orrery  # noqa: E402

# Trains, and says what it got; `late` is declared after other work.
TRAIN = """
local orrery = require "orrery"
local data = orrery.data.arrays { x = { { 0.0 }, { 1.0 } }, y = { { 1.0 }, { 3.0 } } }
local twice = orrery.func(function(x) return x * 2 end)({ 1.0 }):item()
local args = orrery.args { steps = { 2, help = "training steps" }, stack = { "data", "none", help = "strategies" },
  name = "", tie = true, lr = 0.1 }
local model = require("model").new(twice)
local late = orrery.args { late = 7 }
orrery.log("compiling")
local run = orrery.compile(function(b) return orrery.nn.mse(model(b.x), b.y) end,
  { params = model, optimizer = orrery.optim.sgd { lr = args.lr }, microbatches = 2 })
for step, batch in data:batches { size = 2, steps = args.steps } do run:step(batch) end
local file <close> = assert(io.open("trained", "a"))
file:write(args.steps, " ", args.stack, " ", args.name, " ", tostring(args.tie), " ", args.lr, " ", late.late, "\\n")
"""
MODEL = """
local orrery = require "orrery"
local args = orrery.args { bias = { true, help = "an offset" } }
return { new = function(width) return orrery.nn.linear(width // 2 | 0, 1, { bias = args.bias }) end }
"""
HELP = """Usage: orrery run [OPTIONS] train.lua [key=value | @FILE]...

Arguments declared at train.lua:5, as name=default:
  lr=0.1      number
  name=       text
  stack=data  one of data, none  strategies
  steps=2     integer            training steps
  tie=true    true or false

Arguments declared at model.lua:3, as name=default:
  bias=true  true or false  an offset

Arguments declared at train.lua:8, as name=default:
  late=7  integer

@FILE reads lines of key = value, or the table that a .lua file returns; what comes later wins.
"""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("train.lua", TRAIN)
        self.write("model.lua", MODEL)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def trained(self, *words):
        """What the script has got with these words; removed, so that the next one is seen."""
        done = orrery("run", "train.lua", *words, cwd=self.folder)
        self.assertEqual(done.code, 0, done.err)
        text = (self.folder / "trained").read_text()
        (self.folder / "trained").unlink()
        return text.strip()

    def refused(self, *words):
        done = orrery("run", "train.lua", *words, cwd=self.folder)
        self.assertEqual((done.code, (self.folder / "trained").exists()), (2, False), done.out + done.err)
        return done.err


class Help(Folder):
    def test_lists_the_arguments_of_all_calls_and_trains_nothing(self):
        for words in (["run", "train.lua", "--help"], ["run", "train.lua", "-h"],
                      ["plan", "-n", "2", "train.lua", "--help"], ["run", "-n", "3", "train.lua", "steps=9", "--help"]):
            with self.subTest(words=words):
                done = orrery(*words, cwd=self.folder)
                self.assertEqual((done.code, done.out, done.err), (0, HELP, ""))
                self.assertFalse((self.folder / "trained").exists())

    def test_before_the_script_it_is_the_command_s(self):
        for words in (["run", "--help"], ["run", "--help", "train.lua"], ["plan", "-h"]):
            with self.subTest(words=words):
                done = orrery(*words, cwd=self.folder)
                self.assertEqual((done.code, done.err), (0, ""))
                self.assertIn("--kernels", done.out)
                self.assertNotIn("training steps", done.out)

    def test_a_script_that_needs_an_argument_is_listed_all_the_same(self):
        self.write("needs.lua", """local args = require "orrery".args { data = { "", help = "a file of text" } }
print "begins"
local file = assert(io.open(args.data))""")
        done = orrery("run", "needs.lua", "--help", cwd=self.folder)
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertIn("  data=  text  a file of text\n", done.out)
        self.assertRegex(done.out, r"fails without its arguments.*\n  needs.lua:3: ")
        self.assertNotIn("begins", done.out)

    def test_nothing_is_written(self):
        for line in ('io.open("trace", "w")', 'os.remove "model.lua"', 'os.execute "touch trace"',
                     'orrery.nn.linear(1, 1):save_weights "trace"'):
            self.write("writes.lua", f'local orrery = require "orrery"\nlocal a = orrery.args {{ a = 1 }}\n{line}\n')
            with self.subTest(line=line):
                done = orrery("run", "writes.lua", "--help", cwd=self.folder)
                self.assertEqual((done.code, done.err), (0, ""))
                self.assertIn("  a=1  integer\n", done.out)
                self.assertTrue((self.folder / "model.lua").exists())
                self.assertFalse((self.folder / "trace").exists())

    def test_a_loop_of_the_script_s_own_does_not_train(self):
        self.write("own.lua", """local orrery = require "orrery"
local args, x = orrery.args { steps = 3 }, orrery.parameter { 1 }
local step = orrery.func(function() x:update(x * 2) return x:sum() end)
for _ = 1, args.steps do step() end
print "trained" """)
        done = orrery("run", "own.lua", "--help", cwd=self.folder)
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertIn("  steps=3  integer\n", done.out)
        self.assertNotIn("fails", done.out)

    def test_a_script_without_arguments(self):
        self.write("none.lua", 'print "nothing"')
        self.assertIn("none.lua takes no arguments.", orrery("run", "none.lua", "--help", cwd=self.folder).out)

    def test_a_script_with_an_error_ends_with_it(self):
        self.write("wrong.lua", "local x = = 1")
        done = orrery("run", "wrong.lua", "--help", cwd=self.folder)
        self.assertEqual((done.code, done.out), (1, ""))
        self.assertIn("wrong.lua:1: unexpected symbol", done.err)

    def test_of_every_example(self):
        for script in sorted((SOURCE / "examples").glob("*.lua")):
            with self.subTest(script=script.name):
                done = orrery("run", f"examples/{script.name}", "--help")
                self.assertEqual((done.code, done.err), (0, ""))
                self.assertRegex(done.out, r"Arguments of examples/.*\n  \w+=")
                self.assertEqual("fails" in done.out, script.name == "mnist.lua")  # its files are not here


class Values(Folder):
    def test_defaults_words_and_the_later_one_wins(self):
        self.assertEqual(self.trained(), "2 data  true 0.1 7")
        self.assertEqual(self.trained("steps=3", "late=8", "name=a=b", "tie=0", "bias=false", "steps=1"),
                         "1 data a=b false 0.1 8")

    def test_files(self):
        self.write("run.conf", """# of a run
  steps = 3   # few
lr=1e-3
name = "say \\"x # y\\"\\\\"  # quoted
stack = none\r
tie = 'false'
late =-2
""")
        self.write("run.lua", 'return { steps = 4, lr = 1, name = "it\'s", tie = true }')
        self.assertEqual(self.trained("@run.conf"), '3 none say "x # y"\\ false 0.001 -2')
        self.assertEqual(self.trained("@run.conf", "steps=1", "name=#1"), "1 none #1 false 0.001 -2")
        self.assertEqual(self.trained("steps=1", "@run.conf", "@run.lua"), "4 none it's true 1 -2")
        self.write("other.conf", "name='a \"b\" \\n'#c\nstack = # the first\n")
        self.assertIn("other.conf:2: stack=: expected one of data, none", self.refused("@other.conf"))

    def test_a_file_is_read_by_every_rank(self):
        self.write("run.conf", "steps = 1\nname = all\n")
        done = orrery("run", "-n", "2", "train.lua", "@run.conf", cwd=self.folder)
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual((self.folder / "trained").read_text(), "1 data all true 0.1 7\n" * 2)

    def test_what_is_wrong_names_its_place(self):
        for name, text, says in (
                ("a.conf", "steps = 3\nsteps = 4\n", "a.conf:2: line 1 has steps already"),
                ("a.conf", "\nlat = 4\n", "a.conf:2: 'lat' is unknown (did you mean 'late'?)"),
                ("a.conf", "late = x\n", "a.conf:1: late=x: expected an integer"),
                ("a.conf", "[model]\n", "a.conf:1: expected key = value, found '[model]'"),
                ("a.conf", 'name = "a" b\n', "a.conf:1: ' b' follows the closing quote"),
                ("a.conf", 'name = "\\d"\n', "a.conf:1: \\d is none of"),
                ("a.lua", "return {\n  lr = 1,\n  late = 2.5,\n}", "a.lua:3: late=2.5: expected an integer"),
                ("a.lua", "return {\n  lat = 1 }", "a.lua:2: 'lat' is unknown (did you mean 'late'?)"),
                ("a.lua", "return { lr = { 1 } }", "a.lua:1: lr is a table; expected"),
                ("a.lua", "return 3", "a.lua: returns 3, expected a table")):
            with self.subTest(text=text):
                self.write(name, text)
                self.assertIn(says, self.refused(f"@{name}"))
        self.assertIn("argument '@nowhere': cannot be read: nowhere: No such file", self.refused("@nowhere"))
        self.assertIn("argument 'lat' is unknown (did you mean 'late'?); the script takes bias, late, lr, name, stack",
                      self.refused("lat=1"))
        self.assertIn("written key=value", self.refused("--steps", "3"))


class Arg(Folder):
    def test_as_lua_has_it(self):
        self.write("say.lua", """#!/usr/bin/env -S orrery run
print(arg[0], #arg, table.unpack(arg))
for _, word in ipairs(arg) do io.write("[", word, "]") end
for at, word in pairs(arg) do io.write(at, "=", word, ";") end
print(dofile(arg[0]:gsub("say", "other")))""")
        self.write("other.lua", "return 'beside', ...")
        done = orrery("run", "say.lua", "a", "b=c", cwd=self.folder)
        self.assertEqual((done.code, done.err), (0, ""))
        self.assertEqual(done.out, "say.lua\t2\ta\tb=c\n[a][b=c]1=a;2=b=c;beside\n")

    def test_words_that_nothing_reads_are_refused(self):
        self.write("quiet.lua", "print(arg[0])")
        done = orrery("run", "quiet.lua", "a", cwd=self.folder)
        self.assertEqual(done.code, 2)
        self.assertIn("argument 'a': the script takes none", done.err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
