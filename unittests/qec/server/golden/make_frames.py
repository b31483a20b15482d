#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes frames.txt, stream_frames.txt, readout_frames.txt and gaps_frames.txt: requests of a control system and the
answers to them, byte by byte from the table in docs/transport/server_wire.md. It uses no code of the library.

frames.txt: the decoder has the id 3, 10 detectors and 10 observables. Detector k is flipped only by an error that flips
observable k, so an answer is the XOR of the shots. The decoder with the id 5 is the same, but knows no set of several
errors.

stream_frames.txt: the decoder has the id 4 and decodes a stream without a queue; head, repetition and tail are one
round of 3 detectors, commit is 2 and buffer is 1. Detector k of a round is flipped only by an error that flips
observable k, so the corrections are the XOR of the rounds that are final.

readout_frames.txt: the decoder has the id 6, 2 detectors, 1 observable, and takes 3 soft values and 5 flags. If only
detector 0 has fired the observable is flipped, unless measurements 1 and 2, or measurement 1 and flag 4, say that two
other errors have happened: a value of 7 or 8 is in the middle of the two results, and a flag is 2. The decoder with the
id 3 is that of frames.txt, and that with the id 4 the one of stream_frames.txt. The decoder with the id 7 decodes a
stream without a queue; head, repetition and tail are one round of one detector, commit and buffer are 2. A round
before the tail has a soft value and a flag. A pair of events in two rounds flips the observable, unless the value of
the first round is in the middle, or its flag is 2.

gaps_frames.txt: the decoder has the id 8, 2 detectors and 9 observables, and gives gaps. Without events nothing is
flipped and each gap is 8. Detector 0 flips observables 0 and 8, and the gap of observable k is k + 1.5. Detector 1
flips observable 1, the gap of observable k is k / 4, and that of observable 8 is not known."""
import pathlib
import struct

ENQUEUE, GET_CORRECTIONS, RESET, ONE_SHOT = 0x7ED8BE82, 0x882D5BA1, 0x977A59CF, 0xC4B0E4BF
BEGIN_TAIL, GET_COMMITTED, DESCRIBE, NAME = 0x21CDC649, 0x75DD3F12, 0xD546EA57, 0xF1697466
ENQUEUE_READOUT, ONE_SHOT_READOUT = 0xD1B0F222, 0x73895498
F32, U8, U4 = 0, 1, 2
BUFFER_TOO_SMALL = 4  # of a decode
OK, INVALID_DECODER, BAD_REQUEST, BUSY, SYNDROMES_DROPPED, STREAM_MISALIGNED, NOT_CONVERGED = 0, 1, 2, 5, 6, 7, 9

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
exchange("get_decoder_name", NAME, struct.pack("<Q", 3), OK, b"lookup")
exchange("name_of_an_unknown_decoder", NAME, struct.pack("<Q", 99), INVALID_DECODER)
exchange("name_of_a_wrong_length", NAME, struct.pack("<I", 3), BAD_REQUEST)
enqueue("enqueue_not_converged", 5, 1, "1100000000", NOT_CONVERGED)
enqueue("enqueue_after_it", 5, 2, "0010000000", NOT_CONVERGED)
get_corrections("get_after_it", 5, 10, 0, NOT_CONVERGED)


def write(name):
    pathlib.Path(__file__).with_name(name).write_text("\n".join(lines) + "\n")
    del lines[2:]


def begin_tail(name, decoder, counter, status):
    exchange(name, BEGIN_TAIL, struct.pack("<QQ", decoder, counter), status)


def get_committed(name, decoder, wanted, clear, wait_for_round, status, committed=0, pushed=0, result=""):
    answer = struct.pack("<QQ", committed, pushed) + packed(result) if status == OK else b""
    exchange(name, GET_COMMITTED, struct.pack("<QQB7xQ", decoder, wanted, clear, wait_for_round), status, answer)


write("frames.txt")
enqueue("enqueue_two_rounds", 4, 1, "100" "010", OK)
get_committed("nothing_is_final", 4, 3, 0, 0, OK, 0, 2, "000")
get_committed("wait_without_a_queue", 4, 3, 0, 2, BUSY)
enqueue("enqueue_part_of_a_round", 4, 2, "1", OK)
enqueue("enqueue_the_rest", 4, 3, "00", OK)
get_committed("two_rounds_are_final", 4, 3, 0, 2, OK, 2, 3, "110")
get_corrections("get_corrections_of_a_stream", 4, 2, 1, OK, "11")
enqueue("enqueue_two_more", 4, 4, "001" "100", OK)
get_committed("later_rounds_after_clear", 4, 3, 1, 4, OK, 4, 5, "101")
begin_tail("begin_tail", 4, 5, OK)
enqueue("enqueue_the_tail", 4, 6, "111", OK)
get_committed("all_is_final", 4, 3, 0, 1000, OK, 6, 6, "011")
enqueue("enqueue_after_the_end", 4, 7, "1", STREAM_MISALIGNED)
get_committed("get_committed_latched", 4, 3, 0, 0, STREAM_MISALIGNED)
exchange("reset_stream", RESET, struct.pack("<Q", 4), OK)
enqueue("enqueue_the_next_stream", 4, 20, "100" "1", OK)
begin_tail("begin_tail_in_a_round", 4, 21, STREAM_MISALIGNED)
get_corrections("get_corrections_latched", 4, 3, 0, STREAM_MISALIGNED)
exchange("reset_stream_again", RESET, struct.pack("<Q", 4), OK)
begin_tail("begin_tail_before_the_head", 4, 1, STREAM_MISALIGNED)
exchange("reset_third_time", RESET, struct.pack("<Q", 4), OK)
enqueue("enqueue_the_head", 4, 1, "000", OK)
begin_tail("begin_tail_after_a_gap", 4, 3, SYNDROMES_DROPPED)
exchange("reset_fourth_time", RESET, struct.pack("<Q", 4), OK)
exchange("begin_tail_of_a_wrong_length", BEGIN_TAIL, struct.pack("<Q", 4), BAD_REQUEST)
exchange("get_committed_with_a_byte", GET_COMMITTED, struct.pack("<QQBB6xQ", 4, 3, 0, 1, 0), BAD_REQUEST)
get_committed("get_committed_unknown_decoder", 5, 3, 0, 0, INVALID_DECODER)
exchange("one_shot_of_a_stream", ONE_SHOT, packed("111"), -BAD_REQUEST)
write("stream_frames.txt")


def arrays(bits, values, kind, flags):
    if kind == F32:
        soft = struct.pack(f"<{len(values)}f", *values)
    else:
        width = 8 if kind == U8 else 4
        number = sum(value << width * k for k, value in enumerate(values))
        soft = number.to_bytes((len(values) * width + 7) // 8, "little")
    return packed(bits) + soft + packed("".join(f"{flag & 1}{flag >> 1}" for flag in flags))


def enqueue_readout(name, counter, bits, values, kind, flags, status, decoder=6):
    head = struct.pack("<QQQQQII", decoder, counter, len(bits), len(values), len(flags), kind, 0)
    exchange(name, ENQUEUE_READOUT, head + arrays(bits, values, kind, flags), status)


NO_FLAG, FLAG_4 = (0, 0, 0, 0, 0), (0, 0, 0, 0, 2)
enqueue_readout("sure_values", 1, "10", (12, 12, 3), U8, NO_FLAG, OK)
get_corrections("sure_values_flip", 6, 1, 1, OK, "1")
enqueue_readout("values_in_the_middle", 2, "10", (3, 7, 8), U8, NO_FLAG, OK)
get_corrections("they_do_not", 6, 1, 1, OK, "0")
enqueue_readout("half_bytes", 3, "10", (3, 7, 8), U4, NO_FLAG, OK)
get_corrections("they_do_not_either", 6, 1, 1, OK, "0")
enqueue_readout("floats", 4, "10", (3, 7.5, 7.5), F32, NO_FLAG, OK)
get_corrections("nor_do_they", 6, 1, 1, OK, "0")
enqueue_readout("a_flag", 5, "10", (3, 7, 12), U8, FLAG_4, OK)
get_corrections("with_a_flag_it_does_not", 6, 1, 1, OK, "0")
enqueue_readout("flags_before_the_bits", 6, "", (), F32, FLAG_4, OK)
enqueue_readout("first_value", 7, "1", (3,), U4, (), OK)
enqueue_readout("the_rest", 8, "0", (7, 12), U4, (), OK)
get_corrections("parts_are_as_the_whole", 6, 1, 1, OK, "0")
exchange("one_shot_with_readout", ONE_SHOT, arrays("10", (3, 7, 8), U8, NO_FLAG), OK, packed("0"))
exchange("one_shot_without_it", ONE_SHOT, arrays("10", (), U8, ()), BUFFER_TOO_SMALL)
exchange("describe_an_unknown_form", DESCRIBE, struct.pack("<QQ", 6, 5), BAD_REQUEST)
enqueue_readout("another_kind", 9, "", (3,), U8, (), OK)
enqueue_readout("in_one_shot", 10, "10", (7, 12), U4, NO_FLAG, BAD_REQUEST)
exchange("reset_after_it", RESET, struct.pack("<Q", 6), OK)
enqueue("plain_bits_to_a_table", 6, 1, "10", BAD_REQUEST)
exchange("reset_after_that", RESET, struct.pack("<Q", 6), OK)
enqueue_readout("values_without_a_table", 1, "1100000001", (3,), U8, (), BAD_REQUEST, decoder=3)
shot = struct.pack("<QQQQQII", 6, 0, 2, 3, 5, U4, 0) + arrays("10", (3, 7, 8), U4, NO_FLAG)
exchange("one_shot_with_its_kind", ONE_SHOT_READOUT, shot, OK, packed("0"))
exchange("one_shot_with_a_counter", ONE_SHOT_READOUT, shot[:8] + b"\1" + shot[9:], -BAD_REQUEST)
enqueue_readout("no_values_without_a_table", 1, "100", (), U8, (), BAD_REQUEST, decoder=4)


def rounds_with_values(name, counter, bits, values, kind, flags, status=OK):
    enqueue_readout(name, counter, bits, values, kind, flags, status, decoder=7)


NAN, SURE = float("nan"), (12, 12, 12, 12)
rounds_with_values("a_round_with_its_value", 1, "1", (8,), U8, (0,))
rounds_with_values("the_next_round", 2, "1", (12,), U8, (0,))
rounds_with_values("two_rounds_with_values", 3, "00", (12, 12), U8, (0, 0))
get_committed("a_misread_measurement", 7, 1, 0, 2, OK, 2, 4, "0")
rounds_with_values("a_value_and_a_flag_before_their_round", 4, "", (12,), U8, (2,))
enqueue("their_round", 7, 5, "1", OK)
rounds_with_values("the_round_after_it", 6, "1", (12,), U8, (1,))
get_committed("a_leaked_qubit", 7, 1, 0, 4, OK, 4, 6, "0")
rounds_with_values("a_pair_of_sure_values", 7, "1100", SURE, U8, (0, 1, 1, 0))
get_committed("an_error", 7, 1, 0, 8, OK, 8, 10, "1")
begin_tail("begin_tail_with_all_values", 7, 8, OK)
enqueue("the_tail", 7, 9, "0", OK)
get_committed("all_with_values", 7, 1, 0, 1000, OK, 11, 11, "1")
exchange("reset_7", RESET, struct.pack("<Q", 7), OK)
rounds_with_values("half_bytes_of_three_rounds", 1, "110", (8, 12, 12), U4, (0, 0, 0))
begin_tail("begin_tail_and_then_values", 7, 2, OK)
rounds_with_values("the_tail_has_no_value", 3, "0", (12,), U4, (0,), BAD_REQUEST)
for name, bits, values, kind, flags in (
        ("rounds_without_their_values", "0000", (), U8, ()), ("values_without_flags", "0000", SURE, U8, ()),
        ("a_flag_of_3", "0", (12,), U8, (3,)), ("a_value_that_is_none", "0000", (12, NAN, 12, 12), F32, (0, 0, 0, 0)),
        ("values_of_far_rounds", "", 60 * (12,), U8, ())):
    exchange("reset_before_" + name, RESET, struct.pack("<Q", 7), OK)
    rounds_with_values(name, 1, bits, values, kind, flags, BAD_REQUEST)
exchange("reset_before_two_kinds", RESET, struct.pack("<Q", 7), OK)
rounds_with_values("half_a_byte", 1, "0", (12,), U4, (0,))
rounds_with_values("a_byte_after_it", 2, "0", (12,), U8, (0,), BAD_REQUEST)
write("readout_frames.txt")


def get_with_gaps(name, wanted, clear, result, gaps):
    payload = struct.pack("<QQB", 8, wanted, clear)
    exchange(name, GET_CORRECTIONS, payload, OK, packed(result) + struct.pack(f"<{wanted}f", *gaps))


SURE, UNKNOWN = float("inf"), float("nan")
exchange("reset_with_gaps", RESET, struct.pack("<Q", 8), OK)
get_with_gaps("no_shot_is_sure", 9, 0, "000000000", 9 * [SURE])
enqueue("a_shot_without_events", 8, 1, "00", OK)
get_with_gaps("its_gaps", 9, 0, "000000000", 9 * [8])
enqueue("a_shot_with_an_event", 8, 2, "10", OK)
get_with_gaps("the_least_gaps_of_both", 9, 0, "100000001", [min(8, k + 1.5) for k in range(9)])
enqueue("a_gap_is_not_known", 8, 3, "01", OK)
get_with_gaps("nor_is_that_of_the_sum", 9, 0, "110000001", [k / 4 for k in range(8)] + [UNKNOWN])
get_with_gaps("gaps_of_the_first_three", 3, 1, "110", [0, 0.25, 0.5])
get_with_gaps("sure_after_clear", 9, 0, "000000000", 9 * [SURE])
exchange("one_shot_with_gaps", ONE_SHOT, packed("01"), OK,
         packed("010000000") + struct.pack("<9f", *[k / 4 for k in range(8)], UNKNOWN))
write("gaps_frames.txt")
