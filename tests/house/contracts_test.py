# SPDX-License-Identifier: Apache-2.0
"""The headers are the documentation: at least 45 of 100 lines of each hold comment, every slot of a table
has words of its own or is one of a group that has, and says which thread calls it."""
import pathlib
import re
import unittest

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "core/include/orrery"
SHARE = 0.45
SLOT = re.compile(r"\(\*(\w+)\)\s*\(")


def comment_share(text):
    lines, inside, held = text.splitlines(), False, 0
    for line in lines:
        held += inside or "/*" in line
        begin, end = line.rfind("/*"), line.rfind("*/")
        inside = (begin > end) if begin >= 0 else (inside and end < 0)
    return held / len(lines)


def tables(text):
    """(comment in front, name, body) of each table of functions."""
    return re.findall(r"(?:/\*((?:(?!\*/).)*)\*/\s*)?typedef struct (orr_\w+_api|orr_host|orr_edit) \{(.*?)\n\} \w+;", text, re.DOTALL)


def slots(body):
    """(name, its comment) of each function slot; neighbours under one comment share it."""
    comment = ""
    for part in re.findall(r"/\*.*?\*/|\n[ \t]*\n|[^;/]+;", body, re.DOTALL):
        if part.startswith("/*"):
            comment = part
        elif not part.strip():
            comment = ""  # a blank line ends a group
        elif found := SLOT.search(part):
            yield found[1], comment


class Contracts(unittest.TestCase):
    headers = {path.name: path.read_text() for path in sorted(INCLUDE.glob("*.h"))}

    def test_share_of_comments(self):
        self.assertGreaterEqual(len(self.headers), 9)
        for name, text in self.headers.items():
            with self.subTest(header=name):
                self.assertGreaterEqual(comment_share(text), SHARE)

    def test_every_slot_has_words(self):
        seen = 0
        for name, text in self.headers.items():
            for _, table, body in tables(text):
                for slot, comment in slots(body):
                    seen += 1
                    with self.subTest(slot=f"{name}: {table}.{slot}"):
                        self.assertGreater(len(comment), 20)
        self.assertGreater(seen, 70)

    def test_every_table_names_its_threads(self):
        for name, text in self.headers.items():
            for front, table, body in tables(text):
                unmarked, mark = [], "thread]" in front  # of the whole table
                for slot, comment in slots(body):
                    mark = mark or bool(re.search(r"thread[^\]]*\]", comment))
                    if not mark:
                        unmarked.append(slot)
                with self.subTest(table=f"{name}: {table}"):
                    self.assertEqual(unmarked, [])

    def test_a_signature_stands_once(self):
        everything = "\n".join(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL) for text in self.headers.values())
        for kind in (r"typedef struct (\w+) \{", r"\binline \w+\*? (\w+)\("):
            names = re.findall(kind, everything)
            self.assertEqual(sorted(set(names)), sorted(names))

    def test_the_measure_sees_code(self):
        self.assertEqual(comment_share("/* a\n * b */\nint c; /* d */\nint e;\n"), 0.75)
        self.assertEqual(list(slots("\n  /* Says so. [any thread] */\n  int (*a)(void);\n\n  int (*b)(void);\n")),
                         [("a", "/* Says so. [any thread] */"), ("b", "")])


if __name__ == "__main__":
    unittest.main()
