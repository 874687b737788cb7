#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a manual page, made of what a program and its subcommands say at --help.

Arguments: the program; the name of the page; its version.
"""
import os
import re
import subprocess
import sys

program, name, version = sys.argv[1:]
HERE = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}


def help_of(*words):
    return subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True, env=HERE).stdout


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text.strip("\n"), flags=re.MULTILINE)


def block(text):
    return f".nf\n{roff(text)}\n.fi"


def main():
    text = help_of()
    about = {"orrery": "train models on any number of ranks", "orrery-check": "judge a plugin of Orrery"}[name]
    _, _, listed = text.partition("Subcommands:\n")
    subcommands = re.findall(r"^  (\w+)  ", listed, re.MULTILINE)
    print(f'.TH {name.upper()} 1 "" "orrery {version}"')
    print(f".SH NAME\n{name} \\- {about}")
    print(f".SH SYNOPSIS\n.B {name}\n{'subcommand ' if subcommands else ''}[options] ...")
    print(f".SH DESCRIPTION\n{block(text)}")
    for word in subcommands:
        print(f".SH {name.upper()} {word.upper()}\n{block(help_of(word))}" if word != "check" else
              f".SH {name.upper()} CHECK\nJudges a plugin by the conformance suite; see\n.BR orrery\\-check (1).")
    print('.SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 69 not available on this machine, 75 a peer was lost and '
          'a retry may help, or the job was told to stop, 124 a deadline passed, 128 + N ended by signal N.')


main()
