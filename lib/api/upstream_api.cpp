// SPDX-License-Identifier: Apache-2.0
// The functions of the upstream interface (upstream_interface.h), as a translation into those of the specification.
#include "lib/api/dispatcher.h"
#include "lib/api/host_loop.h"
#include "lib/api/options.h"

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "cudaq/realtime/daemon/dispatcher/upstream_interface.h"

using namespace cudaq::realtime::detail;

// Defined in the kernels' archive: not NULL if the program is linked with it.
#pragma weak cudaq_launch_unified_dispatch_device_upstream

namespace {

expected<> check_context(const cudaq_host_dispatch_loop_ctx_t &ctx) {
  const auto refused = [](const char *text) { return make_reason(CUDAQ_ERR_INVALID_ARG, "%s", text); };
  if (ctx.shutdown_flag == nullptr)
    return refused("ctx->shutdown_flag is NULL");
  if (ctx.num_workers != 0 && ctx.workers == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ctx->workers is NULL but num_workers is %zu", ctx.num_workers);
  if (ctx.num_workers > 64)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ctx->num_workers is %zu, at most 64 graph workers", ctx.num_workers);
  if (ctx.num_workers != 0 && ctx.skip_stream_sweep != 0 && ctx.idle_mask == nullptr)
    return refused("ctx->idle_mask is NULL: with skip_stream_sweep the caller frees the workers there");
  if ((ctx.io_ctxs_host == nullptr) != (ctx.io_ctxs_dev == nullptr))
    return refused("ctx->io_ctxs_host and io_ctxs_dev are two addresses of one array: set both, or none");
  return {};
}

std::vector<cudaq_host_worker_t> workers_of(const cudaq_host_dispatch_loop_ctx_t &ctx) {
  auto *const contexts = static_cast<cudaq::realtime::GraphIOContext *>(ctx.io_ctxs_host);
  const cudaq_worker_completion_t completion = ctx.skip_stream_sweep != 0 ? CUDAQ_WORKER_CALLER_PUBLISHES
                                               : contexts != nullptr      ? CUDAQ_WORKER_GRAPH_PUBLISHES
                                                                          : CUDAQ_WORKER_LIBRARY_PUBLISHES;
  std::vector<cudaq_host_worker_t> workers(ctx.num_workers);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const cudaq_host_dispatch_worker_t &w = ctx.workers[i];
    void *const io_ctx = contexts != nullptr ? contexts + i : nullptr;
    workers[i] = {w.graph_exec,
                  w.stream,
                  w.function_id,
                  sizeof(cudaq_host_worker_t),
                  w.routing_key,
                  w.pre_launch_fn,
                  w.pre_launch_data,
                  w.post_launch_fn,
                  w.post_launch_data,
                  completion,
                  0,
                  io_ctx,
                  nullptr,
                  nullptr};
  }
  return workers;
}

expected<> run(const cudaq_host_dispatch_loop_ctx_t *ctx) {
  if (ctx == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "ctx is NULL");
  if (expected<> result = check_context(*ctx); result.failed())
    return result;
  cudaq_dispatcher_config_t config = ctx->config;
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  config.kernel_type = CUDAQ_KERNEL_REGULAR;
  cudaq_dispatcher_options_t options = default_dispatcher_options();
  options.mailbox_content = ctx->io_ctxs_host != nullptr ? CUDAQ_MAILBOX_IO_CONTEXT : CUDAQ_MAILBOX_RX_SLOT;
  std::uint64_t uncounted = 0;
  std::vector<cudaq_host_worker_t> workers = workers_of(*ctx);
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (workers[i].graph_exec == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "ctx->workers[%zu].graph_exec is NULL", i);
  return run_loop_here({config,
                        ctx->ringbuffer,
                        ctx->function_table,
                        std::move(workers),
                        &options,
                        static_cast<volatile int *>(ctx->shutdown_flag),
                        ctx->stats_counter != nullptr ? ctx->stats_counter : &uncounted,
                        ctx->h_mailbox_bank,
                        {static_cast<shared_word<std::uint64_t> *>(ctx->idle_mask),
                         static_cast<shared_word<std::uint64_t> *>(ctx->live_dispatched), ctx->inflight_slot_tags},
                        true});
}

} // namespace

extern "C" {

cudaq_status_t cudaq_dispatcher_set_unified_launch_upstream(cudaq_dispatcher_t *dispatcher,
                                                            cudaq_unified_launch_upstream_fn_t launch_fn,
                                                            void *transport_ctx) {
  return guarded("cudaq_dispatcher_set_unified_launch", [&]() -> expected<> {
    if (dispatcher == nullptr || transport_ctx == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", dispatcher == nullptr ? "dispatcher" : "transport_ctx");
    if (dispatcher->config.slot_size == 0)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "config->slot_size is 0: the launch function gets it as tx_stride_sz");
    return dispatcher->set_unified_launch(
        {nullptr, launch_fn != nullptr ? launch_fn : cudaq_launch_unified_dispatch_device_upstream, transport_ctx});
  });
}

cudaq_status_t cudaq_dispatcher_set_mailbox_upstream(cudaq_dispatcher_t *dispatcher, void **h_mailbox_bank) {
  return guarded("cudaq_dispatcher_set_mailbox", [&]() -> expected<> {
    if (dispatcher == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "dispatcher is NULL");
    return dispatcher->set_mailbox(h_mailbox_bank, true);
  });
}

void cudaq_host_dispatcher_loop_upstream(const cudaq_host_dispatch_loop_ctx_t *ctx) {
  (void)guarded("cudaq_host_dispatcher_loop", [&] { return run(ctx); });
}

} // extern "C"
