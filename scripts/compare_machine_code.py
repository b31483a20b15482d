#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the machine code of device functions before and after a move or a renaming:

    scripts/compare_machine_code.py OLD NEW

OLD and NEW are build folders (their archives and shared libraries with device code are compared), single files with
device code (.a, .o, .so, .cubin), or the output of nvdisasm as text (.nvdisasm). Except for text, cuobjdump and
nvdisasm must be on the path.

Functions are compared by their instructions. The function's own name is ignored. The targets of its calls and addresses
are compared:
- a function of the same file by its instructions and its own targets, DEPTH levels deep;
- data of the same file by its bytes;
- any other function of the project by its position among the names;
- everything else by its name.
Not compared: registers, stack and shared memory that a function declares, and constant banks (c[3], c[4]).
Exit status: 0 the same, 1 different, 2 nothing could be compared.
"""
import collections
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

DEPTH = 8
OURS = re.compile(r"cudaq|probe_|_kernel")
# `(name), 32@lo(name), 32@lo((name + .L_x_0@srel)), 32@lo(fun@unified(name)); also a data word that is an address.
REFERENCE = re.compile(r"(?:\(|\.dword )(?P<name>[A-Za-z_$][\w$.]*)(?![\w$.@(])")
LABEL = re.compile(r"\.L\w+")
Function = collections.namedtuple("Function", "name length itself with_references")


def run(*command, **options):
    try:
        return subprocess.run(command, capture_output=True, text=True, **options)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}; it is part of the CUDA toolkit and must be on the path")


def fail(text):
    print(text, file=sys.stderr)
    sys.exit(2)


def disassembled(path):
    """The text of every module of device code in a file."""
    if path.suffix == ".nvdisasm":
        return [path.read_text()]
    if path.suffix == ".cubin":
        return [run("nvdisasm", path, check=True).stdout]
    with tempfile.TemporaryDirectory() as folder:
        run("cuobjdump", "-xelf", "all", path.resolve(), cwd=folder)  # fails if there is no device code
        return [run("nvdisasm", cubin, check=True).stdout for cubin in sorted(pathlib.Path(folder).iterdir())]


def files_of(where):
    """The files to read for one command line argument, by the file name, which is the same on both sides."""
    if not where.exists():
        fail(f"{where} does not exist")
    files = collections.defaultdict(list)
    for path in [where] if where.is_file() else [*where.glob("**/*.a"), *where.glob("**/*.so")]:
        if "install" not in path.relative_to(where).parts:  # copies that the tests made
            files[path.name].append(path)
    return files


def parts_of(text):
    """The functions of a module and its data, {name: lines} each; without encodings, addresses and column padding."""
    functions, data, name, part = {}, {}, None, None
    for line in text.split("\n"):
        section = re.match(r'\s*\.section\s+"?(\.text\.)?([^,"]+)', line)
        if section:
            name, part = None, data if section.group(2) in (".nv.global", ".nv.global.init") else None
            if section.group(1):
                name, part = section.group(2), functions
                part[name] = []
            continue
        label = re.match(r"([A-Za-z_$][\w$.]*):$", line)
        if part is data and label:
            name = label.group(1)
            part[name] = []
        elif name and part is data:
            value = re.match(r"\s*(?:/\*[0-9a-f]{4,}\*/\s*)?(\.(?:byte|short|word|dword|zero)\b.*)", line)
            if value:
                part[name].append(" ".join(value.group(1).split()))
        elif part is functions:
            instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?;)", line) or re.match(r"(\.L\w+:)", line)
            if instruction:
                part[name].append(" ".join(instruction.group(1).split()))
    return functions, data


def plain(body, function):
    """The lines with labels and names replaced by numbers, in the order of first use; and the names in that order."""
    labels, names = {}, {}

    def reference(match):
        name = match.group("name")
        place = "self" if name == function else f"name{names.setdefault(name, len(names))}"
        return match.group(0).replace(name, place)

    lines = [LABEL.sub(lambda match: f"@{labels.setdefault(match.group(0), len(labels))}", line) for line in body]
    return [REFERENCE.sub(reference, line) for line in lines], list(names)


def digest(parts):
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def functions_of(paths):
    """Every device function of the files, with its digests."""
    itself, names, functions, modules_with = {}, {}, {}, collections.defaultdict(list)
    for module, text in enumerate(text for path in paths for text in disassembled(path)):
        code, data = parts_of(text)
        for name, body in [*code.items(), *data.items()]:
            lines, names[module, name] = plain(body, name)
            itself[module, name] = digest(lines)
            modules_with[name].append(module)
            if name in code:
                functions[module, name] = sum(not line.startswith("@") for line in lines)

    def meant(module, name, level):
        """The digest of a name in a module. Several modules may have a function of that name; its own module's is used
        first."""
        known = [module] if (module, name) in level else modules_with.get(name, ())
        return min((level[other, name] for other in known), default="ours" if OURS.search(name) else name)

    level = itself
    for _ in range(DEPTH):
        level = {(module, name): digest([own, *(meant(module, n, level) for n in names[module, name])])
                 for (module, name), own in itself.items()}
    return [Function(name, length, itself[module, name], level[module, name])
            for (module, name), length in functions.items()]


def only_in(one, other):
    """The functions that only one side has, each with a flag: True if only the targets of its references differ."""
    rest, same_by_itself = collections.Counter(f.with_references for f in other), {f.itself for f in other}
    for function in sorted(one):
        if rest[function.with_references]:
            rest[function.with_references] -= 1
        else:
            yield function, function.itself in same_by_itself


def main(arguments):
    if len(arguments) != 2:
        fail(__doc__)
    old, new = (files_of(pathlib.Path(argument)) for argument in arguments)
    if len(old) == len(new) == 1:
        old = dict(zip(new, old.values()))
    compared = different = 0
    for label in sorted({*old, *new}):
        before, after = (functions_of(side.get(label, ())) for side in (old, new))
        lost, come = list(only_in(before, after)), list(only_in(after, before))
        compared += len(before) + len(after)
        different += len(lost) + len(come)
        if before or after:
            print(f"{label}: {len(after)} functions, {len(after) - len(come)} the same")
        for what, functions in (("only before", lost), ("only after ", come)):
            for function, references in functions:
                why = "  (only its references differ)" if references else ""
                print(f"  {what}  {function.length:6} instructions  {function.name}{why}")
    if not compared:
        fail("no device function was found")
    print(f"{different} differences" if different else f"{compared // 2} functions: the same machine code")
    sys.exit(bool(different))


main(sys.argv[1:])
