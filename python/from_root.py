# SPDX-License-Identifier: Apache-2.0
"""The build of pyproject.toml in this folder: that of the project in the folder above."""
import os

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from scikit_build_core.build import *  # noqa: E402, F401, F403
