# SPDX-License-Identifier: Apache-2.0
"""A plugin that is for tests alone is held to the contract like any other.

Arguments: the build tree, then the plugin.
"""
import pathlib
import sys

from trials import judge

codes, tests = judge(pathlib.Path(sys.argv[2]).resolve(), 1)
for test in tests:
    if test["state"] == "FAILED":
        print(test)
print(len(tests), "tests, exit codes", codes)
sys.exit(codes != {0})
