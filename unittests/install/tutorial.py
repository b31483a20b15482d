#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what a page of docs/tutorials tells its reader to do: tutorial.py PAGE SOURCE PREFIX SCRATCH [NVCC].

The ```sh blocks of the page run in their order, in one shell that stops at the first error, in the empty folder
SCRATCH. A ```text block after them must be the end of what they have printed; `...` in it stands for any text. Blocks
marked `nvcc` need the compiler NVCC, blocks marked `gpu` a GPU: without them the rest of the page is skipped, with the
reason. A page without a block that ran fails."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

page, source, prefix, scratch = (pathlib.Path(p).resolve() for p in sys.argv[1:5])
nvcc = sys.argv[5] if len(sys.argv) > 5 else ""


def blocks():
    """The fenced blocks of the page: language, marks, text."""
    for head, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE):
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
    variables = dict(os.environ, SOURCE=str(source), PREFIX=str(installed), HOME=str(scratch),
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
script, expectations, lacking = ["set -euo pipefail\n"], [], None
for language, marks, text in blocks():
    if language == "sh":
        lacking = ("no nvcc" if "nvcc" in marks and not nvcc else None) or (gpu_lacking() if "gpu" in marks else None)
        if lacking:
            break
        script.append(f"echo '=== block {len(expectations)}'\n{text}")
        expectations.append(None)
    elif language == "text" and expectations:
        expectations[-1] = text
if not expectations:
    print(f"skipped: {lacking}" if lacking else f"{page.name} has no commands")
    sys.exit(77 if lacking else 1)

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
