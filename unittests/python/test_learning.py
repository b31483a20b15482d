# SPDX-License-Identifier: Apache-2.0
"""Rates learned from detection events: those of `cudaq-realtime learn`, and its refusals."""
import json
import pickle
import shutil
import subprocess
import threading
import zlib

import numpy as np
import pytest
import stim
from cudaq_realtime import Decoder, Learned, ShotsRefused, learn

MODEL = "# a comment\ndetector(1, 2) D0\nerror(0.2) D0 D1 L0\nerror(0.02) D0\nerror(0.05) D1\n"
TRUE_RATES = [0.1, 0.05, 0.02]


def shots_of(count=20000, rates=TRUE_RATES, seed=3):
    """Events of MODEL with other rates."""
    pair, first, second = (np.random.default_rng(seed).random((count, 3)) < rates).T
    return np.stack([pair ^ first, pair ^ second], axis=1)


def file_of_ties(*lines, model=MODEL):
    return f"cudaq-realtime-tied 1\nmodel {zlib.crc32(model.encode()):08x}\n" + "".join(f"{one}\n" for one in lines)


def test_the_rates_of_the_shots_are_learned():
    learned = learn(MODEL, shots_of())
    assert isinstance(learned, Learned)
    assert learned.errors.tolist() == [0, 1, 2] and learned.lines.tolist() == [3, 4, 5]
    assert learned.model_rates.tolist() == [0.2, 0.02, 0.05]
    assert (np.abs(learned.rates - TRUE_RATES) < 4 * learned.sigmas).all() and learned.resolved.all()
    assert (learned.sigmas < 0.005).all() and learned.intervals.shape == (3, 2)
    assert (learned.intervals[:, 0] < learned.rates).all() and (learned.rates < learned.intervals[:, 1]).all()
    assert learned.intervals[:, 1] - learned.intervals[:, 0] == pytest.approx(2 * 1.96 * learned.sigmas, rel=0.1)
    assert learned.shots + learned.held_out_shots == 20000 and 1500 < learned.held_out_shots < 2500
    assert learned.score.blocks < 20 and learned.score.better_by_sigmas == 0  # too few to say
    assert learned.detector_rates == pytest.approx([0.14, 0.116], abs=0.01)
    assert learned.detector_model_rates == pytest.approx([0.212, 0.23], abs=1e-9)
    assert (learned.detector_sigmas < -5).all()


def test_the_learned_text_has_the_rates_and_is_a_model_for_decoders():
    learned = learn(MODEL, shots_of())
    model = stim.DetectorErrorModel(learned.dem)
    assert [one.args_copy()[0] for one in model if one.type == "error"] == learned.rates.tolist()
    assert learned.dem.startswith("# a comment\ndetector(1, 2) D0\nerror(")
    assert Decoder("lookup", learned.dem).num_detectors == 2


def test_the_results_equal_those_of_the_program(tmp_path):
    program = shutil.which("cudaq-realtime")
    if program is None:
        pytest.skip("the program cudaq-realtime is not in the PATH")
    shots = shots_of(12000)
    (tmp_path / "model.dem").write_text(MODEL)
    (tmp_path / "tied.txt").write_text(file_of_ties("tie both 1 2"))
    np.packbits(shots, axis=1, bitorder="little").tofile(tmp_path / "shots.b8")
    subprocess.run([program, "learn", "--dem", "model.dem", "--in", "shots.b8", "--tied", "tied.txt", "--held-out",
                    "0.5", "--prior", "2", "--out", "learned.dem", "--json", "report.json"], cwd=tmp_path, check=True,
                   capture_output=True, timeout=60)
    report = json.loads((tmp_path / "report.json").read_text())
    learned = learn(tmp_path / "model.dem", shots, tmp_path / "tied.txt", held_out=0.5, prior=2)
    assert learned.dem == (tmp_path / "learned.dem").read_text()
    assert learned.rates.tolist() == [one["rate"] for one in report["errors"]]
    assert learned.sigmas.tolist() == [one["sigma"] for one in report["errors"]]
    assert learned.intervals.tolist() == [[one["low"], one["high"]] for one in report["errors"]]
    assert learned.detector_rates.tolist() == [one["rate"] for one in report["detectors"]]
    assert learned.score._asdict() == report["score"] and learned.score.better_by_sigmas > 3
    assert (learned.shots, learned.held_out_shots) == (report["shots"], report["held_out_shots"]) == (6112, 5888)


@pytest.mark.parametrize("form", [lambda e: e.astype(np.uint8), lambda e: e.astype(int), np.asfortranarray,
                                  lambda e: e.tolist()])
def test_each_form_of_the_shots_gives_the_same_rates(form):
    shots = shots_of(4000)
    expected = learn(MODEL, shots).rates.tolist()
    assert learn(stim.DetectorErrorModel(MODEL), form(shots)).rates.tolist() == expected
    packed = np.packbits(shots, axis=1, bitorder="little")
    assert learn(MODEL, packed, bit_packed_shots=True).rates.tolist() == expected


def test_tied_errors_change_by_one_factor_in_each_form_of_the_groups():
    shots = shots_of()
    learned = learn(MODEL, shots, [[0, 1], [2]])
    factors = np.log1p(-2 * learned.rates) / np.log1p(-2 * learned.model_rates)
    assert factors[0] == pytest.approx(factors[1]) and factors[2] != pytest.approx(factors[0], rel=0.05)
    text = file_of_ties("tie some 0", "tie other 2", "tie some 1")
    for tied in (text, (np.array([0, 1]), (2,)), np.array([[0, 1]]), [[], [1, 0]]):
        assert learn(MODEL, shots, tied).rates.tolist() == learned.rates.tolist()
    assert learn(MODEL, shots, []).rates.tolist() == learn(MODEL, shots).rates.tolist()


def test_an_error_in_a_loop_has_one_rate_in_all_rounds():
    model = "repeat 6 {\n    error(0.05) D0 D1\n    shift_detectors 1\n}\nerror(0.05) D0\n"
    flips = np.random.default_rng(1).random((20000, 7)) < 0.02
    events = np.zeros((20000, 7), bool)
    events[:, :6] ^= flips[:, :6]
    events[:, 1:] ^= flips[:, :6]
    events[:, 6] ^= flips[:, 6]
    learned = learn(model, events)
    assert learned.lines.tolist() == [2] * 6 + [5] and learned.errors.tolist() == list(range(7))
    assert len(set(learned.rates[:6])) == 1 and learned.rates == pytest.approx(np.full(7, 0.02), abs=0.003)
    assert learned.dem.startswith(f"repeat 6 {{\n    error({learned.rates[0]}) D0 D1\n    shift_detectors 1\n")


def test_without_held_out_shots_there_is_no_score():
    learned = learn(MODEL, shots_of(), held_out=0)
    assert learned.score is None and (learned.shots, learned.held_out_shots) == (20000, 0)


STUCK = np.stack([shots_of()[:, 0], np.ones(20000, bool)], axis=1)


@pytest.mark.parametrize("shots, text", [
    (STUCK, "detector 1 fires in 1 of the shots"), (shots_of(90), "too few shots: 90, needed: 1000")])
def test_shots_that_must_not_change_a_model_raise_the_reason(shots, text):
    with pytest.raises(ShotsRefused, match=text) as raised:
        learn(MODEL, shots, held_out=0)
    error = raised.value
    assert str(error) == "the model stays as it is: " + "; ".join(error.refusals)
    assert error.learned.dem == MODEL and len(error.learned.rates) == 3
    assert error.learned.detector_rates.tolist() == pytest.approx(shots.mean(axis=0).tolist())
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.refusals, str(copy), copy.learned.dem) == (error.refusals, str(error), MODEL)


@pytest.mark.parametrize("change, text", [
    ({"dem": "error(0.5) D0 D1\n"}, "line 1: the error has probability 0.5; rates are learned of errors of at most"),
    ({"dem": "error(0.1) L0\n", "events": np.zeros((9, 0), bool)}, "the model has no detectors"),
    ({"dem": "error(2) D0 D1\n"}, "line 1: "),
    ({"events": np.zeros((0, 2), bool)}, "no shots"),
    ({"events": np.zeros((9, 3), bool)}, r"events has the shape \(9, 3\)"),
    ({"events": np.zeros(2, bool)}, r"events has the shape \(2,\)"),
    ({"events": np.full((9, 2), 2)}, "events has values other than 0 and 1"),
    ({"events": np.array([[0]] * 65536 + [[3], [4]], np.uint8), "bit_packed_shots": True}, "shot 65537: "),
    ({"held_out": 1}, "held_out is 1, accepted: 0 to 0.9"),
    ({"held_out": -0.1}, "held_out is -0.1"),
    ({"held_out": float("nan")}, "held_out is nan"),
    ({"held_out": None}, "held_out is None"),
    ({"prior": 1}, "prior is 1, accepted: 1.01 to 1e6"),
    ({"prior": float("inf")}, "prior is inf"),
    ({"prior": "4"}, "prior is '4'"),
    ({"tied": [[0, 3]]}, "error 3 of a group of tied errors is not in the model"),
    ({"tied": [[0, -1]]}, "tied has the error -1"),
    ({"tied": [[0, 1], [2, 0]]}, "tied has error 0 in the groups 0 and 1"),
    ({"tied": [[0, 0]]}, "tied has error 0 in group 0 twice"),
    ({"tied": [[2**70]]}, "tied: line 3: "),
    ({"tied": "\n"}, "tied is an empty text"),
    ({"tied": file_of_ties("tie a 0", model="error(0.1) D0\n")}, "tied: line 2: the file is for the model"),
    ({"tied": file_of_ties("bind a 0")}, "tied: line 3: ")])
def test_arguments_that_cannot_be_used_are_refused(change, text):
    arguments = {"dem": MODEL, "events": shots_of(2000), **change}
    with pytest.raises(ValueError, match=text) as raised:
        learn(arguments.pop("dem"), arguments.pop("events"), **arguments)
    assert not isinstance(raised.value, ShotsRefused)


@pytest.mark.parametrize("tied", [3, [0, 1], [["0"]], [[0.5]], b"tie a 0"])
def test_groups_that_are_not_lists_of_numbers_are_a_type_error(tied):
    with pytest.raises(TypeError, match="tied is .*accepted: lists of numbers"):
        learn(MODEL, shots_of(2000), tied)


def test_several_threads_learn_at_the_same_time():
    shots = shots_of(10000)
    expected, seen = learn(MODEL, shots).rates.tolist(), []
    threads = [threading.Thread(target=lambda: seen.append(learn(MODEL, shots).rates.tolist())) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(timeout=60)
    assert seen == [expected] * 4
