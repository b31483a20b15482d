#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what a page tells its reader to do: tutorial.py PAGE PREFIX SCRATCH [NVCC [HEADING]]. PAGE is a file of the
documents that are installed below PREFIX, so nothing comes from the source tree. With HEADING only what is in this
section of the page.

The ```sh blocks of the page run in their order, in one shell that stops at the first error, in the empty folder
SCRATCH. A ```text block after them must be the end of what they have printed; `...` in it stands for any text. A block
marked `server` is for a terminal of its own: it runs beside the blocks after it, from its READY line on, and gets a
SIGTERM at the next `server` block or at the end of the page. What it prints up to READY is compared. Blocks marked
`nvcc` need the compiler NVCC, blocks marked `gpu` a GPU: without them the rest of the page is skipped, with the
reason. A block marked `setup` is not run: this script has done what it says. A page without a block that ran fails."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

prefix, scratch = (pathlib.Path(p).resolve() for p in sys.argv[2:4])
page = prefix / "share/doc/cudaq-realtime" / sys.argv[1]
nvcc = sys.argv[4] if len(sys.argv) > 4 else ""
heading = sys.argv[5] if len(sys.argv) > 5 else ""
END_SERVER = """if [ -n "${terminal:-}" ]; then
  kill -- "-$terminal"
  wait "$terminal" || true
  while kill -0 -- "-$terminal" 2>/dev/null; do sleep 0.1; done
  terminal=
  grep -q PROCESSED terminal.txt
fi
"""
START_SERVER = """rm -f terminal.txt
setsid bash -euo pipefail -c {commands} >terminal.txt &
terminal=$!
until grep -qs READY terminal.txt; do kill -0 "$terminal"; sleep 0.1; done
cat terminal.txt
"""


def blocks():
    """The fenced blocks of the page: language, marks, text."""
    text = page.read_text()
    if heading:
        section = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^## |^### |\Z)", text, flags=re.DOTALL | re.MULTILINE)
        if section is None:
            sys.exit(f"{page.name} has no section '{heading}'")
        text = section[1]
    for head, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        words = head.split()
        yield words[0] if words else "", words[1:], body


def matches(expected, printed):
    wanted = "".join(re.escape(part) if part != "..." else ".*" for part in re.split(r"(\.\.\.)", expected.strip()))
    return re.search(wanted + r"\s*\Z", printed, flags=re.DOTALL)


def gpu_lacking():
    """Why there is no GPU for the rest of the page, or None."""
    program = shutil.which("nvidia-smi")
    if program and subprocess.run([program, "-L"], capture_output=True, check=False).returncode == 0:
        return None
    if os.environ.get("CUDAQ_REQUIRE_GPU"):
        sys.exit("CUDAQ_REQUIRE_GPU is set, but nvidia-smi lists no GPU")
    return "no GPU"


def environment():
    # The pages are for a folder without blanks in its name, as a reader's is.
    installed = scratch / "installed"
    installed.symlink_to(prefix)
    library_folder = installed / next(prefix.rglob("libcudaq-realtime.so")).parent.relative_to(prefix)
    variables = dict(os.environ, PREFIX=str(installed), HOME=str(scratch),
                     EXAMPLES=f"{installed}/share/doc/cudaq-realtime/docs/examples",
                     PATH=f"{installed}/bin:{os.environ['PATH']}", PKG_CONFIG_PATH=str(library_folder / "pkgconfig"))
    variables.pop("LD_LIBRARY_PATH", None)
    if nvcc:
        variables["PATH"] = f"{variables['PATH']}:{pathlib.Path(nvcc).parent}"
    return variables


if shutil.which("pkg-config") is None:
    print("skipped: pkg-config is not installed")
    sys.exit(77)
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
script = ["set -euo pipefail\n"
          "trap '[ -z \"${terminal:-}\" ] || kill -9 -- \"-$terminal\"; jobs -p | xargs -r kill -9' EXIT\n"]
expectations, lacking = [], None
for language, marks, text in blocks():
    if language == "sh" and "setup" not in marks:
        lacking = ("no nvcc" if "nvcc" in marks and not nvcc else None) or (gpu_lacking() if "gpu" in marks else None)
        if lacking:
            break
        commands = END_SERVER + START_SERVER.format(commands=shlex.quote(text)) if "server" in marks else text
        script.append(f"echo '=== block {len(expectations)}'\n{commands}")
        expectations.append(None)
    elif language == "text" and expectations:
        expectations[-1] = text
if not expectations:
    print(f"skipped: {lacking}" if lacking else f"{page.name} has no commands")
    sys.exit(77 if lacking else 1)

script.append(END_SERVER)
ended = subprocess.run(["bash", "-c", "".join(script)], cwd=scratch, env=environment(), text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
print(ended.stdout)
if ended.returncode != 0:
    sys.exit(f"{page.name}: a command ended with status {ended.returncode}")
printed = re.split(r"^=== block \d+\n", ended.stdout, flags=re.MULTILINE)[1:]
for number, expected in enumerate(expectations):
    if expected is not None and not matches(expected, printed[number]):
        sys.exit(f"{page.name}: the page shows another output:\n{expected}")
if lacking:
    print(f"skipped: {lacking}, so the page was followed only up to there")
    sys.exit(77)
print(f"{page.name}: {len(expectations)} blocks of commands work as described")
