// SPDX-License-Identifier: Apache-2.0
// The pages that --html writes: complete, valid, independent of other files, and readable in a browser.
#include "unittests/tools/common/run_program.h"

#include <gtest/gtest.h>
#include <regex>

namespace cudaq::realtime::tools::test {
namespace {

class HtmlReport : public testing::Test {
protected:
  std::string page_of(const std::string &arguments, const std::string &name = "report.html") const {
    const auto file = folder_.path() / name;
    const program_result r = run_program(arguments + " --html '" + file.string() + "'");
    EXPECT_EQ(r.exit_code, 0) << arguments << "\n" << r.err;
    return read_file(file);
  }
  const std::filesystem::path &folder() const { return folder_.path(); }

private:
  scratch_folder folder_;
};

/// Commands that write a page, with the headings that it must have.
struct page_case {
  std::string arguments;
  std::vector<std::string> headings;
};

std::vector<page_case> pages_to_write() {
  std::vector<page_case> all = {
      {"latency --quick", {"All cases", "Ratios to the floors", "Closed loop, 32 B: histogram", "Pipelined"}}};
  if (run_program("demo --help").exit_code != 0)
    return all; // no decoders in this build
  const std::string model = std::string(CUDAQ_TEST_DATA) + "/surface_z_d3_p0.003";
  all.push_back(
      {"demo --distance 3 --shots 2000 --decoder lookup",
       {"Logical errors", "Latency histogram", "Latency percentiles", "Timeline of pass 1", "Timeline of pass 2"}});
  all.push_back({"pipeline --shots 500 --decoder lookup --dem " + model + ".dem --in " + model + ".dets.b8 --obs_in " +
                     model + ".obs.b8",
                 {"Latency histogram", "Stages of the mean latency", "Timeline"}});
  return all;
}

TEST_F(HtmlReport, HasItsParts) {
  for (const page_case &p : pages_to_write()) {
    const std::string page = page_of(p.arguments);
    for (const std::string &heading : p.headings)
      EXPECT_TRUE(contains(page, "<h2>" + heading)) << p.arguments << ": " << heading;
    for (const char *part : {"<title>", "<dt>Machine</dt>", "<dt>Version</dt>", "<dt>Date</dt>", "prefers-color-scheme",
                             "@media print", "@media (max-width", "All figures", "Good: every check passed"})
      EXPECT_TRUE(contains(page, part)) << p.arguments << ": " << part;
    EXPECT_TRUE(contains(page, "<dt>Command</dt><dd>")) << p.arguments;
    EXPECT_TRUE(contains(page, p.arguments.substr(0, 10))) << "the command line";
  }
}

TEST_F(HtmlReport, NeedsNothingElse) {
  for (const page_case &p : pages_to_write()) {
    const std::string page = page_of(p.arguments);
    for (const char *part : {"http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"})
      EXPECT_FALSE(contains(page, part)) << p.arguments << ": " << part;
  }
}

TEST_F(HtmlReport, ClosesEachOfItsTags) {
  static const std::regex tag(R"(<(/?)([a-z0-9]+)[^>]*?(/?)>)");
  for (const page_case &p : pages_to_write()) {
    const std::string page = page_of(p.arguments);
    std::vector<std::string> open;
    for (std::sregex_iterator t(page.begin(), page.end(), tag), end; t != end; ++t) {
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

TEST_F(HtmlReport, IsRefusedBeforeTheWork) {
  const program_result r = run_program("latency --quick --html /nonexistent/report.html");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_TRUE(contains(r.err, "--html: cannot write /nonexistent/report.html")) << r.err;
  EXPECT_EQ(r.out, "");
  const std::string file = (folder() / "report").string();
  const program_result same = run_program("latency --quick --html " + file + " --json " + file);
  EXPECT_EQ(same.exit_code, 2);
  EXPECT_TRUE(contains(same.err, "this is the file of --json")) << same.err;
}

// Looks at the page with a window of some width, and writes what is wrong into the title.
constexpr const char *kInspection = R"(<script>
const found = [];
window.onerror = (message) => { found.push('error: ' + message); };
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
  document.title = 'inspected: ' + found.join('; ') + '.';
};
</script>)";

TEST_F(HtmlReport, IsReadableInABrowser) {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "chromium is not installed";
  int number = 0;
  for (const page_case &p : pages_to_write()) {
    std::string page = page_of(p.arguments);
    page.insert(page.find("</head>"), kInspection);
    const auto file = folder() / ("page" + std::to_string(++number) + ".html"), out = folder() / "dump";
    std::ofstream(file) << page;
    for (const char *width : {"1200", "500"}) {
      // Its profile goes into the folder of the test. As root, which containers have, it needs --no-sandbox.
      const std::string command =
          "timeout 60 chromium --headless --no-sandbox --disable-gpu --window-size=" + std::string(width) +
          ",900 --user-data-dir='" + (folder() / "profile").string() + "' --dump-dom 'file://" + file.string() +
          "' >'" + out.string() + "' 2>/dev/null";
      ASSERT_EQ(std::system(command.c_str()), 0) << command;
      const std::string dump = read_file(out);
      EXPECT_TRUE(contains(dump, "<title>inspected: .</title>"))
          << p.arguments << " at " << width << ": " << dump.substr(dump.find("<title>"), 600);
    }
  }
}

} // namespace
} // namespace cudaq::realtime::tools::test
