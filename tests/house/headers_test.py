# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles alone: *.h as C11 and C++20, sdk/*.hpp as C++20.

Arguments: the C compiler, the C++ compiler (each may be several words).
"""
import pathlib
import subprocess
import sys

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "core" / "include"


def compiles(compiler, language, standard, header):
    command = compiler.split() + ["-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                                  "-pedantic", "-fsyntax-only", "-I", str(INCLUDE), "-"]
    # Twice, so that a missing include guard shows.
    text = f"#include <{header}>\n" * 2
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{header} does not compile alone as {standard}:\n{done.stderr}")
    return done.returncode == 0


def main():
    cc, cxx = sys.argv[1:3]
    results = []
    for path in sorted(INCLUDE.rglob("*.h*")):
        header = path.relative_to(INCLUDE)
        if path.suffix == ".h":
            results.append(compiles(cc, "c", "c11", header))
        results.append(compiles(cxx, "c++", "c++20", header))
    print(f"{len(results)} compilations, {results.count(False)} failed")
    return 0 if results and all(results) else 1


sys.exit(main())
