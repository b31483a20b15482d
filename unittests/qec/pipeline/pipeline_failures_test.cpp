// SPDX-License-Identifier: Apache-2.0
#include "unittests/qec/pipeline/pipeline_rig.h"

#include "cudaq/realtime/detail/base/flag_word.h"

#include <array>
#include <stdexcept>

namespace cudaq::qec::realtime::test {
namespace {

/// The completion of one request.
struct request_result {
  bool success = true;
  int cuda_error = 0, status = 0;
  std::vector<std::uint8_t> response;
};

/// A stage that continues after it has returned, until the test ends it.
struct asynchronous_stage {
  copy_worker &worker;
  std::atomic<int> launches{0};
  int flag_left = 0; ///< value that it writes to its flag before it fails
  int fails = 0;

  static int launch(void *self, host_stage_call *call) {
    auto &s = *static_cast<asynchronous_stage *>(self);
    if (s.fails != 0) {
      cudaq::realtime::detail::store_release(static_cast<volatile int &>(s.worker.ready), s.flag_left);
      return s.fails;
    }
    copy_worker::copy(&s.worker, call);
    ++s.launches;
    return 0;
  }
  void end() { cudaq::realtime::detail::store_release(static_cast<volatile int &>(worker.ready), 1); }
};

class PipelineFailures : public testing::Test {
protected:
  PipelineFailures() {
    rig.pipeline->set_completion_handler([this](const completion &c) {
      const auto *bytes = static_cast<const std::uint8_t *>(c.response);
      last = {c.success, c.cuda_error, c.status, {bytes, bytes + c.response_size}};
      ++rig.seen.all;
    });
  }
  request_result one(std::uint64_t k, std::uint32_t function = kFunction) {
    const std::uint64_t before = rig.seen.all;
    ring_buffer_injector injector = rig.pipeline->create_injector();
    const std::vector<std::uint8_t> payload = payload_of(k, 16);
    injector.submit(function, payload.data(), payload.size(), k);
    EXPECT_TRUE(eventually([&] { return rig.seen.all == before + 1; }));
    return last;
  }
  gpu_worker_resources resources(int id, asynchronous_stage &stage) {
    gpu_worker_resources r = rig.resources(id);
    r.host_stage_fn = &asynchronous_stage::launch;
    r.host_stage_data = &stage;
    r.ready_flag = &stage.worker.ready;
    return r;
  }
  void expect_good(std::uint64_t k) {
    const request_result r = one(k);
    EXPECT_TRUE(r.success);
    EXPECT_EQ(r.response, payload_of(k, 16));
  }

  pipeline_rig rig{pipeline_rig::small(1, 2)};
  request_result last;
};

// Known failure 34.
TEST_F(PipelineFailures, AStageThatFailsIsAFailedCompletionAndTheWorkerGoesOn) {
  rig.change_stage([&](gpu_worker_resources &r, int) { r.host_stage_fn = &copy_worker::copy_or_fail; });
  rig.pipeline->start();
  expect_good(0);
  for (const auto &[k, error] : {std::pair{13, copy_worker::kStageError}, std::pair{14, int{cudaErrorUnknown}}}) {
    const request_result r = one(static_cast<std::uint64_t>(k));
    EXPECT_FALSE(r.success);
    EXPECT_EQ(r.cuda_error, error);
    EXPECT_EQ(r.status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
    EXPECT_TRUE(r.response.empty());
    expect_good(3); // the other slot
    expect_good(6); // the slot that failed
  }
  EXPECT_NE(rig.pipeline->dump().find("2 GPU stage"), std::string::npos) << rig.pipeline->dump();
}

TEST_F(PipelineFailures, AFlagThatAFailedStageLeftIsNotTakenForTheNextRequests) {
  asynchronous_stage stage{rig.workers[0]};
  std::atomic<int> cpu_stages{0};
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    ++cpu_stages;
    return pipeline_rig::echo(c);
  });
  rig.pipeline->set_gpu_stage([&](int id) { return resources(id, stage); });
  ring_buffer_injector injector = rig.start();
  stage.fails = 700;
  stage.flag_left = 1;
  EXPECT_EQ(one(1).cuda_error, 700);
  stage.fails = 0;
  const std::vector<std::uint8_t> payload = payload_of(2, 16);
  injector.submit(kFunction, payload.data(), payload.size(), 2);
  ASSERT_TRUE(eventually([&] { return stage.launches == 1; }));
  ASSERT_TRUE(eventually([&] { return rig.pipeline->dump().find("waiting for the GPU stage") != std::string::npos; }));
  EXPECT_EQ(cpu_stages, 0) << "no thread has reported that the output is ready";
  stage.end();
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 2; }));
  EXPECT_EQ(last.response, payload);
}

TEST_F(PipelineFailures, AHookThatThrowsAfterTheLaunchLeavesTheWorkerToItsStage) {
  asynchronous_stage stage{rig.workers[0]};
  static std::atomic<bool> throws{false};
  throws = true;
  rig.pipeline->set_gpu_stage([&](int id) {
    gpu_worker_resources r = resources(id, stage);
    r.post_launch_fn = [](void *, void *, cudaStream_t) {
      if (throws.exchange(false))
        throw std::runtime_error("hook");
    };
    return r;
  });
  ring_buffer_injector injector = rig.start();
  EXPECT_EQ(one(1).status, CUDAQ_RPC_ERR_LAUNCH_FAILED);
  const std::vector<std::uint8_t> payload = payload_of(2, 16);
  injector.submit(kFunction, payload.data(), payload.size(), 2);
  for (int tenth_ms = 0; tenth_ms < 300 && stage.launches == 1; ++tenth_ms)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  EXPECT_EQ(stage.launches, 1) << "the first stage still uses the output";
  stage.end();
  ASSERT_TRUE(eventually([&] { return stage.launches == 2; }));
  stage.end();
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 2; }));
  EXPECT_EQ(last.response, payload);
}

// Known failure 17.
TEST_F(PipelineFailures, ACpuStageThatThrowsIsAnErrorAnswer) {
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) -> std::size_t {
    std::uint64_t k = 0;
    std::memcpy(&k, c.gpu_output, sizeof(k));
    if (k == 13)
      throw std::runtime_error("odd parity");
    if (k == 14)
      throw 14;
    return pipeline_rig::echo(c);
  });
  rig.pipeline->start();
  for (const std::uint64_t k : {13u, 14u, 13u}) {
    const request_result r = one(k);
    EXPECT_FALSE(r.success);
    EXPECT_EQ(r.cuda_error, 0);
    EXPECT_EQ(r.status, CUDAQ_RPC_ERR_HANDLER_THREW);
    expect_good(1);
  }
  EXPECT_NE(rig.pipeline->dump().find("odd parity"), std::string::npos);
}

TEST_F(PipelineFailures, AResultThatDoesNotFitIsAnErrorAnswer) {
  std::size_t answer_bytes = 0;
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &) { return answer_bytes; });
  rig.pipeline->start();
  answer_bytes = 256 - 24 + 1;
  EXPECT_EQ(one(1).status, CUDAQ_RPC_ERR_RESULT_TOO_LARGE);
  answer_bytes = 256 - 24;
  EXPECT_EQ(one(2).response.size(), 232u);
  answer_bytes = 0;
  EXPECT_TRUE(one(3).success) << "in notified mode an answer may be empty";
}

TEST_F(PipelineFailures, AnUnknownFunctionIsAnswered) {
  rig.pipeline->start();
  const request_result r = one(1, kFunction + 1);
  EXPECT_FALSE(r.success);
  EXPECT_EQ(r.status, CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  expect_good(2);
}

TEST_F(PipelineFailures, ACompletionHandlerThatThrowsLosesNothing) {
  rig.pipeline->set_completion_handler([this](const completion &) {
    ++rig.seen.all;
    throw std::runtime_error("handler");
  });
  rig.pipeline->start();
  for (std::uint64_t k = 0; k < 10; ++k)
    one(k);
  rig.pipeline->stop();
  EXPECT_EQ(rig.pipeline->stats().completed, 10u);
  EXPECT_NE(rig.pipeline->dump().find("10 completion handler"), std::string::npos) << rig.pipeline->dump();
}

// Known failure 47.
TEST_F(PipelineFailures, AHeaderOfTheCpuStagesOwnCarriesItsStatusIfTheStageSaysSo) {
  int where = 0;
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) -> std::size_t {
    auto *result = static_cast<std::uint8_t *>(c.response_buffer);
    const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, 5, 4, 0, 0};
    const auto frame_at = [&](std::uint8_t *at) {
      std::memcpy(at, &header, sizeof(header));
      std::memcpy(at + sizeof(header), "good", 4);
    };
    if (where == 0)
      frame_at(result - sizeof(header));
    if (where == 1)
      frame_at(result);
    return FRAMED_RESPONSE;
  });
  rig.pipeline->start();
  for (where = 0; where < 2; ++where) {
    const request_result r = one(1);
    EXPECT_TRUE(r.success) << "its own status is not a protocol error";
    EXPECT_EQ(r.status, 5);
    EXPECT_EQ(r.response, (std::vector<std::uint8_t>{'g', 'o', 'o', 'd'}));
  }
  const request_result r = one(1);
  EXPECT_FALSE(r.success);
  EXPECT_EQ(r.status, CUDAQ_RPC_ERR_NO_RESPONSE) << "it says so, and there is none";
}

/// A result that begins with a response header of another status, in the length that a frame would have.
struct forged_result {
  forged_result() {
    const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, CUDAQ_RPC_ERR_DEVICE_FAULT, 40, 0, 0};
    std::memcpy(bytes.data(), &header, sizeof(header));
  }
  std::size_t write(void *to) const {
    std::memcpy(to, bytes.data(), bytes.size());
    return bytes.size();
  }
  static void expect_data(const request_result &r) {
    EXPECT_TRUE(r.success);
    EXPECT_EQ(r.status, 0);
    const forged_result expected;
    EXPECT_EQ(r.response, (std::vector<std::uint8_t>{expected.bytes.begin(), expected.bytes.end()}));
  }
  std::array<std::uint8_t, 64> bytes{};
};

TEST_F(PipelineFailures, AResultThatLooksLikeAFrameIsData) {
  const forged_result forged;
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) { return forged.write(c.response_buffer); });
  rig.pipeline->start();
  forged.expect_data(one(1));
}

TEST_F(PipelineFailures, AResultOfAHostStageThatLooksLikeAFrameIsData) {
  const forged_result forged;
  rig.pipeline->set_cpu_stage({});
  rig.pipeline->set_gpu_stage([&](int) {
    gpu_worker_resources r;
    r.function_id = kFunction;
    r.host_stage_data = const_cast<forged_result *>(&forged);
    r.host_stage_fn = [](void *self, host_stage_call *call) {
      call->response_size = static_cast<const forged_result *>(self)->write(call->response_buffer);
      return 0;
    };
    return r;
  });
  rig.pipeline->start();
  forged.expect_data(one(1));
}

/// On an in-place ring the bytes before response_buffer belong to the request, and its producer can write them.
TEST_F(PipelineFailures, AHeaderBeforeTheBufferThatTheStageDoesNotClaimIsIgnored) {
  const forged_result forged;
  rig.pipeline->set_cpu_stage([&](const cpu_stage_context &c) {
    std::memcpy(static_cast<std::uint8_t *>(c.response_buffer) - 24, forged.bytes.data(), 24);
    return forged.write(c.response_buffer);
  });
  rig.pipeline->start();
  forged.expect_data(one(1));
}

// Known failure 34.
TEST(PipelinePausedWorker, AnswersTheRequestThatItTook) {
  pipeline_rig rig(pipeline_rig::small(2, 4), 40);
  std::atomic<copy_worker *> paused{nullptr}; // has taken its request; its output is not ready yet
  struct stage {
    copy_worker &worker;
    std::atomic<copy_worker *> &paused;
    std::uint64_t paused_id;
  };
  std::deque<stage> stages;
  rig.pipeline->set_gpu_stage([&](int id) {
    copy_worker &w = rig.workers[static_cast<std::size_t>(id)];
    gpu_worker_resources r = rig.resources(id);
    r.host_stage_data = &stages.emplace_back(stage{w, paused, rig.first_id});
    r.host_stage_fn = [](void *self, host_stage_call *call) {
      auto &s = *static_cast<stage *>(self);
      copy_worker::copy(&s.worker, call);
      std::uint64_t request = 0;
      std::memcpy(&request, call->payload, sizeof(request));
      if (request == s.paused_id)
        s.paused = &s.worker;
      else
        cudaq::realtime::detail::store_release(static_cast<volatile int &>(s.worker.ready), 1);
      return 0;
    };
    r.ready_flag = &w.ready;
    return r;
  });
  ring_buffer_injector injector = rig.start();
  rig.submit(injector, 0);
  ASSERT_TRUE(eventually([&] { return paused != nullptr; }));
  for (std::uint64_t k = 1; k < 4; ++k) // the other worker serves all other slots
    rig.submit(injector, k);
  EXPECT_TRUE(eventually([&] { return rig.seen.all == 3; }));
  const std::vector<std::uint8_t> fifth = payload_of(rig.first_id + 4, 12);
  EXPECT_FALSE(injector.try_submit(kFunction, fifth.data(), fifth.size(), rig.first_id + 4)) << "its slot is not free";
  EXPECT_EQ(rig.seen.times[0], 0);
  cudaq::realtime::detail::store_release(static_cast<volatile int &>(paused.load()->ready), 1);
  for (std::uint64_t k = 4; k < 40; ++k)
    rig.submit(injector, k);
  rig.pipeline->stop();
  CUDAQ_EXPECT_ALL_GOOD(rig);
}

} // namespace
} // namespace cudaq::qec::realtime::test
