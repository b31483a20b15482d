// SPDX-License-Identifier: Apache-2.0
// `serve` in one process, `emulate` in another.
#pragma once

#include "unittests/support/program_paths.h"
#include "unittests/tools/common/json_schema.h"
#include "unittests/tools/common/served_program.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace cudaq::realtime::tools::test {

struct shape {
  const char *name, *transport, *library, *options;
};
inline void PrintTo(const shape &s, std::ostream *out) { *out << s.name; }

class TwoTerminals : public testing::TestWithParam<shape> {
protected:
  void SetUp() override {
    if (contains(run_program("serve --config /dev/null").err, "no YAML parser"))
      GTEST_SKIP() << "this build has no YAML parser, so no server";
    std::ofstream(config()) << decoders();
    name_ = "emulate-test-" + std::to_string(getpid());
    std::vector<std::string> arguments = {"serve",    "--config",    config().string(),  "--counters",
                                          counters(), "--transport", GetParam().library, "--"};
    std::istringstream options(GetParam().options);
    for (std::string option; options >> option;)
      arguments.push_back(option == "--name=" ? option + name_ : option);
    server_ = std::make_unique<running_program>(arguments, scratch_.path() / "serve.err");
    const std::string ready = server_->line();
    if (contains(read_file(scratch_.path() / "serve.err"), "PyMatching"))
      GTEST_SKIP() << "this build has no PyMatching";
    ASSERT_TRUE(contains(ready, "QEC_DECODING_SERVER_READY")) << ready << read_file(scratch_.path() / "serve.err");
    EXPECT_EQ(value_in(ready, "transport"), GetParam().transport);
    EXPECT_EQ(ready.find(" slots="), ready.rfind(" slots=")) << ready;
    EXPECT_EQ(value_in(ready, "client_slots"), std::string(GetParam().transport) == "shm" ? "8" : "") << ready;
    port_ = value_in(ready, "port");
  }

  /// The configuration of the server.
  virtual std::string decoders() const {
    return "decoders:\n  - id: 0\n    type: pymatching\n    dem_file: " + std::string(CUDAQ_TEST_DATA) +
           "/surface_z_d3_p0.005.dem\n  - id: 1\n    type: pymatching\n    dem_file: " + CUDAQ_TEST_DATA +
           "/surface_z_d3_p0.005.dem\n";
  }
  std::filesystem::path config() const { return scratch_.path() / "decoders.yaml"; }
  std::string counters() const { return (scratch_.path() / "counters").string(); }
  std::string where() const {
    return std::string(GetParam().transport) == "shm" ? "--name " + name_ : "--port " + port_;
  }
  std::string command(const std::string &options) const {
    return "emulate --json --timeout 30 --transport " + std::string(GetParam().transport) + " " + where() + " " +
           options;
  }
  nlohmann::json play(const std::string &options) const {
    auto report = run_good_program(command(options));
    EXPECT_EQ(json_schema(nlohmann::json::parse(read_file(CUDAQ_REPORT_SCHEMA))).problems_of(report),
              std::vector<std::string>{});
    return report;
  }
  nlohmann::json emulate(const std::string &options) const { return play("--config d3 " + options); }

  scratch_folder scratch_;
  std::string name_, port_;
  std::unique_ptr<running_program> server_;
};

} // namespace cudaq::realtime::tools::test
