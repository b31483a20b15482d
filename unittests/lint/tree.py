# SPDX-License-Identifier: Apache-2.0
"""The files of the project, and how a check reports its findings."""
import pathlib
import subprocess
import sys

CODE = (".h", ".hpp", ".cuh", ".c", ".cpp", ".cu")


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
    source, out, i = text(path), [], 0
    while i < len(source):
        two = source[i:i + 2]
        if two == "//":
            end = source.find("\n", i)
            i = len(source) if end < 0 else end
        elif two == "/*":
            end = source.find("*/", i + 2)
            end = len(source) if end < 0 else end + 2
            out.append("\n" * source.count("\n", i, end))
            i = end
        elif source[i] == '"' and not out[-1:] == ["'"]:
            end = i + 1
            while end < len(source) and source[end] not in '"\n':
                end += 2 if source[end] == "\\" else 1
            quoted = source[i:end + 1]
            # In an #include, the quotes enclose a file name and not a string; it is kept.
            line = "".join(out[-200:]).rsplit("\n", 1)[-1]
            out.append(quoted if line.lstrip().startswith("#") else '""' + "\n" * quoted.count("\n"))
            i = end + 1
        else:
            out.append(source[i])
            i += 1
    return "".join(out)


def report(problems, looked_at, what):
    """Ends the check. A check that looked at no file fails."""
    for problem in problems:
        print(problem)
    if not looked_at:
        print("the check looked at nothing")
    elif not problems:
        print(f"{looked_at} {what}")
    sys.exit(bool(problems) or not looked_at)
