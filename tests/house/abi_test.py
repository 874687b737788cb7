# SPDX-License-Identifier: Apache-2.0
"""Plugins of revision 1 still fit: no published slot has moved, in C and in C++; and the gate sees it when one does.

Arguments: the C compiler, the C++ compiler (each may be several words).
"""
import pathlib
import shutil
import sys
import tempfile
import unittest

import abi

CC, CXX = sys.argv[1:3]

# Header, what becomes what, and a part of the sentence that must come out.
BREAKS = [
    ("comm.h", "  int32_t (*rank)(orr_comm*);\n", "", "field orr_comm_api.rank is gone"),
    ("comm.h", "int32_t (*rank)(orr_comm*);", "int64_t (*rank)(orr_comm*);", "field orr_comm_api.rank was"),
    ("kernel.h", "typedef struct orr_support {\n  uint32_t size;", "typedef struct orr_support {\n  uint32_t size;\n  int32_t early;",
     "field orr_support.early lies inside"),
    ("types.h", "ORR_BF16 = 3", "ORR_BF16 = 90", "enum ORR_BF16 was '3' and is '90'"),
    ("types.h", "  uint64_t bytes;\n} orr_buffer;", "  uint64_t bytes;\n  int32_t more;\n} orr_buffer;", "struct orr_buffer was"),
    ("plugin.h", "\n} orr_plugin;", "\n  int32_t more;\n} orr_plugin;", "struct orr_plugin was"),
    ("comm.h", "  int32_t max_ranks;", "  int32_t max_ranks, more;", "field orr_comm_caps.more lies inside"),
]
GROWS = [
    ("comm.h", "} orr_comm_api;", "  void (*more)(orr_comm*);\n} orr_comm_api;"),
    ("types.h", "ORR_BOOL = 8", "ORR_BOOL = 8, ORR_F8 = 9"),
]


class Abi(unittest.TestCase):
    published = abi.PUBLISHED.read_text().splitlines()

    def test_what_was_published_is_there(self):
        for compiler, language in ((CC, "c"), (CXX, "c++")):
            with self.subTest(language=language):
                self.assertEqual(abi.broken(self.published, abi.layout(abi.INCLUDE, compiler, language)), [])

    def test_every_table_is_published(self):
        names = {line.split()[1] for line in self.published if line.startswith("struct")}
        self.assertGreaterEqual(names, {f"orr_{kind}_api" for kind in ("device", "kernel", "comm", "strategy", "observer", "op", "data")})
        self.assertIn("orr_host", names)
        self.assertIn("orr_edit", names)

    def after(self, header, was, becomes):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(abi.INCLUDE / "orrery", pathlib.Path(folder) / "orrery")
            path = pathlib.Path(folder) / "orrery" / header
            text = path.read_text()
            self.assertEqual(text.count(was), 1, was)
            path.write_text(text.replace(was, becomes))
            return abi.broken(self.published, abi.layout(folder, CC, "c"))

    def test_breaks_are_seen(self):
        for header, was, becomes, part in BREAKS:
            with self.subTest(becomes=becomes):
                self.assertIn(part, "\n".join(self.after(header, was, becomes)))

    def test_growth_is_allowed(self):
        for change in GROWS:
            with self.subTest(becomes=change[2]):
                self.assertEqual(self.after(*change), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
