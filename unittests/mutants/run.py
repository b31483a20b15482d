#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants the faults of mutants.py, one at a time: changes the source, builds the program of the tests, runs the tests,
and puts the source back. Each test named must fail; of `*`, one. First the tests run without a fault; then they must
pass.

usage: run.py --check    compiles nothing: each text stands in its file once, and each test is there
       run.py [--found] <build folder> [<name of a mutant, may have * and ?, or of a program>...]
--found prints which tests of the filter fail, in place of a verdict: for a new mutant.
Exit status: 0 each mutant was found, 1 one was not, 2 a test fails without a fault or a mutant does not compile."""
import contextlib
import fnmatch
import pathlib
import re
import signal
import subprocess
import sys
import time

from mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 300  # of a program whose fault makes it wait without limit


def build(folder, target):
    done = subprocess.run(["cmake", "--build", folder, "-j2", "--target", target], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout[-3000:])
    return done.returncode == 0


def program(folder, target):
    return next(p for p in pathlib.Path(folder).resolve().rglob(target) if p.is_file())


def failing(folder, target, tests):
    """The tests that fail, the number that ran, and how the program ended. Not one that ran means a wrong filter."""
    path = program(folder, target)
    command = ["timeout", "-k", "5", str(LIMIT_S), path, f"--gtest_filter={tests}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=path.parent)
    ran = re.findall(r"^\[ RUN      \] (\S+)$", done.stdout, flags=re.M)
    ended = set(re.findall(r"^\[(?:       OK |  SKIPPED |  FAILED  )\] (\S+?)(?:,.*)? \(\d+ ms\)$", done.stdout,
                           flags=re.M))
    failed = set(re.findall(r"^\[  FAILED  \] (\S+?)(?:,.*)? \(\d+ ms\)$", done.stdout, flags=re.M))
    failed |= set(ran) - ended  # ended the program, or hangs
    return failed, set(ran), done.returncode


@contextlib.contextmanager
def planted(file, text, instead):
    path = ROOT / file
    source = path.read_text()
    if source.count(text) != 1:
        sys.exit(f"{file} has the text {source.count(text)} times and not once: {text}")
    try:
        path.write_text(source.replace(text, instead))
        yield
    finally:
        path.write_text(source)


def check():
    """What of the list does not fit the sources."""
    sources = "\n".join(p.read_text(errors="replace") for p in (ROOT / "unittests").rglob("*.cpp"))
    named = re.findall(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", sources, flags=re.M)
    tests = {f"{suite}.{name}" for suite, name in named}
    problems = []
    for name, (file, text, instead, _, wanted) in MUTANTS.items():
        if (count := (ROOT / file).read_text().count(text)) != 1 or text == instead:
            problems.append(f"{name}: {file} has the text {count} times and not once: {text}")
        for test in wanted.split(":"):
            plain = re.sub(r"^(?:[\w*]+/)?([\w*]+\.[\w*]+)(?:/.*)?$", r"\1", test)
            if not fnmatch.filter(tests, plain):
                problems.append(f"{name}: there is no test {test}")
    print("\n".join(problems) or f"{len(MUTANTS)} mutants fit the sources")
    return int(bool(problems))


def main(words):
    if words == ["--check"]:
        return check()
    only_found = "--found" in words
    folder, *names = [w for w in words if w != "--found"]
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, lambda *_: sys.exit(1))  # planted() takes the fault away
    chosen = {n: m for n, m in MUTANTS.items()
              if not names or any(fnmatch.fnmatchcase(n, p) or m[3] == p for p in names)}
    if not chosen:
        sys.exit("no mutant has such a name")
    for target in dict.fromkeys(m[3] for m in chosen.values()):
        if not build(folder, target):
            return 2
        tests = ":".join(dict.fromkeys(m[4] for m in chosen.values() if m[3] == target))
        failed, ran, status = failing(folder, target, tests)
        if failed or not ran or status != 0:
            print(f"{target} without a fault: {len(ran)} tests ran, these fail: {sorted(failed)}")
            return 2
    missed = 0
    for name, (file, text, instead, target, tests) in chosen.items():
        begin = time.monotonic()
        with planted(file, text, instead):
            if not build(folder, target):
                print(f"{name}: does not compile")
                return 2
            failed, ran, _ = failing(folder, target, tests)
        quiet = sorted(set(ran) - failed)
        good = bool(failed) and (only_found or tests == "*" or not quiet)
        missed += not good
        which = " ".join(sorted(failed)) if only_found or good else "passes with the fault: " + " ".join(quiet)
        print(f"{name}: {'found' if good else 'NOT FOUND'}, {time.monotonic() - begin:.0f} s: {which}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutants found")
    return int(missed != 0)


sys.exit(main(sys.argv[1:]))
