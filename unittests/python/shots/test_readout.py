# SPDX-License-Identifier: Apache-2.0
"""The model and the table of the readout of a circuit. The oracles are PyMatching with the probabilities of one shot,
Stim's model of the circuit with the noise of one flag, and Gaussians by numerical integration."""
import math
import pickle
import subprocess
import sys

import numpy as np
import pymatching
import pytest
import stim
from cudaq_realtime import Decoder
from cudaq_realtime.decoders import DecodeError
from cudaq_realtime.readout import Gaussian, Levels, main, pack_u4, readout_model

CALIBRATION = Gaussian(1, -1, 0.6)


def surface_code(distance=3, rounds=3, noise=0.004, misread=CALIBRATION.misread):
    made = stim.Circuit()
    for one in stim.Circuit.generated("surface_code:rotated_memory_z", distance=distance, rounds=rounds,
                                      after_clifford_depolarization=noise).flattened():
        made.append(one.name, one.targets_copy(),
                    [misread] if one.name in ("M", "MR") and misread else one.gate_args_copy())
    return made


def sample(shots, seed=3, of=CALIBRATION, **circuit):
    """Values of shots, events and observables of their hard bits."""
    results = surface_code(misread=0, **circuit).compile_sampler(seed=seed).sample(shots)
    values = np.where(results, of.one, of.zero) + of.sigma * np.random.default_rng(seed).standard_normal(results.shape)
    values = values.astype(np.float32)
    events, flips = surface_code(**circuit).compile_m2d_converter().convert(
        measurements=of.log_ratios(values) < 0, separate_observables=True)
    return values, events, flips


def either(p, q):
    return p * (1 - q) + q * (1 - p)


def flipped(part):
    found = set()
    for target in part.targets_copy():
        found ^= {str(target)} - {"^"}
    return frozenset(found)


def lines_of(text, word):
    return [line.split()[1:] for line in text.splitlines() if line.split()[0] == word]


@pytest.mark.parametrize("of", [Gaussian(1, -1, 0.6), Gaussian(-3, 5, 2.5, 0.2), Gaussian(0, 1, 0.3, 0.9)])
def test_ratios_and_misreads_are_those_of_the_densities(of):
    values, step = np.linspace(min(of[:2]) - 12 * of.sigma, max(of[:2]) + 12 * of.sigma, 400001, retstep=True)
    zero, one = (share * np.exp(-(values - mean) ** 2 / (2 * of.sigma ** 2)) / (of.sigma * math.sqrt(2 * math.pi))
                 for mean, share in ((of.zero, 1 - of.prior), (of.one, of.prior)))
    near = (zero > 1e-100) & (one > 1e-100)
    np.testing.assert_allclose(of.log_ratios(values[near]), np.log(zero[near] / one[near]), atol=1e-6)
    assert of.misread == pytest.approx(np.minimum(zero, one).sum() * step, rel=1e-4)
    for levels in (16, 256):
        made = Levels(of, levels)
        level = made.of(values)
        shares = np.array([[np.bincount(level, one_of, levels)] for one_of in (zero, one)])[:, 0] * step
        seen = shares.min(axis=0) > 1e-9
        assert seen.sum() >= levels / 2
        np.testing.assert_allclose(made.ratios[seen], np.log(shares[0] / shares[1])[seen], atol=0.05)
        assert ((made.log_ratios(level) < 0) == (of.log_ratios(values) < 0)).mean() > 0.9999  # values on an edge
        assert np.isfinite(made.ratios).all() and np.abs(made.ratios).min() > 0


def test_a_level_that_one_result_never_reaches_has_a_ratio():
    made = Levels(Gaussian(0, 1000, 1), 16)
    assert np.isfinite(made.ratios).all() and (np.diff(made.ratios) < 0).all()


def test_the_rest_is_that_of_the_circuit_whose_measurements_have_no_errors():
    circuit, quiet = surface_code(), surface_code(misread=0)
    made = readout_model(circuit, CALIBRATION)
    assert made.num_measurements == circuit.num_measurements and made.unseen == 0
    assert stim.DetectorErrorModel(made.dem) == circuit.detector_error_model(decompose_errors=True).flattened()
    rest = {flipped(part): part.args_copy()[0] for part in quiet.detector_error_model() if part.type == "error"}
    errors = [part for part in stim.DetectorErrorModel(made.dem) if part.type == "error"]
    seen, shared = set(), 0
    for error, p, *pairs in lines_of(made.readout, "misread"):
        named = errors[int(error)]
        p = total = float(p)
        for part in errors:  # others are decomposed in another way
            if part is not named and flipped(part) == flipped(named):
                total = either(total, part.args_copy()[0])
        assert total == pytest.approx(rest.get(flipped(named), 0), abs=1e-12)
        for measurement in pairs[::2]:
            seen.add(int(measurement))
            p = either(p, CALIBRATION.misread)
        assert named.args_copy()[0] == pytest.approx(p, rel=1e-9)  # on average it is the model
        shared += len(pairs) > 2
    assert seen == set(range(circuit.num_measurements)) and shared


def test_answers_equal_those_of_pymatching_with_the_probabilities_of_the_shot():
    made = readout_model(surface_code(), CALIBRATION)
    values, events, _ = sample(24)
    decoder = Decoder("pymatching", made.dem, readout=made.readout)
    assert (decoder.num_measurements, decoder.num_flags) == (values.shape[1], 0)
    answers = decoder.decode_batch(events, soft=values)
    errors = [part for part in stim.DetectorErrorModel(made.dem) if part.type == "error"]
    ties = 0
    for shot, event, answer in zip(values.astype(float), events, answers):
        probability = [part.args_copy()[0] for part in errors]
        for error, p, *pairs in lines_of(made.readout, "misread"):
            rest = 1 - 2 * float(p)
            for measurement in pairs[::2]:
                rest *= math.tanh(abs(CALIBRATION.log_ratios(shot[int(measurement)])) / 2)
            probability[int(error)] = (1 - rest) / 2
        alone = stim.DetectorErrorModel()
        for p, part in zip(probability, errors):
            alone.append("error", [p], part.targets_copy())
        theirs, weight = pymatching.Matching(alone).decode(event, return_weight=True)
        ours, our_weight = decoder.decode(np.flatnonzero(event), soft=shot.astype(np.float32), return_weight=True)
        assert our_weight == pytest.approx(weight, abs=1e-2)  # their integers have another scale
        np.testing.assert_array_equal(ours, answer)
        ties += not np.array_equal(theirs, answer)
    assert ties <= 1


def test_soft_values_make_fewer_answers_wrong_and_a_byte_is_enough():
    values, events, flips = sample(6000)
    made = readout_model(surface_code(), CALIBRATION)
    soft = Decoder("pymatching", made.dem, readout=made.readout)
    of_floats = soft.decode_batch(events, soft=values)
    wrong = {"hard": (Decoder("pymatching", made.dem).decode_batch(events) != flips).sum(),
             "f32": (of_floats != flips).sum()}
    for kind, count in (("u8", 256), ("u4", 16)):
        levels = Levels(CALIBRATION, count)
        of_levels = readout_model(surface_code(), levels)
        assert of_levels.dem == made.dem
        given = levels.of(values) if kind == "u8" else pack_u4(levels.of(values))
        answers = Decoder("pymatching", made.dem, readout=of_levels.readout).decode_batch(
            events, soft=given, soft_kind=kind, threads=2)
        wrong[kind] = (answers != flips).sum()
        assert (answers != of_floats).mean() < 0.01
    assert wrong["hard"] > 100 and max(wrong["f32"], wrong["u8"], wrong["u4"]) * 4 < wrong["hard"] * 3


def test_the_first_of_two_values_is_in_the_low_half_of_a_byte():
    np.testing.assert_array_equal(pack_u4(np.array([[1, 2, 3], [15, 0, 4]], dtype=np.uint8)), [[0x21, 3], [0x0F, 4]])


def leaky(tag="leakage", p=0.75):
    """Three rounds of a repetition code; qubit 1 leaks in the first round, qubit 0 in the second."""
    made = stim.Circuit()
    for number, leaked in enumerate((1, 0, None)):
        made.append("X_ERROR", [0, 1], 0.01)
        made.append("CX", [0, 2])
        if leaked is not None:
            made.append("DEPOLARIZE1", [leaked, 2], p, tag=f"{tag} {number}" if tag else "")
        made.append("CX", [1, 2])
        made.append("MR", [2], 0.02)
        made.append("DETECTOR", [stim.target_rec(-1)] + [stim.target_rec(-2)] * (number > 0))
    made.append("M", [0, 1])
    made.append("DETECTOR", [stim.target_rec(-1), stim.target_rec(-2), stim.target_rec(-3)])
    made.append("OBSERVABLE_INCLUDE", [stim.target_rec(-1)], 0)
    return made


def test_a_flag_gives_the_errors_of_its_noise():
    made = readout_model(leaky())
    assert (made.num_measurements, made.num_flags) == (0, 2)
    assert [line[:2] for line in lines_of(made.readout, "flag")] == [["0", "2"], ["1", "2"]]
    decoder = Decoder("pymatching", made.dem, readout=made.readout)
    names = [part for part in stim.DetectorErrorModel(made.dem) if part.type == "error"]
    for flag in (0, 1):
        circuit = stim.Circuit()
        for one in leaky():
            if one.name != "DEPOLARIZE1" or one.tag == f"leakage {flag}":
                circuit.append(one)
        expected = {str(part.targets_copy()): part.args_copy()[0] for part in circuit.detector_error_model(
            decompose_errors=True, approximate_disjoint_errors=True) if part.type == "error"}
        [_, _, *pairs] = lines_of(made.readout, "flag")[flag]
        got = {str(part.targets_copy()): part.args_copy()[0] for part in names}
        for error, p in zip(pairs[::2], pairs[1::2]):
            got[str(names[int(error)].targets_copy())] = float(p)
        for name, p in got.items():
            assert p == pytest.approx(expected.get(name, 0), abs=1e-8)
        alone = stim.DetectorErrorModel("\n".join(
            f"error({max(p, 1e-9)}) " + " ".join(map(str, part.targets_copy()))
            for part, p in zip(names, (got[str(part.targets_copy())] for part in names))))
        for event in np.ndindex(2, 2, 2, 2):
            leakage = np.zeros(2, dtype=np.uint8)
            leakage[flag] = 2
            _, ours = decoder.decode(np.flatnonzero(event), leakage=leakage, return_weight=True)
            _, weight = pymatching.Matching(alone).decode(np.array(event), return_weight=True)
            assert ours == pytest.approx(weight, abs=1e-2)


def test_soft_values_and_flags_come_together():
    circuit = leaky()
    made = readout_model(circuit, [Gaussian(1, -1, 0.5)] * 3 + [Gaussian(3, -3, 1.0)] * 2)
    assert (made.num_measurements, made.num_flags) == (5, 2) and len(lines_of(made.readout, "gaussian")) == 2
    decoder = Decoder("pymatching", made.dem, readout=made.readout)
    events = np.zeros((3, circuit.num_detectors), dtype=np.uint8)
    events[:, 1] = 1
    values, leakage = np.ones((3, 5), dtype=np.float32), np.zeros((3, 2), dtype=np.uint8)
    leakage[1, 0] = 2
    values[2, 4] = math.nan
    statuses, weights = np.empty(3, np.int32), np.empty(3)
    decoder.decode_batch(events, soft=values, leakage=leakage, statuses=statuses, weights=weights)
    assert statuses.tolist() == [0, 0, 12] and weights[0] != weights[1] and math.isnan(weights[2])
    for k in (0, 1):
        _, weight = decoder.decode([1], soft=values[k], leakage=leakage[k], return_weight=True)
        assert weight == weights[k]
    _, more = decoder.decode([1], soft=values[0], leakage=leakage[0], return_weight=True, flags=[])
    assert more == weights[0]
    with pytest.raises(DecodeError, match="shot 2: .*the soft value of measurement 4 is not finite"):
        decoder.decode_batch(events, soft=values, leakage=leakage)
    with pytest.raises(ValueError, match="the soft value of measurement 4 is not finite"):
        decoder.decode([1], soft=values[2], leakage=leakage[2])


def test_a_flag_adds_its_noise_to_the_rest_of_a_misread_error():
    made = readout_model(leaky(p=0.3), CALIBRATION)
    rest = {error: float(p) for error, p, *_ in lines_of(made.readout, "misread")}
    model = [part.args_copy()[0] for part in stim.DetectorErrorModel(made.dem) if part.type == "error"]
    shared = 0
    for _, _, *pairs in lines_of(made.readout, "flag"):
        for error, p in zip(pairs[::2], pairs[1::2]):
            extra = (1 - math.sqrt(1 - 4 * 0.3 / 3)) / 2  # of each of X, Y and Z of the noise, as independent errors
            of_error = rest.get(error, model[int(error)])
            assert any(float(p) == pytest.approx(either(q, of_error), abs=1e-8)
                       for q in (extra, either(extra, extra), either(extra, either(extra, extra)),
                                 either(either(extra, extra), either(extra, extra))))
            shared += error in rest
    assert shared


def test_values_that_do_not_fit_the_table_are_refused():
    made = readout_model(leaky(), CALIBRATION)
    decoder = Decoder("pymatching", made.dem, readout=made.readout)
    soft, leakage = np.ones(5, dtype=np.float32), np.zeros(2, dtype=np.uint8)
    for given, why in (({}, "soft is missing: the table of the readout has 5"),
                       ({"soft": soft}, "leakage is missing: the table of the readout has 2"),
                       ({"soft": soft[:4], "leakage": leakage}, r"soft has the shape \(4,\), accepted for 5"),
                       ({"soft": soft.astype(float), "leakage": leakage}, "soft has the type float64"),
                       ({"soft": soft, "soft_kind": "u8", "leakage": leakage}, "soft has the type float32"),
                       ({"soft": soft, "soft_kind": "x", "leakage": leakage}, "the kind 'x'"),
                       ({"soft": soft, "leakage": [0, 3]}, "leakage has values other than 0, 1 and 2"),
                       ({"soft": soft, "leakage": [False, True]}, r"leakage is bool\[2\], accepted"),
                       ({"soft": soft, "leakage": [0, 1, 2]}, "leakage is int64"),
                       ({"soft": soft, "leakage": "x"}, "leakage is <U1")):
        with pytest.raises(ValueError, match=why):
            decoder.decode([1], **given)
    with pytest.raises(ValueError, match=r"accepted for 5 measurements of u4: \(2, 3\)"):
        decoder.decode_batch(np.zeros((2, 4), np.uint8), soft=np.zeros((2, 5), np.uint8), soft_kind="u4",
                             leakage=np.zeros((2, 2), np.uint8))
    with pytest.raises(ValueError, match="soft: the decoder has no table of a readout"):
        Decoder("pymatching", made.dem).decode([1], soft=soft)
    with pytest.raises(ValueError, match="soft is missing"):
        Decoder("pymatching:edges=1", made.dem, readout=made.readout).decode_to_edges_array([1])
    with pytest.raises(ValueError, match="readout: lookup does not take probabilities"):
        Decoder("lookup", made.dem, readout=made.readout)
    with pytest.raises(ValueError, match="readout: line 2: the file is for the model"):
        Decoder("pymatching", made.dem + "\n", readout=made.readout)
    with pytest.raises(TypeError, match="readout is 7, accepted"):
        Decoder("pymatching", made.dem, readout=7)


def test_a_batch_may_have_no_shots():
    made = readout_model(leaky(), CALIBRATION)
    decoder = Decoder("pymatching", made.dem, readout=made.readout)
    answers = decoder.decode_batch(np.zeros((0, decoder.num_detectors), np.uint8),
                                   soft=np.zeros((0, decoder.num_measurements), np.float32),
                                   leakage=np.zeros((0, decoder.num_flags), np.uint8))
    assert answers.shape == (0, decoder.num_observables)


def test_values_are_not_copied():
    made = readout_model(surface_code(), CALIBRATION)
    decoder = Decoder("pymatching", made.dem, readout=made.readout)
    values, _, _ = sample(8)
    rows, kind, _ = decoder._readout_rows(values, None, None, 8)
    assert kind == 0 and np.shares_memory(rows, values) and rows.shape == (8, 4 * values.shape[1])


@pytest.mark.parametrize("text, why", [
    ("M 0\nCX rec[-1] 1\nM 1\nDETECTOR rec[-1]", "CX depends on a measurement.*with_inlined_feedback"),
    ("M 0\nOBSERVABLE_INCLUDE(0) rec[-1]", r"measurement 0 flips \['L0'\] and no detector"),
    ("X[leakage 0] 0\nM 0\nDETECTOR rec[-1]", "X has the tag 'leakage 0', accepted: an error"),
    ("M[leakage 0](0.1) 0\nDETECTOR rec[-1]", "M has the tag 'leakage 0', accepted: an error"),
    ("HERALDED_ERASE(0.1) 0\nDETECTOR rec[-1]\nM 1\nDETECTOR rec[-1]", r"heralds \(HERALDED_ERASE\), accepted: none"),
    ("M 0\nDETECTOR rec[-2]", r"D0 has rec\[-2\], and the measurements before it are 1"),
])
def test_a_circuit_without_such_a_table_is_refused(text, why):
    with pytest.raises(ValueError, match=why):
        readout_model(stim.Circuit("R 0 1\n" + text), CALIBRATION)


def test_a_calibration_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="there are 2 calibrations, accepted: one, or one for each of the 33"):
        readout_model(surface_code(), [CALIBRATION] * 2)
    with pytest.raises(ValueError, match=r"a calibration is \(1, -1, 0.5\), accepted: a Gaussian"):
        readout_model(surface_code(), [(1, -1, 0.5)] * 33)
    with pytest.raises(ValueError, match="there are 8 levels, accepted: 16"):
        Levels(CALIBRATION, 8)
    for wrong in ((1, 1, 0.5), (1, -1, 0), (1, -1, -0.5), (1, -1, 0.5, 1), (1, -1, 0.5, 0), (math.nan, -1, 0.5)):
        with pytest.raises(ValueError, match=r"^Gaussian\(zero=.* is no calibration, accepted: two means"):
            Gaussian(*wrong)
    assert CALIBRATION._replace(prior=0.25) == Gaussian(1, -1, 0.6, 0.25)
    with pytest.raises(ValueError, match=r"^Gaussian\(zero=1, one=-1, sigma=0, prior=0.5\) is no calibration"):
        CALIBRATION._replace(sigma=0)
    with pytest.raises(ValueError, match="no noise with the tag leakage, and there is no calibration"):
        readout_model(surface_code())


def test_measurements_without_an_error_get_one_and_others_are_not_used():
    made = readout_model(stim.Circuit("R 0 1\nX_ERROR(0.1) 0\nM 0 1\nDETECTOR rec[-2]\nM 1\nDETECTOR rec[-1] rec[-1]\n"
                                      "M 1\nDETECTOR rec[-1]"), CALIBRATION)
    assert made.num_measurements == 4 and made.unseen == 2
    assert lines_of(made.readout, "misread") == [["0", "0.1", "0", "0"], ["1", "0.0", "3", "0"]]
    assert stim.DetectorErrorModel(made.dem)[-1] == stim.DetectorErrorModel("error(1e-9) D2")[0]


def test_the_command_writes_files_for_the_program(tmp_path):
    circuit = surface_code()
    circuit.to_file(tmp_path / "circuit.stim")
    command = [sys.executable, "-m", "cudaq_realtime.readout", tmp_path / "circuit.stim", "--dem",
               tmp_path / "model.dem", "--readout", tmp_path / "readout.txt", "--gaussian", "1", "-1", "0.6"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "33 soft values of a shot, 0 of them are in no detector; 0 flags of leakage\n"
    decoder = Decoder("pymatching", tmp_path / "model.dem", readout=tmp_path / "readout.txt")
    copied = pickle.loads(pickle.dumps(decoder))
    assert copied == decoder != Decoder("pymatching", tmp_path / "model.dem")
    values, events, _ = sample(100)
    np.testing.assert_array_equal(copied.decode_batch(events, soft=values), decoder.decode_batch(events, soft=values))
    subprocess.run([*command, "--levels", "16"], check=True, capture_output=True)
    assert len(lines_of((tmp_path / "readout.txt").read_text(), "levels")[0]) == 17


def test_the_command_refuses_what_it_cannot_use(tmp_path, capsys):
    circuit, out, table = tmp_path / "circuit.stim", tmp_path / "out", tmp_path / "table"
    surface_code().to_file(circuit)
    for dem, readout, more, why in ((out, out, [], "are not three files"),
                                    (out, circuit, [], "are not three files"),
                                    (out, table, ["--levels", "16"], "--levels needs --gaussian"),
                                    (out, table, ["--gaussian", "1"], "--gaussian has 1 numbers"),
                                    (out, table, [], "no noise with the tag leakage")):
        assert main([str(circuit), "--dem", str(dem), "--readout", str(readout), *more]) == 2
        assert why in capsys.readouterr().err
    assert not out.exists() and not table.exists()
