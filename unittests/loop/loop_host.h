// SPDX-License-Identifier: Apache-2.0
// include/cudaq/realtime/detail/loop/dispatch_loop.cuh compiled for the CPU, with the state that start() prepares for a
// kernel.
#pragma once

#include "cudaq/realtime/detail/loop/dispatch_loop.cuh"
#include "cudaq/realtime/detail/loop/handler_sets.h"
#include "cudaq/realtime/detail/loop/shared_ring_transport.h"
#include "cudaq/realtime/detail/ring/function_index_builder.h"
#include "lib/api/back_end.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {

using namespace detail;

/// Yields the CPU after a look that finds nothing, because tests share few cores.
struct yielding_thread_group : single_thread_group {
  static std::uint32_t ballot(bool vote) {
    if (!vote)
      std::this_thread::yield();
    return vote;
  }
};
using own_transport = ring_transport<yielding_thread_group, thread_scope_system>;
template <class Handlers, bool Any, class Transport = own_transport>
using loop = dispatch_loop<yielding_thread_group, Transport, Handlers, no_helpers<yielding_thread_group>, Any>;

/// The checked function with this id, with the signature of a device handler.
template <std::uint32_t Id>
int handler(const void *in, void *out, std::uint32_t arg_len, std::uint32_t max_result_len, std::uint32_t *result_len) {
  cudaq_host_call_t call{};
  call.payload = in;
  call.payload_len = arg_len;
  call.result = out;
  call.max_result_len = max_result_len;
  const int status = checked_function::serve(&call, checked_function::v1_by_id[Id]);
  *result_len = call.result_len;
  return status;
}

inline slot_ring host_view(const host_ring &r) { return view_of(r.ring, host_config(r.shape()), ring_side::host); }

/// The working memory of one thread group; shared memory on a device.
struct group_memory {
  void lay_out(std::uint32_t slot_size, bool any_order) {
    const std::uint32_t staging = (slot_size + 15) & ~15u;
    memory.resize(2 * staging / 16 + 32 * 4);
    loop.in = reinterpret_cast<std::uint8_t *>(memory.data());
    loop.out = loop.in + staging;
    loop.staging_bytes = staging;
    loop.out_pitch = any_order && staging <= 64 ? staging : 0;
  }
  loop_workspace loop{};
  std::vector<word16> memory;
};

/// Runs the loop of one thread group, out of `groups`, on the calling thread until a shutdown word is set.
template <bool Any, class Group = yielding_thread_group, class Transport>
void run_group(const dispatch_params &params, std::uint32_t group, std::uint32_t groups, group_memory &memory,
               const Transport &transport) {
  const table_handler_set handlers(params.index, params.handlers);
  no_helpers<Group> helpers;
  dispatch_loop<Group, Transport, table_handler_set, no_helpers<Group>, Any>(params, group, memory.loop, transport,
                                                                             handlers, helpers)
      .run(groups);
}

/// The state that start() prepares for a kernel with `groups` thread groups. It serves functions first_id to first_id +
/// count - 1, out of 1 to 6.
class loop_host {
public:
  loop_host(const host_ring &ring, std::uint32_t groups, std::uint32_t first_id = 1, std::uint32_t count = 3)
      : reports(groups), workspaces_(groups) {
    const DeviceRPCFunction functions[] = {handler<1>, handler<2>, handler<3>, handler<4>, handler<5>, handler<6>};
    std::vector<cudaq_function_entry_t> entries(count);
    for (std::uint32_t e = 0; e < count; ++e) {
      entries[e].function_id = first_id + e;
      entries[e].dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
      handlers_.push_back(reinterpret_cast<std::uint64_t>(functions[first_id + e - 1]));
    }
    EXPECT_EQ(index.build(entries.data(), count).what, function_index::problem::none);
    params.ring = host_view(ring);
    params.index = index.view();
    params.handlers = handlers_.data();
    params.library_shutdown = &library_word;
    params.caller_shutdown = &caller_word;
    params.caller_stats = &processed;
    params.reports = reports.data();
    params.rules.served_modes = 1u << CUDAQ_DISPATCH_DEVICE_CALL;
    params.rules.answer_unknown = true;
    params.any_order = groups > 1;
    for (group_memory &d : workspaces_)
      d.lay_out(ring.shape().slot_size, params.any_order);
  }

  template <bool Any, class Transport>
  void start_with(const Transport &transport) {
    for (std::uint32_t t = 0; t < workspaces_.size(); ++t)
      threads_.emplace_back([this, t, transport] {
        run_group<Any>(params, t, static_cast<std::uint32_t>(workspaces_.size()), workspaces_[t], transport);
      });
  }
  template <bool Any>
  void start() {
    start_with<Any>(own_transport(params.ring, 0));
  }
  void join() {
    for (std::thread &t : threads_)
      t.join();
    threads_.clear();
  }

  function_index index;
  dispatch_params params;
  std::uint32_t library_word = 0;
  volatile int caller_word = 0;
  std::uint64_t processed = 0;
  std::vector<loop_report> reports;

private:
  std::vector<std::uint64_t> handlers_;
  std::vector<group_memory> workspaces_;
  std::vector<std::thread> threads_;
};

} // namespace cudaq::realtime::test
