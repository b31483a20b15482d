# SPDX-License-Identifier: Apache-2.0
"""The files of the project, and how a check reports its findings."""
import pathlib
import re
import subprocess
import sys

CODE = (".h", ".hpp", ".cuh", ".c", ".cpp", ".cu")
COMMENT_OR_STRING = re.compile(r"""//[^\n]*|/\*.*?(?:\*/|\Z)|(?<!')"(?:\\.|[^"\\\n])*(?:"|\n|\Z)""", re.DOTALL)


def root():
    return pathlib.Path(sys.argv[1]).resolve()


def files():
    """Returns all files that are committed or could be (git does not ignore them), as paths relative to the root."""
    try:
        listed = subprocess.run(["git", "-C", root(), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        listed = [str(p.relative_to(root())) for p in root().rglob("*") if p.is_file()]
    paths = [pathlib.PurePosixPath(name) for name in listed if name]
    not_ours = {"build", "__pycache__"}
    return sorted(p for p in paths if not_ours.isdisjoint(p.parts) and (root() / p).is_file()
                  and not any(part.startswith(".") and part != ".ci" for part in p.parts[:-1]))


def code(*rooms):
    return [p for p in files() if p.suffix in CODE and (not rooms or str(p).startswith(rooms))]


def text(path):
    return (root() / path).read_text(errors="replace")


def without_comments(path):
    """Returns the text of a C or C++ file without comments and contents of strings. Lines keep their numbers."""
    source = text(path)

    def kept(match):
        found = match.group()
        if found[0] != '"':
            return "\n" * found.count("\n")
        # In an #include, the quotes enclose a file name and not a string; it is kept.
        line = source[source.rfind("\n", 0, match.start()) + 1:match.start()]
        return found if line.lstrip().startswith("#") else '""' + "\n" * found.count("\n")
    return COMMENT_OR_STRING.sub(kept, source)


def report(problems, looked_at, what):
    """Ends the check. A check that looked at no file fails."""
    for problem in problems:
        print(problem)
    if not looked_at:
        print("the check looked at nothing")
    elif not problems:
        print(f"{looked_at} {what}")
    sys.exit(bool(problems) or not looked_at)
