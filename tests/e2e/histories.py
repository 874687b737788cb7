# SPDX-License-Identifier: Apache-2.0
"""Random histories of a training: its ranks or launcher are killed at random moments, it is told to stop, started again by
the same command or on other ranks, another backend, under another stack, from an older checkpoint. What it has trained
must be what the run trains that nothing happened to: every step's loss and norm, in the script's words and in those of
observers, and in the end every tensor of its checkpoint. `History(seed).complaints()` says what is not so.
"""
import csv
import json
import pathlib
import re
import tempfile

from fallback_test import cut_short, flip, lose, scribble
from histories_script import Script
from lives import BAD, OWN_FIGURES, STEP, Blow, Life, backends
from program import wait_for
from random_failures_test import left_behind
from shards import elements

import expressions

FROM = re.compile(r"^from (\d+)$", re.MULTILINE)
WATCHED = ("loss", "grad_norm", "learning_rate")  # of what observers write
LEFT = re.compile(r"(metrics\.(jsonl|csv)|facts\.\d+\.jsonl|events\.out\..*|trace(-\d+)?(\.\d+)?\.json|exchanges\.\d+\.json|checkpoint)")


class History:
    def __init__(self, seed, exact=None):
        self.dice = dice = expressions.Dice(13 * 10 ** 6 + seed)
        self.seed, exact = seed, dice.chance(0.75) if exact is None else exact
        self.script, self.known = Script(dice, exact), backends()
        self.lives, self.wrong, self.refused, self.figures, self.damaged = [], [], "", {}, None

    def __str__(self):
        script = self.script
        saving = f"a series of every {script.every}, keep {script.keep}, best '{script.best}'" if script.series else f"by hand every {script.every}"
        return "\n".join([f"seed {self.seed}: {script.steps} steps, {saving}", *map(str, self.lives)])

    # -- the folder ------------------------------------------------------------------------------
    @property
    def saved(self):
        return self.folder / "saved"

    def complete(self):
        """Steps of the checkpoints that are complete."""
        found = {}
        for path in [*self.saved.glob("checkpoint.json"), *self.saved.glob("step-*/checkpoint.json")]:
            if "damaged" not in path.parent.name and path.parent != self.damaged:
                found[json.loads(path.read_text())["step"]] = path.parent
        return found

    def half_written(self):
        if not self.script.series:
            return len(list(self.saved.glob("[0-9]*"))) > 1
        return any(not (path / "checkpoint.json").exists() for path in self.saved.glob("step-*") if not path.suffix)

    # -- what happens ----------------------------------------------------------------------------
    def complaints(self):
        """All that is wrong, as texts."""
        with tempfile.TemporaryDirectory() as folder:
            before = left_behind()
            if self.quiet(pathlib.Path(folder)):
                self.folder = pathlib.Path(folder) / "job"
                self.prepare()
                for _ in range(1 + self.dice.below(4)):
                    if not self.lives or self.lives[-1].code:
                        self.live(self.blows())
                self.live([])
                self.judge()
                try:
                    wait_for(lambda: not left_behind() - before, 10)  # others may start and end jobs beside this one
                except AssertionError:
                    self.wrong.append(f"left in shared memory: {left_behind() - before}")
        return self.wrong

    def prepare(self):
        self.folder.mkdir()
        (self.folder / "script.lua").write_text(self.script.text)

    def quiet(self, folder):
        """The run that nothing happens to, and a look at which stacks are not refused; False: the judge's own is."""
        stacks = []
        for i, (ranks, stack) in enumerate(self.script.stacks):
            self.folder = folder / f"quiet-{i}"
            self.prepare()
            life = Life(self, ranks, stack, self.known[0])
            if life.code == 1 and "error: " in life.err and not BAD.search(life.err):
                self.refused = life.err
                continue
            if life.code or life.hung:
                self.wrong.append(f"undisturbed, {life}\n{life.err}")
                return False
            if not self.figures:
                self.figures, self.digest = dict(STEP.findall(life.out)), life.out.splitlines()[-1]
                self.tensors, self.watched = elements(self.final()), self.metrics()
            elif not life.tells_all() or elements(self.final()) != self.tensors:
                self.wrong.append(f"undisturbed, {life}: other figures")
            stacks.append((ranks, stack))
        self.script.stacks = stacks
        return bool(stacks) and bool(self.figures)

    def final(self):
        return self.folder / ("final" if self.script.series else "saved")

    def blows(self):
        """Of the next life."""
        dice, steps = self.dice, max(1, self.script.steps - max(self.complete() or [0]))
        one = dice.choice([["kill"], ["kill"], ["launcher"], ["TERM", "USR1"], ["TERM", "USR1"]])
        if dice.chance(0.03):
            one = ["freeze"]
        most = max(1, min(steps, dice.choice([2, 4, steps])))
        count = 1 + dice.below(3) if one == ["kill"] and dice.chance(0.6) else 1
        return [Blow(dice, 4, most, one) for _ in range(count)]

    def live(self, blows):
        dice = self.dice
        ranks, stack = dice.choice(self.script.stacks)
        backend = dice.choice(self.known)
        here = ranks == 1 and backend.name in ("tcp", "nccl")
        # What an MPI has named in shared memory stays when its launcher is killed.
        here |= bool(blows) and blows[0].kind == "launcher" and bool(backend.before)
        # NCCL adds in an order of its own where a strategy asks for no tree.
        if here or "stale" in stack or backend.name == "nccl" and not self.script.exact:
            backend = self.known[0]
        words = ["--threads", 1 + dice.chance(0.2)]
        for blow in blows:
            blow.victim %= ranks
        if len(blows) > 1 and not backend.before:
            words += ["--restarts", len(blows)]
        damaged = self.damage() if blows and dice.chance(0.3) else None
        if damaged:
            words += ["--fallback"] * ("--restarts" not in words)
        newest = max(self.complete() or [0])
        self.damaged = None
        life = Life(self, ranks, stack, backend, words, blows)
        self.lives.append(life)
        if complaints := list(life.complaints()):
            self.wrong.append(f"{life}: {complaints[:3]}\n{life.err}{life.out[-3000:]}")
        begun = FROM.findall(life.out)
        if begun and int(begun[0]) != newest:
            self.wrong.append(f"{life}: begins behind {begun[0]}, where {newest} is the newest checkpoint\n{life.err}{life.out}")
        if damaged and "a damaged checkpoint is skipped" not in life.err and begun:
            self.wrong.append(f"{life}: nobody says that {damaged} was skipped\n{life.err}")

    def damage(self):
        """The newest of several; its name."""
        found = sorted(self.complete().items())
        if len(found) < 2:
            return None
        self.dice.choice([cut_short, flip, lose, scribble])(found[-1][1])
        self.damaged = found[-1][1]
        return self.damaged.name

    # -- what is left ----------------------------------------------------------------------------
    def judge(self):
        last = self.lives[-1]
        if not self.wrong:
            # The digest of copies is that of their mean, which rounds.
            digest = last.out.splitlines()[-1:]
            if self.script.exact and digest != [self.digest] or elements(self.final()) != self.tensors:
                self.wrong.append(f"{last}: another training\n{last.out}")
            self.judge_observers()
            self.judge_files()

    def metrics(self):
        """{(step, name): set of values} of both files."""
        found = {}
        with open(self.folder / "watched/metrics.csv", newline="") as file:
            for row in list(csv.reader(file))[1:]:
                step, _, name, value = row
                if name in WATCHED:
                    found.setdefault((int(step), name), set()).add(value)
        for line in (self.folder / "watched/metrics.jsonl").read_text().splitlines():
            row = json.loads(line)
            for name in set(WATCHED) & row.keys():
                found.setdefault((row["step"], name), set()).add(str(row[name]))
        return found

    def judge_observers(self):
        try:
            found = self.metrics()
        except (ValueError, OSError) as e:
            self.wrong.append(f"observers: {e!r}")
            return
        apart = [f"{key}: {found.get(key)}, not {self.watched.get(key)}" for key in sorted(self.watched.keys() | found.keys())
                 if found.get(key) != self.watched.get(key)]
        if apart and not any(OWN_FIGURES.search(life.stack) for life in self.lives):
            self.wrong.append(f"observers: {apart[:5]}")

    def judge_files(self):
        script, complete = self.script, self.complete()
        names = [path.name for path in (self.folder / "watched").iterdir() if not LEFT.fullmatch(path.name)]
        if script.series:
            names += [path.name for path in self.saved.iterdir() if "damaged" not in path.name and path not in complete.values()
                      and path.name != "checkpoint.lock"]
            if script.keep and len(complete) > script.keep + bool(script.best):
                names += sorted(map(str, complete))
            if max(complete) < script.steps // script.every * script.every:
                names.append(f"the newest is {max(complete)}")
        if names:
            self.wrong.append(f"files left: {names}")
