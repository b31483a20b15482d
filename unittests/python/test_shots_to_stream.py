# SPDX-License-Identifier: Apache-2.0
"""The example of docs/decoders/streaming.md: a shot of Stim's b8 as a stream, and all shots by windows."""
import pathlib
import re
import shutil
import subprocess

import pytest
import stim

PAGE = pathlib.Path(__file__).parents[2] / "docs/decoders/streaming.md"


@pytest.mark.skipif(not (shutil.which("stim") and shutil.which("cudaq-realtime")), reason="needs both programs")
def test_the_example_of_the_page_decodes_shots(tmp_path):
    blocks = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    (example,) = [block for block in blocks if "stim convert" in block]
    circuit = stim.Circuit.generated("surface_code:rotated_memory_z", distance=3, rounds=20,
                                     after_clifford_depolarization=0.003, before_measure_flip_probability=0.003)
    circuit.to_file(tmp_path / "circuit.stim")
    circuit.detector_error_model(decompose_errors=True).to_file(tmp_path / "model.dem")
    circuit.compile_detector_sampler(seed=3).sample_write(50, filepath=str(tmp_path / "shots.b8"), format="b8")
    run = subprocess.run(["bash", "-eo", "pipefail", "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.split()
    assert lines[-52:-50][0] == "21"  # Stim's 20 rounds are 21 here
    assert lines[-51] == lines[-50]  # the last frame is the prediction of the first shot
    assert len(lines[-50:]) == 50
