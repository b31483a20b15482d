// SPDX-License-Identifier: Apache-2.0
// Graph workers of the host path: every allocation, thread and CUDA call fails once. CPU threads play the graphs.
#include "unittests/fault_injection/dispatch_script.h"

namespace cudaq::realtime::test {
namespace {

/// Functions 1 to 3 have one worker each: the library publishes, the graph publishes, the caller publishes.
class worker_life : public dispatch_script {
public:
  worker_life() : dispatch_script(1) {
    ring_options.memory_kind = CUDAQ_MEMORY_MAPPED;
    ring_options.device_id = 1;
    mailbox_ = static_cast<void **>(fake_cuda::allocate(3 * sizeof(void *), cudaMemoryTypeHost));
    io_ = static_cast<GraphIOContext *>(fake_cuda::allocate(sizeof(GraphIOContext), cudaMemoryTypeHost));
    graphs_[0].run = [this] { answer(mailbox_[0]); };
    graphs_[1].run = [this] {
      answer(mailbox_[1]);
      store_release<std::uint64_t>(*io_->tx_flag, io_->tx_flag_value);
    };
    graphs_[2].run = [this] { ready_.store(true); };
    for (std::uint32_t w = 0; w < 3; ++w) {
      workers_[w].struct_size = sizeof(cudaq_host_worker_t);
      workers_[w].function_id = w + 1;
      workers_[w].graph_exec = &graphs_[w];
    }
    workers_[1].completion = CUDAQ_WORKER_GRAPH_PUBLISHES;
    workers_[1].io_ctx = io_;
    workers_[2].completion = CUDAQ_WORKER_CALLER_PUBLISHES;
  }
  ~worker_life() override {
    fake_cuda::release(io_);
    fake_cuda::release(mailbox_);
  }
  bool spares_the_first_device() const override { return true; }

  std::vector<step> steps() override {
    cudaq_dispatcher_config_t config = host_config({kSlots, kSlotBytes, false});
    config.device_id = 1;
    cudaq_dispatcher_options_t options = sleeping_options();
    options.busy_workers = CUDAQ_BUSY_WORKERS_PASS_KEY; // several queues
    std::vector<step> all = {make_manager(),
                             make_ring(),
                             make_dispatcher(0, config),
                             set_ring(0),
                             set_control(0),
                             set_workers(3),
                             set_options(0, options),
                             set_mailbox(),
                             set_workers(3),
                             start(0),
                             serve(1),
                             serve(2)};
    const auto add = [&](std::initializer_list<step> more) { all.insert(all.end(), more); };
    const auto hold_and_release = [&] {
      add({hold_worker(), worker_job(CUDAQ_OK), refused(start(0), CUDAQ_OK), complete(), release(CUDAQ_OK),
           release(CUDAQ_ERR_STATE), take_unreleased(), worker_job(CUDAQ_ERR_STATE)});
    };
    hold_and_release();
    add_readers(all, 0);
    add({stop(0), start(0), serve(2), serve(1)});
    hold_and_release();
    add({stop_timeout(0), set_ring(0), start(0), serve(1), destroy(0), destroy_ring(), destroy_manager()});
    return all;
  }

private:
  /// What a graph does: writes a response frame into the TX slot of the request at `rx_slot`.
  void answer(void *rx_slot) const {
    const auto at = static_cast<std::size_t>(static_cast<std::uint8_t *>(rx_slot) - ring.rx_data);
    const cudaq_rpc_response_t frame{CUDAQ_RPC_MAGIC_RESPONSE, 0, 0, 7, 0};
    std::memcpy(ring.tx_data + at / ring.rx_stride_sz * ring.tx_stride_sz, &frame, sizeof(frame));
  }
  step set_workers(std::size_t count) {
    return {"cudaq_dispatcher_set_host_workers",
            [this, count] { return cudaq_dispatcher_set_host_workers(members[0].get, workers_, count); }};
  }
  step set_mailbox() {
    return {"cudaq_dispatcher_set_mailbox", [this] { return cudaq_dispatcher_set_mailbox(members[0].get, mailbox_); }};
  }
  step hold_worker() {
    return {"a request for the caller",
            [this] {
              ready_.store(false);
              const status result = request_until(3, 0, [this] { return ready_.load(); });
              slot_ = last_slot();
              return result;
            },
            promise::serves};
  }
  step worker_job(cudaq_status_t expected) {
    return refused({"cudaq_host_worker_job", [this] { return cudaq_host_worker_job(members[0].get, 2, &job_); }},
                   expected);
  }
  step complete() {
    return refused(
        {"cudaq_host_complete_deferred", [this] { return cudaq_host_complete_deferred(members[0].get, &job_, 0, 0); }},
        CUDAQ_OK);
  }
  step release(cudaq_status_t expected) {
    return refused({"cudaq_host_release_worker", [this] { return cudaq_host_release_worker(members[0].get, 2); }},
                   expected);
  }
  step take_unreleased() {
    return {"a caller's answer", [this] { return take(slot_); }, promise::serves};
  }

  void **mailbox_ = nullptr;
  GraphIOContext *io_ = nullptr;
  CUgraphExec_st graphs_[3];
  cudaq_host_worker_t workers_[3]{};
  std::atomic<bool> ready_{false};
  cudaq_host_job_t job_{};
  std::uint32_t slot_ = 0;
};

TEST(GraphWorkerFaults, LeaveTheDispatcherUsableAndLoseNothing) {
  if ((cudaq_realtime_features() & CUDAQ_REALTIME_FEATURE_CUDA_MEMORY) == 0)
    GTEST_SKIP() << "this library was built without the CUDA runtime";
  sweep_all_faults([] { return std::make_unique<worker_life>(); }, 400,
                   {"operator new", "pthread_create", "cudaHostAlloc", "cudaHostGetDevicePointer", "cudaFreeHost",
                    "cudaPointerGetAttributes", "cudaStreamCreateWithFlags", "cudaStreamDestroy", "cudaStreamQuery",
                    "cudaGraphUpload", "cudaGraphLaunch", "cuStreamWriteValue64", "cuCtxPushCurrent"});
}

} // namespace
} // namespace cudaq::realtime::test
