#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/second_tries.py on runs of ctest: second_tries.py PROJECT_DIR"""
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(sys.argv[1]) / "scripts/second_tries.py"
LATE = ("***Failed    0.00 sec", "late", "Passed    0.00 sec")


def printed_by(*failing, failed=0):
    """What ctest prints of five tests. Of the failing ones: result, output, and result of the second try."""
    text = ""
    for k in range(5):
        first, output, second = failing[k] if k < len(failing) else ("Passed    0.00 sec", "", "")
        text += f"    Start {k}: Room.Test{k}/0\n{k + 1}/5 Test #{k}: Room.Test{k}/0 ......{first}\n"
        if second:
            text += f"{output}\n    Start {k}: Room.Test{k}/0\n    Test #{k}: Room.Test{k}/0 ......   {second}\n"
    return text + f"\n{100 - 20 * failed}% tests passed, {failed} tests failed out of 5\n\nTotal Test time = 1 sec\n"


def expect(wanted, own_lines, text, status=0):
    """`status`: that of ctest."""
    run = subprocess.run([SCRIPT, "3", "sh", "-c", f"cat; exit {status}"], input=text, capture_output=True, text=True,
                         check=False)
    before, closing, after = text.partition(next(line for line in text.splitlines() if " tests passed, " in line
                                                 and " out of 5" in line))
    expected = before + "".join(line + "\n" for line in own_lines) + closing + after
    assert (run.returncode, run.stdout) == (wanted, expected), f"{run.returncode}\n{run.stdout}{run.stderr}"


def second(k, reason=""):
    return f"Passed at the second try only: Room.Test{k}/0" + (f"; {reason}: this run fails" if reason else "")


expect(0, [], printed_by())
expect(0, [second(0)], printed_by(LATE))
expect(0, [second(0)], printed_by(("***Timeout  60.00 sec", "late", LATE[2])))
expect(0, [second(k) for k in range(3)], printed_by(LATE, LATE, LATE))
expect(1, [second(k) for k in range(4)] + ["4 tests passed at the second try only, more than 3: this run fails"],
       printed_by(LATE, LATE, LATE, LATE))
expect(8, [second(0)], printed_by(LATE, ("***Failed  1 sec", "wrong", "***Failed  1 sec"), failed=1), status=8)
for report in ("WARNING: ThreadSanitizer: data race (pid=1)", "==1==ERROR: ThreadSanitizer: SEGV on unknown address",
               "==1==ERROR: AddressSanitizer: heap-use-after-free", "==1==ERROR: LeakSanitizer: detected memory leaks",
               "lib/a.cpp:1:2: runtime error: signed integer overflow"):
    expect(1, [second(0, "a sanitizer reported")], printed_by((LATE[0], report, LATE[2])))
for crash in ("***Exception: SegFault  0.10 sec", "Subprocess aborted***Exception:   0.10 sec"):
    expect(1, [second(0, "it crashed before")], printed_by((crash, "", LATE[2])))
expect(0, [second(0)], printed_by(("Subprocess killed***Exception:   0.10 sec", "", LATE[2])))
expect(1, [second(0, "it was skipped then")], printed_by((LATE[0], "", "***Skipped   0.00 sec")))
INNER = "1/9 Test #1: Inner.Test ....   Passed    0.00 sec\n100% tests passed, 0 tests failed out of 9\n"
expect(1, [second(0, "a sanitizer reported")], printed_by((LATE[0], f"{INNER}WARNING: ThreadSanitizer: x", LATE[2])))
