#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site from the documents and the public headers: scripts/build_site.py [FOLDER], default build/site.

Needs mkdocs and doxygen (Debian packages of these names). The pages of doxygen get the menu, the colours and the search
of the others. Diagrams become pictures if diagrams.py can draw them, else they stay texts. The site needs no network. A
link inside the site that leads nowhere, in a page or in the interface, is an error."""
import html
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import diagrams

ROOT = pathlib.Path(__file__).resolve().parent.parent
SITE = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/site").resolve()
PAGES = SITE.parent / (SITE.name + "-pages")  # what mkdocs reads
INTERFACE = SITE.parent / (SITE.name + "-interface")  # what doxygen writes
CONTENT = "CONTENT-OF-THE-PAGE"  # where a page of the interface goes in the form of the site
LISTS = {"index.html": "Which header", "files.html": "Headers", "namespaces.html": "Namespaces",
         "annotated.html": "Structures and classes"}
# In a header, a comment of one of these forms belongs to a declaration, without a mark for doxygen.
FILTER = (r"""sed -E 's#^/[*/]+ SPDX.*##; s#^( *)/\* ([^-])#\1/** \2#; s#^( *)// ([^-])#\1/// \2#; """
          r"""s#([;,}]) *(/\*) #\1 /**< #; s#([;,}]) +//(/<)? #\1 ///< #'""")
# Link: reason. Not checked.
ALLOWED = {"#nested-classes": "doxygen 1.9.4 links to this section also where all inner classes are private"}


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True, **options)


def version():
    return subprocess.check_output([ROOT / "scripts/version.sh"], text=True).strip()


def draw_diagrams(pages):
    """The pictures of all diagrams of the pages, by their texts."""
    texts = list(dict.fromkeys(text for page in pages for text in diagrams.BLOCK.findall(page)))
    try:
        drawn = diagrams.draw(texts)
    except diagrams.Unavailable as reason:
        print(f"the diagrams stay texts: {reason}")
        return {}
    wrong = [one["error"] for one in drawn if "error" in one]
    if wrong:
        sys.exit("\n".join(["a diagram cannot be drawn:", *wrong]))
    return {text: f'<div class="diagram">{one["svg"]}</div>' for text, one in zip(texts, drawn)}


def unbroken(line):
    """A line of a document. In a row of a table, a figure with its unit and a date stay in one line."""
    if not line.startswith("|"):
        return line
    parts = re.split(r"(`[^`]*`|\]\([^)]*\))", line)
    parts[::2] = [re.sub(r"\b\d{4}-\d\d-\d\d\b|[\d.]+ (?:[num]?s|min|[kKMG]i?B|B|[kM]/s|%|cycles)(?![\w/])",
                         r'<span class="unbroken">\g<0></span>', part) for part in parts[::2]]
    return "".join(parts)


def gather():
    """Copies the documents, and each file that one of them links to. Their places among each other stay the same."""
    shutil.rmtree(PAGES, ignore_errors=True)
    (PAGES / "site").mkdir(parents=True)
    shutil.copy(ROOT / "docs/site/site.css", PAGES / "site")
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tools/data/README.md"]
    documents = [page for page in documents if page.parent.name != "archive"]
    pictures = draw_diagrams([path.read_text() for path in documents])
    for path in documents:
        text = diagrams.BLOCK.sub(lambda found: pictures.get(found[1], found[0]), path.read_text())
        text = re.sub(r"^(```\w+) .*$", r"\1", text, flags=re.MULTILINE)
        for target in re.findall(r"\]\(([^)#\s]+)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            linked = path.parent / target
            if re.match(r"[a-z]+:", target) or not linked.is_file() or linked.suffix == ".md":
                continue
            copy = PAGES / linked.resolve().relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(linked, copy)
        copy = PAGES / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("\n".join(map(unbroken, text.split("\n"))))
    (PAGES / "reference").mkdir()
    (PAGES / "reference/index.md").write_text(CONTENT + "\n")


def make_interface():
    settings = (ROOT / "docs/site/Doxyfile").read_text() + f"""
INPUT = {ROOT}/include/cudaq {ROOT}/docs/site/interface.dox
STRIP_FROM_PATH = {ROOT}/include
INPUT_FILTER = "{FILTER.replace(chr(34), chr(92) + chr(34))}"
OUTPUT_DIRECTORY = {INTERFACE}
PROJECT_NUMBER = {version()}
"""
    shutil.rmtree(INTERFACE, ignore_errors=True)
    INTERFACE.mkdir()
    made = run("doxygen", "-", input=settings, capture_output=True)
    if made.stderr.strip():
        print(made.stderr[:4000])


def words(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def list_item(target, name):
    return f'<li class="nav-item"><a href="{target}" class="nav-link">{name}</a></li>'


def place_interface():
    """Puts the pages of doxygen into the form of the site, and what they say into its search."""
    shell = (SITE / "reference/index.html").read_text()
    lists = "".join(list_item(name, title) for name, title in LISTS.items() if (INTERFACE / name).exists())
    index = SITE / "search/search_index.json"
    search = json.loads(index.read_text())
    search["docs"] = [one for one in search["docs"] if CONTENT not in one["text"]]
    for path in INTERFACE.glob("*.html"):
        if re.match("(functions|globals|namespacemembers)[_.]", path.name):
            continue  # long lists of names; the search finds each of them
        page = path.read_text()
        title = (re.search(r'<div class="title">(.*?)</div>', page, flags=re.DOTALL) or
                 re.search(r"<title>[^<]*: ([^:<]*)</title>", page))
        body = re.search(r'<div class="contents">(.*)<!-- start footer part', page, flags=re.DOTALL)
        if not title or not body:
            sys.exit(f"{path}: doxygen's pages have another form than scripts/build_site.py knows")
        text = re.sub(r'<script.*?</script>|<div class="levels">.*?</div>|<span id="arr_.*?</span>| on\w+="[^"]*"', "",
                      body[1], flags=re.DOTALL)
        text = re.sub(r'(<table(?! class="(?:memname|mlabels)")[^>]*>.*?</table>)',
                      r'<div class="wide">\1</div>', text, flags=re.DOTALL)
        place = " / ".join(re.findall(r'<li class="navelem">(.*?)</li>', page))
        summary = page.partition('class="summary"')[2].partition("</div>")[0]
        parts = "".join(list_item(*part) for part in re.findall(r'<a href="(#[^"]*)">(.*?)</a>', summary))
        made = shell.replace(f"<p>{CONTENT}</p>", f'<p class="place">{place}</p><h1>{title[1]}</h1>'
                             f'<div class="interface">{text}')
        made = re.sub(r'(<div id="toc-collapse".*?<ul class="nav flex-column">).*?</ul>',
                      lambda found: found[1] + lists + parts + "</ul>", made, count=1, flags=re.DOTALL)
        (SITE / "reference" / path.name).write_text(
            re.sub(r"<title>.*?</title>", f"<title>{words(title[1])} - CUDA-Q Realtime</title>", made, flags=re.DOTALL))
        if re.search(r"_source\.html$|-members\.html$", path.name):
            continue
        page_text, *members = re.split(r'<h2 class="memtitle">', text)
        search["docs"].append({"location": f"reference/{path.name}", "title": words(title[1]),
                               "text": words(page_text)})
        for member in members:
            name, _, described = member.partition("</h2>")
            anchor = re.search(r'href="(#[^"]*)"', name)[1]
            search["docs"].append({"location": f"reference/{path.name}{anchor}", "text": words(described),
                                   "title": words(re.sub(r'<span class="permalink">.*?</span>', "", name))})
    index.write_text(json.dumps(search))
    for path in INTERFACE.glob("*.png"):
        shutil.copy(path, SITE / "reference")


class Links(html.parser.HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]


def dead_links():
    pages = {path: Links(path.read_text(errors="replace")) for path in SITE.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            address = urllib.parse.urlsplit(link)
            if link in ALLOWED or address.scheme or address.netloc or not (address.path or address.fragment):
                continue
            target = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = urllib.parse.unquote(address.fragment)
            if not target.exists():
                yield f"{path.relative_to(SITE)}: {link} does not exist"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(SITE)}: {link}: no such heading"


for program in ("mkdocs", "doxygen"):
    if shutil.which(program) is None:
        print(f"skipped: {program} is not installed (Debian: {program})")
        sys.exit(77)
gather()
make_interface()
configuration = PAGES.parent / (PAGES.name + ".yml")
configuration.write_text(f"docs_dir: {PAGES}\nsite_dir: {SITE}\n" + (ROOT / "docs/site/mkdocs.yml").read_text())
run("mkdocs", "build", "--quiet", "--strict", "--clean", "--config-file", configuration)
place_interface()
(SITE / "404.html").unlink()  # its links are those of a server's root
dead = sorted(set(dead_links()))
print("\n".join(dead))
pages = len(list(SITE.rglob("*.html")))
print(f"{SITE}: {pages} pages, {len(dead)} dead links")
sys.exit(1 if dead or pages < 50 else 0)
