# SPDX-License-Identifier: Apache-2.0
"""`orrery repl` from a pipe and at a terminal: what lines print, what they leave for later ones, errors that keep the
session, Tab, the history of an earlier session, Ctrl-C beside and inside of a running line, Ctrl-D.

Arguments: the build tree.
"""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from program import BUILD, PATIENCE, SETTINGS

MODEL = "model = nn.sequential { nn.linear(2, 3), nn.tanh, nn.linear(3, 1) }"
RUN = ('run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end, '
       '{ params = model, optimizer = optim.sgd { lr = 0.1 } })')
BATCH = "batch = { x = orrery.tensor { { 1.0, 2.0 } }, y = orrery.tensor { { 3.0 } } }"


def environment(state):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
    return kept | SETTINGS | {"XDG_STATE_HOME": state, "TERM": "dumb"}


def piped(*lines):
    with tempfile.TemporaryDirectory() as state:
        done = subprocess.run([BUILD / "orrery", "repl"], input="\n".join(lines), text=True, capture_output=True,
                              env=environment(state), timeout=PATIENCE)
        if done.returncode or list(pathlib.Path(state).iterdir()):
            raise AssertionError(f"code {done.returncode}, state {os.listdir(state)}: {done.stderr}")
    return done.stdout.splitlines()


class Terminal:
    """A session whose input and output are a terminal."""

    def __init__(self, state):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(BUILD / "orrery", ["orrery", "repl"], environment(state))
        self.seen = ""

    def wait_for(self, text):
        """Reads on until `text` has come; returns what came before it."""
        until = time.monotonic() + PATIENCE
        while text not in self.seen:
            if time.monotonic() > until or not self.more():
                raise AssertionError(f"no {text!r} in {self.seen!r}")
        before, self.seen = self.seen.split(text, 1)
        return before

    def more(self):
        if select.select([self.terminal], [], [], 1)[0]:
            try:
                data = os.read(self.terminal, 4096)
            except OSError:  # the other side has been closed
                return False
            self.seen += data.decode()
            return bool(data)
        return True

    def type(self, text):
        os.write(self.terminal, text.encode())

    def run(self, line, expected):
        """Types a line and reads what it prints, to the next prompt."""
        self.type(line + "\n")
        self.wait_for(expected)
        self.wait_for("> ")

    def close(self):
        """Waits for the end; returns the exit code."""
        until = time.monotonic() + PATIENCE
        while self.more():
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Repl(unittest.TestCase):
    def test_values(self):
        self.assertEqual(
            piped("1 + 1", "local a, b = 2, 'x'", "a, b", "{1, 2, k = {3}}", "orrery.tensor { 1.0, 2.0 }", "nil", "a = a + 1",
                  "a", "string.rep('ab', a)", "print(7)", "local function g() return a end", "g()"),
            ["2", "2", '"x"', "{1, 2, k = {3}}", "f32[2]: mean 1.5, std 0.5, min 1, max 2", "  1  2", "3", '"ababab"', "7",
             "3"])

    def test_tensors_compute_and_are_shown_as_tables(self):
        lines = piped("x = orrery.tensor { { 1.0, -2.5 }, { 3.25, 40.0 } }", "x * 2", "x:sum(), x[{2, 1}]", "x:gt(1)",
                      "#x", "x[{ {}, 2 }]", "model = nn.linear(2, 1)", "model.weight:write { { 1.0, 2.0 } }",
                      "model.bias:write { 0.5 }", "model(x)", "x[3]", "orrery.stack { x, x }",
                      "orrery.func(function() return orrery.iota(300):reshape(20, 15) end)()")
        self.assertEqual(lines[:17], [
            "f32[2,2]: mean 20.875, std 34.3809, min -5, max 80", "    2   -5", "  6.5   80", "f32[] 41.75", "f32[] 3.25",
            "bool[2,2]: mean 0.5, std 0.5, min 0, max 1", "  false  false", "   true   true", "2",
            "f32[2]: mean 18.75, std 21.25, min -2.5, max 40", "  -2.5    40",
            "f32[2,1]: mean 40.125, std 43.625, min -3.5, max 83.75", "   -3.5", "  83.75",
            "error: [11]:1: index: place 3 of dim 1 does not exist: it has 2 elements, counted 1..2 or -1..-2",
            "f32[2,2,2]: mean 10.4375, std 17.1905, min -2.5, max 40", "[1]"])
        self.assertEqual(lines[-13], "    0    1    2    3    4  ...   10   11   12   13   14")
        self.assertEqual(lines[-7].strip(), "...")

    def test_lines_that_go_on(self):
        self.assertEqual(piped("for i = 1, 2 do", "  print(i)", "end", "local t = {", "  5,", "}", "t", "[[a", "b]]"),
                         ["1", "2", "{5}", '"a\\', 'b"'])

    def test_errors_keep_the_session(self):
        lines = piped("a = 5", "b", "error 'bad'", "x = = 2", "error {}", "a", "if a then", "  c()", "end", "? nonsense", "a")
        self.assertIn("table", lines.pop(3))
        self.assertEqual(lines,
                         ["error: [2]:1: undeclared variable 'b'", "error: [3]:1: bad",
                          "error: [4]:1: unexpected symbol near '='", "5", "error: [7]:2: undeclared variable 'c'",
                          "error: there is no help on 'nonsense'", "5"])

    def test_a_model_is_built_stepped_and_looked_into(self):
        lines = piped("orrery.seed(1)", MODEL, RUN, BATCH, "first = run:step(batch)", "first", "model[1].weight",
                      'run:probe { "1", "grad 3.bias" }', "run:step(batch)", "run.steps", "model")
        self.assertRegex(lines[0], r"^step 1: grad_norm [\d.]+, loss [\d.]+$")
        self.assertRegex(lines[1], r"^f32\[3,2\]: mean .*; first (\S+ ){3}\S+$")
        self.assertRegex(lines[2], r"^step 2: grad_norm [\d.]+, loss [\d.]+, 1 f32\[1,3\], grad 3.bias f32\[1\]$")
        self.assertEqual(lines[3:5], ["2", "sequential: 13 parameters"])

    def test_wrong_conditions_are_seen(self):
        lines = piped(MODEL, BATCH, "bad = orrery.compile(function(b)", "  local y = model(b.x)",
                      "  if y == 0 then y = y * 2 end", "  return nn.mse(y, b.y)",
                      "end, { params = model, optimizer = optim.sgd { lr = 0.1 } })", "bad:step(batch)")
        self.assertRegex(lines[0], r"^error: \[3\]:3: 'y == 0' is always false")

    def test_help(self):
        self.assertIn("x W^T + b, weights [out, in].", "\n".join(piped("? nn.linear")))
        self.assertIn("Ctrl-D leaves", "\n".join(piped("?")))
        relu = piped("? nn.relu")
        for line in ("help nn.relu", 'help "nn.relu"', "help('nn.relu')"):
            self.assertEqual(piped(line), relu, line)
        self.assertEqual(piped("help"), piped("?"))
        self.assertEqual(piped("helpful", "help = 2", "help"), ["error: [1]:1: undeclared variable 'helpful'", "2"])

    def test_tables_of_the_library_print_what_they_have(self):
        for name, has in (("nn", "linear,"), ("optim", "adamw,"), ("strategy", "auto,"), ("orrery.data", "arrays,"),
                          ("nn.init", "xavier"), ("orrery", "compile,")):
            lines = piped(f"print({name})") if name == "orrery.data" else piped(f"? {name}")
            self.assertEqual(lines[0], name.removeprefix("orrery.") + " has:")
            self.assertIn(has, " ".join(lines).split())
        self.assertEqual(piped("nn"), piped("? nn"))

    def test_words_that_leave(self):
        for word in ("exit", "quit", "exit()", " quit ( ) "):
            self.assertEqual(piped("1", word, "2"), ["1"])
        self.assertEqual(piped("exit = 3", "exit", "for i = 1, 1 do", "  quit = 1", "end", "quit"), ["3", "1"])

    def test_a_terminal(self):
        with tempfile.TemporaryDirectory() as state:
            session = Terminal(state)
            session.wait_for("Ctrl-D leaves")
            session.wait_for("> ")
            session.run("value = 40 + 2", "value = 40 + 2")
            session.run("value", "42")
            session.type("orrery.nn.layern\t")
            session.wait_for("orrery.nn.layernorm")
            session.type("\x03")  # discards it
            session.wait_for("> ")
            session.type("val\t\n")  # a variable of its own
            session.wait_for("42")
            session.wait_for("> ")
            session.run("if value then", "if value then")
            session.type("\x03")
            session.wait_for("> ")
            session.type("print(6 * 7) while true do end\n")
            session.wait_for("\n42")
            session.type("\x03")
            session.wait_for(": interrupted\r\n")
            session.wait_for("> ")
            session.run("value", "42")
            session.type("\x04")
            self.assertEqual(session.close(), 0)
            history = pathlib.Path(state, "orrery", "history").read_text()
            self.assertRegex(history, re.compile(r"value(\\040| )=(\\040| )40"))
            again = Terminal(state)
            again.wait_for("> ")
            again.type("\x10\n")  # Ctrl-P: the last line of the earlier session
            again.wait_for("undeclared variable 'value'")
            again.wait_for("> ")
            again.type("\x04")
            self.assertEqual(again.close(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
