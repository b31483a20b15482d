# SPDX-License-Identifier: Apache-2.0
"""The sampler that brings soft values to sinter. The oracle is a collection with the hard bits of the same Gaussian,
and Stim's sampler of the circuit with that share of wrong hard bits."""
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sinter
import stim
from cudaq_realtime.readout import Gaussian
from cudaq_realtime.sinter_decoder import SinterDecoder
from cudaq_realtime.sinter_readout import ReadoutSampler

GAUSSIAN = Gaussian(1, -1, 0.6)


def surface_code(misread=0.0):
    return stim.Circuit.generated("surface_code:rotated_memory_z", distance=3, rounds=3,
                                  after_clifford_depolarization=0.002, before_measure_flip_probability=misread)


def rate(sampler, circuit, shots=10000):
    compiled = sampler.compiled_sampler_for_task(sinter.Task(circuit=circuit, decoder="one"))
    counts = sinter.AnonTaskStats()
    while counts.shots < shots:
        counts += compiled.sample(shots - counts.shots)
    return counts.errors / counts.shots


def test_values_give_fewer_wrong_shots_than_hard_bits():
    hard = rate(ReadoutSampler(GAUSSIAN, knows="hard"), surface_code())
    assert 0.03 < hard < 0.3
    for knows in ("f32", "u8", "u4"):
        assert rate(ReadoutSampler(GAUSSIAN, knows=knows), surface_code()) < 0.75 * hard, knows


def test_hard_bits_are_wrong_as_often_as_stims():
    circuit = surface_code(GAUSSIAN.misread)
    shots, flips = circuit.compile_detector_sampler().sample(20000, separate_observables=True, bit_packed=True)
    decoder = SinterDecoder("pymatching").compile_decoder_for_dem(dem=circuit.detector_error_model())
    theirs = (decoder.decode_shots_bit_packed(bit_packed_detection_event_data=shots) != flips).mean()
    ours = rate(ReadoutSampler(GAUSSIAN, knows="hard"), surface_code())
    assert abs(ours - theirs) < 6 * (theirs / 10000 + theirs / 20000) ** 0.5


def test_arguments_of_measurements_do_not_count():
    noisy = stim.Circuit()
    for one in surface_code().flattened():
        noisy.append(one.name, one.targets_copy(), [0.4] if one.name in ("M", "MR") else one.gate_args_copy())
    clear = Gaussian(1, -1, 0.1)
    assert rate(ReadoutSampler(clear), noisy, shots=4000) < 0.02


def test_measurements_without_a_value_have_no_wrong_bits():
    # The pad's detector never fires: no error of the model does that.
    circuit = stim.Circuit("MPAD 1\nDETECTOR rec[-1]\nX_ERROR(0.01) 0\nM 0\nDETECTOR rec[-1]\nM 0\n"
                           "DETECTOR rec[-1] rec[-2]\nOBSERVABLE_INCLUDE(0) rec[-1]")
    assert rate(ReadoutSampler(GAUSSIAN), circuit, shots=2000) < 0.1


def test_shots_without_an_answer_are_wrong():
    never = ReadoutSampler(GAUSSIAN, name="relay-bp:pre_iter=1,num_sets=1,set_max_iter=1", knows="hard")
    good = ReadoutSampler(GAUSSIAN, knows="hard")
    assert rate(never, surface_code(), shots=1000) > 2 * rate(good, surface_code(), shots=1000)


def test_a_batch_has_at_least_one_shot_and_at_most_as_many_as_suggested():
    compiled = ReadoutSampler(GAUSSIAN).compiled_sampler_for_task(sinter.Task(circuit=surface_code(), decoder="one"))
    assert [compiled.sample(count).shots for count in (0, 1, 17)] == [1, 1, 17]


@pytest.mark.parametrize("circuit, text", [
    (stim.Circuit("X_ERROR[leakage 0](0.5) 0\nM 0\nDETECTOR rec[-1]"), "leakage"),
    (stim.Circuit("M 0\nCX rec[-1] 1\nM 1\nDETECTOR rec[-1]"), "with_inlined_feedback"),
])
def test_circuits_without_such_values_are_refused(circuit, text):
    with pytest.raises(ValueError, match=text):
        ReadoutSampler(GAUSSIAN).compiled_sampler_for_task(sinter.Task(circuit=circuit, decoder="one"))


def test_tasks_without_a_circuit_or_with_postselection_are_refused():
    circuit = surface_code()
    mask = np.ones((circuit.num_detectors + 7) // 8, dtype=np.uint8)
    for task, text in ((sinter.Task(circuit_path="a.stim"), "no circuit"),
                       (sinter.Task(circuit=circuit, postselection_mask=mask), "post-selection")):
        with pytest.raises(ValueError, match=text):
            ReadoutSampler(GAUSSIAN).compiled_sampler_for_task(task)


def test_other_knowledge_is_refused():
    with pytest.raises(ValueError, match="'f32', 'u8', 'u4', 'hard'"):
        ReadoutSampler(GAUSSIAN, knows="u16")


def test_a_sampler_survives_pickling_and_sinters_workers(tmp_path):
    sampler = ReadoutSampler(GAUSSIAN, knows="u8")
    assert pickle.loads(pickle.dumps(sampler)) == sampler
    script = tmp_path / "collect.py"
    script.write_text("""
import sinter, stim
from cudaq_realtime.readout import Gaussian
from cudaq_realtime.sinter_readout import ReadoutSampler

if __name__ == "__main__":
    circuit = stim.Circuit.generated("repetition_code:memory", distance=3, rounds=3,
                                     before_round_data_depolarization=0.1)
    stats = sinter.collect(num_workers=2, tasks=[sinter.Task(circuit=circuit)], decoders=["soft"], max_shots=2000,
                           custom_decoders={"soft": ReadoutSampler(Gaussian(1, -1, 0.6))})
    assert stats[0].decoder == "soft" and stats[0].shots >= 2000 and stats[0].errors > 0
""", encoding="ascii")
    subprocess.run([sys.executable, str(script)], check=True, timeout=120)
