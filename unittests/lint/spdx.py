#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file of code or configuration names its licence in the first two lines."""
import tree

# Documents: readers should see the text first. The others have no comments, or are not text.
EXEMPT = {".md", ".json", ".ipynb", ".b8", ".dem", ".meta", ".csv", ".abi", ".png", ".svg", ".gz", ".01",
          ".r8", ".hits", ".dets", ".ptb64", ".stim", ".f32", ".safetensors", ".jsonl"}
problems = []
paths = [p for p in tree.files() if p.suffix not in EXEMPT and p.name != "LICENSE"]
for path in paths:
    head = tree.text(path).split("\n")[:2]
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
        problems.append(f"{path}: no SPDX line")
tree.report(problems, len(paths), "files name their licence")
