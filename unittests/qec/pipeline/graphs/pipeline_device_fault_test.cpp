// SPDX-License-Identifier: Apache-2.0
// A fault of the device while a worker is in its CPU stage: the dispatcher answers the request. unittests/gpu/qec has
// real faults.
#include "lib/qec/pipeline/completions.h"
#include "unittests/qec/pipeline/any_rig.h"

#include <dlfcn.h>

namespace {
/// What every dispatcher of this program says of itself, while it is set.
std::atomic<const cudaq_dispatcher_state_t *> shown_state{nullptr};
} // namespace

extern "C" cudaq_status_t cudaq_dispatcher_get_state(const cudaq_dispatcher_t *dispatcher,
                                                     cudaq_dispatcher_state_t *out_state) {
  static const auto real =
      reinterpret_cast<decltype(&cudaq_dispatcher_get_state)>(dlsym(RTLD_NEXT, "cudaq_dispatcher_get_state"));
  const cudaq_dispatcher_state_t *const shown = shown_state.load();
  if (shown == nullptr)
    return real(dispatcher, out_state);
  *out_state = *shown;
  return CUDAQ_OK;
}

namespace cudaq::qec::realtime::test {
namespace {

/// One slot whose request the dispatcher has answered with an error, and the consumer.
struct answered_with_an_error {
  explicit answered_with_an_error(cudaq_dispatcher_state_t state) : state_(state) {
    EXPECT_EQ(submit(), detail::pipeline_ring::admission::accepted);
    constexpr std::uint64_t kErrorOfAGraph = std::uint64_t{0xDEAD} << 48 | 719;
    cudaq::realtime::detail::store_release(ring.ring().tx_flags_host[0], kErrorOfAGraph);
    cudaq::realtime::detail::store_release(ring.ring().rx_flags_host[0], std::uint64_t{0});
    shown_state = &state_;
    EXPECT_EQ(consumer.turn(), 1u);
    shown_state = nullptr;
  }
  detail::pipeline_ring::admission submit() { return ring.submit(kFunction, nullptr, 0, 1); }

  const cudaq_dispatcher_state_t state_;
  detail::pipeline_ring ring{pipeline_rig::small(1, 1)};
  detail::completions consumer{ring};
};

TEST(PipelineDeviceFault, LeavesNoSlotToTheNextRequest) {
  answered_with_an_error failed(CUDAQ_DISPATCHER_FAILED);
  EXPECT_EQ(failed.submit(), detail::pipeline_ring::admission::closed)
      << "a worker may still write to the slot, in its CPU stage";
}

TEST(PipelineDeviceFault, IsNotAFailedLaunch) {
  answered_with_an_error failed(CUDAQ_DISPATCHER_RUNNING);
  EXPECT_EQ(failed.submit(), detail::pipeline_ring::admission::accepted);
}

TEST(PipelineDeviceFault, IsTheStatusOfARequestWhoseCpuStageRuns) {
  any_rig r({"GraphsExternalRing", true, true, true}, 20 * kSecond, 1, 4, 2);
  std::atomic<bool> open{false};
  std::atomic<int> inside{0}, status{0}, error{0};
  r.pipeline().set_cpu_stage([&](const cpu_stage_context &c) {
    ++inside;
    EXPECT_TRUE(eventually([&] { return open.load(); }));
    return pipeline_rig::echo(c);
  });
  r.pipeline().set_completion_handler([&](const completion &c) {
    status = c.status;
    error = c.cuda_error;
    r.rig().record(c);
  });
  r.pipeline().start();
  ASSERT_TRUE(r.submit());
  ASSERT_TRUE(eventually([&] { return inside == 1; }));
  r.graphs->fake.fail_device();
  open = true;
  r.expect_all_completed(CUDAQ_RPC_ERR_DEVICE_FAULT);
  EXPECT_EQ(status, CUDAQ_RPC_ERR_DEVICE_FAULT);
  EXPECT_EQ(error, static_cast<int>(cudaErrorUnknown));
  r.pipeline().stop();
  EXPECT_EQ(r.pipeline().last_stop().given_up, 0u);
}

} // namespace
} // namespace cudaq::qec::realtime::test
