# SPDX-License-Identifier: Apache-2.0
"""What several test files need."""
import pathlib
import shutil
import subprocess

import pytest


def _plugin(tmp_path_factory, name):
    """A plug-in of unittests/qec/decoders/plugins."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    source = pathlib.Path(__file__).parents[2]
    library = tmp_path_factory.mktemp("plugin") / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{source}/include", "-o", library,
                    source / f"unittests/qec/decoders/plugins/{name}_plugin.c"], check=True)
    return library


@pytest.fixture(scope="session")
def breaking_plugin(tmp_path_factory):
    """It breaks the promise of its setting."""
    return _plugin(tmp_path_factory, "breaking")


@pytest.fixture(scope="session")
def early_plugin(tmp_path_factory):
    """It can be cancelled, so a race takes it. With detector 2 its errors are not those of the model."""
    return _plugin(tmp_path_factory, "early")
