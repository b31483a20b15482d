// SPDX-License-Identifier: Apache-2.0
#include "lib/api/host_path/host_workers.h"

#include "lib/host_dispatcher/graph_workers.h"

#include <cstddef>

namespace cudaq::realtime::detail {
namespace {

expected<> check_count(const char *what, std::size_t count) {
  if (count <= kMaxGraphWorkers)
    return {};
  return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is %zu, at most 64 graph workers", what, count);
}

expected<> check_worker(const cudaq_host_worker_t &w, std::size_t i) {
  if (w.graph_exec == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "workers[%zu].graph_exec is NULL", i);
  if (w.completion > CUDAQ_WORKER_CALLER_PUBLISHES)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "workers[%zu].completion is %u, allowed: 0..2", i, w.completion);
  if (w.completion == CUDAQ_WORKER_GRAPH_PUBLISHES && w.io_ctx == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "workers[%zu].io_ctx is NULL: a graph that publishes finds the tx flag there", i);
  if (w.hand_over_fn != nullptr && w.completion != CUDAQ_WORKER_CALLER_PUBLISHES)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "workers[%zu].hand_over_fn is set, but its completion is not CALLER_PUBLISHES", i);
  if (w.hand_over_fn != nullptr && w.hand_over > CUDAQ_HAND_OVER_HOOK_AND_LAUNCH)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "workers[%zu].hand_over is %u, allowed: 0..1", i, w.hand_over);
  return {};
}

/// Workers run at the same time, so they must not share a graph or an io context.
expected<> check_distinct(const char *what, const std::vector<cudaq_host_worker_t> &workers) {
  for (std::size_t i = 0; i < workers.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const bool one_graph = workers[i].graph_exec == workers[k].graph_exec;
      if (one_graph || (workers[i].io_ctx != nullptr && workers[i].io_ctx == workers[k].io_ctx))
        return make_reason(CUDAQ_ERR_INVALID_ARG, "%s %zu and %zu have the same %s: each needs its own", what, k, i,
                           one_graph ? "graph_exec" : "io_ctx");
    }
  return {};
}

} // namespace

expected<> read_workers(const cudaq_host_worker_t *workers, std::size_t count, std::vector<cudaq_host_worker_t> &out) {
  if (expected<> result = check_count("num_workers", count); result.failed())
    return result;
  if (count != 0 && workers == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "workers is NULL but num_workers is %zu", count);
  constexpr std::uint32_t kFirstVersion = offsetof(cudaq_host_worker_t, completion);
  if (count != 0 && (workers->struct_size < kFirstVersion || workers->struct_size % 8 != 0))
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "workers[0].struct_size is %u: at least %u, and a multiple of 8; set it with sizeof",
                       workers->struct_size, kFirstVersion);
  out.assign(count, {});
  const auto *at = reinterpret_cast<const unsigned char *>(workers);
  for (std::size_t i = 0; i < count; ++i, at += workers->struct_size) {
    const auto *given = reinterpret_cast<const cudaq_host_worker_t *>(at);
    if (given->struct_size != workers->struct_size)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "workers[%zu].struct_size is %u, that of workers[0] is %u", i,
                         given->struct_size, workers->struct_size);
    if (expected<> result = read_sized("workers", given, out[i]); result.failed())
      return result;
    if (expected<> result = check_worker(out[i], i); result.failed())
      return result;
  }
  return check_distinct("workers", out);
}

expected<> workers_of_run(const wiring &w, const cudaq_dispatcher_config_t &config,
                          std::vector<cudaq_host_worker_t> &out) {
  out = w.workers;
  const bool wanted = w.mailbox != nullptr || config.dispatch_mode == CUDAQ_DISPATCH_GRAPH_LAUNCH;
  if (!out.empty() || !wanted || !w.table)
    return {};
  for (std::uint32_t e = 0; e < w.table->count; ++e) {
    const cudaq_function_entry_t &entry = w.table->entries[e];
    if (entry.dispatch_mode != CUDAQ_DISPATCH_GRAPH_LAUNCH)
      continue;
    if (entry.handler.graph_exec == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "table->entries[%u].handler.graph_exec is NULL", e);
    cudaq_host_worker_t worker{};
    worker.struct_size = sizeof(worker);
    worker.graph_exec = entry.handler.graph_exec;
    worker.function_id = entry.function_id;
    worker.routing_key = entry.routing_key;
    worker.completion = have_own_contexts(w) ? CUDAQ_WORKER_GRAPH_PUBLISHES : CUDAQ_WORKER_LIBRARY_PUBLISHES;
    out.push_back(worker);
  }
  expected<> result = check_count("the number of GRAPH_LAUNCH entries in the table", out.size());
  return result.failed() ? result : check_distinct("GRAPH_LAUNCH entries of the table", out);
}

bool have_own_contexts(const wiring &w) {
  return w.mailbox != nullptr && w.mailbox_of_contexts && w.workers.empty() && !is_in_place(*w.ring, ring_side::host);
}

expected<> check_reachable(const char *what, const volatile void *address, const cudaPointerAttributes &seen,
                           bool pageable) {
  if (pageable || seen.type == cudaMemoryTypeDevice || seen.type == cudaMemoryTypeManaged ||
      (seen.type == cudaMemoryTypeHost && seen.devicePointer != nullptr))
    return {};
  return make_reason(
      CUDAQ_ERR_INVALID_ARG,
      "%s is %p, %s that the device cannot use: use mapped memory (CUDAQ_MEMORY_MAPPED, cudaHostAlloc or "
      "cudaHostRegister with the mapped flag)",
      what, const_cast<const void *>(address),
      seen.type == cudaMemoryTypeHost ? "pinned memory without a device address" : "plain host memory");
}

expected<> check_ring_for_graphs(const cudaq_ringbuffer_t &ring, bool contexts) {
  const auto missing = [](const char *field, const char *why) {
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ringbuffer->%s is NULL: %s", field, why);
  };
  if (ring.rx_data == nullptr)
    return missing("rx_data", "graph workers need the device's address of the slots");
  if (contexts && ring.tx_flags == nullptr)
    return missing("tx_flags", "a worker's io_ctx needs the device's address of the flags");
  if (contexts && !is_in_place(ring, ring_side::host) && ring.tx_data == nullptr)
    return missing("tx_data", "a worker's io_ctx needs the device's address of the TX slots");
  return {};
}

} // namespace cudaq::realtime::detail
