// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/pipeline/pipeline_rig.h"

#include <algorithm>
#include <mutex>
#include <random>
#include <stdexcept>

namespace cudaq::qec::realtime::test {
namespace {

struct open_request {
  int slot;
  std::uint64_t generation;
  void *response;
  std::vector<std::uint8_t> result;
};

/// The CPU stage defers every request; the test completes them.
class PipelineDeferred : public testing::Test {
protected:
  void SetUp() override {
    rig.pipeline->set_cpu_stage([this](const cpu_stage_context &c) {
      const auto &w = *static_cast<const copy_worker *>(c.user_context);
      const std::lock_guard<std::mutex> lock(mutex);
      open.push_back({c.origin_slot,
                      c.generation,
                      c.response_buffer,
                      {w.output.begin(), w.output.begin() + static_cast<std::ptrdiff_t>(w.size)}});
      return DEFERRED_COMPLETION;
    });
  }
  std::vector<open_request> take(std::size_t at_least) {
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard<std::mutex> lock(mutex);
      return open.size() >= at_least;
    }));
    const std::lock_guard<std::mutex> lock(mutex);
    return std::move(open);
  }
  open_request submit_and_take(std::uint64_t k) {
    ring_buffer_injector injector = rig.pipeline->create_injector();
    rig.submit(injector, k);
    return take(1).at(0);
  }
  static void write_result(const open_request &r) { std::memcpy(r.response, r.result.data(), r.result.size()); }
  static void write_frame(const open_request &r, std::int32_t status) {
    const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, status, static_cast<std::uint32_t>(r.result.size()), 0,
                                      0};
    std::memcpy(static_cast<std::uint8_t *>(r.response) - sizeof(header), &header, sizeof(header));
    write_result(r);
  }

  pipeline_rig rig{pipeline_rig::small(1, 8), 160};
  std::mutex mutex;
  std::vector<open_request> open;
};

TEST_F(PipelineDeferred, OneWorkerGoesOnAndAnswersComeInAnyOrder) {
  ring_buffer_injector injector = rig.start();
  std::minstd_rand random(1);
  for (std::uint64_t k = 0; k < 160; k += 8) {
    for (std::uint64_t i = 0; i < 8; ++i)
      rig.submit(injector, k + i);
    std::vector<open_request> all = take(8); // one worker took them all; no request is answered yet
    ASSERT_EQ(all.size(), 8u);
    EXPECT_EQ(rig.seen.all, k);
    std::shuffle(all.begin(), all.end(), random);
    for (const open_request &r : all) {
      write_frame(r, 0);
      rig.pipeline->complete_deferred(r.slot);
    }
    EXPECT_TRUE(eventually([&] { return rig.seen.all == k + 8; }));
  }
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST_F(PipelineDeferred, ASecondCompletionIsRefusedAndChangesNothing) {
  rig.pipeline->start();
  const open_request first = submit_and_take(0);
  write_result(first);
  EXPECT_FALSE(rig.pipeline->complete_deferred(first.slot, first.generation + 1, 0, 0));
  EXPECT_TRUE(rig.pipeline->complete_deferred(first.slot, first.generation, first.result.size(), 0));
  EXPECT_FALSE(rig.pipeline->complete_deferred(first.slot, first.generation, first.result.size(), 0));
  EXPECT_THROW(rig.pipeline->complete_deferred(first.slot), std::logic_error);
  EXPECT_THROW(rig.pipeline->complete_deferred(first.slot + 1), std::logic_error) << "nothing is there";
  EXPECT_THROW(rig.pipeline->complete_deferred(-1), std::out_of_range);
  EXPECT_THROW(rig.pipeline->complete_deferred(8), std::out_of_range);
  for (std::uint64_t k = 1; k < 9; ++k) { // the first slot is used again
    const open_request r = submit_and_take(k);
    EXPECT_FALSE(rig.pipeline->complete_deferred(first.slot, first.generation, 0, 0))
        << "an earlier request of the slot";
    write_result(r);
    rig.pipeline->complete_deferred(r.slot, r.result.size());
  }
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 9; }));
  for (std::size_t k = 0; k < 9; ++k)
    EXPECT_EQ(rig.seen.good[k], 1) << k;
}

TEST(PipelineLateCompletion, DoesNotAnswerARequestThatWasNotDeferred) {
  pipeline_rig rig(pipeline_rig::small(1, 1), 2); // both requests have the same slot
  std::atomic<bool> held{false};
  std::atomic<int> inside{0}, deferred{0};
  struct gate {
    copy_worker &worker;
    std::atomic<bool> &held;
    std::atomic<int> &inside;
  } stage{rig.workers[0], held, inside};
  rig.change_stage([&](gpu_worker_resources &r, int) {
    r.host_stage_data = &stage;
    r.host_stage_fn = [](void *self, host_stage_call *call) {
      auto &g = *static_cast<gate *>(self);
      ++g.inside;
      eventually([&] { return !g.held; });
      return copy_worker::copy(&g.worker, call);
    };
  });
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    const std::size_t size = pipeline_rig::echo(c);
    return deferred++ == 0 ? DEFERRED_COMPLETION : size;
  });
  ring_buffer_injector injector = rig.start();
  rig.submit(injector, 0);
  ASSERT_TRUE(eventually([&] { return deferred == 1; }));
  rig.pipeline->complete_deferred(0, 8);
  ASSERT_TRUE(eventually([&] { return rig.seen.all == 1; }));
  held = true;
  rig.submit(injector, 1);
  ASSERT_TRUE(eventually([&] { return inside == 2; }));
  EXPECT_THROW(rig.pipeline->complete_deferred(0), std::logic_error);
  EXPECT_THROW(rig.pipeline->complete_deferred(0, 8), std::logic_error);
  EXPECT_EQ(rig.seen.all, 1u);
  held = false;
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST_F(PipelineDeferred, WithoutAHeaderThereIsNoResponse) {
  std::atomic<int> status{0};
  rig.pipeline->set_completion_handler([&](const completion &c) {
    status = c.status;
    EXPECT_FALSE(c.success);
    ++rig.seen.all;
  });
  rig.pipeline->start();
  open_request r = submit_and_take(0);
  write_result(r);
  rig.pipeline->complete_deferred(r.slot);
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 1; }));
  EXPECT_EQ(status, CUDAQ_RPC_ERR_NO_RESPONSE);
  r = submit_and_take(1); // a header with the status that means "deferred" does not count as a header
  write_frame(r, INT32_MIN);
  status = 0;
  rig.pipeline->complete_deferred(r.slot);
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 2; }));
  EXPECT_EQ(status, CUDAQ_RPC_ERR_NO_RESPONSE);
}

TEST_F(PipelineDeferred, AHeaderMayBeFirstInTheResponseBuffer) {
  rig.pipeline->start();
  const open_request r = submit_and_take(0);
  const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 0, static_cast<std::uint32_t>(r.result.size()), 0, 0};
  auto *const to = static_cast<std::uint8_t *>(r.response);
  std::memcpy(to, &header, sizeof(header));
  std::memcpy(to + sizeof(header), r.result.data(), r.result.size());
  rig.pipeline->complete_deferred(r.slot);
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 1; }));
  EXPECT_EQ(rig.seen.good[0], 1);
}

TEST_F(PipelineDeferred, AStatusThatMeansDeferredIsRefusedAndTheRequestStaysOpen) {
  rig.pipeline->start();
  const open_request r = submit_and_take(0);
  write_result(r);
  EXPECT_THROW(rig.pipeline->complete_deferred(r.slot, r.result.size(), INT32_MIN), std::invalid_argument);
  EXPECT_THROW(rig.pipeline->complete_deferred(r.slot, r.generation, r.result.size(), INT32_MIN),
               std::invalid_argument);
  EXPECT_TRUE(rig.pipeline->complete_deferred(r.slot, r.generation, r.result.size(), 0));
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 1; }));
  EXPECT_EQ(rig.seen.good[0], 1);
}

TEST_F(PipelineDeferred, ACompletionMayOvertakeItsCallback) {
  rig.pipeline->set_cpu_stage([this](const cpu_stage_context &c) {
    const std::size_t size = pipeline_rig::echo(c);
    rig.pipeline->complete_deferred(c.origin_slot, size);
    return DEFERRED_COMPLETION;
  });
  rig.run_all();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST_F(PipelineDeferred, APolledRequestThatItsStageHasCompletedIsNotPolledAgain) {
  rig.change_stage([](gpu_worker_resources &r, int) {
    r.gpu_output = nullptr; // poll mode
    r.gpu_output_size = 0;
  });
  std::atomic<std::size_t> calls{0};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) -> std::size_t {
    const auto &w = *static_cast<const copy_worker *>(c.user_context);
    std::memcpy(c.response_buffer, w.output.data(), w.size);
    ++calls;
    rig.pipeline->complete_deferred(c.origin_slot, c.generation, w.size, 0);
    return 0; // no answer yet
  });
  rig.run_all();
  EXPECT_EQ(calls, 160u);
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

TEST_F(PipelineDeferred, OfTwoThreadsThatCompleteTheSameRequestOneDoes) {
  rig.pipeline->set_cpu_stage([this](const cpu_stage_context &c) {
    const std::size_t size = pipeline_rig::echo(c);
    const std::lock_guard<std::mutex> lock(mutex);
    open.push_back({c.origin_slot, c.generation, c.response_buffer, std::vector<std::uint8_t>(size)});
    return DEFERRED_COMPLETION;
  });
  std::atomic<bool> ends{false};
  std::atomic<int> answered{0}, refused{0};
  std::vector<std::thread> completers;
  for (int i = 0; i < 2; ++i)
    completers.emplace_back([&] {
      for (std::size_t next = 0; !ends;) {
        open_request r{};
        {
          const std::lock_guard<std::mutex> lock(mutex);
          if (next < open.size())
            r = open[next++];
        }
        if (r.response == nullptr)
          std::this_thread::yield();
        else if (rig.pipeline->complete_deferred(r.slot, r.generation, r.result.size(), 0))
          ++answered;
        else
          ++refused;
      }
    });
  rig.pipeline->start();
  rig.submit_all();
  EXPECT_TRUE(eventually([&] { return answered + refused == 320; }));
  ends = true;
  for (std::thread &t : completers)
    t.join();
  rig.pipeline->stop();
  EXPECT_EQ(answered, 160);
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

} // namespace
} // namespace cudaq::qec::realtime::test
