# SPDX-License-Identifier: Apache-2.0
"""Numbers that the programs of figures in this folder share."""
import math


def interval(wrong, shots, z=1.96):
    """Wilson's, 95 %."""
    p, n = wrong / shots, shots
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def numbers(kind):
    """Reads an option that is a list: "3,5"."""
    return lambda text: [kind(part) for part in text.split(",")]
