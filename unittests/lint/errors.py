#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/guide/errors.md has every status of the library with its text, every value of an enumeration that users see, and
every text of a refusal that is not about an argument (those name the field and the accepted values themselves). In the
page, `...` stands for a value."""
import re

import tree

PAGE = "docs/guide/errors.md"
# The static texts of the statuses: file, beginning of the function.
STATUS_TEXTS = (("lib/api/status.cpp", "const char *cudaq_status_string"),
                ("lib/api/status.cpp", "const char *cudaq_rpc_status_string"),
                ("lib/qec/decoders/decode_status_text.cpp", "const char *decode_status_text"))
STRING = r'"(?:[^"\\]|\\.)*"'
REASON = re.compile(r"make_reason\(\s*([^,\"]*?CUDAQ_ERR_\w+[^,\"]*?),\s*(" + STRING +
                    r"(?:\s*(?:" + STRING + r"|PRI\w+))*)")
VALUE = re.compile(r"%[-+ #0]*[\d.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")


def joined(literals):
    """The text of C string literals that follow each other."""
    literals = re.sub(r"PRI\w+", '"d"', literals)
    text = "".join(part[1:-1] for part in re.findall(STRING, literals))
    return text.replace('\\"', '"').replace("\\n", " ").strip()


def shown(text):
    return " ".join(VALUE.sub("...", text).split())


def status_texts():
    for path, start in STATUS_TEXTS:
        source = tree.text(path)
        begin = source.index(start)
        for literal in re.findall(r"return (" + STRING + r");", source[begin:source.index("\n}", begin)]):
            yield path, joined(literal)


def refusals():
    for path in tree.code("lib/", "kernels/", "include/"):
        for status, literals in REASON.findall(tree.text(path)):
            if set(re.findall(r"CUDAQ_ERR_\w+", status)) != {"CUDAQ_ERR_INVALID_ARG"}:
                yield str(path), joined(literals)


# The enumerations whose values users see: file, name, heading of their table, column of the value, and whether the
# table has the names, too.
API = "include/cudaq/realtime/daemon"
SERVED, POLLED = "Status of the decoding server and of the router", "What a slot or a poll returns"
ENUMS = ((f"{API}/dispatcher/cudaq_status.h", "cudaq_status_t", "Status of a call", 0, True),
         (f"{API}/dispatcher/rpc_wire_format.h", "cudaq_rpc_status_t", "Status of a response", 0, False),
         ("include/cudaq/qec/decoding/decode_status.h", "decode_status", "Status of a decode", 0, False),
         ("include/cudaq/qec/realtime/decoding_server_wire.h", "cudaq_qec_server_status_t", SERVED, 0, True),
         ("lib/transport/route/request_router.h", "route_status", SERVED, 0, False),
         ("tools/common/report.h", "exit_code", "Exit status of the program", 0, True),
         (f"{API}/dispatcher/realtime_types.h", "cudaq_tx_status_t", POLLED, 1, True),
         (f"{API}/bridge/bridge_types.h", "cudaq_rx_status_t", POLLED, 1, True),
         (f"{API}/bridge/bridge_types.h", "cudaq_rx_dev_status_t", POLLED, 1, True))


def enumerators(path, name):
    source = re.sub(r"//[^\n]*|/\*.*?\*/", "", tree.text(path), flags=re.S)
    body = re.search(r"enum\s+(?:class\s+)?" + name + r"\b[^{;]*{([^}]*)}", source).group(1)
    return re.findall(r"(\w+)\s*=\s*(-?\d+)", body)


def values_without_a_row():
    for path, name, heading, column, named in ENUMS:
        if not (tree.root() / path).exists():  # in the tree of the self-test
            continue
        section = tree.text(PAGE).partition(f"## {heading}\n")[2].partition("\n## ")[0]
        rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
        values = enumerators(path, name)
        for word, value in values:
            shown_names = (word, word.upper(), word.removeprefix("CUDAQ_QEC_SERVER_"))
            if not any(len(row) > column and row[column] == value and
                       (not named or any(n in cell for cell in row for n in shown_names)) for row in rows):
                yield f"{path}: {PAGE} lacks {word} = {value} under \"{heading}\""
        if not values:
            yield f"{path}: {name} has no value"


problems = list(values_without_a_row()) if (tree.root() / PAGE).exists() else []
page = " ".join(tree.text(PAGE).split()) if (tree.root() / PAGE).exists() else ""
quoted = set(re.findall(r"`([^`]+)`", page))
texts = set(status_texts()) | set(refusals()) if page else set()
for path, text in sorted(texts):
    begins = shown(text) + " "  # a text that continues with a macro is quoted with its continuation
    if re.sub(r"[.\s:()]", "", begins) and not any((q + " ").startswith(begins) for q in quoted):
        problems.append(f"{path}: {PAGE} lacks the text `{shown(text)}`")
tree.report(problems, len(texts), "error texts are in the index of errors")
