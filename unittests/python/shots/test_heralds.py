# SPDX-License-Identifier: Apache-2.0
"""The model and the heralds of a circuit. The oracles are PyMatching with the probabilities of one shot, and every set
of errors of a small circuit."""
import importlib.util
import itertools
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pymatching
import pytest
import sinter
import stim
from cudaq_realtime import Decoder, StreamDecoder
from cudaq_realtime._folding import Part, fold
from cudaq_realtime.heralds import HeraldedModel, heralded_model, independent_paulis, main
from cudaq_realtime.sinter_decoder import SinterDecoder


def figures_of_the_page():
    """The program that measures what heralds gain."""
    path = pathlib.Path(__file__).parents[3] / "benchmarks/decoding/erasure_figures.py"
    sys.path.insert(0, str(path.parent))  # of what it imports from its folder
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


figures = figures_of_the_page()


def surface_code(distance, share, noise=0.01):
    return figures.with_erasures(stim.Circuit.generated(
        "surface_code:rotated_memory_z", distance=distance, rounds=distance, after_clifford_depolarization=noise,
        before_measure_flip_probability=noise, before_round_data_depolarization=noise), share)


def read_heralds(text):
    """Of each herald its pairs."""
    found = {}
    for line in text.splitlines()[3:]:
        words = line.split()
        found[int(words[1])] = {int(error): float(p) for error, p in zip(words[2::2], words[3::2])}
    return found


def test_independent_errors_have_the_distribution_of_one_that_excludes_the_others():
    random = np.random.default_rng(1)
    exact = 0
    for k in range(400):
        weights = random.choice([0, 0.25, 0.5, 1], 4) if k % 2 else random.random(4) ** 3
        if weights.sum() == 0:
            continue
        none, x, y, z = weights / weights.sum()
        probabilities, is_exact = independent_paulis(x, y, z)
        found = np.zeros(4)
        for happens in itertools.product((0, 1), repeat=3):
            chance = np.prod([p if one else 1 - p for one, p in zip(happens, probabilities)])
            found[happens[0] * 1 ^ happens[1] * 3 ^ happens[2] * 2] += chance  # I, X, Z, Y
        if is_exact:
            np.testing.assert_allclose(found, [none, x, z, y], atol=1e-9)
        # The edges of X and of Z have their probability in any case.
        np.testing.assert_allclose([found[1] + found[3], found[2] + found[3]], [x + y, z + y], atol=1e-9)
        exact += is_exact
    assert 40 < exact < 380
    assert independent_paulis(0.25, 0.25, 0.25) == ((0.5, 0, 0.5), True)
    assert not independent_paulis(1 / 3, 1 / 3, 1 / 3)[1]


def test_an_erased_qubit_costs_nothing_on_the_edges_of_x_and_z():
    made = heralded_model(stim.Circuit("""
        R 0 1
        HERALDED_ERASE(0.1) 0
        DETECTOR rec[-1]
        X_ERROR(0.01) 0 1
        M 0 1
        DETECTOR rec[-2]
        DETECTOR rec[-1]
        OBSERVABLE_INCLUDE(0) rec[-2]"""))
    assert made.num_detectors == 3 and made.approximated == 0
    assert stim.DetectorErrorModel(made.dem) == stim.DetectorErrorModel(
        "error(0.01) D0 L0\nerror(0.01) D1\ndetector D1\nerror(1e-9) D0 L0")
    assert read_heralds(made.heralds) == {0: {2: 0.5}}  # X and Y: 1/4 + 1/4


def test_answers_equal_those_of_pymatching_with_the_probabilities_of_the_shot():
    for share, noise in ((0.9, 0.01), (0.5, 0.03)):
        circuit = surface_code(3, share, noise)
        made = heralded_model(circuit)
        assert made.approximated == 0
        decoder = Decoder("pymatching", made.dem, made.heralds)
        heralds = read_heralds(made.heralds)
        assert decoder.num_detectors == circuit.num_detectors == made.num_detectors
        shots = circuit.compile_detector_sampler(seed=5).sample(12)
        others = [k for k in range(made.num_detectors) if k not in heralds]
        answers = decoder.decode_batch(shots)
        errors = [part for part in stim.DetectorErrorModel(made.dem) if part.type == "error"]
        ties = 0
        for shot, answer in zip(shots, answers):
            fired = {error: p for herald in heralds if shot[herald] for error, p in heralds[herald].items()}
            alone = stim.DetectorErrorModel()
            for k, part in enumerate(errors):
                alone.append("error", [fired.get(k, part.args_copy()[0])], part.targets_copy())
            alone.append("detector", [], [stim.target_relative_detector_id(len(others) - 1)])
            theirs, weight = pymatching.Matching(alone).decode(shot[others], return_weight=True)
            ours = decoder.decode(np.flatnonzero(shot), return_weight=True)[1]
            assert ours == pytest.approx(weight, abs=1e-2)  # their integers have another scale
            ties += not np.array_equal(theirs, answer)
        assert ties <= 2  # weights of 0 have many


def test_heralds_make_far_fewer_answers_wrong():
    circuit = surface_code(3, 0.9)
    made = heralded_model(circuit)
    shots, flips = circuit.compile_detector_sampler(seed=6).sample(3000, separate_observables=True)
    with_them = Decoder("pymatching", made.dem, made.heralds).decode_batch(shots)
    heralds = read_heralds(made.heralds)
    blind = shots[:, [k for k in range(made.num_detectors) if k not in heralds]]
    average = stim.Circuit()  # the same circuit, whose heralds are in no detector
    for one in circuit:
        if one.name == "HERALDED_ERASE":
            average.append("DEPOLARIZE1", one.targets_copy(), one.gate_args_copy()[0] * 0.75)
            average.append("MPAD", [0] * len(one.targets_copy()))
        elif one.name != "DETECTOR" or len(one.targets_copy()) != 1 or one.gate_args_copy():
            average.append(one)
    assert average.num_detectors == blind.shape[1]
    without = Decoder("pymatching", average.detector_error_model(decompose_errors=True)).decode_batch(blind)
    wrong = [int((answer != flips).sum()) for answer in (with_them, without)]
    assert wrong[0] * 3 < wrong[1] and wrong[1] > 30


@pytest.mark.parametrize("text, why", [
    ("HERALDED_ERASE(0.1) 0\nM 0\nDETECTOR rec[-1]", "is in no detector, and 1 of 1 are not"),
    ("HERALDED_ERASE(0.1) 0\nM 0\nDETECTOR rec[-1] rec[-2]", "is in detector 0 with other measurements"),
    ("HERALDED_ERASE(0.1) 0 1\nDETECTOR rec[-1] rec[-2]", "is in detector 0 with other measurements"),
    ("HERALDED_ERASE(0.1) 0\nDETECTOR rec[-1]\nDETECTOR rec[-1]", r"is in the detectors \[0, 1\]"),
    ("HERALDED_ERASE(0.1) 0\nDETECTOR rec[-1]\nCX rec[-1] 0\nM 0\nDETECTOR rec[-1]",
     r"the herald in detector 0 flips \['D1'\] besides"),
    ("HERALDED_ERASE(0.1) 0\nDETECTOR rec[-1]\nOBSERVABLE_INCLUDE(0) rec[-1]", "is a measurement of an observable"),
    ("HERALDED_ERASE(0.1) 0\nDETECTOR rec[-1]\nM 0\nOBSERVABLE_INCLUDE(0) rec[-1]", "and no detector"),
])
def test_a_circuit_without_such_a_list_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        heralded_model(stim.Circuit("R 0 1\n" + text))


def test_a_herald_that_no_detector_sees_is_an_error_as_all_others():
    made = heralded_model(stim.Circuit("R 0\nHERALDED_ERASE(0.1) 0\nM 0\nDETECTOR rec[-1]"), allow_unseen=True)
    assert read_heralds(made.heralds) == {}
    [error] = [part for part in stim.DetectorErrorModel(made.dem) if part.type == "error"]
    assert error.args_copy()[0] == pytest.approx(0.05, rel=0.05)


def test_errors_with_more_than_two_detectors_are_decomposed_as_those_of_the_circuit():
    # Before the last measurements Y of a data qubit flips detectors of both kinds, and so do X and Z of an ancilla.
    whole, split = (heralded_model(surface_code(3, 0.9), decompose_errors=one) for one in (False, True))
    assert whole.dem.count("^") == 0 and split.dem.count("^") > 0
    def flipped(part):
        found = set()
        for target in part.targets_copy():
            if not target.is_separator():
                found ^= {str(target)}
        return found
    last = len(read_heralds(whole.heralds))
    for one, other in zip(list(stim.DetectorErrorModel(whole.dem))[-last:],
                          list(stim.DetectorErrorModel(split.dem))[-last:]):
        assert flipped(one) == flipped(other)


def test_the_command_writes_files_for_the_program(tmp_path):
    circuit = surface_code(3, 0.5)
    circuit.to_file(tmp_path / "circuit.stim")
    command = [sys.executable, "-m", "cudaq_realtime.heralds", tmp_path / "circuit.stim", "--dem",
               tmp_path / "model.dem", "--heralds", tmp_path / "heralds.txt"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(f"{circuit.num_detectors} detectors, ")
    decoder = Decoder("pymatching", tmp_path / "model.dem", heralds=tmp_path / "heralds.txt")
    assert decoder.num_detectors == circuit.num_detectors
    same = Decoder(f"pymatching:heralds={tmp_path / 'heralds.txt'}", tmp_path / "model.dem")
    copied = pickle.loads(pickle.dumps(decoder))
    assert copied == decoder != same
    shots = circuit.compile_detector_sampler(seed=7).sample(500)
    for other in (same, copied):
        np.testing.assert_array_equal(other.decode_batch(shots), decoder.decode_batch(shots, threads=2))
    (tmp_path / "circuit.stim").write_text("R 0\nHERALDED_ERASE(0.1) 0\n")
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2 and "is in no detector" in ended.stderr


def test_the_command_overwrites_no_file_of_its_own(tmp_path, capsys):
    circuit, link = tmp_path / "circuit.stim", tmp_path / "link"
    surface_code(3, 0.5).to_file(circuit)
    link.symlink_to(circuit)
    text, out = circuit.read_bytes(), tmp_path / "out"
    for dem, heralds in ((out, out), (circuit, out), (out, circuit), (link, out), (f"{tmp_path}/./out", out)):
        assert main([str(circuit), "--dem", str(dem), "--heralds", str(heralds)]) == 2
        assert "are not three files" in capsys.readouterr().err
    assert circuit.read_bytes() == text and not out.exists()


def test_heralds_of_another_model_are_refused():
    made, other = heralded_model(surface_code(3, 0.5)), heralded_model(surface_code(3, 0.9))
    with pytest.raises(ValueError, match="line 2: the file is for the model"):
        Decoder("pymatching", made.dem, other.heralds)
    with pytest.raises(TypeError, match="heralds is 7, accepted"):
        Decoder("pymatching", made.dem, 7)


@pytest.mark.parametrize("is_setting", [True, False])
def test_edges_with_heralds_are_of_detectors_of_the_shot_and_are_no_errors(is_setting, tmp_path):
    made = heralded_model(stim.Circuit("""
        R 0 1
        HERALDED_ERASE(0.1) 0 1
        DETECTOR rec[-2]
        DETECTOR rec[-1]
        X_ERROR(0.01) 0 1
        M 0 1
        DETECTOR rec[-2]
        DETECTOR rec[-1]
        OBSERVABLE_INCLUDE(0) rec[-2]"""))
    path = tmp_path / "heralds.txt"
    path.write_text(made.heralds)

    def made_of(name):
        if is_setting:
            return Decoder(f"{name},heralds={path}" if ":" in name else f"{name}:heralds={path}", made.dem)
        return Decoder(name, made.dem, made.heralds)

    decoder = made_of("pymatching:edges=1")
    assert sorted(decoder.decode_to_edges_array([2]).ravel().tolist()) == [-1, 2]
    assert sorted(decoder.decode_to_edges_array([1, 3]).ravel().tolist()) == [-1, 3]
    for call, shot in ((decoder.decode_to_vector, [2]), (decoder.decode_batch_to_vectors, [[0, 0, 1, 0]])):
        with pytest.raises(NotImplementedError, match="with heralds; 'bp-osd' and 'relay-bp' do"):
            call(shot)
    # Errors are those of the model: 0 and 1, and 2 and 3 of the heralds.
    assert made_of("bp-osd").decode_to_vector([2]).tolist() == [1, 0, 0, 0]
    assert made_of("bp-osd").decode_to_vector([1, 3]).tolist() == [0, 0, 0, 1]


def test_a_point_without_a_wrong_shot_is_drawn_as_a_bound():
    noises = (0.003, 0.01, 0.03)
    drawn = figures.drawing({("without", 3): [(noise, 600, 6000) for noise in noises],
                             ("with heralds", 3): [(noise, wrong, 6000) for noise, wrong in zip(noises, (0, 0, 60))],
                             ("with heralds", 5): [(noise, 0, 6000) for noise in noises]}, 0.9)
    assert drawn.count("none of 6000 shots is wrong: below 6.4e-04") == 5 and drawn.count("none: below it") == 1
    assert drawn.count('fill="none"') == 2  # a line with one point, and none of d5
    assert "none: below it" not in figures.drawing({("without", 3): [(0.01, 600, 6000)]}, 0.9)


def test_sinter_decodes_with_heralds():
    circuit = surface_code(3, 0.9)
    task = sinter.Task(circuit=circuit, detector_error_model=circuit.detector_error_model(
        approximate_disjoint_errors=True))
    [stats] = sinter.collect(num_workers=1, tasks=[task], decoders=["heralds"], max_shots=2000, custom_decoders={
        "heralds": SinterDecoder("pymatching", heralded=heralded_model(circuit))})
    assert stats.shots == 2000 and 0 < stats.errors < 100
    with pytest.raises(ValueError, match="the model of the task has 24 detectors"):
        SinterDecoder("pymatching", heralded=heralded_model(circuit)).compile_decoder_for_dem(
            dem=surface_code(3, 0).detector_error_model(approximate_disjoint_errors=True)[:0] + stim.DetectorErrorModel(
                "detector D23"))


def test_sinter_decodes_each_strength_of_the_noise_with_its_own_heralds():
    circuits = {f"heralds {noise}": surface_code(3, 0.9, noise) for noise in (0.01, 0.02)}
    custom = {name: SinterDecoder("pymatching", heralded=heralded_model(one)) for name, one in circuits.items()}
    tasks = [sinter.Task(circuit=one, decoder=name, json_metadata=name, detector_error_model=one.detector_error_model(
        approximate_disjoint_errors=True)) for name, one in circuits.items()]
    stats = sinter.collect(num_workers=1, tasks=tasks, max_shots=200, custom_decoders=custom)
    assert {one.json_metadata for one in stats} == set(circuits) and all(one.shots == 200 for one in stats)
    for circuit in (circuits["heralds 0.02"], surface_code(3, 0.9)[:-1]):  # of another noise; without an observable
        with pytest.raises(ValueError, match="is not that of the circuit of the heralds; accepted"):
            custom["heralds 0.01"].compile_decoder_for_dem(
                dem=circuit.detector_error_model(approximate_disjoint_errors=True))


@pytest.mark.parametrize("arguments", [{"name": lambda dem: None},
                                       {"heralded": HeraldedModel("error(0.1) D0", "", 1, 0, 0)}])
def test_a_decoder_of_sinter_that_cannot_keep_a_decomposition_refuses_to(arguments):
    with pytest.raises(ValueError, match="keep_decomposition is for a name without heralded"):
        SinterDecoder(keep_decomposition=True, **arguments)


def test_folded_rounds_are_the_same_model_and_decode_as_a_stream(tmp_path):
    circuit = figures.with_erasures(stim.Circuit.generated(
        "surface_code:rotated_memory_z", distance=3, rounds=12, after_clifford_depolarization=0.01,
        before_measure_flip_probability=0.01, before_round_data_depolarization=0.01), 0.9)
    flat, folded = heralded_model(circuit), heralded_model(circuit, fold_loops=True)
    assert "repeat" in folded.dem and stim.DetectorErrorModel(folded.dem).num_detectors == folded.num_detectors

    (tmp_path / "heralds.txt").write_text(folded.heralds)
    name = f"sliding-window:inner=pymatching,commit=3,buffer=6,heralds={tmp_path / 'heralds.txt'}"
    decoders = [Decoder("pymatching", flat.dem, flat.heralds), Decoder("pymatching", folded.dem, folded.heralds),
                Decoder(name, folded.dem)]
    events, flips = circuit.compile_detector_sampler(seed=1).sample(2000, separate_observables=True)
    wrong = [int((decoder.decode_batch(events) != flips).any(axis=1).sum()) for decoder in decoders]
    unaware, without = Decoder("pymatching", folded.dem), events.copy()
    without[:, list(read_heralds(folded.heralds))] = 0  # as detectors without errors they would have no solution
    assert abs(wrong[0] - wrong[1]) <= 0.1 * wrong[0] + 3  # ties, and sums in another order
    assert abs(wrong[2] - wrong[1]) <= 0.1 * wrong[1] + 3
    assert 3 * wrong[2] < (unaware.decode_batch(without) != flips).any(axis=1).sum()

    stream = StreamDecoder(folded.dem, "pymatching", commit=3, buffer=6, heralds=tmp_path / "heralds.txt")
    whole = Decoder(name, folded.dem)
    for shot in events[:50]:
        stream.push(shot[:-stream.tail_detectors])
        assert np.array_equal(stream.finish(shot[-stream.tail_detectors:]), whole.decode_batch(shot[None])[0])
        stream.reset()
    assert pickle.loads(pickle.dumps(stream)) == stream


def chain(times):
    """Coordinates and errors of rounds that are all alike: a detector, and a herald of an error that flips it."""
    coordinates, parts = [], []
    for k, time in enumerate(times):
        coordinates += [[0, time], [1, time]]
        here, following = (stim.target_relative_detector_id(2 * one) for one in (k, k + 1))
        parts += [Part(0.01, [here]), Part(1e-9, [here, stim.target_logical_observable_id(0)], 2 * k + 1, 0.5)]
        parts += [Part(0.02, [here, following])] * (k + 1 < len(times))
    return coordinates, parts, range(1, 2 * len(times), 2)


@pytest.mark.parametrize("times", [np.arange(8), np.arange(8) + 1, np.arange(8) - 1, np.arange(8) * 0.1,
                                   [0, 5, 6, 7, 8, 9, 10, 11]])
def test_folded_rounds_keep_their_coordinates(times):
    coordinates, parts, heralds = chain([float(time) for time in times])
    text, lines = fold(coordinates, parts, heralds)
    model = stim.DetectorErrorModel(text)
    assert f"repeat {7 - (times[1] - times[0] == 5)} " in text  # the first step of the last case is another one
    got = model.get_detector_coordinates()
    np.testing.assert_allclose([got[k] for k in range(16)], coordinates, atol=1e-9)
    errors = [part for part in model.flattened() if part.type == "error"]
    for line in lines.splitlines():
        _, herald, error, probability = line.split()
        assert probability == "0.5" and str(errors[int(error)].targets_copy()[0]) == f"D{int(herald) - 1}"
        assert errors[int(error)].args_copy() == [1e-9]


def test_rounds_with_coordinates_of_two_lengths_are_not_folded():
    coordinates, parts, heralds = chain(range(8))
    for herald in heralds:
        coordinates[herald] = coordinates[herald][1:]
    with pytest.raises(ValueError, match="detector 1 has 1 coordinates and detector 0 2"):
        fold(coordinates, parts, heralds)


def test_a_model_without_repeating_rounds_is_not_folded():
    with pytest.raises(ValueError, match="do not repeat"):
        heralded_model(surface_code(3, 0.5), fold_loops=True)
    bare = stim.Circuit("R 0\nHERALDED_ERASE(0.1) 0\nDETECTOR rec[-1]\nM 0\nDETECTOR rec[-1]\n")
    with pytest.raises(ValueError, match="has no coordinates"):
        heralded_model(bare, fold_loops=True)
