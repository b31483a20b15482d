#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/serve/grafana_board.json asks only for what the server writes: each metric, and each label of it. And
docs/transport/server_counters.md has each metric of the page of a server, those of all transports, and no others.
metrics_names_test.py SOURCE PROGRAM UDP_PROVIDER FOLDER"""
import json
import pathlib
import re
import subprocess
import sys
import urllib.request

source, program, provider, folder = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
SERIES = r"(cudaq_\w+)(?:\{([^}]*)\})?"


def labels_of(text):
    return set(re.findall(r"(\w+)=", text or ""))


def page_of_a_server():
    """The metrics page of a server with a decoder of shots, one of streams, and a transport that counts."""
    folder.mkdir(parents=True, exist_ok=True)
    config, model, events = folder / "decoders.yaml", folder / "model.dem", folder / "events.01"
    model.write_text("error(0.1) D0 L0")
    events.write_text("1\n0\n" * 10)
    config.write_text("decoders:\n  - {id: 0, type: bp-osd, dem: 'error(0.1) D0 L0'}\n  - {id: 1, stream: true, "
                      "type: 'sliding-window:inner=bp-osd,commit=3,buffer=3', "
                      f"dem_file: '{source}/tools/data/surface_loop_d3_p0.004.dem'}}\n")
    command = [program, "serve", "--config", config, "--transport", provider, "--prometheus-port", "0", "--timeout",
               "60", "--", "--port=0", "--unified"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            ready = server.stdout.readline()
            port = re.search(r"prometheus_port=(\d+)", ready)[1]
            # Shots: before them no detector has a rate.
            subprocess.run([program, "emulate", "--transport", "udp", "--port",
                            re.search(r" port=(\d+)", ready)[1], "--dem", model, "--in", events, "--in_format", "01",
                            "--shots", "20"], stdout=subprocess.DEVNULL, check=True, timeout=30)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
                return page.read().decode()
        finally:
            server.terminate()


def mistakes(board, written):
    """What the board asks for and the page does not have. `instance` is a label that Prometheus adds."""
    variables = [variable["query"]["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]] + variables
    found = []
    for expression in expressions:
        wanted = re.findall(SERIES, expression)
        by = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", expression))))
        for name, labels in wanted:
            if name not in written:
                found.append(f"{name} is not written: {expression}")
            elif unknown := (labels_of(labels) | by) - written[name] - {"instance"}:
                found.append(f"{name} has no label {sorted(unknown)}: {expression}")
        if not wanted:
            found.append(f"no metric: {expression}")
    return found


def names_of_page(text, label_values):
    """The metrics that the page names: whole ones, those of tables with a prefix in their head, and `..._end`. The
    tables have values of labels, too."""
    found, prefix, last = set(), None, ""
    for line in text.splitlines():
        if not line.startswith("|"):
            prefix = None
        elif head := re.match(r"\| line, after `(cudaq_\w+_)`", line):
            prefix = head[1]
        elif prefix:
            found.update(prefix + name for name in re.findall(r"`([a-z_]+)[`{]", line.split("|")[1])
                         if name not in label_values)
        for name in re.findall(r"`(cudaq_(?!qec)\w*[a-z]|\.\.\._\w+)[`{]", line):
            last = last if name.startswith("...") else name
            found.add(last + name[3:] if name.startswith("...") else name)
    return found


def mistakes_of_page(text, written, of_transports, label_values):
    """`written`: the series of a server; a histogram and a summary have one name on the page."""
    parts = r"_(bucket|sum|count)$"
    named = names_of_page(text, label_values)
    known = named | {re.sub(parts, "", name) for name in named}
    families = {name if name in known else re.sub(parts, "", name) for name in written}
    lost = [f"server_counters.md does not have {name}" for name in sorted((families | of_transports) - known)]
    also = {"cudaq_decoder_race_wins_total"} | of_transports  # that of a race
    return lost + [f"server_counters.md has {name}, which no server writes" for name in
                   sorted(named - families - set(written) - also)]


board = json.loads((source / "tools/serve/grafana_board.json").read_text())
written = {}
for line in page_of_a_server().splitlines():
    if series := re.match(SERIES, line):
        written.setdefault(series[1], set()).update(labels_of(series[2]))
assert len(board["panels"]) >= 8 and len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
problems = mistakes(board, written)
# The check itself: another name, and another label.
broken = json.dumps(board).replace("cudaq_decoder_waiting", "cudaq_decoder_queue")
broken = json.loads(broken.replace("by (decoder, le)", "by (node, le)"))
if not any("cudaq_decoder_queue is not" in text for text in mistakes(broken, written)) or \
        not any("has no label ['node']" in text for text in mistakes(broken, written)):
    problems.append("this check does not see a wrong name or label")
text = (source / "docs/transport/server_counters.md").read_text()
rows = (source / "tools/services/transport_counters.cpp").read_text()
transports = {"cudaq_transport_" + name for name in re.findall(r'^    \{"(\w+)", "', rows, re.M)}
assert {"cudaq_transport_received_total", "cudaq_transport_packets_total",
        "cudaq_transport_callers_delayed_total"} <= transports
label_values = set(re.findall(r'^    \{"\w+", "(?:\w+=\\")?(\w+)', rows, re.M)) - {"peers"}
assert {"magic", "unverified"} <= label_values
problems += mistakes_of_page(text, written, transports, label_values)
seen = mistakes_of_page(text.replace("`padded_total`", "`stuffed_total`"), written, transports, label_values)
if not any("does not have cudaq_decoder_padded_total" in problem for problem in seen) or \
        not any("has cudaq_decoder_stuffed_total," in problem for problem in seen):
    problems.append("this check does not see a wrong name on the page")
print("\n".join(problems) or f"{len(board['panels'])} panels ask only for what the server writes, and its page has all "
      f"{len(written)} series")
sys.exit(bool(problems))
