// SPDX-License-Identifier: Apache-2.0
// Ends a program by a signal, and checks its report.
#pragma once

#include "unittests/support/program_paths.h"
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/common/served_program.h"

namespace cudaq::realtime::tools::test {

/// Runs the program until it catches `signal`, sends it, and returns the report, which says that it is partial.
/// `text`: gets what it prints to stdout.
inline nlohmann::json report_after(int signal, std::vector<std::string> arguments, std::string *text = nullptr) {
  const scratch_folder scratch;
  const std::string out = scratch.path() / "report.json";
  arguments.insert(arguments.end(), {"--json", out});
  running_program program(arguments, scratch.path() / "err");
  program.until([&] { return program.catches(signal); });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  program.signal(signal);
  EXPECT_EQ(program.wait(), 130) << read_file(scratch.path() / "err");
  if (text != nullptr)
    *text = program.rest();
  const auto report = nlohmann::json::parse(read_file(out), nullptr, false);
  EXPECT_FALSE(report.is_discarded());
  if (report.is_discarded())
    return nlohmann::json::object();
  const json_schema schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA)));
  for (const std::string &problem : schema.problems_of(report))
    ADD_FAILURE() << problem;
  EXPECT_EQ(report.value("interrupted", false), true);
  EXPECT_EQ(report.value("ok", true), false);
  const std::string error = report.value("error", "");
  EXPECT_TRUE(error.starts_with("interrupted after ")) << error;
  EXPECT_TRUE(contains(read_file(scratch.path() / "err"), error)) << read_file(scratch.path() / "err");
  return report;
}

} // namespace cudaq::realtime::tools::test
