// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/shots/shot_stream.h"

#include "cudaq/qec/decoding/decoder.h"
#include "unittests/support/scratch_folder.h"

#include <cstdint>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::test {

/// One shot as text: "1010000001".
using shot_list = std::vector<std::string>;

inline std::string as_text(std::span<const std::uint8_t> row, std::uint64_t bits) {
  std::string text;
  for (std::uint64_t k = 0; k < bits; ++k)
    text += static_cast<char>('0' + (row[static_cast<std::size_t>(k / 8)] >> (k % 8) & 1));
  return text;
}

/// A folder of its own for the files of a test.
class ShotStreamFolder : public testing::Test {
protected:
  [[nodiscard]] std::string path() const { return (folder_.path() / "shots").string(); }
  void write(const std::string &content) const { std::ofstream(path(), std::ios::binary) << content; }
  [[nodiscard]] std::string content() const { return cudaq::realtime::test::read_file(path()); }
  /// All shots of the file; detectors and observables are separated by a blank.
  [[nodiscard]] shot_list read_all(shot_format format, shot_bits bits) const {
    shot_reader reader(path(), format, bits);
    std::vector<std::uint8_t> detectors((bits.detectors + 7) / 8, 0xee), observables((bits.observables + 7) / 8, 0xee);
    shot_list shots;
    while (reader.read(detectors, observables))
      shots.push_back(as_text(detectors, bits.detectors) +
                      (bits.observables == 0 ? "" : " " + as_text(observables, bits.observables)));
    EXPECT_EQ(reader.shots(), shots.size());
    return shots;
  }

private:
  const cudaq::realtime::test::scratch_folder folder_;
};

/// b8 works in every build.
#define SKIP_WITHOUT_STIM(format)                                                                                      \
  if ((format) != shot_format::b8 && !pymatching_available())                                                          \
  GTEST_SKIP() << "this build has no Stim"

} // namespace cudaq::qec::realtime::test
