// SPDX-License-Identifier: Apache-2.0
#include "tools/services/device_service.h"

#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "tools/common/clock.h"
#include "tools/common/report.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

constexpr auto kStreamPoll = std::chrono::microseconds(50);
constexpr std::size_t kControlBytes = 256; ///< shutdown word and counter, each in its own cache line
constexpr std::size_t kCounterAt = 128;

} // namespace

void require_cuda(cudaError_t error, const char *call) {
  if (error == cudaSuccess)
    return;
  throw gpu_error(std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

void abandon(const std::string &what) {
  print_error("{}: {}; the program ends without freeing anything\n", program_invocation_short_name, what);
  std::fflush(nullptr);
  _exit(kExitRefused);
}

void open_gpu(int device) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
    throw gpu_error(std::string("no GPU can be used here: ") + cudaGetErrorString(error) +
                    "; `cudaq-realtime info` shows what is missing");
  if (device < 0 || device >= count)
    throw gpu_error("no GPU has number " + std::to_string(device) + "; number of GPUs: " + std::to_string(count));
  require_cuda(cudaSetDevice(device), "cudaSetDevice");
  int blocks = 0;
  require_cuda(cudaq_dispatch_kernel_query_occupancy(&blocks, 32), "loading the dispatch kernels");
  require_cuda(cudaq_dispatch_kernel_cooperative_query_occupancy(&blocks, 128), "loading the dispatch kernels");
}

gpu_stream::gpu_stream() {
  require_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
}
gpu_stream::~gpu_stream() { cudaStreamDestroy(stream_); }

bool gpu_stream::wait(std::uint64_t limit_ns) const {
  const std::uint64_t begin = now_ns();
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state != cudaErrorNotReady) {
      require_cuda(state, "a kernel of the benchmark");
      return true;
    }
    if (now_ns() - begin > limit_ns)
      return false;
    std::this_thread::sleep_for(kStreamPoll);
  }
}

gpu_memory::gpu_memory(std::size_t bytes, const gpu_stream &stream) {
  require_cuda(cudaMallocAsync(&memory_, bytes, stream.get()), "cudaMallocAsync");
  if (cudaError_t error = cudaMemsetAsync(memory_, 0, bytes, stream.get());
      error != cudaSuccess || (error = cudaStreamSynchronize(stream.get())) != cudaSuccess) {
    cudaFree(memory_);
    require_cuda(error, "clearing device memory");
  }
}
gpu_memory::~gpu_memory() { cudaFree(memory_); }

namespace {

struct device_parts : service_parts {
  explicit device_parts(const device_service_config &c)
      : service_parts(c), control(kControlBytes, stream),
        table(std::size_t{c.functions} * sizeof(cudaq_function_entry_t), stream) {}

  void still_running() noexcept override {
    abandon(std::string("the dispatch kernel does not end: ") + cudaq_last_error_message());
  }

  void fill_table(const device_service_config &c) {
    for (std::uint32_t i = 0; i < c.functions; ++i)
      require_cuda(c.fill(table.as<cudaq_function_entry_t>() + i, i, stream.get()), "filling the function table");
    require_cuda(cudaStreamSynchronize(stream.get()), "filling the function table");
  }

  void launch_graphs(const device_service_config &c) {
    const cudaq_dispatch_graph_io_t io{sizeof io, static_cast<std::uint32_t>(c.graph_io_kind), 0,
                                       static_cast<std::uint32_t>(c.graph_contexts.size()), c.graph_contexts.data()};
    require_ok(cudaq_dispatcher_set_graph_io(dispatcher, &io), "cudaq_dispatcher_set_graph_io");
    require_ok(cudaq_dispatcher_set_launch_fn_v2(dispatcher, &cudaq_launch_dispatch_kernel_graph_v2),
               "cudaq_dispatcher_set_launch_fn_v2");
  }

  void wire(const device_service_config &c) {
    cudaq_dispatcher_config_t config{};
    config.num_blocks = c.blocks;
    config.threads_per_block = c.threads;
    config.slot_size = c.slot_bytes;
    config.kernel_type = c.kernel;
    config.dispatch_mode = c.graph_contexts.empty() ? CUDAQ_DISPATCH_DEVICE_CALL : CUDAQ_DISPATCH_GRAPH_LAUNCH;
    config.dispatch_path = CUDAQ_DISPATCH_PATH_DEVICE;
    auto *const words = control.as<std::uint8_t>();
    create_dispatcher(c, config, reinterpret_cast<volatile int *>(words),
                      reinterpret_cast<std::uint64_t *>(words + kCounterAt));
    const cudaq_function_table_t view{table.as<cudaq_function_entry_t>(), c.functions};
    require_ok(cudaq_dispatcher_set_function_table(dispatcher, &view), "cudaq_dispatcher_set_function_table");
    if (!c.graph_contexts.empty())
      launch_graphs(c);
    else if (c.launch_fn != nullptr)
      require_ok(cudaq_dispatcher_set_launch_fn_v2(dispatcher, c.launch_fn), "cudaq_dispatcher_set_launch_fn_v2");
    else
      require_ok(cudaq_dispatcher_set_launch_fn(dispatcher, c.kernel == CUDAQ_KERNEL_COOPERATIVE
                                                                ? &cudaq_launch_dispatch_kernel_cooperative
                                                                : &cudaq_launch_dispatch_kernel_regular),
                 "cudaq_dispatcher_set_launch_fn");
  }

  gpu_stream stream;
  gpu_memory control;
  gpu_memory table;
};

} // namespace

device_service::device_service(const device_service_config &config)
    : ring_service(std::make_unique<device_parts>(config)) {
  auto &parts = parts_as<device_parts>();
  parts.create_ring(config, config.slot_bytes, config.memory);
  parts.fill_table(config);
  parts.wire(config);
}

bare_ring::bare_ring(int device, std::uint32_t num_slots, std::uint32_t slot_bytes, cudaq_memory_kind_t memory)
    : num_slots_(num_slots) {
  create_ring(device, num_slots, slot_bytes, memory, false, &memory_, &ring_);
}
bare_ring::~bare_ring() { cudaq_ringbuffer_destroy(memory_); }

void bare_ring::reset(const gpu_stream &stream) const {
  const std::size_t bytes = num_slots_ * sizeof(std::uint64_t);
  for (volatile std::uint64_t *flags : {ring_.rx_flags, ring_.tx_flags})
    require_cuda(cudaMemsetAsync(const_cast<std::uint64_t *>(flags), 0, bytes, stream.get()), "clearing ring flags");
  require_cuda(cudaStreamSynchronize(stream.get()), "clearing ring flags");
}

} // namespace cudaq::realtime::tools
