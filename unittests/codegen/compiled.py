# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys


def compiled(compiler, *options, output):
    """Compiles to the file `output` and returns its text. Ends the test as skipped if there is no such compiler."""
    if not shutil.which(compiler):
        print(f"skipped: {compiler} is not installed")
        sys.exit(77)
    ccache = [os.environ["CUDAQ_TEST_CCACHE"]] if "CUDAQ_TEST_CCACHE" in os.environ else []
    subprocess.run([*ccache, compiler, *options, "-o", output], check=True)
    with open(output) as file:
        return file.read()
