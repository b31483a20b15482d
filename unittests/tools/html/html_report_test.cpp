// SPDX-License-Identifier: Apache-2.0
// The pages that --html writes: complete, valid, independent of other files, and readable in a browser.
#include "unittests/support/program_paths.h"
#include "unittests/tools/html/written_pages.h"

#include <gtest/gtest.h>
#include <regex>

namespace cudaq::realtime::tools::test {
namespace {

class HtmlReport : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder_ = new scratch_folder;
    pages_ = new std::vector<written_page>(pages_to_write(folder()));
    for (written_page &page : *pages_)
      page.text = page_of(page.arguments);
  }
  static void TearDownTestSuite() {
    delete pages_;
    delete folder_;
  }
  static const std::vector<written_page> &pages() { return *pages_; }
  static std::filesystem::path folder() { return folder_->path(); }

private:
  static std::string page_of(const std::string &arguments) {
    const auto file = folder() / "report.html";
    const program_result r = run_program(arguments + " --html '" + file.string() + "'");
    EXPECT_EQ(r.exit_code, 0) << arguments << "\n" << r.err;
    return read_file(file);
  }
  static inline scratch_folder *folder_ = nullptr;
  static inline std::vector<written_page> *pages_ = nullptr;
};

// Known failure 71.
TEST_F(HtmlReport, HasMachineVersionDateCommandAndItsParts) {
  for (const written_page &p : pages()) {
    for (const std::string &heading : p.headings)
      EXPECT_TRUE(contains(p.text, "<h2>" + heading)) << p.arguments << ": " << heading;
    for (const char *part :
         {"<title>", "<dt>Machine</dt>", "<dt>Version</dt>", "<dt>Date</dt>", "prefers-color-scheme", "@media print",
          "@media (max-width", "stroke-dasharray:7 4", "All figures", "Good: every check passed"})
      EXPECT_TRUE(contains(p.text, part)) << p.arguments << ": " << part;
    EXPECT_TRUE(contains(p.text, "<dt>Command</dt><dd>")) << p.arguments;
    EXPECT_TRUE(contains(p.text, p.arguments.substr(0, 10))) << "the command line";
  }
}

TEST_F(HtmlReport, AxesHaveTitlesAndUnits) {
  static const std::regex title(R"(class="title"[^>]*>[^<]+<)"), unit(R"(>[0-9.]+ (ns|us|ms|s)<)");
  for (const written_page &p : pages()) {
    std::size_t plots = 0;
    for (std::size_t at = p.text.find("<svg"); at != std::string::npos; at = p.text.find("<svg", at + 1)) {
      const std::string plot = p.text.substr(at, p.text.find("</svg>", at) - at);
      ++plots;
      if (contains(plot, "aria-label=\"stages"))
        continue; // a bar, whose legend has the units
      EXPECT_TRUE(std::regex_search(plot, title)) << p.arguments << ": an axis has no title";
      if (contains(plot, "aria-label=\"latency")) {
        EXPECT_TRUE(std::regex_search(plot, unit)) << p.arguments << ": no unit";
      }
    }
    EXPECT_EQ(plots != 0, p.has_plots) << p.arguments;
  }
}

TEST_F(HtmlReport, NeedsNothingElse) {
  for (const written_page &p : pages())
    for (const char *part : {"http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"})
      EXPECT_FALSE(contains(p.text, part)) << p.arguments << ": " << part;
}

TEST_F(HtmlReport, ClosesEachOfItsTags) {
  static const std::regex tag(R"(<(/?)([a-z0-9]+)[^>]*?(/?)>)");
  for (const written_page &p : pages()) {
    std::vector<std::string> open;
    for (std::sregex_iterator t(p.text.begin(), p.text.end(), tag), end; t != end; ++t) {
      const std::string name = (*t)[2];
      if (name == "meta" || (*t)[3] == "/")
        continue;
      if ((*t)[1] == "") {
        open.push_back(name);
        continue;
      }
      ASSERT_FALSE(open.empty()) << t->str();
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    }
    EXPECT_TRUE(open.empty()) << open.back() << " is not closed";
  }
}

// Known failure 69.
TEST_F(HtmlReport, IsRefusedInTheFileOfTheJson) {
  const std::string file = (folder() / "report").string();
  const program_result same = run_program(pages().front().arguments + " --html " + file + " --json " + file);
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_TRUE(contains(same.err, "this is the file of --json")) << same.err;
}

// Looks at the page, and sends what is wrong to the page around it.
constexpr const char *kInspection = R"(<script>
const found = [];
window.onerror = (message) => { found.push('error: ' + message); };
const luminance = (colour) => {
  const [r, g, b] = colour.match(/[0-9.]+/g).map((c) => c / 255).map((c) => c <= 0.04045 ?
    c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
window.onload = () => {
  if (document.documentElement.scrollWidth > window.innerWidth)
    found.push('wider than the window: ' + document.documentElement.scrollWidth + ' > ' + window.innerWidth);
  for (const svg of document.querySelectorAll('svg')) {
    const area = svg.getBoundingClientRect(), boxes = [];
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.left < area.left - 1 || box.right > area.right + 1 || box.top < area.top - 1 ||
          box.bottom > area.bottom + 1)
        found.push('cut off: ' + text.textContent);
      for (const [name, b] of boxes)
        if (box.left < b.right && b.left < box.right && box.top < b.bottom - 3 && b.top < box.bottom - 3)
          found.push('on each other: ' + name + ', ' + text.textContent);
      boxes.push([text.textContent, box]);
    }
  }
  const back = luminance(getComputedStyle(document.body).backgroundColor);
  for (const element of document.querySelectorAll('h1, h2, p, dt, dd, td, th, text')) {
    const style = getComputedStyle(element), colour = element.tagName == 'text' ? style.fill : style.color;
    if (contrast(luminance(colour), back) < 4.5)
      found.push('too little contrast: ' + element.textContent);
  }
  const scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const problems = [...new Set(found)].join('; ');
  window.parent.postMessage(problems ? document.title + ' in ' + window.innerWidth + ': ' + problems : scheme, '*');
};
</script>)";

// All pages in frames of each width, so that the browser starts once. A window is at least 500 pixels wide, a frame may
// be as narrow as a telephone.
constexpr const char *kFrames = R"(<!DOCTYPE html><html><head><title>waiting</title><script>
const results = [];
window.onmessage = (message) => {
  results.push(message.data);
  document.title = results.length + ' inspected: ' + [...new Set(results)].join(' | ') + '.';
};
</script></head><body>FRAMES</body></html>)";

class HtmlReportInABrowser : public HtmlReport {
protected:
  void SetUp() override {
    if (std::system("command -v chromium >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "chromium is not installed";
  }
  /// Runs chromium; its messages, with those of the page's console, go to the file `log`. Its profile goes into the
  /// folder of the test. As root, which containers have, it needs --no-sandbox. Their /dev/shm is often too small.
  static std::string browse(const std::string &options, const std::filesystem::path &file) {
    const auto out = folder() / "dump", log = folder() / "log";
    const std::string command = "timeout 300 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
                                "--enable-logging=stderr --user-data-dir='" +
                                (folder() / "profile").string() + "' " + options + " 'file://" + file.string() +
                                "' >'" + out.string() + "' 2>'" + log.string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_FALSE(contains(read_file(log), "CONSOLE")) << read_file(log);
    return read_file(out);
  }
  static std::filesystem::path write(const std::string &name, const std::string &text) {
    std::ofstream(folder() / name) << text;
    return folder() / name;
  }
};

// Known failure 71.
TEST_F(HtmlReportInABrowser, NothingIsCutOffAtAnyWidthInLightAndDark) {
  std::string frames;
  std::size_t count = 0;
  for (const written_page &p : pages()) {
    std::string text = p.text;
    text.insert(text.find("</head>"), kInspection);
    const std::string name = "page" + std::to_string(count) + ".html";
    write(name, text);
    for (const char *width : {"1200", "500", "340"}) {
      frames += "<iframe src='" + name + "' height='800' width='" + width + "'></iframe>";
      ++count;
    }
  }
  std::string page = kFrames;
  page.replace(page.find("FRAMES"), 6, frames);
  const auto file = write("frames.html", page);
  for (const std::string &scheme : std::vector<std::string>{"dark", "light"}) { // 0 is dark
    const std::string preference = scheme == "dark" ? "0" : "1";
    const std::string dump = browse("--window-size=1400,900 --virtual-time-budget=20000 --dump-dom "
                                    "--blink-settings=preferredColorScheme=" +
                                        preference,
                                    file);
    EXPECT_TRUE(contains(dump, "<title>" + std::to_string(count) + " inspected: " + scheme + ".</title>"))
        << dump.substr(std::min(dump.find("<title>"), dump.size()), 1500);
  }
}

TEST_F(HtmlReportInABrowser, CanBePrintedAndPhotographed) {
  for (const written_page &p : pages()) {
    if (!p.arguments.starts_with("compare") && !p.arguments.starts_with("pipeline"))
      continue; // the others have the same parts
    const auto page = write("page.html", p.text), pdf = folder() / "page.pdf", picture = folder() / "page.png";
    browse("--no-pdf-header-footer --print-to-pdf='" + pdf.string() + "'", page);
    EXPECT_TRUE(read_file(pdf).starts_with("%PDF")) << p.arguments;
    browse("--window-size=900,1400 --screenshot='" + picture.string() + "'", page);
    EXPECT_TRUE(contains(read_file(picture).substr(0, 8), "PNG")) << p.arguments;
    EXPECT_GT(std::filesystem::file_size(picture), 10000u) << p.arguments << ": an empty picture";
    remove(pdf);
    remove(picture);
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
