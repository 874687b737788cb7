#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs an installed tree as a Python wheel: the program with its plugins and library, and a command that starts it.

All of it lies in one package, as under a prefix, so that the program finds its files from where it is; no Python runs
once it has begun. What belongs to a machine's MPI stays out.

Arguments: the prefix in the tree; the version; where to write the wheel.
"""
import base64
import hashlib
import pathlib
import stat
import sys
import zipfile

# The name "orrery" is another project's.
NAME, PACKAGE = "orrery-engine", "orrery_engine"
START = '''# SPDX-License-Identifier: Apache-2.0
"""The command `orrery`: becomes the program."""
import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).resolve().parent / "bin/orrery"
    os.execv(program, ["orrery", *sys.argv[1:]])
'''


def left_out(path):
    return (path.name.startswith(("orrery-comm-mpi", "orrery-boot-pmix"))
            or path.parts[:2] in (("share", "doc"), ("share", "man"), ("share", "bash-completion")))


def files_of(prefix):
    """(place in the wheel, bytes, whether it is a program) of all that is packed."""
    yield f"{PACKAGE}/__init__.py", START.encode(), False
    for path in sorted(p for p in prefix.rglob("*") if p.is_file() and not p.is_symlink()):
        if not left_out(path.relative_to(prefix)):
            program = bool(path.stat().st_mode & stat.S_IXUSR) and path.parent.name == "bin"
            yield f"{PACKAGE}/{path.relative_to(prefix)}", path.read_bytes(), program


def facts(version, readme, license_text):
    yield "METADATA", (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\nLicense: Apache-2.0\n"
                       "Summary: Trains models that Lua scripts describe, to the same bits on any number of ranks\n"
                       f"Requires-Python: >=3.8\nDescription-Content-Type: text/markdown\n\n{readme}")
    yield "WHEEL", "Wheel-Version: 1.0\nGenerator: orrery\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
    yield "entry_points.txt", f"[console_scripts]\norrery = {PACKAGE}:main\n"
    yield "LICENSE", license_text


def main():
    prefix, version, target = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    source = pathlib.Path(__file__).resolve().parents[2]
    info = f"{PACKAGE}-{version}.dist-info"
    record = []
    with zipfile.ZipFile(target / f"{PACKAGE}-{version}-py3-none-linux_x86_64.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, program=False):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | (0o755 if program else 0o644)) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")

        for name, data, program in files_of(prefix):
            add(name, data, program)
        for name, text in facts(version, (source / "README.md").read_text(), (source / "LICENSE").read_text()):
            add(f"{info}/{name}", text.encode())
        add(f"{info}/RECORD", ("\n".join([*record, f"{info}/RECORD,,"]) + "\n").encode())


main()
