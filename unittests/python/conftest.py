# SPDX-License-Identifier: Apache-2.0
"""What several test files need."""
import pathlib
import shutil
import subprocess

import pytest


@pytest.fixture(scope="session")
def breaking_plugin(tmp_path_factory):
    """A plug-in that breaks the promise of its setting: unittests/qec/decoders/plugins."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    source = pathlib.Path(__file__).parents[2]
    library = tmp_path_factory.mktemp("plugin") / "breaking.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{source}/include", "-o", library,
                    source / "unittests/qec/decoders/plugins/breaking_plugin.c"], check=True)
    return library
