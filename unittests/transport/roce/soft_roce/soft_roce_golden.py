#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden/soft_roce.txt: the first packet of each opcode among those that scripts/test_roce.sh has captured.

usage: soft_roce_golden.py CONSOLE FILE
"""
import pathlib
import sys

HEADER = """# SPDX-License-Identifier: Apache-2.0
# Packets of the kernel's soft-RoCE, one of each opcode, as a raw socket received them. soft_roce_golden.py wrote them;
# the lines are those of packets.txt.
"""
RETH, IMMEDIATE = (0x26, 0x2A, 0x2B), (0x23, 0x25, 0x29, 0x2B)


def line_of(packet):
    bth = packet[28:]
    opcode, padding, headers = bth[0], bth[1] >> 4 & 3, 12
    address = rkey = length = immediate = 0
    if opcode in RETH:
        address, rkey, length = (int.from_bytes(bth[a:b], "big") for a, b in ((12, 20), (20, 24), (24, 28)))
        headers += 16
    if opcode in IMMEDIATE:
        immediate = int.from_bytes(bth[headers:headers + 4], "big")
        headers += 4
    words = dict(opcode=opcode, size=len(bth) - headers - padding - 4, psn=int.from_bytes(bth[9:12], "big"),
                 qp=int.from_bytes(bth[5:8], "big"), rkey=rkey, address=address, length=length, immediate=immediate,
                 pkey=int.from_bytes(bth[2:4], "big"), identification=int.from_bytes(packet[4:6], "big"),
                 fragments=int(not packet[6] & 0x40))
    return " ".join([f"soft_roce_{opcode:02x}", *(f"{key}={value:#x}" for key, value in words.items()), packet.hex()])


first = {}
for text in pathlib.Path(sys.argv[1]).read_text(errors="replace").splitlines():
    if text.startswith("PACKET "):
        captured = bytes.fromhex(text.split()[1])
        first.setdefault(captured[28], captured)
pathlib.Path(sys.argv[2]).write_text(HEADER + "".join(line_of(first[opcode]) + "\n" for opcode in sorted(first)))
print(f"{len(first)} opcodes")
