# SPDX-License-Identifier: Apache-2.0
"""The borders of the house, read from #include lines and string literals.

check(root) returns one sentence per violation. The rules are those of the design: rooms of the core include only
rooms below them, of those the headers that their README names, and no header of another sub-room; plugins and kernels
only the public headers and their own files, which those of kernels/shared are to each kernel plugin; the public headers only libc. One room each knows Lua, Boost.DLL and
CLI11, and the core names no plugin. A library beside the core keeps the same borders, and only the command line
includes it.
"""
import pathlib
import re

# The floors of the core, from the ground up. A room may include every room of the floors below its
# own, and no other room of its own floor.
FLOORS = [{"base"}, {"plugin", "program"}, {"partition"}, {"lower"}, {"edit"}, {"store", "launch", "plan"}, {"comm", "data"}, {"run"}, {"lua"}, {"cli"}]
BELOW = {room: set().union(*FLOORS[:height]) for height, floor in enumerate(FLOORS)
         for room in floor}

# Libraries beside the core: like rooms of their floor, but that the core does not include them. It is linked without
# them.
BESIDE = {"plan"}

# Third party: the only file or room that may include it.
OWNERS = [
    (re.compile(r"lua(conf|lib|xlib)?\.h(pp)?$|lauxlib\.h$"), "core/lua/"),
    (re.compile(r"boost/dll"), "core/plugin/loader.cpp"),
    (re.compile(r"dlfcn\.h$"), None),
    (re.compile(r"CLI/"), "core/cli/"),
]

LIBC = {"stddef.h", "stdint.h"}
SOURCES = {".h", ".hpp", ".c", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
KIND_WORD = re.compile(r"kernel|comm|strateg|observer|plugin|backend", re.IGNORECASE)


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SOURCES)


def includes(path):
    """(line number, '<' or '"', what is included) of each #include."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def check_public_header(name, how, target):
    if how == "<" and target.startswith("orrery/"):
        return None
    in_sdk = "/sdk/" in name
    if how == "<" and (target in LIBC or (in_sdk and "." not in target)):
        return None
    return f"a public header may not include {target}"


def check_core(visible, name, how, target):
    for pattern, owner in OWNERS:
        if pattern.match(target) and not (owner and name.startswith(owner)):
            return f"only {owner or 'nobody'} may include {target}"
    if how == "<":
        return None
    room, other = name.split("/")[1], target.split("/")[0]
    if other not in BELOW:
        return f'"{target}" does not begin with a room of the core'
    if other != room and (other not in BELOW[room] or other in BESIDE and room != "cli"):
        return f"room {room} may not include room {other}"
    if other != room and visible[other] is not None and target.split("/", 1)[1] not in visible[other]:
        return f"{target} is private: the README of {other} does not name it for other rooms"
    return check_sub_room(name, target)


def check_sub_room(name, target):
    """A header in a folder of a room is for the files of that folder; one in `shared`, for the whole room."""
    if target.count("/") < 2:
        return None
    room, sub = target.split("/")[:2]
    inside = f"core/{room}/" if sub == "shared" else f"core/{room}/{sub}/"
    return None if name.startswith(inside) else f"{target} is private to {inside}"


def public_headers(root, room):
    """The headers that a room's README lets other rooms include; None, if it says nothing: all."""
    readme = root / "core" / room / "README.md"
    said = re.search(r"Other rooms include only .*?\n\n", readme.read_text() if readme.is_file() else "", re.DOTALL)
    return set(re.findall(r"`([\w/]+\.h)`", said[0])) if said else None


def check_plugin(root, path, how, target):
    if how == "<":
        if target.startswith(tuple(f"{room}/" for room in BELOW)):
            return f"a plugin may not include {target} of the core"
        return None
    # A plugin's own files: its folder below kernels/ or plugins/<kind>/; and kernels/shared/.
    home = root.joinpath(*path.relative_to(root).parts[:2])
    for base, within in ((path.parent, home), (home, home), (home.parent, home.parent / "shared")):
        found = (base / target).resolve()
        if found.is_file() and found.is_relative_to(within.resolve()):
            return None
    return f'"{target}" is not a file of this plugin'


def plugin_names(root):
    """Names that the sources give to ORR_PLUGIN."""
    given = re.compile(r'ORR_PLUGIN\([^"]*"([^"]+)"')
    return {name for room in ("plugins", "kernels") for path in sources(root / room)
            for name in given.findall(path.read_text())}


def check_names(path, names):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code = line.split("//")[0]
        if code.lstrip().startswith(("*", "/*", "#include")):
            continue
        literals = LITERAL.findall(code)
        if KIND_WORD.search(LITERAL.sub("", code)):
            for name in names.intersection(literals):
                yield number, f'the core names the plugin "{name}"'


def check(root):
    root = pathlib.Path(root)
    found = []

    def report(path, number, why):
        if why:
            found.append(f"{path.relative_to(root)}:{number}: {why}")

    names = plugin_names(root)
    visible = {room: public_headers(root, room) for room in BELOW}
    for path in sources(root / "core"):
        name = str(path.relative_to(root))
        public = name.startswith("core/include/")
        for number, how, target in includes(path):
            report(path, number, check_public_header(name, how, target) if public
                   else check_core(visible, name, how, target))
        if not public:
            for number, why in check_names(path, names):
                report(path, number, why)
    for room in ("plugins", "kernels"):
        for path in sources(root / room):
            for number, how, target in includes(path):
                report(path, number, check_plugin(root, path, how, target))
    return found
