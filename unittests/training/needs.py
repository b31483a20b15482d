# SPDX-License-Identifier: Apache-2.0
"""What the tests of the training share: where its modules are, and a skip if a package is missing. Import this first.
The only argument of a test is the folder training/predecoder."""
import importlib.util
import sys
import unittest

missing = [name for name in ("numpy", "torch", "stim", "pymatching") if importlib.util.find_spec(name) is None]
if missing:
    print("skipped: python3 has no " + ", ".join(missing))
    sys.exit(77)
folder = sys.argv.pop(1)
sys.path.insert(0, folder)

import torch  # noqa: E402  only after the check above

torch.set_num_threads(1)


def run():
    unittest.main(verbosity=2)
