# SPDX-License-Identifier: Apache-2.0
"""The program around a check of PTX, which must also find each of some planted faults."""
import re
import sys

from compiled import compiled


def unfound(ptx, check, faults):
    """Plants one fault at a time: {name: (text, its replacement)}. Returns those that the check does not find."""
    return [f"the check does not find a fault: {name}" for name, (text, fault) in faults.items()
            if text not in ptx or not check(ptx.replace(text, fault))]


def run(check, faults_of, passed, output, compiler, *options):
    """Compiles to `output`, without comments checks it, and ends the process. `passed`: the text if all is right."""
    ptx = re.sub(r"//[^\n]*", "", compiled(compiler, *options, output=output))
    problems = check(ptx) + unfound(ptx, check, faults_of(ptx))
    print("\n".join(problems) or passed)
    sys.exit(bool(problems))
