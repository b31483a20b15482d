#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/second_tries.py on runs of ctest: second_tries.py PROJECT_DIR"""
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(sys.argv[1]) / "scripts/second_tries.py"
FAILED, LATE = "***Failed    0.00 sec", "***Timeout  60.00 sec"
LIST = "# name | date | cause\n\nRoom.Test0/* | 2030-01-31 | late\ntsan.Other.* | 2030-01-31 | late\n"
AGAIN = "the second run\n"


def printed_by(failing):
    """What ctest prints of five tests. `failing`: a number, the result and the output of each test that fails."""
    text = ""
    for k in range(5):
        result, output = failing.get(k, ("Passed    0.00 sec", ""))
        text += f"    Start {k}: Room.Test{k}/0\n{k + 1}/5 Test #{k}: Room.Test{k}/0 ......{result}\n{output}\n"
    return text + f"\n{100 - 20 * len(failing)}% tests passed, {len(failing)} tests failed out of 5\n"


def expect(wanted, own_lines, failing, tries=LIST, second=0, status=8):
    """`second`: the status of a second run. In place of ctest a shell prints its input, or a line in a second run."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "list")
        path.write_text(tries)
        program = f'if [ "$1" = --rerun-failed ]; then echo {AGAIN.strip()}; exit {second}; fi; cat; exit {status}'
        run = subprocess.run([SCRIPT, path, "sh", "-c", program, "ctest"], input=printed_by(failing),
                             capture_output=True, text=True, check=False)
    expected = printed_by(failing) + "".join(line + "\n" for line in own_lines)
    expected += AGAIN if own_lines and own_lines[0].startswith("Second") else ""
    assert (run.returncode, run.stdout) == (wanted, expected), f"{run.returncode}\n{run.stdout}{run.stderr}"


def refused(k, reason):
    return f"No second try: Room.Test{k}/0{reason}"


expect(0, [], {}, status=0)
expect(0, [], {1: ("***Skipped   0.00 sec", "")}, status=0)
for result in (FAILED, LATE, "Subprocess killed***Exception:   0.10 sec"):
    expect(0, ["Second try of Room.Test0/0"], {0: (result, "late")})
expect(8, ["Second try of Room.Test0/0"], {0: (FAILED, "wrong")}, second=8)
expect(8, [], {0: (FAILED, "late")}, tries="# none\n")
expect(143, [], {0: (FAILED, "late")}, status=143)
expect(8, [refused(1, " is not on the list")], {1: (FAILED, "late")})
expect(8, [refused(1, " is not on the list")], {0: (FAILED, "late"), 1: (FAILED, "late")})
ONE_MORE = LIST + "* | 2030-01-31 | until runs are clean\n"
expect(0, ["Second try of Room.Test0/0", "Second try of Room.Test1/0"], {0: (FAILED, "late"), 1: (FAILED, "late")},
       tries=ONE_MORE)
expect(8, [refused(1, " is not on the list"), refused(2, " is not on the list")],
       {1: (FAILED, "late"), 2: (FAILED, "late")}, tries=ONE_MORE)
expect(8, [refused(1, ": it crashed")], {1: ("***Exception: SegFault  0.10 sec", "")}, tries=ONE_MORE)
for report in ("WARNING: ThreadSanitizer: data race (pid=1)", "==1==ERROR: ThreadSanitizer: SEGV on unknown address",
               "==1==ERROR: AddressSanitizer: heap-use-after-free", "==1==ERROR: LeakSanitizer: detected memory leaks",
               "lib/a.cpp:1:2: runtime error: signed integer overflow"):
    expect(8, [refused(0, ": a sanitizer reported in it")], {0: (FAILED, report)})
for crash in ("***Exception: SegFault  0.10 sec", "Subprocess aborted***Exception:   0.10 sec"):
    expect(8, [refused(0, ": it crashed")], {0: (crash, "")})
INNER = "1/9 Test #1: Inner.Test ....***Failed   0.00 sec\n100% tests passed, 0 tests failed out of 9\n"
expect(8, [refused(0, ": a sanitizer reported in it")], {0: (FAILED, f"{INNER}WARNING: ThreadSanitizer: x")})
print("the second tries are those of the list")
