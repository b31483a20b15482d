# SPDX-License-Identifier: Apache-2.0
"""What the wheel declares. wheel.sh runs all tests with the lowest versions that are declared."""
import importlib.metadata
import re


def test_each_dependency_has_a_lowest_version():
    declared = importlib.metadata.requires("cudaq-realtime")
    outside = [one for one in declared if not one.startswith("cudaq-realtime[")]
    assert {re.match(r"[\w-]+", one).group() for one in outside} == {
        "numpy", "pandas", "pymatching", "pytest", "sinter", "stim"}
    assert all(re.match(r"[\w-]+>=[\d.]+(;|$)", one) for one in outside), outside
