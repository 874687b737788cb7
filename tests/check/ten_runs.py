# SPDX-License-Identifier: Apache-2.0
"""Ten judged runs in a row, each with another seed: every good plugin passes, every bad one is caught.
Takes a quarter of an hour and more; not part of the suite.

Arguments: the build tree, with the tests built.
"""
import json
import sys

from trials import BUILD, OURS, Trial, check


def arguments_of(name):
    """What the suite gives to the test: its good plugins, or its trials."""
    tests = json.loads((BUILD / "meson-info/intro-tests.json").read_text())
    [command] = [test["cmd"] for test in tests if test["name"] == name]
    return command[command.index(str(BUILD)) + 1:]


def main():
    good = OURS + arguments_of("check")
    trials = [Trial(argument) for argument in arguments_of("museum")]
    wrong = 0
    for seed in range(1, 11):
        for plugin in good:
            report = check(plugin, "--seed", seed)[1]
            if report["failed"] > 0:
                wrong += 1
                print(f"seed {seed}: {plugin} fails:", [t for t in report["tests"] if t["state"] == "FAILED"])
        for trial in trials:
            # One that fails for some numbers alone keeps its seed.
            if trial.run(seed if trial.seed == 1 else trial.seed)[1]["failed"] != 1:
                wrong += 1
                print(f"seed {seed}: {trial.name} is not caught")
        print(f"seed {seed}: {len(good)} good and {len(trials)} bad plugins judged, {wrong} wrong so far", flush=True)
    return 1 if wrong else 0


sys.exit(main())
