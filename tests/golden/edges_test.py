# SPDX-License-Identifier: Apache-2.0
"""Functions and layers at the edges of their dtypes (edges.py) give what is recorded of PyTorch.

Arguments: the build tree.
"""
import json
import pathlib
import sys
import unittest

import edge_cases
import edge_layers
import edge_products
from edges import computed_by, differences

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv[1]).resolve()


class Edges(unittest.TestCase):
    def test_they_give_what_is_recorded(self):
        cases = [case for group in edge_cases.GROUPS + edge_layers.GROUPS + edge_products.GROUPS for case in group()]
        recorded = json.loads((HERE / "edges.json").read_text())["cases"]
        some = [cases[int(i)] for i in recorded]
        for kernels in (("cpu", "reference"), ("reference",)):
            found = computed_by(BUILD, some, *kernels)
            for place, (case, wanted) in enumerate(zip(some, recorded.values())):
                with self.subTest(kernels=kernels[0], case=case.name):
                    self.assertEqual(differences(case, found.get(place), *wanted), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
