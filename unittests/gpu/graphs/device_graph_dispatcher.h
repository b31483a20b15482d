// SPDX-License-Identifier: Apache-2.0
// A dispatcher in GRAPH_LAUNCH mode on the graphs of a set.
#pragma once

#include "unittests/gpu/graphs/device_graph_rig.h"

namespace cudaq::realtime::test {

/// Wired, not started, under observation. The destructor stops and destroys the dispatcher.
class graph_dispatcher : public dispatcher_view {
public:
  graph_dispatcher(cudaq_dispatch_manager_t *manager, const host_ring &ring, const graph_set &graphs,
                   std::uint32_t schedulers = 0, std::uint32_t kind = CUDAQ_GRAPH_IO_FORWARDED)
      : graph_dispatcher(manager, ring, {graphs.table_dev->get, static_cast<std::uint32_t>(graphs.entries.size())},
                         graphs.contexts, schedulers, kind) {}
  /// The function table lies in device memory.
  graph_dispatcher(cudaq_dispatch_manager_t *manager, const host_ring &ring, const cudaq_function_table_t &table,
                   const std::vector<void *> &contexts, std::uint32_t schedulers = 0,
                   std::uint32_t kind = CUDAQ_GRAPH_IO_FORWARDED)
      : kind_(kind), flag_(mapped_word<int>()), stats_word_(mapped_word<std::uint64_t>()) {
    cudaq_dispatcher_config_t config{};
    config.device_id = device_now();
    config.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    config.num_slots = ring.shape().num_slots;
    config.slot_size = ring.shape().slot_size;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager, &config, &get));
#if !defined(CUDAQ_TEST_WITHOUT_OBSERVER)
    observer_ = std::make_unique<dispatcher_observer>(get, observed_path::device);
#endif
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(get, &ring.ring));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(get, &table));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(get, flag_, stats_word_));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_launch_fn_v2(get, cudaq_launch_dispatch_kernel_graph_v2));
    set_contexts(contexts, schedulers);
  }
  ~graph_dispatcher() {
    observer_.reset();
    const call_result destroyed = CUDAQ_RESULT_WITHIN(kDeadline, cudaq_dispatcher_destroy(get));
    if (!fault_expected) {
      EXPECT_EQ(destroyed.status, CUDAQ_OK) << destroyed.text;
    }
  }
  graph_dispatcher(const graph_dispatcher &) = delete;
  graph_dispatcher &operator=(const graph_dispatcher &) = delete;

  void set_contexts(const std::vector<void *> &contexts, std::uint32_t schedulers = 0) {
    const cudaq_dispatch_graph_io_t io{sizeof(io), kind_, schedulers, static_cast<std::uint32_t>(contexts.size()),
                                       contexts.data()};
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_graph_io(get, &io));
  }
  call_result start() { return CUDAQ_RESULT_WITHIN(kStartLimit, cudaq_dispatcher_start(get)); }
  void expect_start() {
    const call_result started = start();
    ASSERT_EQ(started.status, CUDAQ_OK) << started.text;
  }
  void raise_callers_flag() { store_release(*flag_, 1); }

  bool fault_expected = false;

private:
  const std::uint32_t kind_;
  int *flag_;
  std::uint64_t *stats_word_;
  std::unique_ptr<dispatcher_observer> observer_;
};

} // namespace cudaq::realtime::test
