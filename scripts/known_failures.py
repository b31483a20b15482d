#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the last column of the tables of docs/guide/known_failures.md: the tests that guard against each failure. A
comment above a test names the failure; it holds for the tests of that suite in that file:

    // Known failure 14.                                        # Known failures 2, 58.
    TEST(SharedRing, ...) {                                     cudaq_add_script_test(NAME Codegen.Name ...)

A failure without such a comment has a cell that begins with "no test: " and gives the reason."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "unittests" / "lint"))
import tree  # noqa: E402 (a module of the checks)

PAGE = "docs/guide/known_failures.md"
COMMENT = re.compile(r"^ *(?://|#) (Known failures? .*)$", re.MULTILINE)
NUMBERS = re.compile(r"Known failures? (\d+(?:, \d+)*)\.")
COMMENT_LINES = r"(?: *(?://|#).*\n)*"
GOOGLE_TEST = re.compile(COMMENT_LINES + r"(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),")
# The first argument of a call in CMake is the test's name or, for a model, its suite.
MODEL_TEST = re.compile(COMMENT_LINES + r" *model_test\((\w+) ")
SCRIPT_TEST = re.compile(COMMENT_LINES + r" *\w+\((?:NAME )?\"?([A-Z]\w*(?:\.[\w${}]+)+)")
ROW = re.compile(r"^\| (\d+) \| (.*) \|([^|]*)\|$", re.MULTILINE)
NO_TEST = "no test: "


def test_after(text, end, script):
    """The test whose name follows a comment, as the page writes it."""
    if not script:
        test = GOOGLE_TEST.match(text, end)
        return test and f"{test[1]}.*"
    if model := MODEL_TEST.match(text, end):
        return f"Model.{model[1]}.*"
    test = SCRIPT_TEST.match(text, end)
    return test and re.sub(r"\$\{\w+\}", "*", test[1])


def tests_of_failures():
    """Returns the tests of each number, and what is wrong with comments."""
    tests, problems = {}, []
    for path in tree.files():
        script = path.name == "CMakeLists.txt"
        if not (script or path.suffix in tree.CODE) or not str(path).startswith(("unittests/", "docs/examples/")):
            continue
        text = tree.text(path)
        for comment in COMMENT.finditer(text):
            numbers = NUMBERS.fullmatch(comment[1])
            test = test_after(text, comment.end() + 1, script)
            if numbers and test:
                for number in numbers[1].split(", "):
                    tests.setdefault(number, set()).add(test)
            else:
                line = text.count("\n", 0, comment.start()) + 1
                problems.append(f"{path}:{line}: no test follows, or the form is not 'Known failures 2, 36.'")
    return tests, problems


def update(page):
    """Returns the page with its generated column, and what is missing in the page or in the tests."""
    tests, problems = tests_of_failures()
    rows = {row[1] for row in ROW.finditer(page)}
    for number in sorted(set(tests) - rows, key=int):
        problems.append(f"{PAGE}: no row {number}, which the comment above {min(tests[number])} names")

    def with_tests(row):
        number, failure, cell = row[1], row[2], row[3].strip()
        if number in tests:
            whole = {test[:-1] for test in tests[number] if test.endswith(".*")}
            names = [test for test in sorted(tests[number]) if test.endswith(".*") or not test.startswith(tuple(whole))]
            cell = ", ".join(f"`{test}`" for test in names)
        elif not cell.startswith(NO_TEST):
            problems.append(f"{PAGE}: failure {number} has no test; write one, or '{NO_TEST}' and the reason")
        return f"| {number} | {failure} | {cell} |"

    return ROW.sub(with_tests, page), problems, len(rows)


if __name__ == "__main__":
    sys.argv[1:] = [str(ROOT)]
    text, wrong, count = update(tree.text(PAGE))
    (ROOT / PAGE).write_text(text)
    tree.report(wrong, count, f"rows of {PAGE} name their tests")
