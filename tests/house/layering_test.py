# SPDX-License-Identifier: Apache-2.0
"""The repository keeps its borders, and the checker sees each way of breaking them."""
import pathlib
import sys
import tempfile
import unittest

from layering import check

ROOT = pathlib.Path(__file__).resolve().parents[2]

# File, its text, and a part of the sentence that must come out.
VIOLATIONS = [
    ("core/program/a.cpp", '#include "run/pool.h"', "room program may not include room run"),
    ("core/plugin/a.cpp", '#include "run/pool.h"', "room plugin may not include room run"),
    ("core/store/a.cpp", '#include "lua/api.h"', "room store may not include room lua"),
    ("core/launch/a.cpp", '#include "comm/world_comm.h"', "room launch may not include room comm"),
    ("core/lua/a.cpp", '#include "plan/plan.h"', "room lua may not include room plan"),
    ("core/cli/a.cpp", '#include "plan/timeline.h"', "plan/timeline.h is private"),
    ("core/plan/a.cpp", '#include "run/pool.h"', "room plan may not include room run"),
    ("core/plan/a.cpp", "#include <lua.h>", "only core/lua/ may include lua.h"),
    ("core/plan/a.cpp", 'auto& t = registry.comm("wire");', 'names the plugin "wire"'),
    ("core/lua/a.cpp", '#include "run/thread.h"', "run/thread.h is private"),
    ("core/base/a.h", '#include "nearby.h"', "does not begin with a room"),
    ("core/run/a.cpp", "#include <lua.h>", "only core/lua/ may include lua.h"),
    ("core/run/a.cpp", "#include <boost/dll/import.hpp>", "only core/plugin/loader.cpp"),
    ("core/run/a.cpp", "#include <dlfcn.h>", "only nobody may include"),
    ("core/partition/cut/a.cpp", '#include "partition/shard/units.h"', "is private to core/partition/shard/"),
    ("core/partition/mesh.cpp", '#include "partition/cut/pass.h"', "is private to core/partition/cut/"),
    ("core/partition/a.cpp", '#include "lower/lower.h"', "room partition may not include room lower"),
    ("core/run/a.cpp", '#include "partition/shared/gather.h"', "is private to core/partition/"),
    ("core/include/orrery/a.h", "#include <stdio.h>", "public header may not include stdio.h"),
    ("core/include/orrery/a.h", "#include <vector>", "public header may not include vector"),
    ("core/include/orrery/sdk/a.hpp", '#include "base/error.h"', "may not include base/error.h"),
    ("plugins/comm/a.cpp", '#include "base/error.h"', "is not a file of this plugin"),
    ("plugins/comm/a.cpp", "#include <plugin/host.h>", "may not include plugin/host.h of the core"),
    ("kernels/cpu/a.cpp", '#include "../reference/b.h"', "is not a file of this plugin"),
    ("core/run/a.cpp", 'auto& t = registry.comm("wire");', 'names the plugin "wire"'),
    ("core/cli/a.cpp", 'std::string kernels = "wire";', 'names the plugin "wire"'),
]

# The same files with what is allowed.
ALLOWED = [
    ("core/run/a.cpp", '#include "plugin/host.h"\n#include "run/pool.h"\n#include <vector>\n'),
    ("core/partition/cut/a.cpp",
     '#include "partition/cut/b.h"\n#include "partition/shared/c.h"\n#include "partition/d.h"\n'),
    ("core/lua/a.cpp", '#include <lua.h>\n#include "run/pool.h"\n'),
    ("core/run/b.cpp", '#include "run/thread.h"\n'),
    ("core/cli/a.cpp", '#include "plan/plan.h"\n'),
    ("core/plan/a.cpp", '#include "edit/a.h"\n#include "plan/timeline.h"\n'),
    ("core/include/orrery/a.h", "#include <stdint.h>\n#include <orrery/b.h>\n"),
    ("core/include/orrery/sdk/a.hpp", "#include <vector>\n"),
    ("kernels/cpu/simd/a.cpp", '#include "../b.h"\n#include "b.h"\n#include <orrery/a.h>\n'),
    ("core/lua/b.cpp", 'lua_setfield(L, -2, "wire");  // not a comm plugin\n'),
]


def tree(folder, files):
    base = [("plugins/comm/wire.cpp", 'ORR_PLUGIN(ORR_KIND_COMM, "wire", "1", "", e, 1, {})\n'),
            ("kernels/cpu/b.h", ""), ("kernels/reference/b.h", ""),
            ("core/run/README.md", "Other rooms include only `pool.h`.\n\nBegin with: `thread.h`\n"),
            ("core/plan/README.md", "Other rooms include only `plan.h`.\n\n")]
    for name, text in base + files:
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Layering(unittest.TestCase):
    def test_repository(self):
        self.assertEqual(check(ROOT), [])

    def test_violations_are_found(self):
        for name, text, part in VIOLATIONS:
            with self.subTest(name=name, text=text), tempfile.TemporaryDirectory() as folder:
                tree(folder, [(name, text + "\n")])
                found = check(folder)
                self.assertEqual(len(found), 1, found)
                self.assertIn(part, found[0])

    def test_allowed(self):
        with tempfile.TemporaryDirectory() as folder:
            tree(folder, ALLOWED)
            self.assertEqual(check(folder), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
