// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/server/record/record_reader.h"
#include "lib/qec/server/record/request_recorder.h"
#include "unittests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime::test {

using byte_list = std::vector<std::uint8_t>;

/// A recorder whose clock stays as long as it.
struct recording {
  cudaq::realtime::detail::tick_clock ticks = cudaq::realtime::detail::tick_clock::measured();
  std::unique_ptr<request_recorder> recorder;

  recording(const std::string &path, std::uint64_t records, std::uint64_t bytes = 64) {
    auto made = request_recorder::create(path, {records, bytes}, 7, ticks);
    EXPECT_TRUE(made.ok()) << made.text();
    if (made.ok())
      recorder = std::move(*made);
  }
  std::uint64_t request(const byte_list &payload, std::uint32_t id = 0) {
    return recorder->add_request(0xC0FFEE, payload, id, 1000 + id, ticks.now());
  }
  bool answer(std::uint64_t mark, std::int32_t status, const byte_list &result) {
    request_moments m{.arrived = ticks.now(), .record = mark};
    if (!recorder->add_answer(mark, status, result))
      return false;
    m.decoded = ticks.now();
    recorder->end(m, ticks.now());
    return true;
  }
};

inline std::unique_ptr<record_reader> read_recording(const std::string &path) {
  auto opened = record_reader::open(path);
  EXPECT_TRUE(opened.ok()) << opened.text();
  return opened.ok() ? std::move(*opened) : nullptr;
}

struct test_folder : cudaq::realtime::test::scratch_folder {
  std::string operator/(const char *name) const { return path() / name; }
};

inline void write_bytes(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace cudaq::qec::realtime::test
