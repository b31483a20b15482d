# SPDX-License-Identifier: Apache-2.0
"""What several test files need."""
import pathlib
import shutil
import subprocess

import pytest


def _plugin(tmp_path_factory, source_file):
    """The plug-in of this source."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    source = pathlib.Path(__file__).parents[2]
    library = tmp_path_factory.mktemp("plugin") / "plugin.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{source}/include", "-o", library, source / source_file], check=True)
    return library


@pytest.fixture(scope="session")
def breaking_plugin(tmp_path_factory):
    """It breaks the promise of its setting."""
    return _plugin(tmp_path_factory, "unittests/qec/decoders/plugins/breaking_plugin.c")


@pytest.fixture(scope="session")
def early_plugin(tmp_path_factory):
    """It can be cancelled, so a race takes it. With detector 2 its errors are not those of the model."""
    return _plugin(tmp_path_factory, "unittests/qec/decoders/plugins/early_plugin.c")
