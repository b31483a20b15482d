#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/sbom.py lists each binary of an installation with its hash, each project of THIRD_PARTY_NOTICES.txt and each
library of the system: sbom.py SOURCE PREFIX SCRATCH. It compares with what sha256sum and readelf say of the files, and
checks the form: required fields, identifiers that are unique and exist. Where the Python module spdx_tools is
installed, the reference implementation of SPDX judges it, too."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

source, prefix, scratch = (pathlib.Path(argument) for argument in sys.argv[1:4])
if shutil.which("readelf") is None:
    print("skipped: readelf is not installed")
    sys.exit(77)


def sbom(*arguments, status=0):
    ended = subprocess.run([sys.executable, source / "scripts/sbom.py", *arguments], capture_output=True, text=True,
                           check=False, env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000"))
    assert ended.returncode == status, (ended.returncode, ended.stderr)
    return ended.stdout or ended.stderr


text = sbom(prefix)
made = json.loads(text)
assert sbom(prefix) == text, "the same installation gives other bytes"
for field in ("spdxVersion", "dataLicense", "name", "documentNamespace", "creationInfo"):
    assert made[field], field
assert made["spdxVersion"] == "SPDX-2.3" and made["creationInfo"]["created"] == "2023-11-14T22:13:20Z"
everything = made["packages"] + made["files"]
identifiers = [one["SPDXID"] for one in everything]
assert len(set(identifiers)) == len(identifiers), "an identifier stands twice"
assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", one) for one in identifiers), identifiers
for relation in made["relationships"]:
    for end in ("spdxElementId", "relatedSpdxElement"):
        assert relation[end] in {*identifiers, "SPDXRef-DOCUMENT"}, relation

elf = [path for path in prefix.rglob("*") if path.is_file() and not path.is_symlink() and
       path.read_bytes()[:4] == b"\x7fELF"]
sums = subprocess.run(["sha256sum", *elf], capture_output=True, text=True, check=True).stdout
expected = {"./" + str(path.relative_to(prefix)): line.split()[0].lstrip("\\")
            for path, line in zip(elf, sums.splitlines())}
listed = {one["fileName"]: {sum_["algorithm"]: sum_["checksumValue"] for sum_ in one["checksums"]}["SHA256"]
          for one in made["files"]}
assert listed == expected, set(listed.items()) ^ set(expected.items())

# A package that contains files has a code of them: SPDX 2.3, 7.8 and 7.9.
[own] = [one for one in made["packages"] if one["name"] == "cudaq-realtime"]
sha1 = "".join(sorted(hashlib.sha1((prefix / one["fileName"]).read_bytes()).hexdigest() for one in made["files"]))
assert own["filesAnalyzed"] is True
assert own["packageVerificationCode"]["packageVerificationCodeValue"] == hashlib.sha1(sha1.encode()).hexdigest()
assert not any(one["filesAnalyzed"] for one in made["packages"] if one is not own)

notices = next(prefix.rglob("THIRD_PARTY_NOTICES.txt")).read_text()
by_name = {one["name"]: one for one in made["packages"]}
for name in re.findall(r"^=+\n(\S.*)\nLicence: ", notices, re.MULTILINE):
    full = [f"{one['name']} {one.get('versionInfo', '')}".strip() for one in made["packages"]]
    assert name in full, (name, full)
assert by_name["cudaq-realtime"]["versionInfo"] in notices.split("\n", 1)[0]
needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]",
                        subprocess.run(["readelf", "-dW", *elf], capture_output=True, text=True, check=True).stdout))
for library in needed:
    assert library in by_name or any(path.name == library for path in prefix.rglob("*.so*")), library
assert "libc.so.6" in by_name

shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
assert "it has 0 THIRD_PARTY_NOTICES.txt, not one" in sbom(scratch, status=2)
(scratch / "THIRD_PARTY_NOTICES.txt").write_text("of another project\n")
assert "the first line has no version" in sbom(scratch, status=2)
try:
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    (scratch / "made.spdx.json").write_text(text)
    faults = validate_full_spdx_document(parse_file(str(scratch / "made.spdx.json")))
    assert not faults, [one.validation_message for one in faults]
except ImportError:
    print("not judged by spdx_tools: the Python module is not installed")
print(f"{len(made['files'])} files, {len(made['packages'])} packages, {len(made['relationships'])} relations")
