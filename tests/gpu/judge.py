# SPDX-License-Identifier: Apache-2.0
"""Judges Orrery on the GPU of this machine; lies in the folder that scripts/gpu-bundle makes.

  tests/gpu/run [--only ops,losses,same-bits,sanitizer,races,kernels] [--out DIR]

Needs no network and nothing installed but the NVIDIA driver; the races want a PyTorch. Prints one
table and writes result.json. Without a driver it checks what can be checked and says what it left out.
Exits with 1 if something that was tried failed.
"""
import argparse
import json
import os
import pathlib
import sys
import time

import checks
import kernels
import machine_facts
import races

BUNDLE = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = {"ops": checks.ops, "losses": checks.losses, "same-bits": checks.same_bits,
            "sanitizer": checks.sanitizer, "races": races.run_races, "kernels": kernels.beside_the_floor}


def environment():
    """What the programs of the bundle need to find one another, and another Python its own library."""
    os.environ.pop("PYTHONHOME", None)
    os.environ["PATH"] = f"{BUNDLE / 'prefix/bin'}:{os.environ['PATH']}"
    given = os.environ.get("LD_LIBRARY_PATH", "")
    for more in ([], [BUNDLE / "lib/cxx"]):  # the machine's own C++ library first
        os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(BUNDLE / "lib"), *map(str, more), given]))
        if checks.run("orrery", "--version").returncode == 0:
            return


def show(row):
    print(f"{row['section']:<10} {row['name']:<34} {row['verdict']:<8} {row['text']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas")
    parser.add_argument("--out", default=".", type=pathlib.Path, help="where result.json goes")
    choice = parser.parse_args()
    wanted = choice.only.split(",")
    if unknown := [s for s in wanted if s not in SECTIONS]:
        parser.error(f"there is no section '{unknown[0]}'; there are {', '.join(SECTIONS)}")
    environment()
    facts = machine_facts.describe()
    for key, value in facts.items():
        print(f"{key}: {value}")
    rows = []
    for section in ["bundle"] + wanted:
        for row in (checks.bundle if section == "bundle" else SECTIONS[section])(BUNDLE, facts):
            rows.append({"section": section} | row)
            show(rows[-1])
    choice.out.mkdir(parents=True, exist_ok=True)
    result = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": facts, "rows": rows}
    (choice.out / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    counts = {v: sum(r["verdict"] == v for r in rows) for v in ("passed", "failed", "skipped", "measured")}
    print(", ".join(f"{n} {verdict}" for verdict, n in counts.items()) + f"; {choice.out / 'result.json'}")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
