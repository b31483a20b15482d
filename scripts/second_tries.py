#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ctest and passes on what it prints: second_tries.py MAX ctest --repeat until-pass:2 [option...]. Names before
ctest's closing lines the tests that passed only at their second try. The exit status is ctest's; it is 1 in place of 0
if there are more than MAX such tests, or if one of them crashed or a sanitizer reported in it: these are proofs,
however seldom they appear, while a test that is late may only have had no core."""
import re
import signal
import subprocess
import sys

TEST = re.compile(r"\s*(\d+/(?P<all>\d+) )?\s*Test +#(?P<number>\d+): (?P<name>\S.*?) \.\.+ *(?P<result>\S.*)")
SANITIZER = re.compile(r"(WARNING|ERROR): \w*Sanitizer: |: runtime error: ")
CRASH = re.compile(r"Subprocess aborted|\*\*\*Exception: [A-Z]")
CLOSING = re.compile(r"\d+% tests passed, \d+ tests failed out of (\d+)")


class SecondTries:
    def __init__(self, max_tests):
        self.max_tests, self.all, self.number, self.refused = max_tests, None, None, False
        self.names, self.reasons, self.passed = {}, {}, set()  # of the tests that failed at their first try

    def take_result(self, test):
        self.number, result = test["number"], test["result"]
        if test["all"] is None:  # a second try
            if result.startswith("Passed"):
                self.passed.add(self.number)
            elif "Skipped" in result:
                self.passed.add(self.number)
                self.reasons[self.number] = "it was skipped then"
        elif "***" in result and "Skipped" not in result and "Not Run" not in result:
            self.names[self.number] = test["name"]
        if CRASH.search(result):
            self.reasons[self.number] = "it crashed before"

    def summary(self):
        for number in sorted(self.passed & self.names.keys(), key=int):
            reason = self.reasons.get(number)
            self.refused |= reason is not None
            yield f"Passed at the second try only: {self.names[number]}" + (
                f"; {reason}: this run fails" if reason else "")
        if len(self.passed) > self.max_tests:
            self.refused = True
            yield f"{len(self.passed)} tests passed at the second try only, more than {self.max_tests}: this run fails"

    def lines_before(self, line):
        """What is to be printed before this line of ctest."""
        test, closing = TEST.match(line), CLOSING.match(line)
        if test and (test["all"] is None or self.all in (None, test["all"])):  # else it is a test's output
            self.all = self.all or test["all"]
            self.take_result(test)
        elif SANITIZER.search(line):
            self.reasons[self.number] = "a sanitizer reported"
        return list(self.summary()) if closing and closing[1] == self.all else []


def main():
    tries = SecondTries(int(sys.argv[1]))
    with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE) as ctest:
        signal.signal(signal.SIGTERM, lambda *_: ctest.terminate())
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to ctest, too
        for line in ctest.stdout:
            own = tries.lines_before(line.decode(errors="replace").rstrip("\n"))
            sys.stdout.buffer.write("".join(text + "\n" for text in own).encode() + line)
            sys.stdout.buffer.flush()
    sys.exit(ctest.returncode if ctest.returncode != 0 else int(tries.refused))


if __name__ == "__main__":
    main()
