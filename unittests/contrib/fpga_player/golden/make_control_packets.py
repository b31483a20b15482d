#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes control_packets.txt: requests to the registers of an FPGA and the replies to them, byte by byte from the table
in docs/transport/fpga_player.md. It uses no code of the library. The FPGA is fresh at the first line; the packets come
in their order, each from the same host.

    make_control_packets.py          write control_packets.txt
    make_control_packets.py --check  compare the committed file with a fresh run
"""
import pathlib
import struct
import sys

FILE = pathlib.Path(__file__).with_name("control_packets.txt")
WR_BYTE, WR_WORD, WR_DWORD, WR_BLOCK, RMW = 0x01, 0x02, 0x04, 0x09, 0x0A
RD_BYTE, RD_WORD, RD_DWORD, RD_BLOCK = 0x11, 0x12, 0x14, 0x19
ACK, CHECK = 1, 2
OK, ADDRESS, COMMAND, FLAG, SEQUENCE = 0x00, 0x03, 0x04, 0x06, 0x0B
VP, HIF, PLAYER, PLAYER_MEMORY, ILA, ILA_MEMORY = 0x1000, 0x0800, 0x50000000, 0x50100000, 0x40000000, 0x40100000

lines = ["# SPDX-License-Identifier: Apache-2.0",
         "# Written by make_control_packets.py. Each line: what happens, the request, the reply or - if there is none."]


def pairs(registers):
    return b"".join(struct.pack(">II", address, value) for address, value in registers)


def exchange(name, command, sequence, registers, code=OK, read=None, latched=None, flags=ACK, body=None, answered=True):
    request = struct.pack(">BBHBB", command, flags, sequence, 0, 0) + (pairs(registers) if body is None else body)
    reply = struct.pack(">BBHBB", command, flags, sequence, code, 0)
    if read is not None:
        reply += pairs(read) + struct.pack(">H", latched)
    lines.append(f"{name} {request.hex()} {reply.hex() if answered else '-'}")


exchange("write_one", WR_DWORD, 0x100, [(VP, 0x11)])
exchange("read_one_by_address_alone", RD_DWORD, 0x101, None, read=[(VP, 0x11)], latched=0x101,
         body=struct.pack(">I", VP))
exchange("read_one_as_a_pair", RD_DWORD, 0x102, [(VP, 0)], read=[(VP, 0x11)], latched=0x102)
exchange("write_a_block", WR_BLOCK, 0x103, [(PLAYER + 0x0C, 27), (PLAYER + 0x10, 100), (PLAYER_MEMORY, 0x43555152)])
exchange("read_a_block", RD_BLOCK, 0x104, [(PLAYER_MEMORY, 0), (PLAYER + 0x10, 0)],
         read=[(PLAYER_MEMORY, 0x43555152), (PLAYER + 0x10, 100)], latched=0x104)
exchange("write_a_byte", WR_BYTE, 0x105, [(VP + 1, 0xFFAB)])
exchange("write_the_upper_half", WR_WORD, 0x106, [(VP + 2, 0x1234)])
exchange("read_what_that_made", RD_DWORD, 0x107, [(VP, 0)], read=[(VP, 0x1234AB11)], latched=0x107)
exchange("read_a_byte", RD_BYTE, 0x108, None, read=[(VP + 3, 0x12)], latched=0x108, body=struct.pack(">I", VP + 3))
exchange("read_a_half", RD_WORD, 0x109, [(VP + 2, 0)], read=[(VP + 2, 0x1234)], latched=0x109)
exchange("modify_under_a_mask", RMW, 0x10A, [(VP, 0x0000FF00), (VP, 0xFFFF5CFF)])
exchange("read_what_is_modified", RD_DWORD, 0x10B, [(VP, 0)], read=[(VP, 0x12345C11)], latched=0x10B)
exchange("write_without_acknowledgement", WR_DWORD, 0x10C, [(HIF + 0x0C, 1)], flags=0, answered=False)
exchange("read_is_answered_without_the_flag", RD_DWORD, 0x10D, [(HIF + 0x0C, 0)], flags=0, read=[(HIF + 0x0C, 1)],
         latched=0x10D)
exchange("checked_sequence_follows", WR_DWORD, 0x10E, [(VP + 4, 1)], flags=ACK | CHECK)
exchange("checked_sequence_has_a_gap", WR_DWORD, 0x110, [(VP + 4, 2)], code=SEQUENCE, flags=ACK | CHECK)
exchange("it_was_not_executed", RD_DWORD, 0x10F, [(VP + 4, 0)], flags=ACK | CHECK, read=[(VP + 4, 1)], latched=0x10F)
exchange("no_such_register", WR_DWORD, 0x111, [(0x60000000, 1)], code=ADDRESS)
exchange("not_a_multiple_of_four", RD_DWORD, 0x112, [(VP + 2, 0)], code=ADDRESS)
exchange("a_block_with_one_wrong_address", WR_BLOCK, 0x113, [(VP + 4, 7), (VP + 0x30, 7)], code=ADDRESS)
exchange("nothing_of_it_was_written", RD_DWORD, 0x114, [(VP + 4, 0)], read=[(VP + 4, 1)], latched=0x114)
exchange("the_record_cannot_be_written", WR_DWORD, 0x115, [(ILA_MEMORY, 1)], code=ADDRESS)
exchange("nor_its_count", WR_DWORD, 0x116, [(ILA + 0x84, 1)], code=ADDRESS)
exchange("unknown_command", 0x33, 0x117, [(VP, 1)], code=COMMAND)
exchange("half_a_pair", WR_DWORD, 0x118, None, code=COMMAND, body=struct.pack(">I", VP))
exchange("two_for_one", WR_DWORD, 0x119, [(VP, 1), (VP, 2)], code=COMMAND)
exchange("a_block_of_nothing", RD_BLOCK, 0x11A, [], code=COMMAND)
exchange("mask_and_value_of_two_registers", RMW, 0x11B, [(VP, 1), (VP + 4, 1)], code=COMMAND)
exchange("unknown_flag", WR_DWORD, 0x11C, [(VP, 1)], code=FLAG, flags=ACK | 0x40)
exchange("last_word_of_the_players_memory", WR_DWORD, 0x11D, [(PLAYER_MEMORY + 4 * (16 * 512 - 1), 5)])
exchange("one_word_later", WR_DWORD, 0x11E, [(PLAYER_MEMORY + 4 * 16 * 512, 5)], code=ADDRESS)
exchange("last_word_of_the_record", RD_DWORD, 0x11F, [(ILA_MEMORY + 4 * (19 * 8192 - 1), 0)],
         read=[(ILA_MEMORY + 4 * (19 * 8192 - 1), 0)], latched=0x11F)
exchange("start_a_pass", WR_DWORD, 0x120, [(PLAYER + 4, 0xD)])
exchange("the_player_runs", RD_DWORD, 0x121, [(PLAYER, 0)], read=[(PLAYER, 1)], latched=0x121)
lines.append("too_short_to_be_answered 0401012200 -")

text = "\n".join(lines) + "\n"
if sys.argv[1:] == ["--check"]:
    sys.exit(0 if FILE.read_text() == text else "control_packets.txt is not what make_control_packets.py writes")
FILE.write_text(text)
