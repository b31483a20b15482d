#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the Mermaid diagrams of documents: scripts/diagrams.py PAGE.md... checks that each diagram can be drawn.

build_site.py takes the pictures from here. Needs chromium (Debian: chromium) and Mermaid itself, which pip fetches once
from the package nicegui, which carries it. The browser runs without network. Status 77: one of both is missing."""
import contextlib
import functools
import hashlib
import html
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import zipfile

PACKAGE, SHA256 = "nicegui==3.18.0", "a2bd51642312d98aab6d8b641245d796ff1b89da5829777170bcc488140c3dcd"
BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
SETTINGS = {"startOnLoad": False, "theme": "neutral", "themeVariables": {"lineColor": "#555555"},
            "fontFamily": "sans-serif", "deterministicIds": True, "securityLevel": "strict",
            "flowchart": {"htmlLabels": False}, "suppressErrorRendering": True}
PAGE = """<!doctype html><meta charset="utf-8"><body><script type="application/json" id="texts">%s</script>
<script type="module">
import { mermaid } from "./mermaid/index.js";
mermaid.initialize(%s);
const drawn = [];
const texts = JSON.parse(document.getElementById("texts").textContent);
for (let i = 0; i < texts.length; ++i)
  try { drawn.push({ svg: (await mermaid.render("diagram-" + i, texts[i])).svg }); }
  catch (error) { drawn.push({ error: String(error.message || error) }); }
document.body.textContent = encodeURIComponent(JSON.stringify(drawn));
document.body.id = "drawn";
</script>"""


class Unavailable(Exception):
    """A program or package that is needed is missing."""


def mermaid_folder():
    """The folder of Mermaid's files in the cache of the user."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "cudaq-realtime" / ("mermaid-" + SHA256[:12])
    if (folder / "index.js").exists():
        return folder
    with tempfile.TemporaryDirectory() as scratch:
        ran = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                              "--retries", "1", "--timeout", "30", "--no-deps", "--dest", scratch,
                              PACKAGE], capture_output=True, text=True, check=False)
        wheels = list(pathlib.Path(scratch).glob("*.whl"))
        if ran.returncode or len(wheels) != 1:
            last = (ran.stderr.strip() or "no wheel").splitlines()[-1]
            raise Unavailable(f"pip did not fetch {PACKAGE}, which carries Mermaid: {last}")
        if hashlib.sha256(wheels[0].read_bytes()).hexdigest() != SHA256:
            raise Unavailable(f"{wheels[0].name} is not the file that scripts/diagrams.py names")
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            for member in wheel.namelist():
                if re.fullmatch(r"nicegui/elements/mermaid/dist/[^/]+\.js", member):
                    part.mkdir(parents=True, exist_ok=True)
                    (part / pathlib.PurePath(member).name).write_bytes(wheel.read(member))
        try:
            part.rename(folder)
        except OSError:  # another process was quicker
            shutil.rmtree(part)
    return folder


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serve(folder, handler=Quiet):
    """A server of the files of a folder, for this machine only: a browser loads no module from a file."""
    handler = functools.partial(handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def browser(profile):
    """The command of a browser without a window and without network, which keeps its files in the folder `profile`."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        raise Unavailable("chromium is not installed (Debian: chromium)")
    return [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={profile}"]


def draw(texts):
    """For each text its picture as SVG in one line, or {"error": reason}, in a list."""
    if not texts:
        return []
    with tempfile.TemporaryDirectory() as scratch, serve(scratch) as address:
        folder = pathlib.Path(scratch)
        command = browser(folder / "profile")
        (folder / "mermaid").symlink_to(mermaid_folder())
        data = json.dumps(texts).replace("<", "\\u003c")
        (folder / "page.html").write_text(PAGE % (data, json.dumps(SETTINGS)))
        ran = subprocess.run([*command, "--virtual-time-budget=60000", "--dump-dom", f"{address}/page.html"],
                             capture_output=True, text=True, timeout=300, check=False)
    found = re.search(r"""<body id="drawn">([^<"]*)</body>""", ran.stdout)
    if not found:
        raise RuntimeError(f"{command[0]} drew nothing, status {ran.returncode}: {ran.stderr[-1000:]}")
    return [dict(one, svg=one["svg"].replace("\n", " ")) if "svg" in one else one
            for one in json.loads(urllib.parse.unquote(html.unescape(found[1])))]


def main(names):
    pages = {name: BLOCK.findall(pathlib.Path(name).read_text()) for name in names}
    places = [(name, text) for name, texts in pages.items() for text in texts]
    try:
        drawn = draw([text for _, text in places])
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    wrong = 0
    for (name, text), one in zip(places, drawn):
        if "error" in one:
            wrong += 1
            print(f"{name}: {text.splitlines()[0]}: {one['error']}")
    print(f"{len(drawn)} diagrams of {sum(1 for texts in pages.values() if texts)} pages, {wrong} cannot be drawn")
    return 1 if wrong or not drawn else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
