# SPDX-License-Identifier: Apache-2.0
"""A race: contestants that agree on the losses take turns; ratios are taken turn by turn."""
import json
import statistics
import time

import machine


class Race:
    def __init__(self, work, contestants):
        self.work, self.contestants = work, contestants
        self.busy = []

    def run(self, at_end=lambda: None, each_round=lambda: None):
        """Losses first, then turns in order, after each of which `each_round` has its own. Closes the
        contestants after `at_end`."""
        try:
            wanted = json.loads((self.work.directory / "losses.json").read_text())["losses"]
            for contestant in self.contestants:
                contestant.check_losses(wanted)
            for _ in range(self.work.rounds):
                self.busy.append(machine.busy_share(0.2))
                for contestant in self.contestants:
                    contestant.take_turn()
                    time.sleep(0.02)  # lets the threads of the last one fall asleep
                each_round()
            at_end()
        finally:
            for contestant in self.contestants:
                contestant.close()

    def best(self, name):
        return min(min(turn) for turn in self.turns(name))

    def median(self, name):
        return statistics.median(ms for turn in self.turns(name) for ms in turn)

    def turns(self, name):
        [contestant] = [c for c in self.contestants if c.name == name]
        return contestant.times

    def ratio(self, slow, fast):
        """How many times `fast` is faster: by bests, and by medians of neighbouring turns."""
        pairs = [statistics.median(a) / statistics.median(b)
                 for a, b in zip(self.turns(slow), self.turns(fast))]
        return {"of": f"{slow} / {fast}", "best": self.best(slow) / self.best(fast),
                "median": statistics.median(pairs), "min": min(pairs), "max": max(pairs)}

    def report(self):
        return {"workload": self.work.title, "rounds": self.work.rounds,
                "others_busy": max(self.busy, default=0),
                "ms": {c.name: {"best": self.best(c.name), "median": self.median(c.name)}
                       for c in self.contestants}}
