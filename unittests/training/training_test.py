# SPDX-License-Identifier: Apache-2.0
"""The two programs: train.py learns and goes on from its checkpoint, evaluate.py measures."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import needs

import evaluate


class Programs(unittest.TestCase):
    def program(self, name, *arguments, **expected):
        done = subprocess.run([sys.executable, str(pathlib.Path(needs.folder) / name), "--device", "cpu", *arguments],
                              capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, expected.get("status", 0), done.stdout + done.stderr)
        return done.stdout if done.returncode == 0 else done.stderr

    def test_training_learns_goes_on_and_is_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "run"
            small = ("--out", str(out), "--channels", "6", "--layers", "3", "--shapes", "3x3", "--noise", "0.01,0.01",
                     "--batch-sites", "8000", "--rate", "0.02", "--log-seconds", "0", "--minutes", "100")
            self.program("train.py", *small, "--steps", "96")
            lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
            losses = [line["loss"] for line in lines if "loss" in line]
            self.assertLess(losses[-1], 0.7 * losses[0])
            self.assertIn("has a checkpoint", self.program("train.py", *small, "--steps", "120", status=1))
            self.assertIn("not 2", self.program("train.py", *small, "--resume", "--seed", "2", status=1))
            self.program("train.py", *small, "--steps", "120", "--resume")
            last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
            self.assertEqual((last["step"], last["done"]), (120, True))

            report = out / "report.json"
            self.program("evaluate.py", "--model", str(out / "model.safetensors"), "--cases", "3x3z@0.01",
                         "--seconds", "100", "--failures", "50", "--processes", "1", "--batch-sites", "160000",
                         "--json", str(report))
            case, = json.loads(report.read_text())["cases"]
            self.assertLess(case["residual_events_per_event"]["0.5"], 0.9)
            alone, both = case["decoders"]["matching"], case["decoders"]["predecoder 0.5 + matching"]
            self.assertGreaterEqual(alone["failures"], 50)
            self.assertLess(both["failures"], 4 * alone["failures"])

    def test_the_interval_of_a_ratio_counts_only_shots_that_differ(self):
        self.assertEqual(evaluate.ratio_of(100, 0, 0), None)
        same = evaluate.ratio_of(400, 200, 200)
        apart = evaluate.ratio_of(400, 200, 0)
        self.assertEqual(same[0], 0.5)
        self.assertLess(same[2] - same[1], apart[2] - apart[1])
        self.assertAlmostEqual(apart[2], 0.5 * 2.718281828**(1.96 * (600 / 80000)**0.5), places=6)

    def test_a_case_that_is_none_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            import network
            path = pathlib.Path(folder) / "m"
            network.save(path, network.Network(2, 2).state_dict(), {})
            self.assertIn("is not DISTANCExROUNDS",
                          self.program("evaluate.py", "--model", str(path), "--cases", "13@0.1", status=1))


if __name__ == "__main__":
    needs.run()
