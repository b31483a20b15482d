#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes frames.txt: requests of a control system and the answers to them, byte by byte from the table in
docs/transport/server.md. It uses no code of the library. The decoder of the exchange has the id 3, 10 detectors and 10
observables. Detector k is flipped only by an error that flips observable k, so an answer is the XOR of the shots."""
import pathlib
import struct

ENQUEUE, GET_CORRECTIONS, RESET, ONE_SHOT = 0x7ED8BE82, 0x882D5BA1, 0x977A59CF, 0xC4B0E4BF
OK, INVALID_DECODER, BAD_REQUEST, SYNDROMES_DROPPED = 0, 1, 2, 6

lines = ["# SPDX-License-Identifier: Apache-2.0",
         "# Written by make_frames.py. Each line: what happens, the request's frame, the answer's frame."]


def packed(bits):
    data = bytearray((len(bits) + 7) // 8)
    for k, bit in enumerate(bits):
        data[k // 8] |= int(bit) << (k % 8)
    return bytes(data)


def exchange(name, function, payload, status, result=b""):
    number = len(lines)
    stamp = 0x0102030405060700 + number
    request = struct.pack("<IIIIQ", 0x43555152, function, len(payload), number, stamp) + payload
    answer = struct.pack("<IiIIQ", 0x43555153, status, len(result), number, stamp) + result
    lines.append(f"{name} {request.hex()} {answer.hex()}")


def enqueue(name, decoder, counter, bits, status, mapping_id=0):
    exchange(name, ENQUEUE, struct.pack("<QQQQ", decoder, counter, mapping_id, len(bits)) + packed(bits), status)


def get_corrections(name, decoder, wanted, clear, status, result=""):
    exchange(name, GET_CORRECTIONS, struct.pack("<QQB", decoder, wanted, clear), status, packed(result))


enqueue("enqueue_whole_shot", 3, 1, "1100000001", OK)
get_corrections("get_and_clear", 3, 10, 1, OK, "1100000001")
get_corrections("get_after_clear", 3, 10, 0, OK, "0000000000")
enqueue("enqueue_first_part", 3, 2, "101", OK)
enqueue("enqueue_second_part", 3, 3, "0000011", OK)
get_corrections("get_first_four", 3, 4, 0, OK, "1010")
get_corrections("get_too_many", 3, 11, 0, BAD_REQUEST)
enqueue("enqueue_unknown_decoder", 99, 1, "1", INVALID_DECODER)
enqueue("enqueue_after_a_gap", 3, 5, "1", SYNDROMES_DROPPED)
get_corrections("get_after_a_gap", 3, 10, 0, SYNDROMES_DROPPED)
exchange("reset", RESET, struct.pack("<Q", 3), OK)
enqueue("enqueue_with_mapping", 3, 1, "1", BAD_REQUEST, mapping_id=1)
enqueue("enqueue_latched", 3, 2, "1", BAD_REQUEST)
exchange("reset_again", RESET, struct.pack("<Q", 3), OK)
exchange("reset_unknown_decoder", RESET, struct.pack("<Q", 1 << 63), INVALID_DECODER)
exchange("one_shot", ONE_SHOT, packed("0100000010"), OK, packed("0100000010"))
pathlib.Path(__file__).with_name("frames.txt").write_text("\n".join(lines) + "\n")
