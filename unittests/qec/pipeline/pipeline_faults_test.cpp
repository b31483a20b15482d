// SPDX-License-Identifier: Apache-2.0
// Each allocation of each call of a pipeline fails once, and so does each creation of a thread. The call then throws,
// or does its work without that memory. The pipeline can be used afterwards, and each accepted request is completed.
#include "unittests/qec/pipeline/fault_rig.h"

namespace cudaq::qec::realtime::test {
namespace {

/// Runs `call` while allocation or thread `n` fails. A call may fail only by what is allowed, and only then.
template <class Call>
bool survives(fault kind, long n, bool &threw, Call &&call) {
  const failing_call one(kind, n);
  try {
    call();
  } catch (const std::bad_alloc &) {
    threw = true;
  } catch (const std::runtime_error &) { // the C API had no memory, or the system had no thread
    threw = true;
  }
  EXPECT_TRUE(one.happened() || !threw) << "call " << n;
  return one.happened();
}

class PipelineFaults : public testing::TestWithParam<pipeline_kind> {};

// Known failure 45.
TEST_P(PipelineFaults, AConstructorThatFailsLeavesNothing) {
  fail_every_call(fault::allocation, 8, [](fault kind, long n) {
    any_rig r(GetParam());
    r.owner().reset();
    bool threw = false;
    const bool failed = survives(kind, n, threw, [&] { r.owner() = pipeline_rig::make(r.config); });
    EXPECT_EQ(r.owner() == nullptr, threw);
    if (threw)
      r.owner() = pipeline_rig::make(r.config);
    r.wire();
    r.expect_usable();
    return failed;
  });
}

TEST_P(PipelineFaults, AStartThatFailsCanBeRepeated) {
  const auto once = [](fault kind, long n) {
    any_rig r(GetParam());
    bool threw = false;
    const bool failed = survives(kind, n, threw, [&] { r.pipeline().start(); });
    if (!threw) {
      r.serve(1);
      r.pipeline().stop();
    }
    r.expect_usable();
    return failed;
  };
  fail_every_call(fault::allocation, 20, once);
  fail_every_call(fault::thread, GetParam().graphs && !GetParam().cpu_stage ? 2 : 4, once);
}

TEST_P(PipelineFaults, CallsOfARunningPipelineFailAloneAndNoRequestIsLost) {
  fail_every_call(fault::allocation, 3, [](fault kind, long n) {
    any_rig r(GetParam());
    r.pipeline().start();
    bool failed = false;
    for (int i = 0; i < 6; ++i) {
      bool threw = false;
      failed |= survives(kind, n, threw, [&] { r.submit(); });
    }
    const auto each = [&](auto &&call) {
      bool threw = false;
      failed |= survives(kind, n, threw, call);
    };
    each([&] { static_cast<void>(r.pipeline().dump()); });
    each([&] { static_cast<void>(r.pipeline().last_stop()); });
    each([&] { static_cast<void>(r.pipeline().stats()); });
    r.expect_all_completed();
    r.serve(2);
    r.pipeline().stop();
    EXPECT_TRUE(r.pipeline().last_stop().drained) << r.pipeline().last_stop().text;
    return failed;
  });
}

/// Calls that refuse their arguments need memory for the text of the exception.
TEST_P(PipelineFaults, ARefusalWithoutMemoryForItsTextChangesNothing) {
  fail_every_call(fault::allocation, 3, [](fault kind, long n) {
    any_rig r(GetParam());
    r.pipeline().start();
    bool failed = false;
    const auto each = [&](auto &&call) {
      const failing_call one(kind, n);
      try {
        call();
        ADD_FAILURE() << "accepted";
      } catch (const std::logic_error &) { // out_of_range and invalid_argument, too
      } catch (const std::bad_alloc &) {
        EXPECT_TRUE(one.happened());
      }
      failed |= one.happened();
    };
    each([&] { r.pipeline().start(); });
    each([&] { r.pipeline().set_cpu_stage({}); });
    each([&] { r.pipeline().complete_deferred(0); });
    each([&] { r.pipeline().complete_deferred(-1); });
    each([&] { r.pipeline().complete_deferred(0, 8, INT32_MIN); });
    if (r.kind.external) {
      each([&] { r.pipeline().create_injector(); });
    } else {
      ring_buffer_injector injector = r.pipeline().create_injector();
      each([&] { injector.submit(kFunction, &n, 4096, 1); });
      each([&] { injector.try_submit(kFunction, nullptr, 1, 1); });
    }
    r.serve(2);
    r.pipeline().stop();
    EXPECT_TRUE(r.pipeline().last_stop().drained) << r.pipeline().last_stop().text;
    return failed;
  });
}

TEST_P(PipelineFaults, ADeferredCompletionNeedsNoMemory) {
  if (!GetParam().cpu_stage)
    GTEST_SKIP() << "without a CPU stage no request is deferred";
  any_rig r(GetParam());
  r.defer_all();
  r.pipeline().start();
  for (int k = 0; k < 4; ++k)
    ASSERT_TRUE(r.submit());
  ASSERT_TRUE(eventually([&] { return r.deferred == 4; }));
  {
    const failing_call any(fault::allocation, 0);
    r.pipeline().complete_deferred(0, 8);
    EXPECT_TRUE(r.pipeline().complete_deferred(1, r.generations[1], 9, 0));
    EXPECT_FALSE(r.pipeline().complete_deferred(1, r.generations[1], 9, 0));
    r.pipeline().complete_deferred(2, 10);
    r.pipeline().complete_deferred(3, 11);
    EXPECT_TRUE(eventually([&] { return r.rig().seen.all == 4; }));
    EXPECT_FALSE(any.happened());
  }
  r.expect_all_completed();
  r.pipeline().stop();
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineFaults, testing::ValuesIn(kPipelineKinds),
                         [](const auto &i) { return i.param.name; });

} // namespace
} // namespace cudaq::qec::realtime::test
