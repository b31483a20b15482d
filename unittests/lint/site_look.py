#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the site in a browser, at the widths of a telephone and of a large screen: site_look.py SITE.

On each page: the document is not wider than the window, nothing is cut off without a way to scroll to it, texts and
code have enough contrast in light and dark (WCAG 2: 4.5), code of a known language has colours. The search of one page
finds a page of the documents and a function of the interface, and its window fits. A sample of the pages in light; if
CUDAQ_TEST_WHOLE is set, all of them in both. Skipped without a browser or without the site."""
import contextlib
import json
import os
import pathlib
import queue
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "scripts"))
import diagrams  # noqa: E402

WIDTHS = (400, 1280)
PAGE = """<!doctype html><meta charset="utf-8"><body><script>
const found = [], dark = matchMedia('(prefers-color-scheme: dark)').matches;
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const light = (colour) => {
  const [r, g, b] = colour.match(/[0-9.]+/g).map((c) => c / 255).map((c) => c <= 0.04045 ?
    c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
function ground(view, element) {
  for (; element; element = element.parentElement) {
    const colour = view.getComputedStyle(element).backgroundColor;
    if (/^rgb\\(/.test(colour)) return colour;
  }
  return 'rgb(255, 255, 255)';
}
function look(view, say) {
  const page = view.document, main = page.querySelector('[role=main]');
  if (page.documentElement.scrollWidth > view.innerWidth)
    say('is ' + page.documentElement.scrollWidth + ' pixels wide');
  if (!main || main.innerText.length < 10) return say('has no text');
  const scrolls = (element) => {
    for (; element != main; element = element.parentElement)
      if (/auto|scroll/.test(view.getComputedStyle(element).overflowX)) return true;
    return false;
  };
  for (const element of main.querySelectorAll('*')) {
    const own = [...element.childNodes].some((node) => node.nodeType == 3 && node.textContent.trim());
    const style = view.getComputedStyle(element), box = element.getBoundingClientRect();
    if (!own || !box.width || element.closest('svg, script') || element.matches('.headerlink, .permalink *')) continue;
    const text = element.textContent.trim().slice(0, 30);
    if (box.right > view.innerWidth + 1 && !scrolls(element)) say('cuts off: ' + text);
    if (contrast(light(style.color), light(ground(view, element))) < 4.5) say('has too little contrast: ' + text);
  }
  for (const code of main.querySelectorAll('.codehilite')) {
    const marked = [...code.querySelectorAll('.k, .kn, .s1, .s2, .mi, .nt')];
    const plain = view.getComputedStyle(code.querySelector('pre')).color;
    if (marked.length && marked.every((word) => view.getComputedStyle(word).color == plain))
      say('has code without colours: ' + code.innerText.slice(0, 30));
  }
}
async function open(address, width) {
  const frame = document.createElement('iframe');
  frame.width = width, frame.height = 800, frame.src = address;
  const loaded = new Promise((done) => { frame.onload = done; });
  document.body.append(frame);
  await loaded;
  return frame;
}
async function inspect(address, width) {
  const frame = await open(address, width);
  look(frame.contentWindow, (what) => found.push(address + ' at ' + width + ' ' + what));
  frame.remove();
}
async function until(condition) {
  for (let waited = 0; waited < 30000; waited += 20, await wait(20))
    if (condition()) return true;
  return false;
}
async function search(width) {
  const frame = await open('docs/testing/', width), view = frame.contentWindow, page = view.document;
  const problem = (what) => found.push('the search at ' + width + ' ' + what);
  const link = page.querySelector('[data-target="#mkdocs_search_modal"]'), menu = page.querySelector('.navbar-toggler');
  if (!link.getClientRects().length) menu.click();
  if (!await until(() => link.getClientRects().length)) return problem('is not in the menu');
  link.click();
  const field = page.querySelector('#mkdocs-search-query'), results = page.querySelector('#mkdocs-search-results');
  if (!await until(() => field.getClientRects().length)) return problem('does not open');
  for (const [words, expected] of SEARCHES) {
    const finds = () => [...results.querySelectorAll('a')].some((a) => a.href.includes(expected));
    field.value = words;
    // The index is read after the page; until then a key has no effect.
    if (!await until(() => (field.dispatchEvent(new view.KeyboardEvent('keyup')), finds())))
      problem('does not find ' + expected + ' for ' + words + ', but: ' + results.innerText.slice(0, 100));
  }
  const box = page.querySelector('.modal-content').getBoundingClientRect();
  if (box.left < 0 || box.right > view.innerWidth) problem('is wider than the window');
  frame.remove();
}
window.onload = async () => {
  const pages = [...PAGES], workers = [];
  for (let i = 0; i < 4; ++i)
    workers.push((async () => { while (pages.length) await inspect(...pages.pop()); })());
  await Promise.all(workers);
  if (!dark) for (const width of WIDTHS) await search(width);
  fetch('/result', { method: 'POST', body: JSON.stringify({ dark: dark, found: [...new Set(found)] }) });
};
</script>"""
SEARCHES = [["relay", "decoders/relay_bp/"], ["cudaq_dispatcher_start", "reference/cudaq__realtime_8h.html#"]]
SAMPLE = ["index.html", "docs/performance/index.html", "docs/comparison/index.html", "docs/api/index.html",
          "docs/tutorials/first_program/index.html", "reference/index.html", "reference/files.html",
          "reference/cudaq__realtime_8h.html", "reference/shm__client_8h_source.html"]


def inspect(site, pages, scheme):
    """What is wrong with the pages in the colour scheme `light` or `dark`, in a list."""
    answers = queue.Queue()

    class Handler(diagrams.Quiet):
        def do_POST(self):
            answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def do_GET(self):
            if self.path != "/looks-at-all":
                with contextlib.suppress(ConnectionError):  # a frame may go before its last file has come
                    super().do_GET()
                return
            text = PAGE
            for name, value in (("PAGES", [[page, width] for page in pages for width in WIDTHS]),
                                ("SEARCHES", SEARCHES), ("WIDTHS", WIDTHS)):
                text = text.replace(name, json.dumps(value))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.encode())

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, diagrams.serve(site, Handler) as address:
        command = diagrams.browser(profile) + ["--remote-debugging-port=0", "--window-size=1400,900",
                                               f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"]
        with subprocess.Popen([*command, f"{address}/looks-at-all"], stderr=subprocess.DEVNULL) as browser:
            try:
                answer = answers.get(timeout=400)
            except queue.Empty:
                sys.exit("the browser has sent no result for 400 s")
            finally:
                browser.terminate()
    if answer["dark"] != (scheme == "dark"):
        sys.exit(f"the browser did not take the colour scheme {scheme}")
    return [f"{scheme}: {one}" for one in answer["found"]]


def main(site):
    if not (site / "index.html").exists():
        print("skipped: there is no site: the test that builds it was skipped")
        return 77
    pages = [page.relative_to(site).as_posix() for page in sorted(site.rglob("*.html"))]
    schemes = ("light", "dark")
    if not os.environ.get("CUDAQ_TEST_WHOLE"):
        pages, schemes = SAMPLE, ("light",)
    try:
        problems = [one for scheme in schemes for one in inspect(site, pages, scheme)]
    except diagrams.Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    print("\n".join(problems[:100]))
    print(f"{len(pages)} pages at {len(WIDTHS)} widths in {' and '.join(schemes)}, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
