# SPDX-License-Identifier: Apache-2.0
"""Prints the files named on the command line as C++ string literals: cl/matmul.cl becomes matmul_cl."""
import pathlib
import sys

print("#pragma once\nnamespace ocl {")
for path in map(pathlib.Path, sys.argv[1:]):
    print(f'inline const char {path.stem}_cl[] = R"CL(\n{path.read_text()})CL";')
print("}")
