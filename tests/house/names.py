# SPDX-License-Identifier: Apache-2.0
"""The core knows programs, placements and collectives, and no strategy.

check(root) returns one sentence for each place of core/ that names a strategy of this repository, an axis that
one makes, or an option that one has: in a message, in a branch, in a comment.
"""
import pathlib
import re

# Names of strategies and axes that mean other things as well. The core may use these words, but not as names:
# strategy.NAME, "the NAME axis", "axis 'NAME'", NAME-parallel, "NAME" in a comment; and no branch compares with one.
ORDINARY = {
    "average": "a verb",
    "context": "what an error or a kernel is given",
    "data": "what a script reads",
    "expert": "a row of weights of an op",
    "pipe": "of the system",
    "place": "a verb; a line of a script",
    "server": "a rank that takes gradients (orr_edit.serve), a process of the job's rendezvous",
    "tensor": "a value",
    "topk": "an op",
    "zero": "a number",
}
# Options that the core has, too: of `orrery` itself, of orrery.compile, of a tensor's methods.
OWN_OPTIONS = {"axis", "every", "size"}

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
AXIS = [re.compile(p) for p in (r'axis\(\s*\w+,\s*"(\w+)"', r'draft:axis\(?\s*"(\w+)"', r'\baxis = "(\w+)"')]
OPTION = [re.compile(r'\{"(\w+)", (?:ORR_ATTR_\w+|0), [01], '), re.compile(r"---@option (\w+)")]
COMPARES = re.compile(r'[=!]=|\b(find_axis|has_axis|axis_size|size_of|coordinate|count|find|at)\([^()]*""|'
                      r'\b(axis|strategy|cause|scheduler) = ""')


def found_in(paths, patterns):
    return {name for path in paths for p in patterns for name in p.findall(path.read_text())}


def one_of(words):
    return "|".join(sorted(words))


class Vocabulary:
    """Of the strategies of a repository."""

    def __init__(self, root):
        rooms = [*(root / "scripts/orrery/strategy").glob("*.lua"), *(root / "plugins/strategy").glob("*")]
        files = [*rooms, *(root / "plugins/strategy").glob("*/*.cpp")]
        files = [path for path in files if path.is_file()]
        names = {path.stem for path in rooms} | {"fsdp"}  # a name that zero has, too
        self.names = names | found_in(files, AXIS)
        self.plain = self.names - set(ORDINARY)
        options = found_in(files, OPTION) - OWN_OPTIONS
        self.as_name = re.compile(rf"\bstrategy\.({one_of(names)})\b|\baxis '?({one_of(self.names)})\b|"
                                  rf"\b({one_of(self.names)})[ -](?:axis|axes|parallel)")
        self.as_option = re.compile(rf"\b({one_of(options)}) = ")

    def in_line(self, line):
        if match := self.as_name.search(line):
            return f'names "{next(filter(None, match.groups()))}"'
        return None

    def in_comment(self, comment):
        for word in LITERAL.findall(comment):
            if word in self.names:
                return f'names "{word}" in a comment'
        return None

    def in_literal(self, text, code):
        if text in self.names and COMPARES.search(LITERAL.sub('""', code)) and "kind" not in code:  # of an op
            return f'branches on "{text}"'
        if " " not in text:
            return None
        if match := self.as_option.search(text):
            return f'names the option "{match[1]}" of a strategy'
        return next((f'says "{word}"' for word in re.findall(r"\w+", text) if word in self.plain), None)


def faults(vocabulary, line):
    is_comment = line.lstrip().startswith(("*", "/*", "//"))
    code, _, comment = ("", "", line) if is_comment else re.split(r"(//|/\*|$)", LITERAL.sub(
        lambda m: m[0].replace("//", "::"), line), maxsplit=1)
    yield vocabulary.in_line(line)
    yield vocabulary.in_comment(comment)
    if not line.lstrip().startswith("#include"):
        for literal in LITERAL.findall(code):
            yield vocabulary.in_literal(literal, code)


def check(root):
    root = pathlib.Path(root)
    vocabulary, found = Vocabulary(root), []
    files = [path for path in sorted((root / "core").rglob("*"))]
    for path in (p for p in files if p.suffix in (".h", ".hpp", ".cpp")):
        name = str(path.relative_to(root))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if why := next(filter(None, faults(vocabulary, line)), None):
                found.append(f"{name}:{number}: the core {why}")
    return found
