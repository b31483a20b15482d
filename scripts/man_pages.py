#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the man pages of section 3, from the comments of the C headers: man_pages.py FOLDER VERSION.

A page for each header (cudaq_realtime.h.3): its comment, its types and constants, and the list of its functions. A page
for each group of functions, that is what a header has between two empty lines: its name is that of the first function,
and the others lead to it. What a function does in one line is taken from docs/api/index.md."""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["include/cudaq/realtime/daemon/dispatcher", "include/cudaq/realtime/daemon/bridge",
           "include/cudaq/qec/decoding", "include/cudaq/qec/realtime"]
FUNCTION = re.compile(r"\b(cudaq_\w+)(?<!_t)\s*\(")
# A terminal has 80 columns, of which man indents 7, and 7 more below the name of a function.
WIDTH = 80 - 14
COMMENT = re.compile(r"\s*/\*.*?\*/[ \t]*\n", re.DOTALL)


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def fit(text, width=WIDTH):
    """Lines that are not filled, within the width. What stands in a second column of a list or a table stays there."""
    out = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        column = re.match(r" *\S.*?(?:/\* |  +)(?=\S)", line)
        column = column.end() if column and column.end() < width // 2 else indent + 4
        macro = line.startswith("#define") or line.endswith("\\")
        if len(line) <= width:
            out.append(line)
        elif macro:
            parts = textwrap.wrap(line.rstrip("\\ "), width - 2, subsequent_indent=" " * column,
                                  break_on_hyphens=False)
            out += [part + " \\" for part in parts[:-1]] + [parts[-1] + (" \\" if line.endswith("\\") else "")]
        else:
            out += textwrap.wrap(line, width, subsequent_indent=" " * column, break_on_hyphens=False,
                                 break_long_words=False)
    return "\n".join(out)


def fit_prototype(text):
    """A declaration of a function, broken after commas."""
    if len(text) <= WIDTH:
        return text
    head, arguments = text.split("(", 1)
    lines = [head + "("]
    for argument in re.split(r"(?<=,) ", arguments):
        if len(lines) == 1 or len(lines[-1]) + 1 + len(argument) > WIDTH:
            lines.append("    " + argument)
        else:
            lines[-1] += " " + argument
    return "\n".join(lines)


def code(text):
    return f".PP\n.nf\n{escape(fit(text.rstrip()))}\n.fi\n"


def prose(comment):
    """A comment as paragraphs; lists, tables and pictures, whose lines are indented, stay as they are."""
    text = re.sub(r"^\s*/\*+ ?|\s*\*/\s*$", "", comment.strip())
    text = re.sub(r"^\s*\* ?", "", text, flags=re.MULTILINE)
    # The pages are installed in a folder of this name.
    text = re.sub(r"(?<![\w/])docs/(?=\S+\.md)", "share/doc/cudaq-realtime/docs/", text)
    out, drawn = "", False
    for line in text.split("\n"):
        indented = line.startswith(" ") or (drawn and not line.strip())
        if indented != drawn:
            out += ".nf\n" if indented else ".fi\n"
            drawn = indented
        out += escape(fit(line) if drawn else line) + "\n" if line.strip() else ".PP\n" if not drawn else "\n"
    return out + (".fi\n" if drawn else "")


def without_conditions(text):
    """What a user's compiler reads: no include guard, no conditions, no macro that only serves the header."""
    text = text.replace("\\\n", "\x00")
    lines = [line for line in text.split("\n")
             if not re.match(r'\s*#\s*(if|else|elif|endif|include|undef|pragma|error)|\s*extern "C" \{|^\} *(/\*.*)?$'
                             r"|\s*#define CUDAQ_\w+_H\b|\s*/\* -{10,}.*-- \*/$", line)]
    return "\n".join(lines).replace("\x00", "\\\n")


def items(block):
    """The comments and declarations of a block, in order; a comment at the end of a line is of its declaration."""
    while block.strip():
        found = COMMENT.match(block + "\n")
        if found:
            yield "comment", found[0].strip()
            block = block[found.end():]
            continue
        following = re.search(r"^\s*/\*(?![^\n]*\*/[ \t]*[^\s])", block, flags=re.MULTILINE) if "{" not in block \
            else re.search(r"^/\*", block, flags=re.MULTILINE)
        end = following.start() if following and following.start() > 0 else len(block)
        yield "code", block[:end].strip("\n")
        block = block[end:]


def declarations(text):
    """The functions that a piece of code declares or defines: name and prototype."""
    both = re.DOTALL | re.MULTILINE
    for other in (r"/\*.*?\*/", r"^#define.*?(?<!\\)$", r"^(typedef|struct|enum|union)\b([^;{]*\{.*?^\}[^;]*|[^;{]*);"):
        text = re.sub(other, "", text, flags=both)
    for part in re.findall(r"(?:^|(?<=[;}]))([^;{}]*\([^;{}]*\)[^;{}]*)(?:;|\{.*?^\})", text, flags=both):
        part = re.sub(r"\b(CUDAQ_\w+_(?:API|EXPORT)|CUDAQ_HOST_DEVICE\w*|static|inline|extern)\b ?", "", part).strip()
        part = re.sub(r"\s+CUDAQ_REALTIME_BOUND_TO\([^)]*\)", "", part)
        found = FUNCTION.search(part)
        if found and not part.startswith(("#", "(")):
            yield found[1], re.sub(r"\s+", " ", part) + ";"


def page(name, title, body):
    head = f'.TH {escape(name)} 3 "" "cudaq-realtime {VERSION}" "cudaq-realtime"'
    return f'.\\" Written by scripts/man_pages.py\n{head}\n.SH NAME\n{escape(title)}\n{body}'


def first_sentence(text):
    return re.split(r"(?<=[.:;])\s", " ".join(text.split()))[0].rstrip(".:;")


def write_header(header, folder):
    """Writes the pages of one header; returns the number of its functions."""
    include = header.relative_to(ROOT / "include")
    text = re.sub(r"^/\*\s*SPDX.*?\*/\n|^// SPDX.*\n", "", header.read_text())
    about = re.match(r"\s*(/\*.*?\*/)", text, flags=re.DOTALL)
    body = without_conditions(text[about.end():] if about else text)
    synopsis = f".SH SYNOPSIS\n.nf\n#include <{include}>\n"
    types, listed = "", []
    for block in re.split(r"\n\s*\n", body):
        pieces = [(kind, piece, dict(declarations(piece)) if kind == "code" else {}) for kind, piece in items(block)]
        functions = {name: prototype for _, _, found in pieces for name, prototype in found.items()}
        if not functions:
            types += "".join(prose(piece) if kind == "comment" else code(piece) for kind, piece, _ in pieces)
            continue
        names = list(functions)
        description, comment = "", ""
        for kind, piece, found in pieces:
            if kind == "comment":
                description += prose(comment) if comment else ""
                comment = piece
            elif found:
                heads = ", ".join(f"\\fB{escape(name)}\\fR()" for name in found)
                text_of = prose(comment) if comment else "".join(
                    escape(SHORT.get(name, "the header has no comment on it")) + ".\n" for name in found)
                description += f".TP\n{heads}\n{text_of.replace('.PP', '.IP')}"
                comment = ""
            else:
                description += (prose(comment) if comment else "") + code(piece)
                comment = ""
        comments = [piece for kind, piece, _ in pieces if kind == "comment"]
        short = SHORT.get(names[0]) or first_sentence(re.sub(r"[/*]+", " ", (comments or [header.name])[0]))
        (folder / f"{names[0]}.3").write_text(page(
            names[0].upper(), ", ".join(names) + " - " + short,
            synopsis + "\n" + "\n".join(escape(fit_prototype(each)) for each in functions.values()) +
            "\n.fi\n.SH DESCRIPTION\n" + description + f".SH SEE ALSO\n.BR {escape(header.name)} (3)\n"))
        for name in names[1:]:
            (folder / f"{name}.3").write_text(f".so man3/{names[0]}.3\n")
        listed += names
    title = first_sentence(re.sub(r"[/*]+", " ", about[1])) if about else "declarations"
    see = "".join(f".TP\n.BR {escape(name)} (3)\n{escape(SHORT.get(name, ''))}\n" for name in listed)
    (folder / f"{header.name}.3").write_text(page(
        header.name.upper(), f"{header.name} - {title}",
        synopsis + ".fi\n.SH DESCRIPTION\n" + (prose(about[1]) if about else "") +
        (".SH FUNCTIONS\n" + see if see else "") + (".SH TYPES AND CONSTANTS\n" + types if types else "")))
    return len(listed)


if len(sys.argv) != 3:
    sys.exit(__doc__)
target = pathlib.Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
for old in target.glob("*.3"):
    old.unlink()
VERSION = sys.argv[2]
SHORT = {name: re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", text) for name, text in re.findall(
    r"^\| `(\w+)` \|[^|]*\| (.*) \|$", (ROOT / "docs/api/index.md").read_text(), flags=re.MULTILINE)}
functions = 0
for each in FOLDERS:
    for path in sorted((ROOT / each).glob("*.h")):
        if re.search(r"extern \"C\"", path.read_text()):
            functions += write_header(path, target)
# Lines that are not filled would be cut, or broken anywhere, by a terminal.
for path in sorted(target.glob("*.3")):
    for part in re.findall(r"^\.nf\n(.*?)^\.fi$", path.read_text(), flags=re.MULTILINE | re.DOTALL):
        for line in part.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "").split("\n"):
            if len(line) > WIDTH + 7:
                sys.exit(f"{path.name}: more than 80 columns: {line}")
pages = len(list(target.glob("*.3")))
print(f"{target}: {pages} man pages, {functions} functions")
