// SPDX-License-Identifier: Apache-2.0
// The QEC pipeline for Python: requests through a ring to workers that predecode and decode. A stage is a decoder of
// the library, chosen by its name, or a function in Python. Only the latter takes the GIL while a request is served.
#include "bindings.h"
#include "threads.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <cudaq/qec/decoding/decoder.h>
#include <cudaq/qec/realtime/pipeline.h>
#include <memory>
#include <mutex>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace nb = nanobind;
namespace rt = cudaq::qec::realtime::experimental;
using namespace cudaq::qec::realtime;

namespace cudaq_python {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::uint32_t kDecode = 1; ///< function id
constexpr std::size_t kHeaderBytes = 24;

template <class T, int Dimensions>
using array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

using python_stage = nb::typed<nb::callable, nb::bytes(nb::bytes)>;
constexpr int kStageFailed = -1; ///< status of a shot whose function in Python failed
constexpr std::size_t kPredecode = 0, kMatch = 1, kStages = 2;

/// The two stages of one worker. The first one's output: the events that are left, then the observables so far.
struct worker_stages {
  class staged_pipeline *owner = nullptr;
  std::unique_ptr<decoder> decoding;
  std::vector<std::uint8_t> left, answer;
};

/// Where a run has its requests' times and gets their answers: arrays of one element or row for each shot.
struct shots_of_run {
  std::vector<clock::time_point> due;
  std::uint8_t *out = nullptr;
  std::int32_t *statuses = nullptr;
  std::int64_t *latencies_ns = nullptr, *stage_ns = nullptr;
};

/// The pipeline with all that its threads use. A stage that does not return keeps it.
class staged_pipeline {
public:
  staged_pipeline(std::optional<python_stage> predecode, std::optional<python_stage> decode)
      : functions_{std::move(predecode), std::move(decode)} {}

  /// Without the GIL.
  void make(const std::string &name, const std::string &dem, int workers, int slots, std::uint64_t grace_period_ns) {
    for (int i = 0; i < std::max(workers, 1); ++i) {
      decoder_result made = make_decoder(name, dem);
      if (!made)
        throw std::invalid_argument(made.error);
      workers_.push_back({this, std::move(made.instance), {}, {}});
      workers_.back().left.resize(event_bytes() + observable_bytes());
    }
    rt::pipeline_stage_config config;
    config.num_workers = workers; // a wrong number is refused by the pipeline, with a text
    config.num_slots = slots;
    config.slot_size = kHeaderBytes + std::max<std::size_t>(event_bytes(), sizeof(int) + observable_bytes());
    config.slot_size = (config.slot_size + 7) / 8 * 8;
    config.memory = rt::ring_memory::host;
    config.grace_period_ns = grace_period_ns;
    pipeline_ = std::make_unique<rt::realtime_pipeline>(config);
    stage_ns_of_slot_.resize(static_cast<std::size_t>(slots) * kStages);
    pipeline_->set_gpu_stage([this](int worker) {
      auto &stages = workers_[static_cast<std::size_t>(worker)];
      rt::gpu_worker_resources r;
      r.function_id = kDecode;
      r.user_context = r.host_stage_data = &stages;
      r.host_stage_fn = functions_[kPredecode] ? &predecode_call : &decode_call;
      if (functions_[kPredecode]) {
        r.gpu_output = stages.left.data();
        r.gpu_output_size = stages.left.size();
      }
      return r;
    });
    if (functions_[kPredecode])
      pipeline_->set_cpu_stage([](const rt::cpu_stage_context &c) {
        auto &stages = *static_cast<worker_stages *>(c.user_context);
        return stages.owner->decode(stages, stages.left.data(), stages.left.data() + stages.owner->event_bytes(),
                                    c.origin_slot, static_cast<std::uint8_t *>(c.response_buffer));
      });
    pipeline_->set_completion_handler([this](const rt::completion &c) { handle(c); });
  }

  std::size_t event_bytes() const { return workers_[0].decoding->event_bytes(); }
  std::size_t observable_bytes() const { return workers_[0].decoding->observable_bytes(); }
  std::size_t num_detectors() const { return workers_[0].decoding->num_detectors(); }
  std::size_t num_observables() const { return workers_[0].decoding->num_observables(); }
  rt::realtime_pipeline &pipeline() {
    if (pipeline_ == nullptr)
      throw std::runtime_error("the pipeline is closed");
    return *pipeline_;
  }

  int visit_functions(visitproc visit, void *arg) const {
    for (const auto &function : functions_)
      if (function)
        Py_VISIT(function->ptr());
    return 0;
  }
  /// With the GIL, after end().
  void drop_functions() { functions_ = {}; }

  /// Without the GIL. False: a stage still runs, or calls this. Then this object must stay, and so must its pipeline.
  bool end() {
    if (pipeline_ == nullptr)
      return true;
    try {
      pipeline_->stop();
    } catch (const std::logic_error &) {
      return false;
    }
    if (pipeline_->last_stop().stuck_threads != 0)
      return false;
    pipeline_.reset();
    return true;
  }

  /// Without the GIL. A stage that the last run has left may have returned since; else this throws.
  void start(shots_of_run shots) {
    if (pipeline_->last_stop().stuck_threads != 0)
      pipeline_->stop();
    if (const rt::stop_report report = pipeline_->last_stop(); report.stuck_threads != 0)
      throw std::runtime_error("a stage of the last run has not returned: " + report.text);
    {
      const gil_held locked;
      stage_error_.clear();
    }
    {
      const std::lock_guard locked(answers_);
      shots_ = std::move(shots);
    }
    pipeline_->start();
  }
  /// Of shot `i`, before its submit.
  void set_due(std::size_t i, clock::time_point when) { shots_.due[i] = when; }
  /// Without the GIL. Answers that come later are dropped. Returns what the first function that failed has raised; the
  /// report of last_stop() says whether all stages have returned.
  std::string stop() {
    pipeline_->stop();
    {
      const std::lock_guard locked(answers_);
      shots_ = {};
    }
    const gil_held locked;
    return stage_error_;
  }

private:
  /// Calls the function of a stage; its result must have `size` bytes. Returns false if it fails.
  bool call_python(std::size_t stage, const std::uint8_t *events, std::uint8_t *result, std::size_t size) {
    const gil_held locked;
    const nb::object answer = call_function(*functions_[stage], events, event_bytes());
    if (!answer.is_valid()) {
      std::string text = text_of_raised(); // may let another thread run
      if (stage_error_.empty())
        stage_error_ = std::move(text);
      return false;
    }
    try {
      const auto bytes = nb::cast<nb::bytes>(answer);
      if (bytes.size() != size)
        throw std::length_error("a stage returned " + std::to_string(bytes.size()) +
                                " bytes, accepted: " + std::to_string(size));
      std::memcpy(result, bytes.c_str(), size);
      return true;
    } catch (const std::exception &e) { // a result of another type
      if (stage_error_.empty())
        stage_error_ = e.what();
      return false;
    }
  }
  void took(std::size_t stage, int slot, clock::time_point begin) {
    stage_ns_of_slot_[static_cast<std::size_t>(slot) * kStages + stage] =
        std::chrono::nanoseconds(clock::now() - begin).count();
  }

  static int predecode_call(void *self, rt::host_stage_call *call) {
    auto &stages = *static_cast<worker_stages *>(self);
    const clock::time_point begin = clock::now();
    const bool done = stages.owner->call_python(kPredecode, static_cast<const std::uint8_t *>(call->payload),
                                                stages.left.data(), stages.left.size());
    stages.owner->took(kPredecode, call->origin_slot, begin);
    return done ? 0 : kStageFailed;
  }
  static int decode_call(void *self, rt::host_stage_call *call) {
    auto &stages = *static_cast<worker_stages *>(self);
    call->response_size = stages.owner->decode(stages, static_cast<const std::uint8_t *>(call->payload), nullptr,
                                               call->origin_slot, static_cast<std::uint8_t *>(call->response_buffer));
    return 0;
  }
  /// Writes the status and the observables to `response`, and returns their size. `flips`: observables that an earlier
  /// stage has found. The response may be the memory of the events.
  std::size_t decode(worker_stages &stages, const std::uint8_t *events, const std::uint8_t *flips, int slot,
                     std::uint8_t *response) {
    const clock::time_point begin = clock::now();
    stages.answer.assign(observable_bytes(), 0);
    int status = 0;
    if (functions_[kMatch])
      status = call_python(kMatch, events, stages.answer.data(), stages.answer.size()) ? 0 : kStageFailed;
    else
      status = static_cast<int>(stages.decoding->decode_bits({events, event_bytes()}, stages.answer));
    for (std::size_t i = 0; flips != nullptr && i < stages.answer.size(); ++i)
      stages.answer[i] ^= flips[i];
    std::memcpy(response, &status, sizeof(status));
    std::memcpy(response + sizeof(status), stages.answer.data(), stages.answer.size());
    took(kMatch, slot, begin);
    return sizeof(status) + stages.answer.size();
  }

  /// On the consumer's thread. The submit of a request happens before its completion. A request that an earlier run has
  /// left in its slot may be of a shot that this run does not have.
  void handle(const rt::completion &c) {
    const std::lock_guard locked(answers_);
    const auto i = static_cast<std::size_t>(c.request_id);
    if (i >= shots_.due.size())
      return;
    const auto slot = static_cast<std::size_t>(c.slot) * kStages;
    shots_.latencies_ns[i] = std::chrono::nanoseconds(clock::now() - shots_.due[i]).count();
    std::copy_n(stage_ns_of_slot_.data() + slot, kStages, shots_.stage_ns + i * kStages);
    std::fill_n(stage_ns_of_slot_.data() + slot, kStages, 0);
    shots_.statuses[i] = c.cuda_error != 0 ? c.cuda_error : c.status;
    if (!c.success || c.status != 0 || c.response_size != sizeof(int) + observable_bytes())
      return;
    std::memcpy(&shots_.statuses[i], c.response, sizeof(int));
    if (shots_.statuses[i] == 0)
      std::memcpy(shots_.out + i * observable_bytes(), static_cast<const char *>(c.response) + sizeof(int),
                  observable_bytes());
  }

  std::array<std::optional<python_stage>, kStages> functions_;
  std::vector<worker_stages> workers_;
  std::vector<std::int64_t> stage_ns_of_slot_; ///< of the slot's request; the stages write, then the consumer reads
  std::string stage_error_;                    ///< with the GIL
  std::mutex answers_;                         ///< of shots_, but not of the elements of `due`
  shots_of_run shots_;
  std::unique_ptr<rt::realtime_pipeline> pipeline_; ///< its threads use the others, so it ends first
};

class native_pipeline {
public:
  /// `predecode`, if there is one, is a function from packed events to packed events and observables. `decode` replaces
  /// the decoder: from packed events to packed observables; `name` then only reads the model. `grace_period_ns`: how
  /// long the end of a run waits for stages.
  native_pipeline(const std::string &name, const std::string &dem, int workers, int slots,
                  std::optional<python_stage> predecode, std::optional<python_stage> decode,
                  std::uint64_t grace_period_ns)
      : staged_(std::make_unique<staged_pipeline>(std::move(predecode), std::move(decode))) {
    if (name.find("race") != std::string::npos)
      threads_.set();
    const gil_released released;
    staged_->make(name, dem, workers, slots, grace_period_ns);
  }
  ~native_pipeline() {
    if (!has_ended())
      static_cast<void>(staged_.release()); // a stage still runs, or threads are a parent's: never freed
  }
  native_pipeline(const native_pipeline &) = delete;
  native_pipeline &operator=(const native_pipeline &) = delete;

  /// For Python's search for cycles: a function may refer to the object that owns it.
  int visit_functions(visitproc visit, void *arg) const { return staged_->visit_functions(visit, arg); }
  void clear() {
    if (has_ended())
      staged_->drop_functions();
  }

  std::size_t event_bytes() const { return staged_->event_bytes(); }
  std::size_t observable_bytes() const { return staged_->observable_bytes(); }
  std::size_t num_detectors() const { return staged_->num_detectors(); }
  std::size_t num_observables() const { return staged_->num_observables(); }

  /// Sends each row of `events`, one each `interval_ns` or, with 0, as fast as there are free slots. `out` gets the
  /// answers, `statuses` those of the responses (of a failed stage its error), `latencies_ns` the times from the moment
  /// when a request was due until its completion, `stage_ns` what each stage took. Returns the seconds of the whole,
  /// and what the first function that failed has raised.
  std::tuple<double, std::string> run(array<const std::uint8_t, 2> events, array<std::uint8_t, 2> out,
                                      array<std::int32_t, 1> statuses, array<std::int64_t, 1> latencies_ns,
                                      array<std::int64_t, 2> stage_ns, std::int64_t interval_ns) {
    const std::size_t shots = events.shape(0);
    if (events.shape(1) != event_bytes() || out.shape(0) != shots || out.shape(1) != observable_bytes() ||
        statuses.shape(0) != shots || latencies_ns.shape(0) != shots || stage_ns.shape(0) != shots ||
        stage_ns.shape(1) != kStages)
      throw std::invalid_argument("the arrays do not fit the decoder and each other");
    if (is_parents())
      throw std::runtime_error("the pipeline has threads of a run, or of a race, since before fork, which are not in "
                               "this process: make a new one here, or start processes by spawn");
    const gil_released released;
    std::unique_lock locked(run_, std::defer_lock);
    while (!locked.try_lock_for(std::chrono::milliseconds(50))) { // the run of another thread
      const gil_held acquired;
      if (PyErr_CheckSignals() != 0)
        throw nb::python_error();
    }
    const process_mark mark(in_run_);
    rt::realtime_pipeline &pipeline = staged_->pipeline();
    staged_->start(
        {std::vector<clock::time_point>(shots), out.data(), statuses.data(), latencies_ns.data(), stage_ns.data()});
    const std::uint64_t before = pipeline.stats().completed;
    const clock::time_point begin = next_signal_check_ = clock::now();
    try {
      rt::ring_buffer_injector injector = pipeline.create_injector();
      for (std::size_t i = 0; i < shots; ++i) {
        const clock::time_point due = interval_ns > 0
                                          ? begin + std::chrono::nanoseconds(interval_ns * static_cast<std::int64_t>(i))
                                          : clock::now();
        staged_->set_due(i, due);
        while (clock::now() < due)
          wait_a_moment();
        while (!injector.try_submit(kDecode, events.data() + i * event_bytes(), event_bytes(), i))
          wait_a_moment();
      }
      while (pipeline.stats().completed - before < shots)
        wait_a_moment();
    } catch (...) { // Ctrl-C
      staged_->stop();
      throw;
    }
    const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
    std::string stage_error = staged_->stop();
    if (const rt::stop_report report = pipeline.last_stop(); !report.drained)
      throw std::runtime_error(report.text);
    return {seconds, std::move(stage_error)};
  }

  nb::typed<nb::dict, nb::str, nb::int_> stats() const {
    const rt::realtime_pipeline::Stats now = staged_->pipeline().stats();
    nb::dict d;
    d["submitted"] = now.submitted;
    d["completed"] = now.completed;
    d["dispatched"] = now.dispatched;
    d["backpressure_stalls"] = now.backpressure_stalls;
    return nb::typed<nb::dict, nb::str, nb::int_>(d);
  }
  std::string dump() const { return staged_->pipeline().dump(); }

private:
  /// A parent's threads use the pipeline.
  bool is_parents() const { return threads_.is_parent() || in_run_.is_parent(); }
  bool has_ended() {
    if (is_parents())
      return false;
    const gil_released released; // a stage may still wait for the GIL
    return staged_->end();
  }
  /// Of the thread that sends. Once in a while it lets Python act on a signal, which may raise KeyboardInterrupt.
  void wait_a_moment() {
    std::this_thread::yield();
    if (clock::now() < next_signal_check_)
      return;
    next_signal_check_ = clock::now() + std::chrono::milliseconds(50);
    const gil_held locked;
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
  }

  std::unique_ptr<staged_pipeline> staged_;
  std::timed_mutex run_; ///< one run at a time
  process_of_threads threads_, in_run_;
  clock::time_point next_signal_check_;
};

int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<native_pipeline>(self)->visit_functions(visit, arg) : 0;
}
int clear(PyObject *self) {
  nb::inst_ptr<native_pipeline>(self)->clear();
  return 0;
}

} // namespace

void bind_pipeline(nb::module_ &m) {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(&traverse)},
                                {Py_tp_clear, reinterpret_cast<void *>(&clear)},
                                {0, nullptr}};
  nb::class_<native_pipeline>(m, "NativePipeline", nb::type_slots(slots))
      .def(nb::init<std::string, std::string, int, int, std::optional<python_stage>, std::optional<python_stage>,
                    std::uint64_t>(),
           nb::arg("decoder"), nb::arg("dem"), nb::arg("workers"), nb::arg("slots"), nb::arg("predecode").none(),
           nb::arg("decode").none(), nb::arg("grace_period_ns") = std::uint64_t{5'000'000'000})
      .def_prop_ro("event_bytes", &native_pipeline::event_bytes)
      .def_prop_ro("observable_bytes", &native_pipeline::observable_bytes)
      .def_prop_ro("num_detectors", &native_pipeline::num_detectors)
      .def_prop_ro("num_observables", &native_pipeline::num_observables)
      .def("run", &native_pipeline::run, nb::arg("events"), nb::arg("out"), nb::arg("statuses"),
           nb::arg("latencies_ns"), nb::arg("stage_ns"), nb::arg("interval_ns"))
      .def("stats", &native_pipeline::stats)
      .def("dump", &native_pipeline::dump);
}

} // namespace cudaq_python
