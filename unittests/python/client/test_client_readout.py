# SPDX-License-Identifier: Apache-2.0
"""The client of the decoding server: soft values and flags of leakage, of shots and of rounds."""
import struct

import numpy as np
import pytest
from cudaq_realtime import Client, DecodeError
from test_client import DESCRIBE, READOUT_FRAMES, SLOT_SIZE, Peer, bits, response

ENQUEUE_READOUT = 0xD1B0F222


def readout_of(measurements, flags, kinds=7, shot_bits=2):
    return struct.pack("<QQ", 2, shot_bits) + bytes(56) + struct.pack("<QQQ", measurements, flags, kinds)


def test_soft_values_and_flags_make_the_golden_requests():
    u8, no_flag = np.array([3, 7, 8], np.uint8), [0] * 5
    calls = [
        ("sure_values", lambda c: c.enqueue(6, bits("10"), soft=np.array([12, 12, 3], np.uint8), leakage=no_flag)),
        ("values_in_the_middle", lambda c: c.enqueue(6, bits("10"), soft=u8, leakage=no_flag)),
        ("half_bytes", lambda c: c.enqueue(6, bits("10"), soft=np.array([0x73, 8], np.uint8), soft_kind="u4",
                                           leakage=no_flag)),
        ("floats", lambda c: c.enqueue(6, bits("10"), soft=np.array([3, 7.5, 7.5], np.float32), leakage=no_flag)),
        ("a_flag", lambda c: c.enqueue(6, bits("10"), soft=np.array([3, 7, 12], np.uint8), leakage=[0, 0, 0, 0, 2])),
        ("one_shot_with_readout", lambda c: c.decode(bits("10"), soft=u8, leakage=no_flag, observables=1)),
    ]
    wrong = []

    def answers(request):
        if request[4:8] == struct.pack("<I", DESCRIBE):
            return [response(request, 0, readout_of(3, 5))]
        expected, answer = READOUT_FRAMES[name]
        if request[:12] + request[24:] != expected[:12] + expected[24:]:
            wrong.append((name, request))
        return [answer[:12] + request[12:24] + answer[24:]]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        assert client.readout(6) == (3, 5, ("f32", "u8", "u4"))
        for name, call in calls:
            call(client)
        assert not wrong
        with pytest.raises(ValueError, match="soft has the shape"):
            client.enqueue(6, bits("10"), soft=u8[:2], leakage=no_flag)
        with pytest.raises(ValueError, match="flags"):
            client.enqueue(6, bits("10"), soft=u8)
        with pytest.raises(ValueError, match="soft_count is for streams"):
            client.enqueue(6, bits("10"), soft=u8, soft_count=3, leakage=no_flag)
        with pytest.raises(ValueError, match="float64"):
            client.decode(bits("10"), soft=np.zeros(3), observables=1)


def test_a_shot_without_its_values_is_refused_with_what_came():
    with Peer(lambda request: [response(request, 4)]) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE,
                                                                      timeout=60) as client:
        with pytest.raises(DecodeError, match=r"the request had 2 bits, no soft, no leakage; the decoder needs all "
                                              r"of its detectors, .* readout\(\) names; or the answer does not fit"):
            client.decode(bits("10"), observables=1)
        with pytest.raises(DecodeError, match="2 bits, soft of 3 uint8, leakage of 1 int64; the decoder"):
            client.decode(bits("10"), observables=1, soft=np.zeros(3, np.uint8), leakage=[2])


def test_rounds_with_values_make_the_golden_requests():
    sure = np.full(4, 12, np.uint8)
    calls = [
        ("a_round_with_its_value", lambda c: c.enqueue(7, bits("1"), soft=np.array([8], np.uint8), leakage=[0])),
        ("the_next_round", lambda c: c.enqueue(7, bits("1"), soft=sure[:1], leakage=[0])),
        ("two_rounds_with_values", lambda c: c.enqueue(7, bits("00"), soft=sure[:2], leakage=[0, 0])),
        ("a_value_and_a_flag_before_their_round", lambda c: c.enqueue(7, [], soft=sure[:1], leakage=[2])),
        ("their_round", lambda c: c.enqueue(7, bits("1"))),
        ("the_round_after_it", lambda c: c.enqueue(7, bits("1"), soft=sure[:1], leakage=[1])),
        ("a_pair_of_sure_values", lambda c: c.enqueue(7, bits("1100"), soft=sure, leakage=[0, 1, 1, 0])),
        ("begin_tail_with_all_values", lambda c: c.begin_tail(7)),
        ("the_tail", lambda c: c.enqueue(7, bits("0"))),
        ("reset_7", lambda c: c.reset(7)),
        ("half_bytes_of_three_rounds", lambda c: c.enqueue(7, bits("110"), soft=np.array([0xC8, 12], np.uint8),
                                                           soft_kind="u4", soft_count=3, leakage=[0, 0, 0])),
    ]
    wrong = []

    def answers(request):
        if request[4:8] == struct.pack("<I", DESCRIBE):
            return [response(request, 0, readout_of(1, 1, shot_bits=0))]
        expected, answer = READOUT_FRAMES[name]
        if request[:12] + request[24:] != expected[:12] + expected[24:]:
            wrong.append((name, request))
        return [answer[:12] + request[12:24] + answer[24:]]

    with Peer(answers) as peer, Client("udp", peer.address, slot_size=SLOT_SIZE, timeout=60) as client:
        for name, call in calls:
            call(client)
        assert not wrong


@pytest.mark.parametrize("kind, width", [("f32", 32), ("u8", 8), ("u4", 4)])
def test_values_that_a_slot_does_not_hold_are_sent_before_the_bits(kind, width):
    measurements, flags, got = 27, 33, {"bits": "", "soft": "", "leakage": ""}

    def in_order(data, count, of_each):  # the first bit first
        return "".join(f"{byte:08b}"[::-1] for byte in data)[:count * of_each]

    def answers(request):
        function, size = struct.unpack_from("<II", request, 4)
        payload = request[24:24 + size]
        if function == DESCRIBE:
            return [response(request, 0, readout_of(measurements, flags))]
        if function == ENQUEUE_READOUT:
            num_bits, values, num_flags = struct.unpack_from("<QQQ", payload, 16)
            arrays = payload[48:]
            assert num_bits == 0 and len(arrays) == (values * width + 7) // 8 + (num_flags + 3) // 4
            soft = arrays[:(values * width + 7) // 8]
            got["soft"] += in_order(soft, values, width)
            got["leakage"] += in_order(arrays[len(soft):], num_flags, 2)
        else:
            got["bits"] += in_order(payload[32:], struct.unpack_from("<Q", payload, 24)[0], 1)
            assert len(got["soft"]) == measurements * width
        return [response(request, 0)]

    data = np.random.default_rng(7).integers(0, 256, (measurements * width + 7) // 8, np.uint8)
    if kind == "u4":
        data[-1] &= 15
    values = data.view(np.float32) if kind == "f32" else data
    leakage, shot = [k % 3 for k in range(flags)], np.arange(40) % 2
    with Peer(answers, slot_size=96) as peer, Client("udp", peer.address, slot_size=96, timeout=60) as client:
        client.enqueue(6, shot, soft=values, soft_kind=kind, leakage=leakage)
    assert got["bits"] == "01" * 20
    assert got["soft"] == in_order(data.tobytes(), measurements, width)
    assert got["leakage"] == "".join(f"{flag & 1}{flag >> 1}" for flag in leakage)


def test_rounds_that_no_request_holds_with_their_values_are_refused_before_they_are_sent():
    def answers(request):
        return [response(request, 0, readout_of(2, 0, shot_bits=0) if request[4:8] == struct.pack("<I", DESCRIBE)
                         else b"")]

    with Peer(answers, slot_size=120) as peer, Client("udp", peer.address, slot_size=120, timeout=60) as client:
        with pytest.raises(ValueError, match="at most 2 bits at a time"):
            client.enqueue(7, [0] * 100, soft=np.zeros(100, np.float32))
        assert len(peer.requests) == 1, "only the question what the decoder takes"
        client.enqueue(7, bits("10"), soft=np.zeros(2, np.float32))
        assert len(peer.requests) == 2


@pytest.mark.parametrize("slot_size", [64, 72, 75])
def test_a_slot_without_room_for_values_is_refused(slot_size):
    def answers(request):
        return [response(request, 0, readout_of(3, 0))]

    with Peer(answers, slot_size=120) as peer, Client("udp", peer.address, slot_size=slot_size, timeout=60) as client:
        client._link.slot_size = lambda: slot_size  # else that of the answer
        with pytest.raises(ValueError, match="accepted: 4 or more"):
            client.enqueue(6, bits("10"), soft=np.zeros(3, np.float32))
        assert len(peer.requests) == 1, "only the question what the decoder takes"


def test_a_slot_without_room_for_what_a_decoder_needs_is_no_server_without_soft_values():
    answers = lambda request: [response(request, 2)]  # noqa: E731
    with Peer(answers, slot_size=119) as peer, Client("udp", peer.address, slot_size=119, timeout=60) as client:
        with pytest.raises(ValueError, match="slots have 119 bytes.*at least 120"):
            client.enqueue(6, bits("10"), soft=np.zeros(3, np.float32))
    with Peer(answers, slot_size=120) as peer, Client("udp", peer.address, slot_size=120, timeout=60) as client:
        assert client.readout(6) == (0, 0, ()), "a server of an earlier version"
