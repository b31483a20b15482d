// SPDX-License-Identifier: Apache-2.0
// The pages of a program that html_report_test.cpp checks.
#pragma once

#include "unittests/tools/common/run_program.h"

namespace cudaq::realtime::tools::test {

/// A page that a command has written, with the headings that it must have.
struct written_page {
  std::string arguments;
  std::vector<std::string> headings;
  bool has_plots = true;
  std::string text{};
};

/// Each test program has its own; the first page can be written without decoders. `folder`: for other files.
std::vector<written_page> pages_to_write(const std::filesystem::path &folder);

} // namespace cudaq::realtime::tools::test
