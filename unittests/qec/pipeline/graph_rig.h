// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unittests/qec/pipeline/fake_graph_workers.h"
#include "unittests/qec/pipeline/pipeline_rig.h"

#include "cudaq/realtime/detail/base/flag_word.h"

namespace cudaq::qec::realtime::test {

/// The rig's workers as graphs: a graph copies the request to the worker's output, then sets its ready flag.
struct graph_rig {
  explicit graph_rig(const pipeline_stage_config &config, std::size_t requests = 0)
      : fake([this](int id, std::uint8_t *slot) { return play(id, slot); }), rig(config, requests) {
    wire(config);
  }
  /// Sets the GPU stage of the pipeline, and tells the fake where the ring is.
  void wire(const pipeline_stage_config &config) {
    const auto *ring = static_cast<const cudaq_ringbuffer_t *>(config.external_ringbuffer);
    fake.ring(rig.pipeline->ringbuffer_bases().rx_data_host, ring != nullptr ? ring->rx_stride_sz : config.slot_size);
    rig.pipeline->set_gpu_stage([this](int id) { return resources(id); });
  }
  gpu_worker_resources resources(int id) {
    gpu_worker_resources r = rig.resources(id);
    r.host_stage_fn = nullptr;
    r.graph_exec = reinterpret_cast<cudaGraphExec_t>(this);
    r.pre_launch_fn = [](void *self, void *, cudaStream_t) { ++static_cast<graph_rig *>(self)->hook_calls; };
    r.pre_launch_data = this;
    r.ready_flag = &rig.workers[static_cast<std::size_t>(id)].ready;
    return r;
  }
  std::uint32_t play(int id, std::uint8_t *slot) {
    if (before_work)
      before_work(id);
    copy_worker &w = rig.workers[static_cast<std::size_t>(id)];
    cudaq_rpc_header_t header{};
    if (reads_request) {
      std::memcpy(&header, slot, sizeof(header));
      std::memcpy(w.output.data(), slot + sizeof(header), header.arg_len);
      w.size = header.arg_len;
    }
    cudaq::realtime::detail::store_release(static_cast<volatile int &>(w.ready), 1);
    return header.arg_len;
  }

  std::function<void(int worker)> before_work;
  bool reads_request = true;
  std::atomic<std::uint64_t> hook_calls{0};
  fake_graph_workers fake;
  pipeline_rig rig;
};

} // namespace cudaq::qec::realtime::test
