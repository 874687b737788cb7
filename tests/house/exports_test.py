# SPDX-License-Identifier: Apache-2.0
"""Every plugin of the build tree given exports one symbol, orrery_plugin, and nothing else."""
import pathlib
import subprocess
import sys


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True,
                         text=True).stdout
    return [line.split()[-1] for line in out.splitlines()]


def main():
    build = pathlib.Path(sys.argv[1])
    plugins = [p for room in ("plugins", "kernels") for p in sorted((build / room).rglob("*.so"))]
    wrong = {p.name: exported(p) for p in plugins if exported(p) != ["orrery_plugin"]}
    for name, symbols in wrong.items():
        print(f"{name} exports {symbols or 'nothing'}; link it with plugins/plugin.map")
    if not plugins:
        print(f"no plugins below {build}")
    print(f"{len(plugins)} plugins looked at")
    return 1 if wrong or not plugins else 0


sys.exit(main())
