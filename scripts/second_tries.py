#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ctest, and gives a second try to the failed tests of a list: second_tries.py LIST ctest [option...]. A line of
LIST (unittests/flaky_tests.txt) is `name | date | cause`; in a name `*` is any text. The name `*` alone allows one
test that is on no other line. If each test that failed is on the list, ctest runs them once more, and the exit
status is that of this run. If one of them is not, if one crashed, or if a sanitizer reported in it, there is no
second try: these are proofs, however seldom they appear, while a test that is late may only have had no core. The
reason is printed, and the exit status is that of the first run."""
import fnmatch
import os
import re
import signal
import subprocess
import sys

TEST = re.compile(r"\s*\d+/(?P<all>\d+) +Test +#\d+: (?P<name>\S.*?) \.\.+ *(?P<result>\S.*)")
SANITIZER = re.compile(r"(WARNING|ERROR): \w*Sanitizer: |: runtime error: ")
TESTS_FAILED = 8  # of ctest
CRASH = re.compile(r"Subprocess aborted|\*\*\*Exception: [A-Z]")


class FirstRun:
    def __init__(self):
        self.all, self.name = None, None
        self.failed, self.reasons = [], {}

    def take(self, line):
        test = TEST.match(line)
        if test and self.all in (None, test["all"]):  # else it is a test's output
            self.all, self.name, result = test["all"], test["name"], test["result"]
            if not result.startswith("Passed") and "Skipped" not in result:
                self.failed.append(self.name)
            if CRASH.search(result):
                self.reasons[self.name] = "it crashed"
        elif SANITIZER.search(line):
            self.reasons[self.name] = "a sanitizer reported in it"

    def refusals(self, patterns):
        names = [pattern for pattern in patterns if pattern != "*"]
        unlisted = [name for name in self.failed if not any(fnmatch.fnmatchcase(name, one) for one in names)]
        for name in self.failed:
            if name in unlisted and len(unlisted) > patterns.count("*"):
                yield f"No second try: {name} is not on the list"
            elif name in self.reasons:
                yield f"No second try: {name}: {self.reasons[name]}"


def listed(path):
    with open(path, encoding="utf-8") as lines:
        return [line.split("|")[0].strip() for line in lines if line.strip() and not line.startswith("#")]


def main():
    patterns, run = listed(sys.argv[1]), FirstRun()
    with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE) as ctest:
        signal.signal(signal.SIGTERM, lambda *_: ctest.terminate())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to ctest, too
        for line in ctest.stdout:
            run.take(line.decode(errors="replace").rstrip("\n"))
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    if ctest.returncode != TESTS_FAILED or not patterns or not run.failed:  # killed: its list would be an older one
        return ctest.returncode
    refusals = list(run.refusals(patterns))
    print("\n".join(refusals or [f"Second try of {name}" for name in run.failed]), flush=True)
    if refusals:
        return ctest.returncode
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return os.execvp(sys.argv[2], [*sys.argv[2:], "--rerun-failed"])


if __name__ == "__main__":
    sys.exit(main())
