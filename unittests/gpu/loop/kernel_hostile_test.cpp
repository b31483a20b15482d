// SPDX-License-Identifier: Apache-2.0
// Dispatch kernels whose peer overwrites everything in the ring at any time. CUDAQ_HOSTILE_SECONDS sets how long each
// attack takes. Under compute-sanitizer an access outside the ring or the staging is reported.
#include "unittests/gpu/support/checked_device_functions.h"
#include "unittests/support/hostile_peer.h"

namespace cudaq::realtime::test {
namespace {

struct flavour {
  const char *name;
  kernel_kind kind;
  ring_shape shape;
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class KernelHostile : public gpu_test, public ::testing::WithParamInterface<flavour> {};

// Known failure 58.
TEST_P(KernelHostile, GetsNothingPastTheChecksAndGoodRequestsAreServedAfterIt) {
  const flavour &f = GetParam();
  manager_handle manager;
  const host_ring ring(f.shape, CUDAQ_MEMORY_MAPPED);
  cudaq_ringbuffer_t view = ring.ring;
  view.tx_data_host = ring.tx_slot(0);
  view.tx_stride_sz = f.shape.in_place ? view.rx_stride_sz : view.tx_stride_sz;
  checked_device_functions functions(2, 16);
  gpu_dispatcher dispatcher(manager.get, setup_of(f.kind, ring));
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  // The checked functions, which record their calls, get four of five good requests; `reverse` reads every byte.
  hostile_peer peer(view, f.shape, {{1, 2, 1, 2, id_of(handler::reverse)}});
  peer.attack_until([&] { return dispatcher.stats().dispatched >= 100; });
  CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_stop(dispatcher.get));
  peer.stop();
  functions.collect();
  handler_watch watch; // what the handlers themselves have counted
  watch.calls = functions.function(0)->calls + functions.function(1)->calls;
  expect_accounts(dispatcher.stats(), watch, peer.writes());

  reinitialise(view, f.shape);
  if (!f.kind.unified()) { // the cursor is at slot 0 again; a unified kernel looks over the ring
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_ringbuffer(dispatcher.get, &ring.ring));
  }
  ASSERT_NO_FATAL_FAILURE(dispatcher.expect_start());
  ASSERT_NO_FATAL_FAILURE(expect_good_answers(view, f.shape, {id_of(handler::reverse)}));
  CUDAQ_EXPECT_OK_WITHIN(kDeadline, cudaq_dispatcher_stop(dispatcher.get));
}

INSTANTIATE_TEST_SUITE_P(Flavours, KernelHostile,
                         ::testing::Values(flavour{"Regular", kFifo32, {64, 256, false}},
                                           flavour{"RegularInPlace", kFifo32, {8, 256, true}},
                                           flavour{"RegularLongFrames", kFifo256, {16, 8192, false}},
                                           flavour{"RegularBeyondTheStaging", kFifo256, {4, 32768, false}},
                                           flavour{"Any", kAny4x64, {256, 64, false}},
                                           flavour{"AnyLongFrames", kAny4x64, {64, 1024, true}},
                                           flavour{"Cooperative", kCooperative1x128, {32, 512, false}},
                                           flavour{"CooperativeGrid", kCooperative4x64, {32, 512, false}},
                                           flavour{"Unified", kUnified, {64, 256, false}}),
                         [](const auto &tested) { return std::string(tested.param.name); });

} // namespace
} // namespace cudaq::realtime::test
