// SPDX-License-Identifier: Apache-2.0
// The threads of decode, on a machine that does not start all of them.
#include "tools/decode/decode_batch.h"
#include "unittests/support/failing_calls.h"

#include "cudaq/qec/decoding/decoder.h"

#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

using test::failing_call;
using test::fault;

decoder_threads::worker_list workers(std::size_t count) {
  decoder_threads::worker_list made;
  while (made.size() != count) {
    auto first = qec::make_passthrough_predecoder(1, 1);
    qec::decoder_result second = qec::make_decoder("lookup", "error(0.1) D0 L0");
    if (first.failed() || !second)
      throw std::logic_error(first.failed() ? first.text() : second.error);
    made.push_back(std::make_unique<qec::decoding_worker>(std::move(*first), std::move(second.instance)));
  }
  return made;
}

TEST(DecoderThreads, EndIfTheSystemRefusesOneOfThem) {
  auto four = workers(4);
  const failing_call third(fault::thread, 2);
  try {
    const decoder_threads threads(std::move(four));
    FAIL() << "there is no third thread";
  } catch (const std::runtime_error &refused) {
    EXPECT_NE(std::string(refused.what()).find("--threads 4: the system starts no more than 2"), std::string::npos)
        << refused.what();
  }
  EXPECT_TRUE(third.happened());
}

} // namespace
} // namespace cudaq::realtime::tools
