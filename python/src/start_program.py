#!python
# SPDX-License-Identifier: Apache-2.0
"""The command cudaq-realtime of a wheel: this process becomes the program in the folder of the package. The package
is not imported: it would load numpy."""
import importlib.util
import os
import sys

package = importlib.util.find_spec("cudaq_realtime")
if package is None:
    sys.exit(f"cudaq-realtime: {sys.executable} has no package cudaq_realtime: install it for this Python")
program = os.path.join(os.path.dirname(package.origin), "bin", "cudaq-realtime")
os.execv(program, [program, *sys.argv[1:]])
