# SPDX-License-Identifier: Apache-2.0
"""Decoders: equal to PyMatching on shots of Stim, in each form of input, and their errors."""
import os
import pickle
import signal
import threading
import time

import cudaq_realtime
import numpy as np
import pymatching
import pytest
import stim
from cudaq_realtime import Decoder, DecodeError

CHAIN = "error(0.01) D0 L0\nerror(0.02) D0 D1\nerror(0.01) D1"


def surface_code(distance, noise=0.008):
    return stim.Circuit.generated("surface_code:rotated_memory_z", distance=distance, rounds=distance,
                                  after_clifford_depolarization=noise, before_measure_flip_probability=noise)


def shots_of(circuit, count, seed=7):
    return circuit.compile_detector_sampler(seed=seed).sample(count, separate_observables=True)


@pytest.fixture(scope="module", params=[3, 5, 7])
def code(request):
    circuit = surface_code(request.param)
    dem = circuit.detector_error_model(decompose_errors=True)
    events, observables = shots_of(circuit, 2000)
    return dem, events, observables


def test_answers_and_weights_equal_those_of_pymatching(code):
    dem, events, _ = code
    theirs, weights = pymatching.Matching(dem).decode_batch(events, return_weights=True)
    decoder = Decoder("pymatching", dem)
    ours = decoder.decode_batch(events)
    # Where several corrections have the least weight, two versions of PyMatching may take different ones.
    different = np.flatnonzero((ours != theirs).any(axis=1))
    assert len(different) <= len(events) // 200
    for i in range(200):
        assert decoder.decode(np.flatnonzero(events[i]), return_weight=True)[1] == pytest.approx(weights[i], rel=1e-3)
    for i in different:
        assert decoder.decode(np.flatnonzero(events[i]), return_weight=True)[1] == pytest.approx(weights[i], rel=1e-3)


@pytest.mark.parametrize("name", ["pymatching", "pymatching-correlated"])
def test_the_weight_is_that_of_the_edges_also_of_correlated_matching(code, name):
    dem, events, _ = code
    weights = {}  # of the model's edges, -1 for the boundary
    for error in dem.flattened():
        parts = [[]]
        for target in error.targets_copy() if error.type == "error" else []:
            if target.is_separator():
                parts.append([])
            elif target.is_relative_detector_id():
                parts[-1].append(target.val)
        for ends in parts if parts != [[]] else []:
            key = tuple(sorted([-1, *ends][-2:]))
            p, q = weights.get(key, 0), error.args_copy()[0]
            weights[key] = p * (1 - q) + q * (1 - p)
    decoder, with_edges = Decoder(name, dem), Decoder(name + ":edges=1", dem)
    for shot in events[:100]:
        fired = np.flatnonzero(shot)
        p = np.array([weights[tuple(sorted(edge))] for edge in with_edges.decode_to_edges_array(fired).tolist()])
        expected = pytest.approx(np.log((1 - p) / p).sum(), rel=1e-3)
        for one in (decoder, with_edges):
            observables, weight = one.decode(fired, return_weight=True)
            assert weight == expected and observables.shape == (1,)


def test_edges_explain_the_events(code):
    dem, events, _ = code
    decoder = Decoder("pymatching:edges=1", dem)
    for shot in events[:100]:
        seen = np.zeros(dem.num_detectors + 1, dtype=int)
        for edge in decoder.decode_to_edges_array(np.flatnonzero(shot)):
            np.add.at(seen, edge, 1)  # -1, the boundary, is the last element
        assert np.array_equal(seen[:-1] % 2, shot)
    with pytest.raises(NotImplementedError, match="edges=1"):
        Decoder("lookup", CHAIN).decode_to_edges_array([0])


def test_each_form_of_the_input_gives_the_same_answers(code):
    dem, events, _ = code
    decoder = Decoder("pymatching", dem)
    expected = decoder.decode_batch(events)
    packed = np.packbits(events, axis=1, bitorder="little")
    assert expected.dtype == np.uint8 and expected.shape == (len(events), dem.num_observables)
    assert np.array_equal(decoder.decode_batch(events.astype(np.uint8)), expected)
    assert np.array_equal(decoder.decode_batch(np.asfortranarray(events)), expected)
    assert np.array_equal(decoder.decode_batch(packed, bit_packed_shots=True), expected)
    assert np.array_equal(decoder.decode_batch(events, bit_packed_predictions=True),
                          np.packbits(expected, axis=1, bitorder="little"))
    for threads in (0, 3, 64):
        assert np.array_equal(decoder.decode_batch(events, threads=threads), expected)
    assert all(np.array_equal(decoder.decode(np.flatnonzero(events[i])), expected[i]) for i in range(50))
    assert decoder.decode_batch(events[:0]).shape == (0, dem.num_observables)


@pytest.mark.parametrize("name", cudaq_realtime.decoder_names())
def test_each_decoder_corrects_single_errors(name):
    decoder = Decoder(name, CHAIN)
    assert decoder.name == name and (decoder.num_detectors, decoder.num_observables) == (2, 1)
    assert decoder.decode_batch(np.array([[0, 0], [1, 0], [1, 1], [0, 1]])).tolist() == [[0], [1], [0], [0]]


def test_bp_osd_makes_fewer_errors_than_guessing():
    circuit = stim.Circuit.generated("color_code:memory_xyz", distance=3, rounds=2, after_clifford_depolarization=0.002)
    events, observables = shots_of(circuit, 100000)  # each version of Stim has other ones
    wrong = Decoder("bp-osd", circuit.detector_error_model()).decode_batch(events, threads=2) != observables
    assert wrong.sum() < observables.sum() / 4


def test_a_model_or_name_that_cannot_be_used_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="unknown decoder \"blossom\""):
        Decoder("blossom", CHAIN)
    with pytest.raises(ValueError, match="line 2"):
        Decoder("pymatching", "error(0.1) D0\nerror(0.1) D0 D1 D2")
    with pytest.raises(ValueError, match="cannot be loaded|cannot open|No such file"):
        Decoder("./no_such_plugin.so", CHAIN)


def test_arrays_that_do_not_fit_are_refused_with_what_is_accepted():
    decoder = Decoder("lookup", CHAIN)
    for shots, text in ((np.zeros((4, 3)), "rows of 2 bits"), (np.zeros(2), "rows of 2 bits"),
                        (np.zeros((4, 2)), "bool and whole numbers"), (np.full((4, 2), 2), "other than 0 and 1")):
        with pytest.raises(ValueError, match=text):
            decoder.decode_batch(shots)
    with pytest.raises(ValueError, match="uint8"):
        decoder.decode_batch(np.zeros((4, 1)), bit_packed_shots=True)
    with pytest.raises(ValueError, match=r"int32\[4\]"):
        decoder.decode_batch(np.zeros((4, 2), dtype=bool), statuses=np.zeros(3, dtype=np.int32))
    with pytest.raises(ValueError, match="accepted: 0 to 1"):
        decoder.decode([-1])


def test_a_shot_that_cannot_be_decoded_names_its_status_and_row():
    decoder = Decoder("pymatching", "error(0.1) D0 D1 L0\nerror(0.1) D2")
    shots = np.array([[0, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]])
    with pytest.raises(DecodeError, match="shot 2: no error of the model") as raised:
        decoder.decode_batch(shots)
    assert (raised.value.status, raised.value.shot) == (3, 2)
    statuses = np.empty(4, dtype=np.int32)
    assert decoder.decode_batch(shots, statuses=statuses).tolist() == [[0], [1], [0], [0]]
    assert statuses.tolist() == [0, 0, 3, 0]
    with pytest.raises(DecodeError, match="outside the model"):
        decoder.decode([7])
    with pytest.raises(DecodeError, match="listed twice"):
        decoder.decode([0, 0])


def best_at_deadline(decode):
    """The best solution, and the decodes that it took: a busy machine may leave no time to find one."""
    for decodes in range(1, 101):
        with pytest.raises(DecodeError) as failure:
            decode()
        assert failure.value.status == 9
        if failure.value.best is not None:
            return failure.value.best.tolist(), decodes
    return None, decodes


def test_an_array_of_indices_is_decoded_and_refused_as_a_list_is(breaking_plugin):
    model = CHAIN + "\nerror(0.1) D2 L1\nerror(0.1) D4"
    decoder = Decoder("lookup", model)
    cases = [[], [0], [1, 0], [2, 4], [3], [-1], [5], [2**62], [0, 0], [0, 1, 1, 0, 1], [[0]]]

    def outcome(given, of=decoder):
        try:
            return of.decode(given).tolist()
        except (DecodeError, ValueError) as error:
            return type(error), str(error)

    for case in cases:
        whole = np.array(case, dtype=np.int64)
        assert outcome(whole) == outcome(np.array(case, dtype=np.int32) if np.abs(whole).max(initial=0) < 2**31
                                         else case), case
        spread = np.repeat(whole, 2, axis=-1)[..., ::2]  # not contiguous
        assert outcome(spread) == outcome(whole), case
    assert outcome(np.array([0])) == [1, 0] and outcome(np.array([3]))[0] is DecodeError
    assert outcome(np.array([0, 1, 1, 0, 1]))[0] is outcome(np.array([-1]))[0] is ValueError
    broken = Decoder(f"{breaking_plugin}:break=status", "error(0.1) D0 L0\nerror(0.1) D1 L1")
    assert "plug-in breaking: decode returned 17" in outcome(np.array([0]), broken)[1]
    late = Decoder("relay-bp:num_sets=1000000,stop_nconv=1000000,deadline_us=30000", BICYCLE)
    best, decodes = best_at_deadline(lambda: late.decode(np.array([0, 1, 2]) * np.array([1, 1, 1])))
    assert best == [1, 0]
    assert sum(late.deadlines[:2]) == decodes  # each decoded once


def test_other_python_threads_run_while_a_batch_is_decoded():
    circuit = surface_code(9, 0.02)
    decoder = Decoder("pymatching", circuit.detector_error_model(decompose_errors=True))
    events, _ = shots_of(circuit, 3000)
    packed = np.packbits(events, axis=1, bitorder="little")

    def longest_stand():
        """The part of the time of a batch for which another thread stood still."""
        seconds = []

        def decode():
            begin = time.perf_counter()
            decoder.decode_batch(packed, bit_packed_shots=True)
            seconds.append(time.perf_counter() - begin)

        thread = threading.Thread(target=decode)
        longest, last = 0.0, time.perf_counter()  # before start(), which waits for the GIL, too
        thread.start()
        running = True
        while running:
            running = thread.is_alive()
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
            time.sleep(0.0001)
        return longest / seconds[0]

    # With the GIL held, the loop would stand still for the whole of each batch. On a busy machine it may for one.
    assert any(longest_stand() < 0.5 for _ in range(20))


def test_a_decoder_can_be_pickled_and_used_by_several_threads():
    decoder = pickle.loads(pickle.dumps(Decoder("lookup", CHAIN)))
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(decoder.decode([0]).tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[1]] * 8


BICYCLE = "error(0.1) D0 D1 D2 L0\nerror(0) D0\nerror(0.1) D0\nerror(0.1) D1 L1"


@pytest.mark.parametrize("name", ["relay-bp", "bp-osd"])
def test_errors_of_a_correction_explain_the_events(name):
    decoder = Decoder(name, BICYCLE)
    assert decoder.decode_to_errors_array([0, 1, 2]).tolist() == [0]
    assert decoder.decode_to_errors_array([0, 1]).tolist() == [2, 3]
    assert decoder.decode_to_errors_array([]).tolist() == []
    with pytest.raises(NotImplementedError, match="lookup gives no errors"):
        Decoder("lookup", BICYCLE).decode_to_errors_array([0])


def test_a_deadline_ends_a_decode_with_the_best_solution_or_none():
    endless = "relay-bp:num_sets=1000000,stop_nconv=1000000"
    decoder = Decoder(endless, BICYCLE)
    assert decoder.obeys_deadline and not Decoder("lookup", BICYCLE).obeys_deadline
    with pytest.raises(DecodeError) as failure:
        decoder.decode([0, 1, 2], deadline_us=1e-3)
    assert failure.value.status == 9 and failure.value.best is None
    assert best_at_deadline(lambda: decoder.decode([0, 1, 2], deadline_us=30000))[0] == [1, 0]
    assert Decoder("relay-bp", BICYCLE).decode([0, 1], deadline_us=1e9).tolist() == [0, 1]
    for bad in [0, -1, "5", 2e9]:
        with pytest.raises(ValueError, match="deadline_us"):
            decoder.decode([0], deadline_us=bad)


def test_a_late_answer_says_so_on_its_shot():
    decoder = Decoder("lookup:deadline_us=0.001", CHAIN)  # ignores it
    late = np.zeros(2, dtype=np.bool_)
    decoder.decode_batch([[1, 0], [0, 1]], late=late)
    assert late.all()
    observables, is_late = decoder.decode([0], return_late=True)
    assert observables.tolist() == [1] and is_late is True
    in_time = Decoder("lookup", CHAIN)
    in_time.decode_batch([[1, 0], [0, 1]], late=late)
    assert not late.any()
    assert in_time.decode([0], return_late=True, return_weight=True)[2] is False
    with pytest.raises(ValueError, match="late is"):
        decoder.decode_batch([[1, 0]], late=late)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_batch(threads):
    decoder = Decoder("relay-bp:num_sets=1000,stop_nconv=1000", BICYCLE)
    shots = np.ones((200_000, decoder.num_detectors), dtype=np.uint8)  # minutes
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()  # not before: the signal would end the whole session
        try:
            decoder.decode_batch(shots, threads=threads)
        finally:
            timer.cancel()
    timer.join()
    assert decoder.decode_batch(shots[:1]).shape == (1, decoder.num_observables)  # it can be used again


def test_the_wait_for_calls_of_other_threads_is_a_part_of_the_deadline():
    decoder = Decoder("relay-bp:num_sets=1000000,stop_nconv=1000000,deadline_us=250000", BICYCLE)
    for _ in range(20):  # until the batch comes first
        batch = threading.Thread(target=decoder.decode_batch, args=(np.ones((2, 3), dtype=bool),))
        batch.start()
        time.sleep(0.05)
        with pytest.raises(DecodeError) as failure:
            decoder.decode([0, 1, 2], deadline_us=100_000)
        batch.join(60)
        if failure.value.best is None:  # the deadline was over when the decode began
            return
    raise AssertionError("each decode had all of its time after the wait")


def test_numbers_of_a_decoder_are_read_while_its_first_batch_makes_decoders():
    for _ in range(20):
        decoder = Decoder("lookup", CHAIN)
        batch = threading.Thread(target=decoder.decode_batch, args=(np.zeros((64, 2), dtype=bool),),
                                 kwargs={"threads": 32})
        batch.start()
        while batch.is_alive():
            assert (decoder.num_detectors, decoder.num_observables, decoder.name) == (2, 1, "lookup")
        batch.join(60)


def test_a_batch_goes_on_after_a_missed_deadline_and_counts_it():
    decoder = Decoder("relay-bp:num_sets=1000000,stop_nconv=1000000,deadline_us=30000", BICYCLE)
    shots = np.array([[1, 1, 1], [0, 0, 0], [1, 1, 1]], dtype=bool)
    answers = decoder.decode_batch(shots)
    assert answers[[0, 2]].tolist() == [[1, 0], [1, 0]], "the best solution so far"
    assert decoder.deadlines.met + decoder.deadlines.missed == 3 and decoder.deadlines.missed >= 2
    statuses = np.empty(3, dtype=np.int32)
    decoder.decode_batch(shots, statuses=statuses)
    assert statuses[[0, 2]].tolist() == [9, 9]
    assert Decoder("lookup", CHAIN).deadlines == (0, 0, 0)


def test_a_race_counts_the_answers_of_its_members():
    race = Decoder("race:bp-osd|relay-bp(seed=1)", BICYCLE)
    race.decode_batch(np.zeros((7, race.num_detectors), dtype=bool))
    assert set(race.wins) == {"bp-osd", "relay-bp:seed=1"} and sum(race.wins.values()) == 7
    assert Decoder("lookup", CHAIN).wins == {}
    assert race.member_faults == (0, "")


def test_a_race_counts_and_names_the_faults_of_its_members(early_plugin):
    model = "\n".join(f"error(0.1) D{k} L0" for k in range(4))
    race = Decoder(f"race:bp-osd|{early_plugin},mode=best", model)
    assert race.decode_to_errors_array([3]).tolist() == [3]
    assert race.member_faults == (0, "")
    for faults in (1, 2):
        assert race.decode_to_errors_array([2]).tolist() == [2], "the other member answers"
        count, text = race.member_faults
        assert count == faults and text.startswith(f"member {early_plugin}: plug-in early: "), text


def test_a_broken_promise_of_a_plugin_is_named(breaking_plugin):
    model = "error(0.1) D0 L0\nerror(0.1) D1 L1"
    fault = "plug-in breaking: decode returned 17, accepted: 0, 3, 5, 7"
    decoder = Decoder(f"{breaking_plugin}:break=status", model)
    for call in [lambda: decoder.decode([0]), lambda: decoder.decode_to_errors_array([0]),
                 lambda: decoder.decode_to_edges_array([0]), lambda: decoder.decode_batch([[0, 1]])]:
        with pytest.raises(DecodeError, match="internal error of the decoder .status 5.: " + fault) as failure:
            call()
        assert failure.value.fault == fault
    again = pickle.loads(pickle.dumps(failure.value))
    assert (again.fault, again.shot, str(again)) == (fault, 0, str(failure.value))
    wrong = Decoder(f"{breaking_plugin}:break=answer", model)
    with pytest.raises(DecodeError, match="shot 0: .* do not flip observable 0; the answer has it as 1"):
        wrong.decode_batch([[0, 1], [0, 0]], threads=2)


FLAGS_MODEL = "error(0.1) D0 L0\nerror(0.2) D0\nerror(0.1) D1\n"


@pytest.mark.parametrize("name", ["pymatching", "relay-bp", "bp-osd", "race:relay-bp|bp-osd"])
def test_a_shot_replaces_probabilities(name):
    decoder = Decoder(name, FLAGS_MODEL)
    assert decoder.takes_flags
    flags = np.array([(0, 0.4)], dtype=cudaq_realtime.arguments.FLAG)
    misaligned = np.zeros(17, dtype=np.uint8)[1:].view(flags.dtype)
    misaligned[:] = flags
    for given in ([(0, 0.4)], flags, misaligned, ((0, 0.4), (2, 0.5))):
        assert decoder.decode([0], flags=given).tolist() == [1]
        assert decoder.decode([0]).tolist() == [0]
    _, weight = decoder.decode([0], flags=flags, return_weight=True)
    assert weight == pytest.approx(np.log(0.6 / 0.4), abs=1e-4)
    shots = np.array([[1, 0], [1, 0], [0, 0], [1, 0]], dtype=bool)
    for threads in (1, 3):
        answers = decoder.decode_batch(shots, flags=[None, flags, [(0, 0.5)], [(1, 1e-3)]], threads=threads)
        assert answers.ravel().tolist() == [0, 1, 0, 1]


def test_the_answer_is_that_of_a_decoder_for_the_shot_alone():
    dem = surface_code(5).detector_error_model(decompose_errors=True).flattened()
    events, _ = shots_of(surface_code(5), 30)
    errors = [k for k, one in enumerate(i for i in dem if i.type == "error")]
    random = np.random.default_rng(5)
    decoder = Decoder("pymatching", dem)
    for shot in events:
        flags = [(int(k), float(random.uniform(1e-4, 0.3)))
                 for k in random.choice(errors, len(errors) // 10, replace=False)]
        alone, k = stim.DetectorErrorModel(), 0
        of_shot = dict(flags)
        for one in dem:
            if one.type == "error":
                alone.append("error", of_shot.get(k, one.args_copy()[0]), one.targets_copy())
                k += 1
            else:
                alone.append(one)
        fired = np.flatnonzero(shot)
        ours, weight = decoder.decode(fired, flags=flags, return_weight=True)
        theirs, their_weight = pymatching.Matching(alone).decode(shot, return_weight=True)
        assert weight == pytest.approx(their_weight, rel=1e-4)
        assert ours.tolist() == theirs.tolist()


def test_wrong_flags_are_refused():
    decoder = Decoder("bp-osd", FLAGS_MODEL)
    for flags in ([1, 2], [(0.5, 0.5)], [(-1, 0.5)], 7, "x"):
        with pytest.raises(ValueError, match="accepted: pairs of the number of an error"):
            decoder.decode([0], flags=flags)
    with pytest.raises(ValueError, match="flags has 1 entries, accepted: one for each of the 2 shots"):
        decoder.decode_batch(np.zeros((2, 2), dtype=bool), flags=[None])
    with pytest.raises(DecodeError, match="error 3 of the shot's list") as refused:
        decoder.decode([0], flags=[(3, 0.5)])
    assert refused.value.status == 12
    with pytest.raises(DecodeError, match="shot 1: .*is listed twice"):
        decoder.decode_batch(np.zeros((2, 2), dtype=bool), flags=[None, [(0, 0.5), (0, 0.4)]])
    lookup = Decoder("lookup", FLAGS_MODEL)
    assert not lookup.takes_flags
    with pytest.raises(NotImplementedError, match="flags: lookup does not take probabilities"):
        lookup.decode([0], flags=[(0, 0.5)])


@pytest.mark.parametrize("name", ["pymatching", "bp-osd", "relay-bp"])
def test_confidence_gives_the_gap_of_each_observable(name):
    decoder = Decoder(name + ":confidence=1", "error(0.1) D0\nerror(0.01) D0 L0\nerror(0.2) D1\nlogical_observable L1")
    observables, gaps = decoder.decode([0], confidence=True)
    assert observables.tolist() == [0, 0]
    assert gaps.dtype == np.float64 and gaps[1] == np.inf
    assert gaps[0] == pytest.approx(np.log(99) - np.log(9), abs=1e-3)
    turned, other = decoder.decode([0], confidence=True, flags=[(1, 0.4)])
    assert turned.tolist() == [1, 0] and other[0] == pytest.approx(np.log(9) - np.log(1.5), abs=1e-3)
    assert len(decoder.decode([0], confidence=True, return_weight=True, return_late=True)) == 4
    plain = Decoder(name, "error(0.1) D0 L0")
    assert decoder.gives_gaps and not plain.gives_gaps
    with pytest.raises(NotImplementedError, match="confidence=1"):
        plain.decode([0], confidence=True)
    with pytest.raises(NotImplementedError, match="confidence=1"):
        plain.decode_batch([[1]], gaps=np.empty((1, 1)))


def test_a_batch_gets_the_gaps_of_its_shots_on_each_number_of_threads():
    dem = surface_code(5).detector_error_model()
    events, _ = shots_of(surface_code(5), 60)
    decoder = Decoder("pymatching:confidence=1", dem)
    expected = np.array([decoder.decode(np.flatnonzero(row), confidence=True)[1] for row in events])
    for threads in 1, 3:
        gaps = np.empty((60, 1))
        answers = decoder.decode_batch(events, threads=threads, gaps=gaps)
        assert (gaps == expected).all() and (gaps > 0).any()
        assert (answers == Decoder("pymatching", dem).decode_batch(events)).all()
    with pytest.raises(ValueError, match=r"gaps is float64\[60\], accepted: float64\[60, 1\]"):
        decoder.decode_batch(events, gaps=np.empty(60))
