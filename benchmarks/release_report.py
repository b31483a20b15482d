#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the latency of the decoding server for a release, and writes one report: release.md, with pictures.

    benchmarks/release_report.py BUILD FOLDER [--budget SECONDS] [--rate R] [--realtime SETTINGS] [--client WORDS]

    BUILD       a build folder with `serve`, `emulate` and `cudaq-realtime-bench`; it may have been moved
    FOLDER      for the report, its pictures (*.svg), and what the programs wrote (*.json, *.html, *.log)
    --budget    of all measurements together (default: 480); what has no time left is named
    --rate      of the distributions, shots per second (default: 50000, at most half of the highest rate)
    --realtime  the server's section `realtime:`, for one more run of each distribution; if the server refuses it, the
                report has the reason
    --client    words before the client of those runs, such as "chrt -f 20 taskset -c 1"; also without the section
    --part      loads, distributions, soak, streams or tails; several times for several (default: all)

Goal: the latency of a shot from its time in the schedule to its correction, as a distribution, and the highest rates
without loss, for each transport on the loopback of this machine; all by the programs that users have. The client sends
by the clock, never by the answers. It needs no network and no package; a router only where the build has UCX. One
decoder without a queue, d = 7, p = 0.003, `pymatching`. Left out: a real network, several clients, a GPU."""
import argparse
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "stream"))
import loop_models  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / "tools" / "data"
CODE = ["--config", "d7", "--noise", "0.003"]
MODEL = DATA / "surface_z_d7_p0.003.dem"
#        of the budget
SHARES = {"loads": 0.3, "distributions": 0.25, "soak": 0.1, "streams": 0.2, "tails": 0.15}
READY_S = 60
USUAL_RATE = 50_000
TAIL_EXPERIMENT_S = 0.035  # 10,000 rounds of 1 us, and their sampling


class NoTime(Exception):
    pass


class Problem(Exception):
    """A program is missing, or has failed."""


class Measurement:
    """Programs of a build, their outputs, and the time that is left."""

    def __init__(self, given):
        self.build, self.folder = given.build.resolve(), given.folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = self.build / "tools" / "cudaq-realtime"
        self.bench = self.build / "benchmarks" / "cudaq-realtime-bench"
        folders = [p for part in ("lib", "kernels") for p in sorted((self.build / part).glob("**/")) if p.is_dir()]
        paths = [str(p) for p in folders if "CMakeFiles" not in p.parts]
        self.environment = dict(os.environ, CUDAQ_REALTIME_DATA=str(DATA))
        self.environment["LD_LIBRARY_PATH"] = ":".join([*paths, os.environ.get("LD_LIBRARY_PATH", "")])
        self.begun = time.monotonic()
        self.end = self.begun + given.budget + given.slack
        self.commands = []

    def note(self, command):
        line = shlex.join(map(str, command)).replace(str(self.build), "BUILD").replace(str(self.folder), "FOLDER")
        self.commands.append(line.replace(str(ROOT), "."))

    def left(self):
        return self.end - time.monotonic()

    def run(self, name, words, limit, prefix=()):
        """The report of a program that ends by itself; its files begin with `name`."""
        if self.left() < 1:
            raise NoTime(f"{name}: no time was left")
        report, page = self.folder / f"{name}.json", self.folder / f"{name}.html"
        report.unlink(missing_ok=True)  # of an earlier run
        page.unlink(missing_ok=True)
        has_page = words[0] != self.bench
        command = [*prefix, *map(str, words), "--json", str(report)] + (["--html", str(page)] if has_page else [])
        self.note(command)
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            try:
                subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               timeout=min(limit, self.left()), check=False)
            except subprocess.TimeoutExpired:
                raise NoTime(f"{name}: it was ended after {min(limit, self.left() + limit):.0f} s") from None
            except OSError as error:
                raise Problem(f"{name}: {error}") from None
        if not report.exists():
            raise Problem(f"{name}: {last_line(self.folder / f'{name}.log')}")
        found = json.loads(report.read_text())
        if "method" not in found:
            raise Problem(f"{name}: {found.get('error', 'no report')}")
        return found

    def picture(self, name, heading):
        """Writes NAME.svg: the picture of the page NAME.html with this heading. Returns the line for the report."""
        page = (self.folder / f"{name}.html").read_text()
        style = re.search(r"<style>(.*?)</style>", page, re.S)
        found = re.search(r"<h2>" + re.escape(heading) + r"</h2>\n.*?(<svg.*?</svg>)", page, re.S)
        if found is None:
            return ""
        picture = found.group(1).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        back = '<rect width="100%" height="100%" style="fill:var(--back)"/>'
        at = picture.index(">") + 1
        css = f"<style>{style.group(1)} text{{font-family:sans-serif}}</style>"
        (self.folder / f"{name}.svg").write_text(picture[:at] + css + back + picture[at:] + "\n")
        return f"![{heading}: {name}]({name}.svg)\n"


def last_line(path):
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"


class Server:
    """`serve` or `route` with its options; ends with the block."""

    def __init__(self, of, name, words):
        self.of, self.name, self.words = of, name, [str(w) for w in words]

    def __enter__(self):
        self.of.note([self.of.program, *self.words])
        self.log = open(self.of.folder / f"{self.name}.log", "w+", encoding="utf-8")
        try:
            self.process = subprocess.Popen([str(self.of.program), *self.words], env=self.of.environment,
                                            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        except OSError as error:
            self.log.close()
            raise Problem(f"{self.name}: {error}") from None
        limit = time.monotonic() + READY_S
        while time.monotonic() < limit and self.process.poll() is None:
            text = (self.of.folder / f"{self.name}.log").read_text(errors="replace")
            ready = re.search(r"_READY (.*)\n", text)
            if ready and (self.words[0] != "route" or "state=joined" in text):
                self.ready = dict(word.split("=", 1) for word in ready.group(1).split() if "=" in word)
                return self
            time.sleep(0.02)
        self.__exit__()
        raise Problem(f"{self.name}: {last_line(self.of.folder / f'{self.name}.log')}")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Path:
    """A way from the client to a decoder: the servers to start, and the client's options."""

    def __init__(self, of, transport, realtime=""):
        self.of, self.transport, self.realtime, self.servers = of, transport, realtime, []

    def start(self, words):
        server = Server(self.of, f"serve-{self.transport}-{len(self.of.commands)}-{len(self.servers)}", words)
        self.servers.append(server.__enter__())
        return self.servers[-1].ready

    def serve(self, config, provider, options):
        realtime = ["--realtime", self.realtime] if self.realtime else []
        return self.start(["serve", "--config", config, "--transport", provider, "--wait", "yield", *realtime, "--",
                           *options])

    def open(self, config):
        """Starts what is needed. Returns the options of the client."""
        if self.transport == "shm":
            name = f"release-report-{os.getpid()}"
            self.serve(config, "shm", [f"--name={name}", "--unified"])
            return ["--transport", "shm", "--name", name]
        if self.transport == "udp":
            return ["--transport", "udp", "--port", self.serve(config, "udp", ["--port=0", "--unified"])["port"]]
        node = self.serve(config, "ucx", ["--port=0", "--bind=127.0.0.1"])["port"]
        route = self.of.folder / "route.yaml"
        route.write_text(f"nodes: [{{name: a, address: 127.0.0.1, port: {node}, decoders: [0]}}]\n"
                         "functions: [{name: qec_decode, node: a}]\n"
                         "transport: {provider: udp, args: [--port=0, --unified, --num-slots=64]}\n")
        return ["--transport", "udp", "--port",
                self.start(["route", "--config", route, "--wait", "yield"])["port"]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in reversed(self.servers):
            server.__exit__()


def us(ns):
    if ns is None:
        return ""
    unit, divisor = next(((u, d) for u, d in (("s", 1e9), ("ms", 1e6), ("us", 1e3)) if ns >= d), ("us", 1e3))
    return f"{ns / divisor:.3g} {unit}"


def rate(value):
    if not value:
        return "none"
    return f"{value / 1e6:.3g} M/s" if value >= 1e6 else f"{value / 1e3:.3g} k/s"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
                      *("| " + " | ".join(map(str, row)) + " |" for row in rows)]) + "\n"


def apart(first, second):
    """By how much two figures differ, in percent of the smaller one."""
    return f"{100 * abs(first - second) / min(first, second):.1f} %" if first and second else ""


def decoder_config(of):
    path = of.folder / "decoder.yaml"
    path.write_text(f'decoders: [{{id: 0, type: pymatching, queue_length: 0, dem_file: "{MODEL}"}}]\n')
    return path


def stream_config(of, model):
    path = of.folder / f"{model.stem}.yaml"
    path.write_text(f'decoders: [{{id: 0, type: sliding-window, stream: true, dem_file: "{model}"}}]\n')
    return path


class Report:
    def __init__(self, of, given):
        self.of, self.given, self.text, self.left_out, self.highest = of, given, [], [], {}

    def each(self, what, things, seconds):
        """Calls what(thing, seconds of each); what fails, or has no time, is named in the report."""
        for thing in things:
            try:
                what(thing, seconds / len(things))
            except (NoTime, Problem) as problem:
                self.left_out.append(str(problem))
                print(f"  {problem}", file=sys.stderr)

    def loads(self, seconds):
        rows, pictures = [], []

        def search(transport, limit):
            with Path(self.of, transport) as path:
                client = path.open(decoder_config(self.of))
                found = []
                for k in (1, 2):  # about 35 runs each
                    found.append(self.of.run(f"loads-{transport}-{k}", [
                        self.of.program, "emulate", *client, *CODE, "--search-rate", "--search-p999-us",
                        self.given.p999_us, "--duration", f"{max(0.05, limit / 2 / 50):.2f}"], limit))
                first, second = (one["highest_rate"] for one in found)
                self.highest[transport] = min(filter(None, (first, second)), default=0)
                rows.append([transport, rate(first), rate(second), apart(first, second), found[0]["run_s"],
                             sum(len(one["trials"]) for one in found)])
                pictures.append(self.of.picture(f"loads-{transport}-1", "Latency over the offered rate"))

        self.each(search, ["shm", "udp", "router"], seconds)
        self.text += ["## Highest rate without loss\n\nNothing lost, late or wrong, and p99.9 of a shot at most "
                      f"{self.given.p999_us:g} us, in three of three runs; searched twice.\n",
                      table(["path", "first search", "second search", "apart", "s a run", "runs"], rows), *pictures]

    def distributions(self, seconds):
        rows, pictures = [], []
        # What the section changes is seen beside a client that has its core and priority, too.
        variants = [("off", "", "")]
        if self.given.client:
            variants.append(("off, client placed", "", self.given.client))
        if self.given.realtime:
            variants.append(("on", self.given.realtime, self.given.client))

        def distribution(thing, limit):
            transport, (label, section, client_words) = thing
            wanted = min(self.given.rate, self.highest.get(transport, self.given.rate * 2) / 2) or 1000
            name = f"shots-{transport}" + ("-realtime" if section else "-placed" if client_words else "")
            with Path(self.of, transport, section) as path:
                client = path.open(decoder_config(self.of))
                got = self.of.run(name, [self.of.program, "emulate", *client, *CODE, "--rate", f"{wanted:.0f}",
                                         "--duration", f"{max(0.2, limit - 3):.1f}"], limit + 20,
                                  shlex.split(client_words))
            t = got["shot_ns"]
            if got["mismatches"]:
                self.left_out.append(f"{name}: {got['mismatches']} wrong answers")
            rows.append([transport, label, rate(wanted), got["shots"], got["lost"],
                         got["begun_late"], *(us(t[p]) for p in ("p50", "p99", "p99.9", "max")),
                         f"{t['p99.9'] / t['p50']:.1f}" if t["p50"] else ""])
            pictures.append(self.of.picture(name, "Latency percentiles"))

        self.each(distribution, [(t, v) for t in ("shm", "udp", "router") for v in variants], seconds)
        self.text += ["## Latency of a shot\n\nFrom its time in the schedule to its correction. `realtime:` on: "
                      + (f"`{self.given.realtime}`" if self.given.realtime else "not measured (`--realtime`)")
                      + (f"; client placed, and where it is on: `{self.given.client}`" if self.given.client else "")
                      + ".\n",
                      table(["path", "`realtime:`", "offered", "shots", "lost", "late", "p50", "p99", "p99.9", "max",
                             "p99.9 / p50"], rows), *pictures]

    def soak(self, seconds):
        rows, pictures = [], []

        def run(transport, limit):
            wanted = min(self.given.rate, self.highest.get(transport, self.given.rate * 2) / 2) or 1000
            with Path(self.of, transport) as path:
                client = path.open(decoder_config(self.of))
                got = self.of.run(f"soak-{transport}", [
                    self.of.program, "emulate", *client, *CODE, "--protocol", "server", "--decoder-ids", "0", "--rate",
                    f"{wanted / 2:.0f}", "--duration", f"{max(0.2, limit - 3):.1f}"], limit + 20)
            rows.append([transport, rate(wanted / 2), got["shots"], f"{got['wall_ns'] / 1e9:.0f} s", got["lost"],
                         got["mismatches"], us(got["shot_ns"]["p50"]), us(got["shot_ns"]["max"])])
            pictures.append(self.of.picture(f"soak-{transport}", "Timeline"))

        self.each(run, ["shm"], seconds)
        self.text += ["## Soak\n\nTwo requests a shot, one after another.\n",
                      table(["path", "offered", "shots", "time", "lost", "wrong", "p50", "max"], rows), *pictures]

    def models(self):
        return [DATA / "surface_loop_d3_p0.004.dem", *loop_models.write_all(self.of.folder, DATA)]

    def streams(self, seconds):
        rows, pictures = [], []

        def search(model, limit):
            name = f"stream-{model.stem.removeprefix('surface_loop_')}"
            with Path(self.of, "shm") as path:
                client = path.open(stream_config(self.of, model))
                found = [self.of.run(f"{name}-{k}", [
                    self.of.program, "emulate", *client, "--dem", model, "--rounds", self.given.rounds, "--search-rate",
                    "--search-p999-us", self.given.p999_us], limit) for k in (1, 2)]
            first, second = (one["lowest_cycle_ns"] for one in found)
            held = [t for t in found[0]["trials"] if t["rate"] == found[0]["highest_rate"]]
            rows.append([model.stem, us(first), us(second), apart(first, second),
                         *(us(max((t[p] for t in held), default=None)) for p in ("p50_ns", "p99_ns", "p999_ns"))])
            pictures.append(self.of.picture(f"{name}-1", "Latency over the offered rate"))

        self.each(search, self.models(), seconds)
        self.text += ["## Shortest cycle of a stream without loss\n\nOver shm, windows of the code's distance, "
                      f"{self.given.rounds} rounds a run. The latencies are those of windows at the cycle of the first "
                      "search.\n",
                      table(["model", "a round each", "second search", "apart", "p50", "p99", "p99.9"], rows),
                      *pictures]

    def tails(self, seconds):
        rows = []

        def tail(model, limit):
            count = max(5, min(1000, int(limit / TAIL_EXPERIMENT_S / 2)))
            for workers in (0, 1):
                name = f"tail-{model.stem.removeprefix('surface_loop_')}-{workers}"
                got = self.of.run(name, [self.of.bench, "stream", "--dem", model, "--rounds", 10000, "--random-stops",
                                         "--decoder", "pymatching", "--experiments", count, "--workers", workers],
                                  limit)
                t = got["tail_ns"]
                rows.append([model.stem, workers, t["count"], "kept" if got["pace_kept"] else "not kept",
                             *(us(t[p]) for p in ("p50", "p90", "p99", "max"))])

        self.each(tail, self.models(), seconds)
        self.text += ["## Tail of a stream\n\nWithout a server: from the last round to the final correction, after "
                      "5000 to 10,000 rounds of 1 us.\n",
                      table(["model", "workers", "experiments", "pace", "p50", "p90", "p99", "max"], rows)]


def machine(of):
    """What every report has: processor, kernel, date; and the GPU's driver where there is one."""
    found = next((json.loads(p.read_text()) for p in sorted(of.folder.glob("*.json"))), {})
    m = found.get("machine", {})
    try:
        gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True, timeout=20, check=False).stdout.strip().splitlines()
    except (OSError, subprocess.TimeoutExpired):
        gpu = []
    rows = [["processor", f"{m.get('cpu_model', '')}, {m.get('online_cores', '')} cores"
             + (", virtual" if m.get("virtual_machine") else "")],
            ["kernel", f"{m.get('kernel', '')} {m.get('architecture', '')}"],
            ["governor", m.get("governor") or "none"],
            ["GPU and driver, not used", "; ".join(gpu) or "none"],
            ["version", f"{found.get('tool', '')} {found.get('version', '')}"],
            ["date", found.get("date", "")],
            ["load", "{:.1f} before, {:.1f} after".format(of.load, os.getloadavg()[0])]]
    return table(["machine", ""], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=480)
    parser.add_argument("--slack", type=float, default=0, help=argparse.SUPPRESS)  # on a slow machine: for the test
    parser.add_argument("--rate", type=float, default=USUAL_RATE)
    parser.add_argument("--realtime", default="")
    parser.add_argument("--client", default="")
    parser.add_argument("--p999-us", type=float, default=1000)
    parser.add_argument("--rounds", type=int, default=20_000, help="of a run of a stream")
    parser.add_argument("--part", action="append", choices=SHARES)
    given = parser.parse_args()
    of = Measurement(given)
    of.load = os.getloadavg()[0]
    report = Report(of, given)
    parts = given.part or list(SHARES)
    for part in parts:
        print(part, file=sys.stderr)
        getattr(report, part)(given.budget * SHARES[part] / sum(SHARES[p] for p in parts))
    lines = ["# The server's latency\n", machine(of), *report.text, "## Not measured\n",
             *([f"- {why}" for why in report.left_out] or ["Nothing was left out."]),
             f"\n## Commands\n\n{time.monotonic() - of.begun:.0f} s of {given.budget:.0f} s. "
             f"`{shlex.join(['release_report.py', 'BUILD', 'FOLDER', *sys.argv[3:]])}`, which runs:\n", "```text",
             *of.commands, "```"]
    path = of.folder / "release.md"
    path.write_text("\n".join(lines) + "\n")
    print(path)
    return 1 if report.left_out else 0


if __name__ == "__main__":
    sys.exit(main())
