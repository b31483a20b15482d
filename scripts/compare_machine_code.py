#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the machine code of device functions before and after a change that should leave it alone (a move, a renaming):

    scripts/compare_machine_code.py OLD NEW

OLD and NEW are build folders (their archives and shared libraries with device code), single files with device code (.a, .o,
.so, .cubin), or what nvdisasm has printed (.nvdisasm). Functions are compared by their instructions. Their names do not
count, but what a call or an address refers to does: a function of the same file stands for its instructions, any other
function of the project for its place among the names, the rest for its name. cuobjdump and nvdisasm must be on the path.
Exit status: 0 the same, 1 different, 2 nothing to compare.
"""
import collections
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

OURS = re.compile(r"cudaq|probe_|_kernel")
REFERENCE = re.compile(r"(?:`|@lo|@hi|@fdesc)\(+(?P<name>[A-Za-z_$][\w$.]*)")


def disassembled(path):
    """The text of every module of device code in a file."""
    if path.suffix == ".nvdisasm":
        return [path.read_text()]
    if path.suffix == ".cubin":
        return [run("nvdisasm", path)]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cuobjdump", "-xelf", "all", path.resolve()], cwd=folder, capture_output=True)
        return [run("nvdisasm", cubin) for cubin in sorted(pathlib.Path(folder).iterdir())]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files_of(where):
    """What there is to read under a command line argument, by the name that both sides have."""
    if where.is_file():
        return {where.name: where}
    return {p.name: p for pattern in ("**/*.a", "**/*.so") for p in where.glob(pattern)}


def functions_of(text):
    """(name, lines) of each function of a module; encodings and addresses are left out."""
    name, body = None, []
    for line in text.split("\n"):
        section = re.match(r'\s*\.section\s+\.text\.([^,]+),', line)
        if section or re.match(r"\s*\.section\s", line):
            if name:
                yield name, body
            name, body = (section.group(1).strip('"') if section else None), []
        elif name:
            instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?;)", line) or re.match(r"(\.L_\w+:)", line)
            if instruction:  # without the remarks and the blanks that nvdisasm lines up
                body.append(" ".join(re.sub(r"\(\*.*?\*\)", "", instruction.group(1)).split()))
    if name:
        yield name, body


def module_signatures(text):
    """[(signature, name, instructions)] of the functions of a module."""
    bodies = list(functions_of(text))
    own = {name: digest(plain(body, name)[0]) for name, body in bodies}
    for name, body in bodies:
        lines, names = plain(body, name)
        referred = [own.get(n) or ("ours" if OURS.search(n) else n) for n in names]
        yield digest(lines + referred), name, sum(not line.endswith(":") for line in lines)


def plain(body, function):
    """Labels and names replaced by numbers in the order of their appearance; the names in that order."""
    labels, names = {}, []

    def label(match):
        return f"L{labels.setdefault(match.group(0), len(labels))}"

    def reference(match):
        name = match.group("name")
        if name.split("$")[0] == function or name == function:
            return match.group(0).replace(name, "self")
        if name not in names:
            names.append(name)
        return match.group(0).replace(name, f"name{names.index(name)}")

    lines = [re.sub(r"\.L_\w+", label, line) for line in body]
    return [REFERENCE.sub(reference, line) for line in lines], names


def digest(parts):
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def signatures(path):
    """A multiset of signatures, and (name, instructions) of their functions."""
    counted, named = collections.Counter(), {}
    for text in disassembled(path):
        for signature, name, length in module_signatures(text):
            counted[signature] += 1
            named.setdefault(signature, []).append((name, length))
    return counted, named


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    old, new = (files_of(pathlib.Path(a)) for a in arguments)
    if len(old) == len(new) == 1:
        old = dict(zip(new, old.values()))
    compared = different = 0
    for label in sorted({*old, *new}):
        (count_old, named_old), (count_new, named_new) = (signatures(side[label]) if label in side else
                                                          (collections.Counter(), {}) for side in (old, new))
        total = sum(count_new.values())
        if not total and not count_old:
            continue
        gone, come = count_old - count_new, count_new - count_old
        compared += total
        print(f"{label}: {total} functions, {total - sum(come.values())} the same")
        for what, rest, named in (("only before", gone, named_old), ("only after ", come, named_new)):
            for name, length in (f for signature in rest for f in named[signature][:rest[signature]]):
                different += 1
                print(f"  {what}  {length:6} instructions  {name}")
    if not compared:
        print("no device function was found")
        sys.exit(2)
    print(f"{different} differences" if different else f"{compared} functions: the same machine code")
    sys.exit(bool(different))


main(sys.argv[1:])
