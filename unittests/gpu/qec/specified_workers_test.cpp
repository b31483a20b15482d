// SPDX-License-Identifier: Apache-2.0
// Workers in the form that the specification prints: the pre-launch hook copies the request by cudaMemcpyAsync, the
// graph copies it out and signals by a kernel, and the CPU stage polls the ready flag and claims it. On the pipeline's
// own ring and on an external ring.
#include "unittests/gpu/qec/pipeline_gpu_graphs.h"
#include "unittests/gpu/qec/signal_kernel.h"

#include <optional>

namespace cudaq::realtime::test {
namespace {

class printed_worker {
public:
  printed_worker() {
    const auto captured = capture_graph(graph_, [this](cudaStream_t stream) {
      const cudaError_t refused =
          cudaMemcpyAsync(output_.host<void>(), input_.as<void>(), kPayload, cudaMemcpyDefault, stream);
      return refused != cudaSuccess ? refused : launch_signal_kernel(flag_.device<int>(), stream);
    });
    EXPECT_TRUE(captured) << captured.text;
    *flag_.host<volatile int>() = 0; // the warm-up run has set it
  }
  pipe::gpu_worker_resources resources() {
    pipe::gpu_worker_resources r;
    r.graph_exec = graph_.exec();
    r.pre_launch_fn = [](void *self, void *slot_dev, cudaStream_t stream) {
      const auto &w = *static_cast<printed_worker *>(self);
      CUDA_EXPECT_OK(cudaMemcpyAsync(w.input_.as<void>(), static_cast<std::uint8_t *>(slot_dev) + CUDAQ_RPC_HEADER_SIZE,
                                     kPayload, cudaMemcpyDefault, stream));
    };
    r.pre_launch_data = this;
    r.function_id = kDecode;
    r.user_context = this;
    return r;
  }
  static std::size_t cpu_stage(const pipe::cpu_stage_context &c) {
    const auto &w = *static_cast<printed_worker *>(c.user_context);
    volatile int &flag = *w.flag_.host<volatile int>();
    if (!detail::claim_word(flag, 1, 2))
      return 0;
    const std::uint64_t sum = copying::sum(w.output_.host<void>());
    std::memcpy(c.response_buffer, &sum, sizeof(sum));
    detail::store_release(flag, 0);
    return sizeof(sum);
  }

private:
  gpu::device_block input_{kPayload};
  gpu::mapped_block output_{kPayload}, flag_{sizeof(int)};
  captured_graph graph_;
};

struct ring_owner {
  const char *name;
  bool external, in_place;
};
void PrintTo(const ring_owner &r, std::ostream *out) { *out << r.name; }

class SpecifiedWorkers : public gpu_test, public ::testing::WithParamInterface<ring_owner> {};

TEST_P(SpecifiedWorkers, AnswerEachRequestOnceWithItsOwnBytesOverRestarts) {
  constexpr int kWorkers = 4;
  constexpr std::uint32_t kSlots = 8;
  constexpr std::uint64_t kRequests = 3000; // a multiple of the slots: the next run begins at slot 0
  std::deque<printed_worker> workers(kWorkers);
  std::optional<host_ring> ring;
  cudaq_ringbuffer_t view{};
  pipe::pipeline_stage_config config = gpu_pipeline(kWorkers, kSlots, kSlot);
  if (GetParam().external) {
    view = ring.emplace(ring_shape{kSlots, kSlot, GetParam().in_place}, CUDAQ_MEMORY_MAPPED).ring;
    config.external_ringbuffer = &view;
  }
  for (int run = 0; run < 2; ++run) {
    copying data(0, kRequests, gpu::staging::mapped); // the payloads and their sums only
    pipe::realtime_pipeline p(config);
    p.set_gpu_stage([&](int id) { return workers[static_cast<std::size_t>(id)].resources(); });
    p.set_cpu_stage(&printed_worker::cpu_stage);
    p.set_completion_handler([&](const pipe::completion &c) { data.seen.record(c, data.right(c)); });
    if (!GetParam().external) {
      ASSERT_NO_FATAL_FAILURE(data.expect_run(p));
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(expect_start(p));
    const std::uint64_t wrong = exchange_on_ring(
        view, kSlots, kRequests, [&](std::uint64_t k) { return data.bytes(k); },
        [&](std::uint64_t k, const void *result, std::uint32_t bytes) {
          const std::uint64_t expected = copying::sum(data.request(k));
          return bytes == sizeof(expected) && std::memcmp(result, &expected, sizeof(expected)) == 0;
        });
    EXPECT_EQ(wrong, 0u) << p.dump();
    expect_stop(p);
    EXPECT_TRUE(p.last_stop().drained) << p.last_stop().text;
    data.seen.expect_each_once();
  }
}

INSTANTIATE_TEST_SUITE_P(Rings, SpecifiedWorkers,
                         ::testing::Values(ring_owner{"Own", false, true}, ring_owner{"ExternalInPlace", true, true},
                                           ring_owner{"ExternalTwoSides", true, false}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test
