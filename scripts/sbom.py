#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is in an installation, as SPDX 2.3 in JSON: sbom.py PREFIX [FILE], to stdout without FILE.

PREFIX is a folder that `cmake --install` has filled, or an unpacked package. Listed are: each program and library with
its SHA-1 and SHA-256; the code of other projects in them, from THIRD_PARTY_NOTICES.txt (cmake/CudaqNotices.cmake is the
one list of it); and the shared libraries of the system that they load, with the version of their Debian package where
dpkg knows it. With SOURCE_DATE_EPOCH in the environment the same installation gives the same bytes. It needs readelf.
Status: 0, or 2 with a text if PREFIX is no installation."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import time

# SPDX wants an expression of its list of licences; another text stays a comment.
EXPRESSION = re.compile(r"(Apache-2\.0|MIT|BSD-3-Clause)( WITH LLVM-exception)?$")
NOTICE = re.compile(r"^=+\n(\S.*)\nLicence: (.*)\nUsed in: (.*)\n=+$", re.MULTILINE)


def fail(text):
    print(f"sbom.py: {text}", file=sys.stderr)
    sys.exit(2)


def identifier(kind, name):
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.]+", "-", name)


def package(kind, name, version, licence, comment):
    is_expression = bool(EXPRESSION.match(licence))
    made = {"SPDXID": identifier(kind, name), "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": licence if is_expression else "NOASSERTION",
            "copyrightText": "NOASSERTION", "comment": comment}
    if not is_expression and licence:
        made["licenseComments"] = licence
    if version:
        made["versionInfo"] = version
    return made


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def loaded_by(path):
    ended = subprocess.run(["readelf", "--dynamic", "--wide", str(path)], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        fail(f"readelf {path}: {ended.stderr.strip()}")
    return re.findall(r"\(NEEDED\).*\[(.*)\]", ended.stdout)


def version_of(library):
    """Of the Debian package of this machine that has it, or an empty text. Packages for cross compilers are passed
    over: their libraries are in other folders."""
    folder = sysconfig.get_config_var("MULTIARCH")
    if shutil.which("dpkg-query") is None or not folder:
        return ""
    paths = [f"{root}/{library}" for root in (f"/lib/{folder}", f"/usr/lib/{folder}", "/lib64")]
    owner = subprocess.run(["dpkg-query", "--search", *paths], capture_output=True, text=True, check=False)
    if not owner.stdout:
        return ""
    name = owner.stdout.split(": ")[0].split(",")[0]
    return subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", name], capture_output=True, text=True,
                          check=False).stdout


def file_entry(prefix, path, number):
    content = path.read_bytes()
    name = path.relative_to(prefix).as_posix()
    return {"SPDXID": identifier("File", f"{number}-{name}"), "fileName": f"./{name}", "fileTypes": ["BINARY"],
            "checksums": [{"algorithm": algorithm, "checksumValue": hashlib.new(algorithm.lower(), content).hexdigest()}
                          for algorithm in ("SHA1", "SHA256")],
            "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"}


def document(prefix):
    notices = sorted(prefix.rglob("THIRD_PARTY_NOTICES.txt"))
    if len(notices) != 1:
        fail(f"{prefix} is no installation of cudaq-realtime: it has {len(notices)} THIRD_PARTY_NOTICES.txt, not one")
    text = notices[0].read_text()
    head = re.match(r"Code of other projects in the installed files of cudaq-realtime (\S+)\n", text)
    if head is None:
        fail(f"{notices[0]}: the first line has no version")
    binaries = sorted(path for path in prefix.rglob("*") if is_elf(path))
    if not binaries:
        fail(f"{prefix} has no program and no library")
    own = package("Package", "cudaq-realtime", head[1], "Apache-2.0", "the installation")
    own["primaryPackagePurpose"] = "LIBRARY"
    packages, files, relations = [own], [file_entry(prefix, *one) for one in zip(binaries, range(len(binaries)))], []
    # Only a package whose files were analyzed may contain files. The code is the SHA-1 of their sorted SHA-1s.
    own["filesAnalyzed"], own["licenseInfoFromFiles"] = True, ["NOASSERTION"]
    sums = "".join(sorted(entry["checksums"][0]["checksumValue"] for entry in files))
    own["packageVerificationCode"] = {"packageVerificationCodeValue": hashlib.sha1(sums.encode()).hexdigest()}

    def relate(one, kind, other):
        relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})

    relate("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])
    for name, licence, where in NOTICE.findall(text):
        parts = re.match(r"(.*?) (\d[\w.]*)$", name)
        packages.append(package("Code", parts[1] if parts else name, parts[2] if parts else "", licence,
                                f"its code is in {where}"))
        relate(own["SPDXID"], "CONTAINS", packages[-1]["SPDXID"])
    inside, libraries = {path.name for path in prefix.rglob("*.so*")}, {}
    for path, entry in zip(binaries, files):
        relate(own["SPDXID"], "CONTAINS", entry["SPDXID"])
        for library in loaded_by(path):
            if library not in inside:
                libraries.setdefault(library, []).append(entry["SPDXID"])
    for library, users in sorted(libraries.items()):
        packages.append(package("Library", library, version_of(library), "", "a shared library of the system"))
        for user in users:
            relate(user, "DYNAMIC_LINK", packages[-1]["SPDXID"])
    created = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    made = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"cudaq-realtime-{head[1]}", "packages": packages, "files": files, "relationships": relations,
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", created),
                             "creators": ["Tool: cudaq-realtime-sbom.py"]}}
    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()
    made["documentNamespace"] = f"https://spdx.org/spdxdocs/cudaq-realtime-{head[1]}-{digest[:32]}"
    return made


def main():
    if len(sys.argv) not in (2, 3):
        fail("usage: sbom.py PREFIX [FILE]")
    if shutil.which("readelf") is None:
        fail("readelf is not installed (binutils)")
    text = json.dumps(document(pathlib.Path(sys.argv[1])), indent=1) + "\n"
    if len(sys.argv) == 3:
        pathlib.Path(sys.argv[2]).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
