// SPDX-License-Identifier: Apache-2.0
// The QEC pipeline for Python: requests through a ring to workers that decode. The stages are those of the library,
// chosen by the decoder's name, so no request runs Python code.
#include "bindings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <cudaq/qec/decoding/decoder.h>
#include <cudaq/qec/realtime/pipeline.h>
#include <mutex>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <stdexcept>
#include <thread>
#include <vector>

namespace nb = nanobind;
namespace rt = cudaq::qec::realtime::experimental;
using namespace cudaq::qec::realtime;

namespace cudaq_python {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::uint32_t kDecode = 1;
constexpr std::size_t kHeaderBytes = 24;

template <class T, int Dimensions>
using array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

int decode(void *self, rt::host_stage_call *call) {
  auto &with = *static_cast<decoder *>(self);
  const decode_status status =
      with.decode_bits({static_cast<const std::uint8_t *>(call->payload), call->payload_size},
                       {static_cast<std::uint8_t *>(call->response_buffer), call->max_response_size});
  call->response_size = with.observable_bytes();
  return static_cast<int>(status);
}

class native_pipeline {
public:
  native_pipeline(const std::string &name, const std::string &dem, int workers, int slots) {
    const nb::gil_scoped_release released;
    for (int i = 0; i < workers; ++i) {
      decoder_result made = make_decoder(name, dem);
      if (!made)
        throw std::invalid_argument(made.error);
      decoders_.push_back(std::move(made.instance));
    }
    rt::pipeline_stage_config config;
    config.num_workers = workers; // a wrong number is refused by the pipeline, with a text
    config.num_slots = slots;
    if (workers > 0)
      config.slot_size = kHeaderBytes + std::max<std::size_t>({8, decoders_[0]->event_bytes(), observable_bytes()});
    config.slot_size = (config.slot_size + 7) / 8 * 8;
    config.memory = rt::ring_memory::host;
    pipeline_ = std::make_unique<rt::realtime_pipeline>(config);
    pipeline_->set_gpu_stage([this](int worker) {
      rt::gpu_worker_resources r;
      r.function_id = kDecode;
      r.host_stage_fn = &decode;
      r.host_stage_data = decoders_[static_cast<std::size_t>(worker)].get();
      return r;
    });
    pipeline_->set_completion_handler([this](const rt::completion &c) { take(c); });
  }
  ~native_pipeline() {
    const nb::gil_scoped_release released;
    pipeline_.reset();
  }
  native_pipeline(const native_pipeline &) = delete;
  native_pipeline &operator=(const native_pipeline &) = delete;

  std::size_t event_bytes() const { return decoders_[0]->event_bytes(); }
  std::size_t observable_bytes() const { return decoders_[0]->observable_bytes(); }
  std::size_t num_detectors() const { return decoders_[0]->num_detectors(); }
  std::size_t num_observables() const { return decoders_[0]->num_observables(); }

  /// Sends each row of `events`, one each `interval_ns` or, with 0, as fast as there are free slots. `out` gets the
  /// answers, `statuses` those of the responses (of a failed stage its error), `latencies_ns` the times from the moment
  /// when a request was due until its completion. Returns the seconds of the whole.
  double run(array<const std::uint8_t, 2> events, array<std::uint8_t, 2> out, array<std::int32_t, 1> statuses,
             array<std::int64_t, 1> latencies_ns, std::int64_t interval_ns) {
    const std::size_t shots = events.shape(0);
    if (events.shape(1) != event_bytes() || out.shape(0) != shots || out.shape(1) != observable_bytes() ||
        statuses.shape(0) != shots || latencies_ns.shape(0) != shots)
      throw std::invalid_argument("the arrays do not fit the decoder and each other");
    const nb::gil_scoped_release released;
    const std::lock_guard locked(run_);
    due_.assign(shots, {});
    out_ = out.data();
    statuses_ = statuses.data();
    latencies_ns_ = latencies_ns.data();
    pipeline_->start();
    const clock::time_point begin = clock::now();
    {
      rt::ring_buffer_injector injector = pipeline_->create_injector();
      for (std::size_t i = 0; i < shots; ++i) {
        due_[i] = interval_ns > 0 ? begin + std::chrono::nanoseconds(interval_ns * static_cast<std::int64_t>(i))
                                  : clock::now();
        while (clock::now() < due_[i])
          std::this_thread::yield();
        injector.submit(kDecode, events.data() + i * event_bytes(), event_bytes(), i);
      }
    }
    pipeline_->stop(); // completes what was submitted
    if (const rt::stop_report report = pipeline_->last_stop(); !report.drained)
      throw std::runtime_error(report.text);
    return std::chrono::duration<double>(clock::now() - begin).count();
  }

  nb::typed<nb::dict, nb::str, nb::int_> stats() const {
    const rt::realtime_pipeline::Stats now = pipeline_->stats();
    nb::dict d;
    d["submitted"] = now.submitted;
    d["completed"] = now.completed;
    d["dispatched"] = now.dispatched;
    d["backpressure_stalls"] = now.backpressure_stalls;
    return nb::typed<nb::dict, nb::str, nb::int_>(d);
  }
  std::string dump() const { return pipeline_->dump(); }

private:
  /// On the consumer's thread. The submit of a request happens before its completion.
  void take(const rt::completion &c) {
    const auto i = static_cast<std::size_t>(c.request_id);
    latencies_ns_[i] = std::chrono::nanoseconds(clock::now() - due_[i]).count();
    statuses_[i] = c.cuda_error != 0 ? c.cuda_error : c.status;
    if (c.success && c.status == 0)
      std::memcpy(out_ + i * observable_bytes(), c.response, std::min(c.response_size, observable_bytes()));
  }

  std::vector<std::unique_ptr<decoder>> decoders_;
  std::unique_ptr<rt::realtime_pipeline> pipeline_;
  std::mutex run_; ///< one run at a time
  std::vector<clock::time_point> due_;
  std::uint8_t *out_ = nullptr;
  std::int32_t *statuses_ = nullptr;
  std::int64_t *latencies_ns_ = nullptr;
};

} // namespace

void bind_pipeline(nb::module_ &m) {
  nb::class_<native_pipeline>(m, "NativePipeline")
      .def(nb::init<std::string, std::string, int, int>(), nb::arg("decoder"), nb::arg("dem"), nb::arg("workers"),
           nb::arg("slots"))
      .def_prop_ro("event_bytes", &native_pipeline::event_bytes)
      .def_prop_ro("observable_bytes", &native_pipeline::observable_bytes)
      .def_prop_ro("num_detectors", &native_pipeline::num_detectors)
      .def_prop_ro("num_observables", &native_pipeline::num_observables)
      .def("run", &native_pipeline::run, nb::arg("events"), nb::arg("out"), nb::arg("statuses"),
           nb::arg("latencies_ns"), nb::arg("interval_ns"))
      .def("stats", &native_pipeline::stats)
      .def("dump", &native_pipeline::dump);
}

} // namespace cudaq_python
