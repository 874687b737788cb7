# SPDX-License-Identifier: Apache-2.0
"""Models of random_draws.py that are trained by one process, and by some ranks under a stack of strategies until they
are saved, and on by other ranks under another stack. Between steps parameters are frozen and thawed.
"""
import pathlib
import re
import tempfile

from expressions import Dice
from random_draws import drawing_model
from random_models import STEPS
from random_runs import all_outputs, refusal
from random_stacks import stack_of

INEXACT = re.compile(r"strategy\.(tensor|context|expert)|fast")  # near the figures of one process, where others are equal
EVERY_STEP, EVAL = "for i, batch in ipairs(batches) do\n", "\nend\norrery.log('eval"


class Case:
    def __init__(self, seed):
        dice = self.dice = Dice(11 * 10**6 + seed)
        self.seed, self.model = seed, drawing_model(seed)
        _, self.ranks, self.stack = stack_of(dice, self.model)
        _, self.other_ranks, self.other_stack = stack_of(dice, self.model)
        self.saved, self.wait = 1 + dice.below(2), dice.choice(["", ", '', false"])
        self.exact = not INEXACT.search(self.stack + self.other_stack)
        self.changes = self.freezing()

    def freezing(self):
        """Lines that freeze and thaw parameters before the second and third step; one stays that is trained."""
        model, lines = self.model, []
        now, fixed = set(model.optimizer.frozen), {n for n in model.parameters if model.optimizer.group_of(n).get("frozen")}
        for step in (2, 3):
            for name in model.parameters:
                after = now ^ {name}
                if self.dice.chance(0.2) and set(model.parameters) - fixed - after:
                    now = after
                    lines.append(f"  if i == {step} then model.{model.path(name)}:freeze({str(name in now).lower()}) end\n")
        return "".join(lines)

    def script(self, strategy):
        text = self.model.script(strategy).replace("%.15g", "%.17g").replace(EVERY_STEP, EVERY_STEP + self.changes)
        return text.replace("local kept", f"orrery.seed({self.seed + 1})\nlocal kept", 1)

    def is_sensitive(self, build, output):
        """Whether rounding alone could make the difference, of figures that need only be near."""
        kept = self.model.parameters
        self.model.parameters = {n: (shape, [x * (1 + 1e-6 * (-1) ** i) for i, x in enumerate(numbers)])
                                 for n, (shape, numbers) in kept.items()}
        other = all_outputs(build, [self.script("")])[0]
        self.model.parameters = kept
        return not near(self.left(other), self.left(output), self.model.tolerance)

    def saving(self, folder):
        save = f"\n  if i == {self.saved} then run:save('{folder}/{self.seed}'{self.wait}) end"
        return self.script(self.stack).replace(EVAL, save + EVAL, 1)

    def loading(self, folder):
        """Begins with other values and another seed, and takes the steps that are left."""
        text = self.script(self.other_stack).replace(f"seed({self.seed + 1})", "seed(999)")
        text = re.sub(r"^model\.\S+?:write\(.*\n", "", text, flags=re.MULTILINE)
        begin = EVERY_STEP + self.changes
        text = text.replace(begin, f"run:load('{folder}/{self.seed}')\n{begin}  if i > {self.saved} then\n", 1)
        return text.replace(EVAL, f"\nend{EVAL}", 1)

    def left(self, output):
        """What an output has of the steps after the saved one."""
        figures = re.findall(r"^(step|eval|state) (.*)$", output, re.MULTILINE)
        steps = [i for i, (word, _) in enumerate(figures) if word == "step"]
        early = tuple(f"step{i}_" for i in range(1, self.saved + 1))
        return [f for i, f in enumerate(figures) if i not in steps[:len(steps) - STEPS + self.saved] and not f[1].startswith(early)]


def near(found, want, tolerance):
    a, b = ([x for _, line in figures for x in line.split()] for figures in (found, want))
    return len(a) == len(b) and all(x == y or abs(float(x) - float(y)) <= tolerance * max(1, abs(float(y))) for x, y in zip(a, b))


class Judge:
    """Runs cases and counts what comes of them. `wrong` has a text for each that is not as it should be."""

    def __init__(self, build, together=25):
        self.build, self.together, self.wrong, self.refused, self.good = build, together, [], [], 0

    def judge(self, seeds):
        with tempfile.TemporaryDirectory() as folder:
            cases = [Case(seed) for seed in seeds]
            alone = self.outputs(cases, lambda c: c.script(""), lambda c: 1)
            self.outputs([c for c in cases if c.seed in alone], lambda c: c.saving(folder), lambda c: c.ranks)
            saved = [c for c in cases if pathlib.Path(folder, str(c.seed), "checkpoint.json").exists()]
            found = self.outputs(saved, lambda c: c.loading(folder), lambda c: c.other_ranks)
        for case in (c for c in saved if c.seed in found):
            self.compare(case, found[case.seed], alone[case.seed])

    def outputs(self, cases, script, ranks):
        """By seed, of those that are not refused."""
        found = {}
        for n in {ranks(c) for c in cases}:
            some = [c for c in cases if ranks(c) == n]
            for i in range(0, len(some), self.together):
                part = some[i:i + self.together]
                for case, output in zip(part, all_outputs(self.build, [script(c) for c in part], n)):
                    why = refusal(output or "")
                    if output is None or "crash" in output:
                        self.wrong.append(f"seed {case.seed}, {n} ranks: {output}\n{script(case)}")
                    elif why:
                        self.refused.append(why)
                    else:
                        found[case.seed] = output
        return found

    def compare(self, case, found, want):
        got, right = case.left(found), case.left(want)
        if got == right or not case.exact and (near(got, right, 3 * case.model.tolerance) or case.is_sensitive(self.build, want)):
            self.good += 1
            return
        apart = [pair for pair in zip(got, right) if pair[0] != pair[1]][:3]
        self.wrong.append(f"seed {case.seed}, saved after step {case.saved} on {case.ranks} ranks with {case.stack or 'no stack'} and "
                          f"taken on by {case.other_ranks} with {case.other_stack or 'no stack'}: {apart}\n{case.script('')}")
