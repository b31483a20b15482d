#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each test that docs/testing.md or unittests/flaky_tests.txt names is there: a name, `Suite.Name` or
`Prefix/Suite.Name`, in which `*` stands for any text, meets the name of a GoogleTest or of a script test. In the page
it is in backquotes. CMake makes some names of variables; there, a variable stands for any text. The lines of the list
have the form that scripts/second_tries.py reads."""
import functools
import re

import tree

PAGE = "docs/testing.md"
FLAKY = "unittests/flaky_tests.txt"
VARIANT = re.compile(r"(tsan|asan|aarch64|contrib)\.")
ENTRY = re.compile(r"(?P<name>\S+) \| 20\d\d-\d\d-\d\d \| \S.*")
NAMED = re.compile(r"`([\w*]+(?:[./][\w*]+)*\.[A-Z*][\w*]*)`")
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
INSTANCE = re.compile(r"\bINSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+)")
SCRIPT = re.compile(r"(?<![\w./])((?:[\w*]*\.)+[A-Z*][\w*]*)")
VARIABLE = re.compile(r"\$\{\w+\}")


def script_names():
    for path in tree.files():
        if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
            for name in SCRIPT.findall(VARIABLE.sub("*", tree.text(path))):
                if re.search(r"[A-Z]", name):
                    yield "*" + name if name.startswith(".") else name


def google_tests():
    tests, instances = set(), {}
    for path in tree.code("unittests/", "docs/examples/"):
        source = tree.text(path)
        tests |= set(TEST.findall(source))
        for prefix, suite in INSTANCE.findall(source):
            instances.setdefault(suite, set()).add(prefix)
    for suite, name in tests:
        yield f"{suite}.{name}"
        for prefix in instances.get(suite, ()):
            yield f"{prefix}/{suite}.{name}/*"
            yield f"{prefix}/{suite}.{name}"


@functools.lru_cache(maxsize=None)
def meet(a, b):
    """True if some text fits both patterns."""
    if not a or not b:
        return set(a + b) <= {"*"}
    if a[0] == "*":
        return meet(a[1:], b) or meet(a, b[1:])
    if b[0] == "*":
        return meet(b, a)
    return a[0] == b[0] and meet(a[1:], b[1:])


def fits(wanted, known):
    """Without recursion where only one of the two is a pattern."""
    if "*" not in known:
        return re.fullmatch(re.escape(wanted).replace(r"\*", ".*"), known) is not None
    return meet(wanted, known)


page = tree.text(PAGE) if (tree.root() / PAGE).exists() else ""
named = sorted(set(NAMED.findall(page)))
known = sorted(set(google_tests()) | set(script_names()))
problems = [f"{PAGE}: no test has the name `{name}`" for name in named if not any(fits(name, k) for k in known)]
if (tree.root() / FLAKY).exists():
    for number, line in enumerate(tree.text(FLAKY).splitlines(), 1):
        entry = ENTRY.fullmatch(line)
        if line.startswith("#") or not line:
            continue
        if not entry:
            problems.append(f"{FLAKY}:{number}: write 'name | 2030-01-31 | cause'")
        elif not any(fits(VARIANT.sub("", entry["name"]), k) for k in known):
            problems.append(f"{FLAKY}:{number}: no test has the name `{entry['name']}`")
        else:
            named.append(entry["name"])
tree.report(problems, len(named), "names of tests are those of tests")
