#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make (or check) packets.txt: IPv4 packets of RoCEv2, transport UC, with the ICRC as scapy computes it. No code of the
library is used.

    python3 -m venv venv && venv/bin/pip install scapy==2.8.0
    venv/bin/python make_packets.py            # write packets.txt
    venv/bin/python make_packets.py --check    # compare the committed file with a fresh run; 77: there is no scapy

Each line of packets.txt: a name, then `key=value` words, then the packet in hexadecimal, from the IPv4 header on. The
words are the fields of the packet; one that has no place in the opcode is 0.
"""
import pathlib
import struct
import sys

try:
    from scapy.all import IP, UDP, Raw
    from scapy.contrib.roce import BTH
except ImportError as error:
    print(f"skipped: {error}; pip install scapy==2.8.0")
    sys.exit(77)

FILE = pathlib.Path(__file__).with_name("packets.txt")
HEADER = "# SPDX-License-Identifier: Apache-2.0\n# Written by make_packets.py, which says what the lines are.\n"
BRIDGE, HOST = ("192.168.0.2", 12288), ("192.168.0.101", 4791)
BEGINS = (0x20, 0x24, 0x25, 0x26, 0x2A, 0x2B)
IMMEDIATE = (0x23, 0x25, 0x29, 0x2B)


def payload(size):
    return bytes((7 * i + size) & 0xFF for i in range(size))


def packet(name, opcode, size, psn=0x123456, qp=0x11, rkey=0, address=0, length=0, immediate=0, identification=0,
           flags="DF", ttl=64, tos=0, source=BRIDGE, destination=HOST, fecn=0, solicited=0, pkey=0xFFFF):
    write = opcode >= 0x26
    extended = b""
    if write and opcode in BEGINS:
        extended += struct.pack("!QII", address, rkey, length)
    else:
        rkey = address = length = 0
    if opcode in IMMEDIATE:
        extended += struct.pack("!I", immediate)
    else:
        immediate = 0
    data = payload(size)
    padding = -size % 4
    made = (IP(src=source[0], dst=destination[0], id=identification, flags=flags, ttl=ttl, tos=tos) /
            UDP(sport=source[1], dport=destination[1]) /
            BTH(opcode=opcode, padcount=padding, pkey=pkey, dqpn=qp, psn=psn, fecn=fecn, solicited=solicited) /
            Raw(extended + data + bytes(padding)))
    words = dict(opcode=opcode, size=size, psn=psn, qp=qp, rkey=rkey, address=address, length=length,
                 immediate=immediate, pkey=pkey, identification=identification, fragments=int(flags != "DF"))
    return " ".join([name, *(f"{key}={value:#x}" for key, value in words.items()), bytes(made).hex()])


def lines():
    # A sensor bridge's page: writes of one packet, the last one with the page and the number in the immediate.
    page = dict(rkey=0x1234, qp=0x11)
    yield packet("bridge_begin", 0x2A, 128, psn=7, address=2 * 256, length=128, **page)
    yield packet("bridge_end", 0x2B, 60, psn=8, address=2 * 256 + 128, length=60, immediate=2 | 8 << 12, **page)
    for opcode in range(0x20, 0x2C):
        first_or_middle = opcode in (0x20, 0x21, 0x26, 0x27)
        size = 256 if first_or_middle else 45
        yield packet(f"opcode_{opcode:02x}", opcode, size, rkey=0xCAFEF00D, address=0x0123456789ABCDEF, length=size,
                     immediate=0xA1B2C3D4, solicited=opcode & 1)
    for size in (0, 1, 2, 3, 4, 63, 64, 1024, 4096):  # each padding, and the largest payload
        yield packet(f"size_{size}", 0x24, size)
    yield packet("largest_numbers", 0x24, 8, psn=0xFFFFFF, qp=0xFFFFFF)
    yield packet("partition", 0x24, 8, pkey=0x8001)
    # The ICRC does not cover these.
    yield packet("routed", 0x24, 24, ttl=3, tos=0xB8)
    yield packet("congested", 0x24, 24, fecn=1)
    # The ICRC covers these, and a socket does not tell them.
    for identification in (1, 0x100, 0xBEEF, 0xFFFF):
        yield packet(f"identification_{identification:04x}", 0x24, 24, identification=identification)
    yield packet("may_be_fragmented", 0x24, 24, identification=0x1234, flags=0)


text = HEADER + "\n".join(lines()) + "\n"
if "--check" in sys.argv:
    same = FILE.read_text() == text
    print("packets.txt: as scapy makes them" if same else "packets.txt differs from a fresh run")
    sys.exit(not same)
FILE.write_text(text)
