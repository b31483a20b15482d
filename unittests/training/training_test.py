# SPDX-License-Identifier: Apache-2.0
"""The two programs: train.py learns and goes on from its checkpoint, evaluate.py measures."""
import contextlib
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import needs
import torch

import evaluate
import network
import publish as publish_program
import train


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
            self.assertIn("no checkpoint", self.program("train.py", "--out", folder, "--resume", status=1))
            self.program("train.py", *small, "--steps", "120", "--resume")
            last = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
            self.assertEqual((last["step"], last["done"]), (120, True))

            report, table = out / "report.json", out / "table.md"
            self.program("evaluate.py", "--model", str(out / "model.safetensors"), "--cases",
                         "3x3z@0.01,3x3x@0.01/biased", "--seconds", "0.01", "--processes", "1",
                         "--batch-sites", "640000", "--json", str(report), "--table", str(table))
            case, without_time = json.loads(report.read_text())["cases"]
            self.assertGreater(without_time["shots"], 0)
            self.assertEqual(without_time["noise"], "biased")
            self.assertLess(case["residual_events_per_event"]["0.5"], 0.9)
            failures = {name: values["failures"] for name, values in case["decoders"].items()}
            self.assertEqual(sorted(failures), ["correlated matching", "matching",
                                                "predecoder 0.5 + correlated matching", "predecoder 0.5 + matching"])
            self.assertGreaterEqual(failures["matching"], 50)
            self.assertLess(failures["predecoder 0.5 + matching"], 4 * failures["matching"])
            ratio = case["ratios"]["predecoder 0.5 + matching / correlated matching"]["ratio"]
            self.assertEqual(ratio[0], failures["predecoder 0.5 + matching"] / failures["correlated matching"])
            rows = table.read_text().splitlines()
            self.assertEqual(len(rows), 4)
            self.assertEqual(len({row.count("|") for row in rows}), 1)

    def test_a_run_that_was_cut_ends_as_one_that_was_not(self):
        class Cut(train.Run):
            def sample(self):
                if self.next_shape == 3 and not self.o.resume:
                    self.save()
                    raise KeyboardInterrupt
                return super().sample()

        with tempfile.TemporaryDirectory() as folder:
            def run(kind, name, *more):
                out = pathlib.Path(folder) / name
                out.mkdir(exist_ok=True)
                arguments = ["train.py", "--out", str(out), "--device", "cpu", "--channels", "4", "--layers", "3",
                             "--shapes", "3x3", "--batch-sites", "800", "--steps-per-sample", "4", "--steps", "24",
                             "--minutes", "100", *more]
                with unittest.mock.patch("sys.argv", arguments):
                    one = kind(train.options())
                with contextlib.closing(one.log_file):
                    if more:
                        one.resume()
                    one.train()
                return one

            whole = run(train.Run, "whole")
            with self.assertRaises(KeyboardInterrupt):
                run(Cut, "cut")
            both = run(Cut, "cut", "--resume")
            self.assertEqual((whole.step, whole.shots), (both.step, both.shots))
            for a, b in ((whole.network, both.network), (whole.averaged, both.averaged)):
                for name, value in a.state_dict().items():
                    self.assertTrue(torch.equal(value, b.state_dict()[name]), name)
            torch.nn.init.constant_(both.network.biases[0], math.nan)
            before = (pathlib.Path(folder) / "cut/state.pt").read_bytes()
            with self.assertRaisesRegex(SystemExit, "not finite"):
                both.save()
            self.assertEqual((pathlib.Path(folder) / "cut/state.pt").read_bytes(), before)

    def test_a_network_is_published(self):
        with tempfile.TemporaryDirectory() as folder:
            net, small = network.Network(2, 2), pathlib.Path(folder) / "small"
            network.save(pathlib.Path(folder) / "m", net.state_dict(), {"seed": 1})

            def publish(threshold):
                arguments = ["publish.py", f"{folder}/m", str(small), "--threshold", threshold]
                with unittest.mock.patch("sys.argv", arguments), contextlib.redirect_stderr(io.StringIO()) as text:
                    try:
                        publish_program.main()
                    except SystemExit:
                        pass
                return text.getvalue()

            self.assertEqual(publish("0.9"), "")
            again, card = network.load(small)
            self.assertEqual((card["threshold"], card["seed"]), ("0.9", "1"))
            self.assertTrue(torch.equal(again.weights[0], net.weights[0].half().float()))
            self.assertIn("between 0 and 1", publish("1"))
            torch.nn.init.constant_(net.biases[0], 1e6)
            network.save(pathlib.Path(folder) / "m", net.state_dict(), {})
            self.assertIn("not finite as float16", publish("0.9"))

    def test_the_interval_of_a_ratio_counts_only_shots_that_differ(self):
        self.assertEqual(evaluate.ratio_of(100, 0, 0), None)
        same = evaluate.ratio_of(400, 200, 200)
        apart = evaluate.ratio_of(400, 200, 0)
        self.assertEqual(same[0], 0.5)
        self.assertLess(same[2] - same[1], apart[2] - apart[1])
        self.assertAlmostEqual(apart[2], 0.5 * 2.718281828**(1.96 * (600 / 80000)**0.5), places=6)

    def test_a_verdict_needs_failures_and_an_interval_without_one(self):
        for failures, both, expected in (((99, 50), 40, "too few failures"), ((1000, 700), 600, "wins"),
                                         ((700, 1000), 600, "loses"), ((1000, 980), 600, "not shown")):
            ratio = {"ratio": evaluate.ratio_of(*failures, both), "few_failures": min(failures) < evaluate.FEW}
            self.assertEqual(evaluate.verdict(ratio), expected)

    def test_a_case_that_is_none_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m"
            network.save(path, network.Network(2, 2).state_dict(), {})
            self.assertIn("is not DISTANCExROUNDS",
                          self.program("evaluate.py", "--model", str(path), "--cases", "13@0.1", status=1))
            for noise in ("loud", "1:1:5:1", "1:1:5:1:2"):
                self.assertIn("nor five numbers", self.program("evaluate.py", "--model", str(path), "--cases",
                                                               f"3x3z@0.1/{noise}", status=1))
            self.assertIn("between 0 and 1",
                          self.program("evaluate.py", "--model", str(path), "--thresholds", "0.5,1", status=2))


if __name__ == "__main__":
    needs.run()
