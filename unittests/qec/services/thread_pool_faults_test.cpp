// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/utils/thread_pool.h"
#include "unittests/support/failing_calls.h"

#include <gtest/gtest.h>
#include <system_error>

namespace cudaq::qec::utils {
namespace {

using cudaq::realtime::test::failing_call;
using cudaq::realtime::test::fault;

TEST(ThreadPool, ThrowsIfTheSystemRefusesOneOfItsThreads) {
  const failing_call third(fault::thread, 2);
  EXPECT_THROW(thread_pool(4), std::system_error);
  EXPECT_TRUE(third.happened());
}

} // namespace
} // namespace cudaq::qec::utils
