// SPDX-License-Identifier: Apache-2.0
// Tests that run the program on a user's own files.
#pragma once

#include "unittests/tools/common/run_program.h"
#include "unittests/tools/decode/own_sets.h"

namespace cudaq::realtime::tools::test {

/// A test with files of its own, in a folder that is removed.
class decode_files_test : public testing::Test {
protected:
  [[nodiscard]] std::string path(const std::string &name) const { return (scratch_.path() / name).string(); }
  /// Writes the file and returns its path.
  std::string file(const std::string &name, const std::string &content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  static void expect_refusal(const std::string &options, const std::string &text, const std::string &out = "") {
    const program_result r = run_program("decode " + options);
    EXPECT_EQ(r.exit_code, 2) << options;
    EXPECT_TRUE(contains(r.err, text)) << options << "\n" << r.err;
    EXPECT_EQ(r.out, out) << options;
  }
  /// Decodes shots.01 by model.dem into out.01.
  [[nodiscard]] program_result decode(const std::string &decoder, const std::string &more = "",
                                      const std::string &input = "/dev/null") const {
    return run_program("decode --dem " + path("model.dem") + " --in " + path("shots.01") + " --out " + path("out.01") +
                           " --decoder '" + decoder + "' " + more,
                       CUDAQ_TOOL_PATH, input);
  }
  void expect_refused(const std::string &decoder, const std::string &more, const std::string &why) const {
    const program_result r = decode(decoder, more);
    EXPECT_EQ(r.exit_code, 2) << decoder << " " << more;
    EXPECT_TRUE(contains(r.err, why)) << more << "\n" << r.err;
  }
  void expect_answers(const program_result &r, const std::string &answers) const {
    ASSERT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(read_file(path("out.01")), answers);
  }

  const scratch_folder scratch_;
};

} // namespace cudaq::realtime::tools::test
