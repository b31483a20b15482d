#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The statuses of the decoding server stand in one list, the enumeration of decoding_server_wire.h. Compared with it:
names and numbers of each other list and of each place in the documents that names both, and the ranges of all statuses,
"1 to N". The build makes the texts that programs print from the comments of the header."""
import re

import tree

HEADER = "include/cudaq/qec/realtime/decoding_server_wire.h"
PYTHON = "python/cudaq_realtime/client.py"
NAMES = "lib/qec/server/session/wire_requests.h"
ROUTER = "lib/transport/route/request_router.h"
TABLES = ("docs/transport/server_wire.md", "docs/transport/route.md", "docs/guide/errors.md")


def text_of(path):
    return tree.text(path) if (tree.root() / path).exists() else ""  # the tree of the self-test has not all


body = "".join(re.findall(r"enum cudaq_qec_server_status_t \{(.*?)\}", text_of(HEADER), re.S))
STATUSES, problems = {}, []
for name, value, meaning in re.findall(r"CUDAQ_QEC_SERVER_(\w+) = (\d+),?(?: */\* (.*) \*/)?", body):
    STATUSES[name] = int(value)
    if STATUSES[name] and not meaning:
        problems.append(f"{HEADER}: {name} has no meaning, in its line")
    if re.search(r'["\\@\[\]]', meaning):
        problems.append(f"{HEADER}: {name}: the build makes a text of the meaning, so without quotes, \\, @, [ and ]")


def differs(path, found, wanted):
    for key in sorted(found.keys() | wanted.keys(), key=str):
        if found.get(key) != wanted.get(key):
            problems.append(f"{path}: {key}: {found.get(key)!r}; {HEADER} has {wanted.get(key)!r}")


if text_of(PYTHON):
    for names, numbers in re.findall(r"^([A-Z_, ]+) = ([\d, ]+)(?:  #.*)?$", text_of(PYTHON), re.M):
        for name, number in zip(names.split(", "), numbers.split(", ")):
            if name in STATUSES and STATUSES[name] != int(number):
                problems.append(f"{PYTHON}: {name} is {number}; {HEADER} has {STATUSES[name]}")
if text_of(NAMES):
    array = re.search(r"kServerStatusNames = \{(.*?)\}", text_of(NAMES), re.S)[1]
    differs(NAMES, {name: k for k, name in enumerate(re.findall(r'"(\w+)"', array))}, STATUSES)
if text_of(ROUTER):
    numbers = re.search(r"enum class route_status[^{]*\{(.*?)\}", text_of(ROUTER), re.S)[1]
    for name, value in re.findall(r"(\w+) = (\d+)", numbers):
        if STATUSES.get(name.upper(), int(value)) != int(value):
            problems.append(f"{ROUTER}: {name} is {value}; {HEADER} has {STATUSES[name.upper()]}")

for path in TABLES:
    if not text_of(path):
        continue
    rows = re.findall(r"^\| (\d) \|(?: -?\d? ?\|)? ([A-Z_]+) \|", text_of(path), re.M)
    listed = {name: int(value) for value, name in rows if name in STATUSES}
    if path == TABLES[0]:
        differs(path, listed, STATUSES)
    else:  # a router has not all, and errors.py looks for all of the index of errors
        differs(path, listed, {name: STATUSES[name] for name in listed})
for path in tree.files():
    if path.suffix == ".md" and path.parts[0] == "docs":
        pairs = re.findall(r"\b([A-Z_]+) \((?:status )?(\d)\)|\b(\d) \(([A-Z_]+)\)", tree.text(path))
        for name, value, other_value, other_name in pairs:
            word, number = name or other_name, int(value or other_value)
            if word in STATUSES and STATUSES[word] != number:
                problems.append(f"{path}: {word} is {number}; {HEADER} has {STATUSES[word]}")
        for last in re.findall(r"\b1\s+to\s+(\d+)(?:,\s+or\s+-1\s+to|:\s+`decoding_server_wire)", tree.text(path)):
            if STATUSES and int(last) != max(STATUSES.values()):
                problems.append(f"{path}: 1 to {last}; the last status of {HEADER} is {max(STATUSES.values())}")
found = len(STATUSES) if text_of(HEADER) else 1
tree.report(problems, found, "statuses of the server are the same in all lists")
