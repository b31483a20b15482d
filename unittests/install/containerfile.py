#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Containerfile: containerfile.py sound|image|builds SOURCE [PACKAGES].

sound: its instructions are known, its stages, shell commands and copied files exist, and it installs the packages that
scripts/bootstrap.sh calls necessary. image: the last stage alone, with the Debian packages in the folder PACKAGES: its
commands run in a new root of Debian (mmdebstrap), and then what its users run. builds: podman, docker or buildah builds
the whole file, then the same. With buildah the base is made with mmdebstrap where no registry of images is reached.
image and builds: only if CUDAQ_TEST_WHOLE is set; skipped without root, network, or a builder that works."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

way, source = sys.argv[1], pathlib.Path(sys.argv[2])
INSTRUCTIONS = {"FROM", "RUN", "COPY", "USER", "ENTRYPOINT", "CMD", "WORKDIR", "ENV", "ARG", "LABEL"}
text = (source / "Containerfile").read_text()
joined = re.sub(r"\\\n", " ", "".join(line + "\n" for line in text.split("\n") if not line.startswith("#")))
problems, stages, seen, last_stage = [], {}, [], {}
for line in filter(str.strip, joined.split("\n")):
    word, _, rest = line.partition(" ")
    seen.append(word)
    last_stage = {} if word == "FROM" else last_stage
    last_stage[word] = rest.strip()
    if word not in INSTRUCTIONS:
        problems.append(f"unknown instruction {word}")
    elif word == "FROM":
        named = re.fullmatch(r"\S+:\S+(?: AS (\w+))?", rest.strip())
        problems += [] if named else [f"FROM {rest}: an image with a tag, and AS with a name"]
        stages.update({named.group(1): None} if named and named.group(1) else {})
    elif word == "COPY":
        *what, _ = [w for w in rest.split() if not w.startswith("--")]
        stage = re.search(r"--from=(\w+)", rest)
        if stage and stage.group(1) not in stages:
            problems.append(f"COPY {rest}: no stage {stage.group(1)}")
        folder = stages.get(stage.group(1)) if stage else source
        problems += [f"COPY {rest}: {folder / w} does not exist" for w in what if folder and not (folder / w).exists()]
    elif word == "RUN":
        checked = subprocess.run(["bash", "-n", "-c", rest], capture_output=True, text=True, check=False)
        problems += [checked.stderr] if checked.returncode else []
    elif word in ("ENTRYPOINT", "CMD"):
        try:
            json.loads(rest)
        except ValueError:
            problems.append(f"{word} {rest}: a list of strings")
problems += [f"no instruction {word}" for word in ("FROM", "USER", "ENTRYPOINT") if word not in seen]
table = re.search(r"^table\(\).*?^T$", (source / "scripts/bootstrap.sh").read_text(), flags=re.DOTALL | re.MULTILINE)
needed = re.findall(r"^must\|[^|]*\|([^|]*)\|", table.group(0), flags=re.MULTILINE)
problems += [f"apt-get does not install {package}" for package in needed if f" {package} " not in joined]
if problems or not needed:
    sys.exit("\n".join(f"Containerfile: {p}" for p in problems) or "no packages found in scripts/bootstrap.sh")
print(f"Containerfile: {len(seen)} instructions are sound", flush=True)

if way == "sound":
    sys.exit(0)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def works(*command):
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, **options)


def output(*command):
    return run(*command, stdout=subprocess.PIPE).stdout.strip()


def make_base(archive):
    """Debian from its packages, as the image of this name in a registry."""
    if not shutil.which("mmdebstrap"):
        skip("mmdebstrap is not installed (Debian: mmdebstrap)")
    made = subprocess.run(["mmdebstrap", "--variant=minbase", "bookworm", archive], stderr=subprocess.PIPE, text=True,
                          check=False, timeout=900)
    if made.returncode:
        skip(f"mmdebstrap: {(made.stderr.strip() or 'failed').splitlines()[-1]}")


def check(container, config):
    """What users run. container(arguments): the command that runs the image, with the folder `config` as /config."""
    run(*container("info"))
    run(*container(*json.loads(last_stage["CMD"]), "--config", "d3"))
    model = "/usr/share/cudaq-realtime/data/surface_z_d3_p0.005.dem"
    (config / "decoders.yaml").write_text(f'decoders: [{{id: 0, type: pymatching, dem_file: "{model}"}}]\n')
    # The provider that only libibverbs makes possible is there, and looks for an adapter.
    refused = subprocess.run(container("serve", "--config", "/config/decoders.yaml", "--transport", "cpu_roce", "--",
                                       "--device=none"), stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    if not refused.returncode or "--device none: this machine has" not in refused.stderr:
        sys.exit(f"the provider cpu_roce in the container: {refused.stderr}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([*container("serve", "--config", "/config/decoders.yaml", "--transport", "udp", "--",
                                          f"--port={port}", "--unified")], start_new_session=True)
    try:
        client = container("emulate", "--transport", "udp", "--port", str(port), "--config", "d3", "--shots", "500")
        for _ in range(60): # until the server listens
            played = subprocess.run(client, stdout=subprocess.PIPE, text=True, check=False)
            if played.returncode == 0 or server.poll() is not None:
                break
            time.sleep(1)
        print(played.stdout, flush=True)
        if not re.search(r"500 of 500 as expected", played.stdout):
            sys.exit("the server in the container did not answer as expected")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=60)


def of_last_stage(scratch, packages):
    """Its commands in a root of Debian. Each has a mount namespace of its own, so nothing stays mounted."""
    if os.geteuid() != 0 or not works("unshare", "--mount", "true"):
        skip("this is not root, or unshare may not make a mount namespace here")
    make_base(scratch / "base.tar")
    root, config = scratch / "root", scratch / "config"
    for folder in (root, config):
        folder.mkdir()
    run("tar", "-xf", scratch / "base.tar", "-C", root)
    (root / "config").mkdir()
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    _, _, to = last_stage["COPY"].split()
    shutil.copytree(packages, root / to.strip("/"))

    def in_root(*command, user="root"):
        mounts = " && ".join(f"mount --rbind {what} {root}{where}" for what, where in
                             (("/proc", "/proc"), ("/dev", "/dev"), ("/sys", "/sys"), (config, "/config")))
        return ["unshare", "--mount", "sh", "-c", f'{mounts} && exec chroot --userspec={user} {root} "$@"', "sh",
                *command]

    run(*in_root("/bin/sh", "-c", last_stage["RUN"]))
    program = json.loads(last_stage["ENTRYPOINT"])
    check(lambda *arguments: in_root(*program, *arguments, user=last_stage["USER"]), config)


def with_buildah(scratch, image):
    """Without privileges and without a service: each step in a chroot, images as folders."""
    buildah = ["buildah", "--storage-driver", "vfs", "--root", scratch / "images", "--runroot", scratch / "run"]
    if not works(*buildah, "from", "--isolation", "chroot", "scratch"):
        skip("buildah does not work here")
    if not works(*buildah, "pull", f"docker.io/library/{image}"):
        make_base(scratch / "base.tar")
        container = output(*buildah, "from", "scratch")
        run(*buildah, "add", "--quiet", container, scratch / "base.tar", "/")
        run(*buildah, "commit", "--quiet", "--rm", container, f"localhost/{image}")
    # pip trusts in the container what this machine trusts: its network may have a certificate of its own.
    bundle = pathlib.Path(os.environ.get("PIP_CERT") or "/etc/ssl/certs/ca-certificates.crt")
    (scratch / "pip.conf").write_text("[global]\ncert = /run/certificates.crt\n")
    trust = ["--volume", f"{bundle}:/run/certificates.crt:ro", "--volume", f"{scratch / 'pip.conf'}:/etc/pip.conf:ro"]
    run(*buildah, "bud", "--isolation", "chroot", "--pull-never", *(trust if bundle.exists() else []), "--file",
        source / "Containerfile", "--tag", "cudaq-realtime-test", source)
    container = output(*buildah, "from", "--pull-never", "localhost/cudaq-realtime-test")
    config = scratch / "config"
    config.mkdir()
    program = json.loads(last_stage["ENTRYPOINT"]) # `buildah run` does not start it by itself
    check(lambda *arguments: [*buildah, "run", "--isolation", "chroot", "--volume", f"{config}:/config:ro", container,
                              "--", *program, *arguments], config)


def with_service(scratch, builder):
    """podman or docker."""
    run(builder, "build", "--file", source / "Containerfile", "--tag", "cudaq-realtime-test", source)
    check(lambda *arguments: [builder, "run", "--rm", "--network", "host", "--volume", f"{scratch}:/config:ro",
                              "cudaq-realtime-test", *arguments], scratch)


if not os.environ.get("CUDAQ_TEST_WHOLE"):
    skip("only whole runs (scripts/test.sh --all) make the image")
base = re.search(r"^FROM (\S+)", text, flags=re.MULTILINE).group(1)
builder = next((b for b in ("podman", "docker")
                if shutil.which(b) and works(b, "info") and works(b, "pull", base)), None)
with tempfile.TemporaryDirectory(prefix="containerfile", ignore_cleanup_errors=True) as folder:
    pathlib.Path(folder).chmod(0o755) # the user of the image reads /config
    if way == "image":
        if not any(pathlib.Path(sys.argv[3]).glob("*.deb")):
            skip("there are no packages: the test that makes them was skipped")
        of_last_stage(pathlib.Path(folder), sys.argv[3])
    elif builder:
        with_service(pathlib.Path(folder), builder)
    elif shutil.which("buildah"):
        with_buildah(pathlib.Path(folder), base)
    else:
        skip("neither podman nor docker works here, and buildah is not installed (Debian: buildah)")
