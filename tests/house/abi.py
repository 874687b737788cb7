# SPDX-License-Identifier: Apache-2.0
"""The layout of the public headers, measured by a compiler, and the rules by which it may change.

abi-1.txt holds what revision 1 published: enum values, offsets, sizes and types. A struct that carries its
`size` may grow behind its end; all others, and the bootstrap's, stay as they are.

    python3 tests/house/abi.py --write     publishes the headers' layout of today
"""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "core/include"
PUBLISHED = pathlib.Path(__file__).with_name("abi-1.txt")
# Frozen, whatever their `size`: plugin.h.
BOOTSTRAP = {"orr_plugin", "orr_interface_id", "orr_bootstrap", "orr_exports"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def members(body):
    """(name, type) of each member; of a function pointer the type is its signature."""
    found = []
    for declaration in (" ".join(part.split()) for part in body.split(";")):
        if not declaration:
            continue
        function = re.match(r"(.*?)\(\*(\w+)\)\s*\((.*)\)$", declaration)
        if function:
            found.append((function[2], f"{function[1].strip()} (*)({function[3]})"))
            continue
        kind, names = re.match(r"(.*?[\s*])(\w+(?:\[\w+\])?(?:\s*,\s*\w+(?:\[\w+\])?)*)$", declaration).groups()
        for name in re.split(r"\s*,\s*", names):
            bare, _, dims = name.partition("[")
            found.append((bare, kind.strip() + (f" [{dims}" if dims else "")))
    return found


def declarations(folder):
    """The structs and enumerators of all headers, and the headers' names."""
    structs, values, headers = {}, [], []
    for path in sorted(pathlib.Path(folder).glob("orrery/*.h")):
        text = without_comments(path.read_text())
        headers.append(f"orrery/{path.name}")
        for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\n\} \w+;", text, re.DOTALL):
            structs[name] = members(body)
        for body in re.findall(r"enum \{(.*?)\}", text, re.DOTALL):
            values += re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", body.strip())
    return structs, values, headers


def layout(folder, compiler, language):
    """Lines "enum NAME VALUE", "struct NAME SIZE grows|fixed" and "field STRUCT.NAME OFFSET SIZE TYPE"."""
    structs, values, headers = declarations(folder)
    lines = [f'#include <{h}>' for h in headers] + ["#include <stdio.h>", "#include <stddef.h>", "int main(void) {"]
    for value in values:
        lines.append(f'  printf("enum {value} %lld\\n", (long long){value});')
    for name, fields in structs.items():
        grows = fields[0] == ("size", "uint32_t") and name not in BOOTSTRAP
        lines.append(f'  printf("struct {name} %zu {"grows" if grows else "fixed"}\\n", sizeof({name}));')
        for field, kind in fields:
            lines.append(f'  printf("field {name}.{field} %zu %zu {kind}\\n", offsetof({name}, {field}), '
                         f'sizeof((({name}*)0)->{field}));')
    with tempfile.TemporaryDirectory() as place:
        program = pathlib.Path(place) / "probe"
        subprocess.run([*compiler.split(), "-x", language, "-I", str(folder), "-o", str(program), "-"],
                       input="\n".join([*lines, "  return 0;", "}", ""]), text=True, check=True)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()


def table(lines):
    """By (kind, name): the rest of the line."""
    return {tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2] for line in lines}


def broken(published, today):
    """A sentence for each promise of `published` that `today` breaks."""
    old, new, found = table(published), table(today), []
    sizes = {name: rest.split() for (kind, name), rest in old.items() if kind == "struct"}
    for (kind, name), was in old.items():
        now = new.get((kind, name))
        if now is None:
            found.append(f"{kind} {name} is gone; published names stay")
        elif kind == "struct" and was.endswith("grows") and now.endswith("grows"):
            if int(now.split()[0]) < int(was.split()[0]):
                found.append(f"struct {name} has shrunk from {was.split()[0]} to {now.split()[0]} bytes; tables only grow")
        elif now != was:
            found.append(f"{kind} {name} was '{was}' and is '{now}'; add a new one at the end instead")
    for (kind, name), rest in new.items():
        struct = name.partition(".")[0]
        if kind == "field" and (kind, name) not in old and struct in sizes and int(rest.split()[0]) < int(sizes[struct][0]):
            found.append(f"field {name} lies inside of what was published; add it behind byte {sizes[struct][0]}")
    return found


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python3 tests/house/abi.py --write")
    PUBLISHED.write_text("\n".join(layout(INCLUDE, "cc", "c")) + "\n")
