# SPDX-License-Identifier: Apache-2.0
"""The blocks of a page, and what a reader gets who does all that it says, from top to bottom.

A block of lua that begins with `-- NAME.lua` is saved under that name. In a block of console each line behind `$ ` is a
command, and the lines up to the next one are what it prints, on stdout, or on stderr where it fails. A line `...` stands
for any lines.
"""
import os
import re
import subprocess

from program import BUILD, PATIENCE, SETTINGS, SOURCE


def blocks(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def pages():
    return [SOURCE / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]


def as_shown(shown, printed):
    pattern = "".join(r"(?:.*\n)*?" if line == "...\n" else re.escape(line) for line in shown.splitlines(keepends=True))
    return re.fullmatch(pattern, printed) is not None


def commands_and_outputs(block):
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert parts[0] == "", block
    return list(zip(parts[1::2], parts[2::2]))


def environment():
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ORRERY_")}
    return kept | SETTINGS | {"PATH": f"{BUILD}:{kept['PATH']}"}


def follow(test, text, folder):
    """Does what the page says, in the folder. Returns how many commands that were."""
    done = 0
    for language, block in re.findall(r"^```(lua|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if language == "lua":
            name = re.match(r"-- ([\w-]+\.lua)\n", block)
            test.assertTrue(name, f"the name of a file is missing in front of:\n{block}")
            (folder / name[1]).write_text(block)
            continue
        for command, shown in commands_and_outputs(block):
            ended = subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), text=True, capture_output=True,
                                   stdin=subprocess.DEVNULL, timeout=PATIENCE)
            printed = ended.stdout if ended.returncode == 0 else ended.stdout + ended.stderr
            test.assertTrue(as_shown(shown, printed), f"$ {command}\n{printed}\nthe page shows:\n{shown}\n{ended.stderr}")
            done += 1
    return done
