#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a predecoder. Needs numpy, torch and stim; one GPU. Errors are sampled on the GPU while it trains, so there is
no data set. A run may be cut at any time and goes on from its last checkpoint:

    train.py --out FOLDER --seed 1 --minutes 8 --planned-minutes 16
    train.py --out FOLDER --resume --minutes 8 --planned-minutes 16

FOLDER gets state.pt (all that a resumed run needs), model.safetensors (the averaged weights, with a card) and log.jsonl
(one JSON object a line). docs/predecoding.md explains the method."""
import argparse
import copy
import json
import math
import os
import pathlib
import time

import torch
from torch.nn import functional

import network
from lattice import events_of
from labels import Reducer
from sampler import Sampler


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in the folder")
    parser.add_argument("--start", type=pathlib.Path, metavar="FILE",
                        help="begin with the weights of this network; more layers than it has begin as the identity")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=8, help="length of this call, checkpoint included")
    parser.add_argument("--planned-minutes", type=float,
                        help="length of all calls, for the learning rate, which falls to 0; default: --minutes")
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--shapes", default="9x9,13x13,9x18",
                        help="distances and rounds, DxT, in turn, each in both bases")
    parser.add_argument("--noise", default="0.002,0.008", help="range of p, which is drawn for each shot")
    parser.add_argument("--batch-sites", type=float, default=5e5, help="cells of the grid in one step")
    parser.add_argument("--steps-per-sample", type=int, default=24, help="steps that one sample of shots is cut into")
    parser.add_argument("--rate", type=float, default=4e-3, help="highest learning rate, of AdamW")
    parser.add_argument("--muon-rate", type=float, default=0.03,
                        help="the same of Muon, which moves the weights between the first and the last layer")
    parser.add_argument("--passes", type=int, default=3, help="passes of the label reduction; 0: raw errors as labels")
    parser.add_argument("--average", type=float, default=0.999, help="factor of the moving average of the weights")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--log-seconds", type=float, default=5)
    parser.add_argument("--steps", type=int, help="steps of all calls, in whole samples, instead of --planned-minutes; "
                                                  "--minutes still ends a call. On the CPU the seed then decides all")
    return parser.parse_args()


class Muon(torch.optim.Optimizer):
    """Steps along the momentum with all its singular values made equal (K. Jordan and others, "Muon: an optimizer for
    hidden layers in neural networks", 2024). Each output channel of a convolution is a row of its matrix."""

    def __init__(self, parameters, lr, momentum=0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for value in group["params"]:
                state = self.state[value]
                if not state:
                    state["momentum"] = torch.zeros_like(value)
                state["momentum"].lerp_(value.grad, 1 - group["momentum"])
                m = value.grad.lerp(state["momentum"], group["momentum"]).flatten(1)
                m = m / (m.norm() + 1e-12)
                for _ in range(5):  # Newton-Schulz: m goes to the orthogonal matrix that is nearest to it
                    a = m @ m.T
                    m = 3.4445 * m + (-4.7750 * a + 2.0315 * a @ a) @ m
                value.add_(m.view_as(value), alpha=-group["lr"])


class Run:
    def __init__(self, o):
        self.o = o
        torch.manual_seed(o.seed)
        self.generator = torch.Generator(o.device).manual_seed(o.seed)
        self.network = network.Network(o.channels, o.layers)
        if o.start:
            network.begin_with(self.network, network.load(o.start)[0])
        self.network.to(o.device)
        if o.device != "cpu":
            self.network.to(memory_format=torch.channels_last_3d)
            torch.backends.cudnn.benchmark = True
        self.averaged = copy.deepcopy(self.network)
        middle = list(self.network.weights)[1:-1]
        others = [value for value in self.network.parameters() if all(value is not m for m in middle)]
        self.optimizers = [torch.optim.AdamW(others, lr=o.rate, weight_decay=1e-4, betas=(0.9, 0.98),
                                             fused=o.device != "cpu")]
        if middle:
            self.optimizers.append(Muon(middle, lr=o.muon_rate))
        self.highest = [o.rate, o.muon_rate]
        self.step, self.shots, self.before = 0, 0, 0.0
        self.shapes = [(*map(int, shape.split("x")), basis) for shape in o.shapes.split(",") for basis in "xz"]
        self.noise = tuple(map(float, o.noise.split(",")))
        self.samplers, self.next_shape = [Sampler(*shape, o.device) for shape in self.shapes], 0
        self.reducers = [Reducer(sampler.lattice) for sampler in self.samplers]
        self.log_file = open(o.out / "log.jsonl", "a")
        self.begin = time.monotonic()

    def log(self, **values):
        line = json.dumps({"seconds": round(self.elapsed(), 2), **values})
        print(line, flush=True)
        print(line, file=self.log_file, flush=True)

    def elapsed(self):
        return self.before + time.monotonic() - self.begin

    def save(self):
        if not all(torch.isfinite(value).all() for value in self.network.parameters()):
            raise SystemExit(f"step {self.step}: a weight is not finite; go on from the last checkpoint with a lower "
                             "--rate")
        state = {"network": self.network.state_dict(), "averaged": self.averaged.state_dict(),
                 "optimizers": [each.state_dict() for each in self.optimizers],
                 "generator": self.generator.get_state(), "step": self.step, "shots": self.shots,
                 "next_shape": self.next_shape, "elapsed": self.elapsed(), "channels": self.o.channels,
                 "layers": self.o.layers, "seed": self.o.seed}
        torch.save(state, self.o.out / "state.new")
        os.replace(self.o.out / "state.new", self.o.out / "state.pt")  # a run that is cut leaves a whole checkpoint
        device = torch.cuda.get_device_name() if self.o.device.startswith("cuda") else "CPU"
        card = {"license": "Apache-2.0", "architecture": "conv3d residual", "channels": self.o.channels,
                "layers": self.o.layers, "seed": self.o.seed, "steps": self.step, "shots": self.shots,
                "seconds": round(self.elapsed(), 1), "shapes": self.o.shapes, "noise": self.o.noise,
                "label_passes": self.o.passes,
                "start": self.o.start.name if self.o.start else "random", "rate": self.o.rate,
                "muon_rate": self.o.muon_rate, "device": device, "torch": torch.__version__,
                "circuit": "stim surface_code:rotated_memory_x and _z, the four probabilities equal to p"}
        network.save(self.o.out / "model.new", self.averaged.state_dict(), card)
        os.replace(self.o.out / "model.new", self.o.out / "model.safetensors")

    def resume(self):
        state = torch.load(self.o.out / "state.pt", map_location=self.o.device, weights_only=True)
        for name in ("channels", "layers", "seed"):
            if state[name] != getattr(self.o, name):
                raise SystemExit(f"--resume: the checkpoint has {name} {state[name]}, not {getattr(self.o, name)}")
        self.network.load_state_dict(state["network"])
        self.averaged.load_state_dict(state["averaged"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.generator.set_state(state["generator"].cpu())
        self.step, self.shots, self.next_shape = state["step"], state["shots"], state["next_shape"]
        self.before = state["elapsed"]

    def sample(self):
        """Returns the lattice, shots of a step, inputs and labels of the next shape, for some steps."""
        index = self.next_shape % len(self.shapes)
        self.next_shape += 1
        sampler, reducer = self.samplers[index], self.reducers[index]
        lattice = sampler.lattice
        batch = max(1, round(self.o.batch_sites / (lattice.layers * lattice.width**2)))
        shots = batch * self.o.steps_per_sample
        low, high = self.noise
        p = low + (high - low) * torch.rand(shots, generator=self.generator, device=self.o.device)
        flips, misread = sampler.sample(shots, p, self.generator)
        events = events_of(lattice, flips, misread)
        reducer.reduce(flips, misread, self.o.passes)
        return lattice, batch, events, torch.cat([flips, misread[None]])

    def rate(self):
        """The learning rate as a part of the highest: up for 2 % of the training, then down along a cosine."""
        planned = self.o.planned_minutes or self.o.minutes
        part = min(1.0, self.step / self.o.steps if self.o.steps else self.elapsed() / 60 / planned)
        return min(1.0, part / 0.02 + 0.01) * (0.5 + 0.5 * math.cos(math.pi * part))

    def train_step(self, lattice, events, labels, mask):
        for optimizer, highest in zip(self.optimizers, self.highest):
            for group in optimizer.param_groups:
                group["lr"] = highest * self.rate()
        gpu = self.o.device.startswith("cuda")
        x = network.network_input(lattice, events, torch.bfloat16 if gpu else torch.float32)
        target = labels.permute(4, 0, 1, 2, 3)
        with torch.autocast("cuda", torch.bfloat16, enabled=gpu):
            logits = self.network(x)
        loss = functional.binary_cross_entropy_with_logits(logits.float(), target.float(), reduction="none")
        loss = (loss * mask).sum() / (mask.sum() * len(x))
        self.network.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        self.step += 1
        self.shots += len(x)
        with torch.no_grad():
            factor = min(self.o.average, 1 - 1 / (self.step + 1))
            for mean, value in zip(self.averaged.parameters(), self.network.parameters()):
                mean.lerp_(value, 1 - factor)
        return loss.detach(), norm

    def synchronize(self):
        if self.o.device.startswith("cuda"):
            torch.cuda.synchronize()

    def check_throughput(self):
        """Chooses the convolution, and measures samples beside steps: a slow sampler would show."""
        lattice, batch, events, labels = self.sample()
        parts = [self.network, self.averaged, *self.optimizers]
        start = copy.deepcopy([part.state_dict() for part in parts])
        step, shots = self.step, self.shots
        mask = network.output_mask(lattice)
        seconds = network.choose_convolution(
            self.network, lambda: self.train_step(lattice, events[..., :batch], labels[..., :batch], mask),
            self.synchronize)
        for part, state in zip(parts, start):
            part.load_state_dict(state)
        self.step, self.shots = step, shots
        for _ in self.shapes:
            self.sample()
        self.synchronize()
        begin = time.monotonic()
        sampled = sum(self.sample()[2].shape[-1] for _ in self.shapes)
        self.synchronize()
        sampling, of_step = (time.monotonic() - begin) / len(self.shapes), min(seconds.values())
        self.log(chosen=self.network.convolution.__name__, step_ms={k: round(1e3 * s, 2) for k, s in seconds.items()},
                 batch_shots=batch, shots_per_s_of_steps=round(batch / of_step),
                 shots_per_s_of_sampler=round(sampled / sampling / len(self.shapes)),
                 sampler_share=round(sampling / (sampling + self.o.steps_per_sample * of_step), 3))

    def train(self):
        end = self.begin + 60 * self.o.minutes - min(10, 6 * self.o.minutes)  # the last checkpoint fits in
        saved = logged = time.monotonic()
        losses, since = [], (self.shots, time.monotonic())
        while time.monotonic() < end and not (self.o.steps and self.step >= self.o.steps):
            lattice, batch, events, labels = self.sample()
            mask = network.output_mask(lattice)
            for k in range(self.o.steps_per_sample):
                part = slice(k * batch, (k + 1) * batch)
                loss, norm = self.train_step(lattice, events[..., part], labels[..., part], mask)
                losses.append(loss)
            if time.monotonic() - logged >= self.o.log_seconds:
                loss_mean = torch.stack(losses).mean().item()
                if not math.isfinite(loss_mean):
                    raise SystemExit(f"step {self.step}: the loss is not finite; "
                                     "go on from the checkpoint with a lower --rate")
                now = time.monotonic()
                self.log(step=self.step, loss=round(loss_mean, 7), norm=round(norm.item(), 5), rate=self.rate(),
                         shape=f"{lattice.distance}x{lattice.rounds}{lattice.basis}", shots=self.shots,
                         shots_per_s=round((self.shots - since[0]) / (now - since[1])))
                losses, since, logged = [], (self.shots, now), now
            if time.monotonic() - saved >= 60:
                self.save()
                saved = time.monotonic()
        self.save()


def main():
    o = options()
    o.out.mkdir(parents=True, exist_ok=True)
    if (o.out / "state.pt").exists() and not o.resume:
        raise SystemExit(f"{o.out} has a checkpoint: pass --resume, or another --out")
    if o.resume and not (o.out / "state.pt").exists():
        raise SystemExit(f"--resume: {o.out} has no checkpoint state.pt")
    run = Run(o)
    if o.resume:
        run.resume()
    run.log(**{k: str(v) if isinstance(v, pathlib.Path) else v for k, v in vars(o).items()}, torch=torch.__version__,
            parameters=sum(p.numel() for p in run.network.parameters()))
    if o.device.startswith("cuda"):
        run.check_throughput()
    run.train()
    run.log(done=True, step=run.step, shots=run.shots, total_minutes=round(run.elapsed() / 60, 3))


if __name__ == "__main__":
    main()
