// SPDX-License-Identifier: Apache-2.0
#include "tools/man/man_page.h"

#include <gtest/gtest.h>

namespace cudaq::realtime::tools {
namespace {

/// The page of a program without subcommands.
std::string page_of(const std::string &more, const option_model &option = {}) {
  command_model program;
  program.text = "a text";
  program.more = more;
  if (!option.names.empty())
    program.options.push_back(option);
  return man_page(program, program);
}

bool has(const std::string &page, const std::string &lines) { return page.find(lines) != std::string::npos; }

TEST(ManPage, EscapesWhatRoffWouldChange) {
  EXPECT_TRUE(has(page_of(".so /etc/passwd"), "\n\\&.so /etc/passwd\n")) << "a request at the start of a line";
  EXPECT_TRUE(has(page_of("text\n'br"), "\n\\&\\(aqbr\n"));
  EXPECT_TRUE(has(page_of("C:\\n"), "C:\\en")) << "an escape";
  EXPECT_TRUE(has(page_of("--json a`b^c~d"), "\\-\\-json a\\(gab\\(hac\\(tid"));
}

TEST(ManPage, KeepsTheColumnsOfExamples) {
  const std::string page = page_of("Some text.\n\nExamples:\n  program a    does a\nMore text.");
  EXPECT_TRUE(has(page, ".SH DESCRIPTION\nSome text.\n.PP\n.SH EXAMPLES\n.PP\n.nf\n  program a    does a\n.fi\nMore"))
      << page;
  EXPECT_FALSE(has(page_of("Examples:\n  program a"), "DESCRIPTION")) << "a section without text";
  EXPECT_FALSE(has(page_of(""), "DESCRIPTION"));
}

TEST(ManPage, DividesLinesThatAreWiderThanATerminal) {
  const std::string a(20, 'a'), b(20, 'b'), c(30, 'c'), d(30, 'd');
  EXPECT_TRUE(has(page_of("text\n  " + a + "  " + b + " " + c + " " + d),
                  "  " + a + "  " + b + "\n" + std::string(24, ' ') + c + "\n" + std::string(24, ' ') + d + "\n"))
      << "a table keeps its column";
  EXPECT_TRUE(has(page_of("text\n  " + a + b + "          " + c + " x"), "  " + a + b + "\n      " + c + " x\n"))
      << "a far column";
  EXPECT_TRUE(has(page_of("Examples:\n  " + a + " " + b + " '" + c + " y' z"),
                  "  " + a + " " + b + " \\e\n      \\(aq" + c + " y\\(aq z\n"))
      << "a command stays one line of a shell";
  EXPECT_TRUE(has(page_of("Examples:\n  " + a + " " + b + " " + c + " z \\\n    w"),
                  "  " + a + " " + b + " \\e\n      " + c + " z \\e\n    w\n"));
  EXPECT_TRUE(has(page_of("Examples:\n  " + a + " " + b + " --in " + c + " -x"),
                  "  " + a + " " + b + " \\e\n      \\-\\-in " + c + " \\-x\n"))
      << "an option stays with its value";
  EXPECT_TRUE(has(page_of("Examples:\n" + std::string(60, ' ') + a), "\n      " + a + "\n")) << "a second line of text";
  EXPECT_TRUE(has(page_of("Examples:\n  " + a + b + c + "   " + d), "  " + a + b + c + "\n      " + d + "\n"));
}

TEST(ManPage, HasNamesValuesLimitsAndDefaultsOfOptions) {
  option_model o;
  o.names = {"--slots", "-s"};
  o.value = "UINT";
  o.limits = "1 to 64";
  o.standard = "16";
  o.text = "slots of the ring";
  EXPECT_TRUE(has(page_of("", o), ".TP\n\\fB\\-\\-slots\\fR, \\fB\\-s\\fR \\fIUINT\\fR\nslots of the ring (1 to 64) "
                                  "[default: 16]\n"));
  o.choices = {"a", "b"};
  EXPECT_TRUE(has(page_of("", o), "\\fIa|b\\fR"));
}

} // namespace
} // namespace cudaq::realtime::tools
