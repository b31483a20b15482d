#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""With a word before a release, each reader of version.h has its own form of the version: release_word.py SOURCE CMAKE
SCRATCH. version.h is a copy in which the version is 1.0.0-rc1."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

source, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3])
header = "include/cudaq/realtime/version.h"
shutil.rmtree(scratch, ignore_errors=True)
for path in (header, "cmake/CudaqVersion.cmake", "cmake/CudaqNotices.cmake", "scripts/version.sh"):
    (scratch / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / path, scratch / path)
text = (scratch / header).read_text()
for name, value in (("MAJOR", "1"), ("MINOR", "0"), ("PATCH", "0"), ("PRERELEASE", '"rc1"')):
    text, found = re.subn(rf"(#define CUDAQ_REALTIME_VERSION_{name}) .*", rf"\1 {value}", text)
    assert found == 1, name
(scratch / header).write_text(text)


def output_of(*command):
    return subprocess.check_output([str(word) for word in command], text=True, stderr=subprocess.STDOUT).strip()


for form, wanted in (((), "1.0.0-rc1"), (("python",), "1.0.0rc1"), (("debian",), "1.0.0~rc1")):
    assert output_of(scratch / "scripts/version.sh", *form) == wanted, form
# The head of the notices is made before the first function; the bill of materials has its version from it.
notices = (scratch / "cmake/CudaqNotices.cmake").read_text().partition("function(")[0]
(scratch / "forms.cmake").write_text(f"""include("{scratch}/cmake/CudaqVersion.cmake")
set(PROJECT_VERSION "${{CUDAQ_REALTIME_VERSION}}")
{notices}
message("${{PROJECT_VERSION}} ${{CUDAQ_REALTIME_VERSION_TEXT}} ${{_notices}}")
""")
read = output_of(sys.argv[2], "-P", scratch / "forms.cmake")
assert read.startswith("1.0.0 1.0.0-rc1 ") and read.endswith("cudaq-realtime 1.0.0-rc1"), read
# As scikit-build-core reads it.
settings = (source / "pyproject.toml").read_text()
regex, result = re.search(r"^regex = \'\'\'(.*?)\'\'\'\nresult = \"(.*)\"$", settings, re.M | re.S).groups()
assert result.format(**re.search(regex, text, re.M).groupdict()) == "1.0.0rc1"
# Reports have it, too.
pattern = json.loads((source / "docs/report_schema.json").read_text())["properties"]["version"]["pattern"]
for version, fits in (("1.0.0-rc1", True), ("1.0.0", True), ("1.0.0-", False), ("1.0.0rc1", False), ("1.0", False)):
    assert bool(re.search(pattern, version)) == fits, version
print("1.0.0-rc1 in each form")
