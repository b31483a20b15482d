// SPDX-License-Identifier: Apache-2.0
// A ring in host memory and a dispatcher with handlers in Python, for trying things out. Each call of a handler takes
// the GIL, so it costs microseconds and waits for all other Python code: not for measurements.
#include "bindings.h"
#include "threads.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h>
#include <cudaq/realtime/daemon/dispatcher/host_dispatcher.h>
#include <memory>
#include <mutex>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <stdexcept>
#include <thread>

namespace nb = nanobind;

namespace cudaq_python {
namespace {

void check(cudaq_status_t status) {
  if (status != CUDAQ_OK)
    throw std::runtime_error(cudaq_last_error_message());
}

/// One handler: a Python function (payload: bytes) -> (status: int, result: bytes).
struct python_handler {
  nb::callable function;
  std::string last_error; ///< text of its last exception; with the GIL
};

std::int32_t call_python(cudaq_host_call_t *call, void *user) {
  const gil_held locked;
  auto &handler = *static_cast<python_handler *>(user);
  const nb::object answer = call_function(handler.function, call->payload, call->payload_len);
  if (!answer.is_valid()) {
    handler.last_error = text_of_raised();
    throw std::runtime_error("the handler threw"); // the request is answered HANDLER_THREW
  }
  try {
    const auto [status, result] = nb::cast<std::tuple<std::int32_t, nb::bytes>>(answer);
    if (result.size() <= call->max_result_len)
      std::memcpy(call->result, result.c_str(), result.size());
    // Too long: answered RESULT_TOO_LARGE.
    call->result_len = static_cast<std::uint32_t>(std::min<std::size_t>(result.size(), UINT32_MAX));
    return status;
  } catch (const std::exception &e) { // a result of another type
    handler.last_error = e.what();
    throw;
  }
}

/// What the dispatcher's thread uses. A handler that does not return keeps it.
struct served {
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  std::vector<std::unique_ptr<python_handler>> handlers;
};

class native_dispatcher {
public:
  /// `grace_period_ns`: how long stop, and then the end of the object, wait for a handler.
  native_dispatcher(std::uint32_t slots, std::uint32_t slot_size, std::uint64_t grace_period_ns) : slots_(slots) {
    cudaq_ringbuffer_options_t memory;
    check(cudaq_ringbuffer_options_init(&memory, sizeof(memory)));
    memory.num_slots = slots;
    memory.slot_size = slot_size;
    check(cudaq_ringbuffer_create(&memory, &served_->memory, &served_->ring));
    try {
      cudaq_dispatcher_config_t config{};
      config.num_slots = slots;
      config.slot_size = slot_size;
      config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
      check(cudaq_dispatch_manager_create(&served_->manager));
      check(cudaq_dispatcher_create(served_->manager, &config, &served_->dispatcher));
      check(cudaq_dispatcher_set_ringbuffer(served_->dispatcher, &served_->ring));
      check(cudaq_dispatcher_set_control(served_->dispatcher, &served_->shutdown, &served_->processed));
      cudaq_dispatcher_options_t options;
      check(cudaq_dispatcher_options_init(&options, sizeof(options)));
      options.wait_policy = CUDAQ_WAIT_BLOCK;
      options.block_interval_ns = 50'000;
      options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
      options.grace_period_ns = grace_period_ns;
      check(cudaq_dispatcher_set_options(served_->dispatcher, &options));
    } catch (...) {
      close();
      throw;
    }
  }
  ~native_dispatcher() {
    if (!thread_.is_parent()) {
      const gil_released released; // a handler may still wait for the GIL
      close();
    }
    if (served_->dispatcher != nullptr) // a handler still runs, or the thread is a parent's: never freed
      static_cast<void>(served_.release());
  }
  native_dispatcher(const native_dispatcher &) = delete;
  native_dispatcher &operator=(const native_dispatcher &) = delete;

  /// For Python's search for cycles: a handler may refer to the object that owns it.
  int visit_handlers(visitproc visit, void *arg) const {
    for (const auto &handler : served_->handlers)
      Py_VISIT(handler->function.ptr());
    return 0;
  }
  void clear() {
    if (!thread_.is_parent()) {
      const gil_released released;
      close();
    }
    if (served_->dispatcher == nullptr) // otherwise a handler still runs
      served_->handlers.clear();
  }

  void add(const std::string &name, nb::typed<nb::callable, std::tuple<int, nb::bytes>(nb::bytes)> function) {
    served_->handlers.push_back(std::make_unique<python_handler>(python_handler{std::move(function), {}}));
    check(cudaq_dispatcher_set_host_handler_v2(served_->dispatcher, cudaq::realtime::fnv1a_hash(name.c_str()),
                                               &call_python, served_->handlers.back().get(), nullptr));
  }
  void start() {
    check_process();
    if (runs()) // else the end of an inner `with` would stop the outer one's
      throw std::runtime_error("the dispatcher is running: stop it first");
    const gil_released released;
    thread_.set();
    // A later start continues at the slot where the last run stopped.
    const cudaq_status_t started = cudaq_dispatcher_start(served_->dispatcher);
    if (started != CUDAQ_OK && !runs())
      thread_.clear();
    check(started);
  }
  void stop() {
    check_process();
    const gil_released released;
    check(cudaq_dispatcher_stop(served_->dispatcher));
    thread_.clear();
  }

  /// Sends one request and waits for its answer: status and result. Throws if no answer can come.
  std::tuple<std::int32_t, nb::bytes> call(const std::string &name, nb::bytes payload, double timeout) {
    check_process();
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now(); // before the wait for other callers, which is a part of `timeout`
    cudaq_rpc_response_t header{};
    std::string result;
    {
      const std::string request(payload.c_str(), payload.size());
      const gil_released released;
      if (served_->memory == nullptr)
        throw std::runtime_error("the dispatcher is closed");
      const cudaq_ringbuffer_t *const ring = &served_->ring;
      auto next_signal_check = begin;
      const auto wait_for = [&](auto done) {
        while (!done()) {
          if (!runs() && !done()) // stop answers what it has accepted
            throw std::runtime_error("the dispatcher does not run: call start(), or use it in a `with` statement");
          const auto now = clock::now();
          if (std::chrono::duration<double>(now - begin).count() > timeout)
            throw std::runtime_error("no answer within " + std::to_string(timeout) + " s: does the handler return?");
          if (now >= next_signal_check) { // Ctrl-C
            next_signal_check = now + std::chrono::milliseconds(50);
            const gil_held acquired;
            if (PyErr_CheckSignals() != 0)
              throw nb::python_error();
          }
          std::this_thread::yield();
        }
      };
      std::unique_lock locked(client_, std::defer_lock);
      wait_for([&] { return locked.owns_lock() || locked.try_lock_for(std::chrono::milliseconds(10)); });
      const std::uint32_t slot = next_;
      wait_for([&] {
        // The late answer to a request that was given up.
        if (cudaq_host_ringbuffer_poll_tx_flag(ring, slot, nullptr) == CUDAQ_TX_READY)
          cudaq_host_ringbuffer_clear_slot(ring, slot);
        return runs() && cudaq_host_ringbuffer_slot_available(ring, slot) == 1;
      });
      check(cudaq_host_ringbuffer_write_rpc_request(
          ring, slot, cudaq::realtime::fnv1a_hash(name.c_str()), request.data(),
          static_cast<std::uint32_t>(std::min<std::size_t>(request.size(), UINT32_MAX)), ++request_id_, 0));
      cudaq_host_ringbuffer_signal_slot(ring, slot);
      next_ = (next_ + 1) % slots_;
      wait_for([&] { return cudaq_host_ringbuffer_poll_tx_flag(ring, slot, nullptr) == CUDAQ_TX_READY; });
      const void *bytes = nullptr;
      check(cudaq_host_ringbuffer_read_rpc_response(ring, slot, &header, &bytes));
      result.assign(static_cast<const char *>(bytes), header.result_len);
      cudaq_host_ringbuffer_clear_slot(ring, slot);
    }
    return {std::int32_t{header.status}, nb::bytes(result.data(), result.size())};
  }

  /// The texts of the last exception of each handler that has thrown.
  std::vector<std::string> errors() const {
    std::vector<std::string> texts;
    for (const auto &handler : served_->handlers)
      if (!handler->last_error.empty())
        texts.push_back(handler->last_error);
    return texts;
  }
  nb::typed<nb::dict, nb::str, nb::int_> stats() const {
    cudaq_dispatcher_stats_t now{};
    now.struct_size = sizeof(now);
    check(cudaq_dispatcher_get_stats(served_->dispatcher, &now));
    nb::dict d;
    d["received"] = now.received;
    d["dispatched"] = now.dispatched;
    d["responded"] = now.responded;
    d["in_flight"] = now.in_flight;
    d["dropped_bad_magic"] = now.dropped_bad_magic;
    d["dropped_unknown_function"] = now.dropped_unknown_function;
    d["handler_errors"] = now.handler_errors;
    d["cursor"] = now.cursor;
    return nb::typed<nb::dict, nb::str, nb::int_>(d);
  }
  std::string dump() const {
    std::string text(65536, '\0');
    std::size_t length = 0;
    check(cudaq_dispatcher_dump_state(served_->dispatcher, text.data(), text.size(), &length));
    text.resize(std::min(length, text.size() - 1));
    return text;
  }

private:
  void check_process() const {
    if (thread_.is_parent())
      throw std::runtime_error("the dispatcher was started before fork, and its thread is not in this process: make a "
                               "new one here, or start processes by spawn");
  }
  bool runs() const {
    cudaq_dispatcher_state_t now = CUDAQ_DISPATCHER_STOPPED;
    check(cudaq_dispatcher_get_state(served_->dispatcher, &now));
    return now == CUDAQ_DISPATCHER_RUNNING || now == CUDAQ_DISPATCHER_STOPPING;
  }
  void close() {
    // A handler that Python has ended is parked: it does not return.
    if (served_->dispatcher != nullptr && is_finalising() &&
        cudaq_dispatcher_stop_timeout(served_->dispatcher, kStopAtTheEndNs) != CUDAQ_OK)
      return;
    if (served_->dispatcher != nullptr && cudaq_dispatcher_destroy(served_->dispatcher) != CUDAQ_OK)
      return; // a handler does not return
    served_->dispatcher = nullptr;
    if (served_->manager != nullptr)
      (void)cudaq_dispatch_manager_destroy(served_->manager);
    served_->manager = nullptr;
    if (served_->memory != nullptr)
      (void)cudaq_ringbuffer_destroy(served_->memory);
    served_->memory = nullptr;
  }

  static constexpr std::uint64_t kStopAtTheEndNs = 200'000'000;
  process_of_threads thread_;
  std::uint32_t slots_, next_ = 0, request_id_ = 0;
  std::timed_mutex client_; ///< of next_ and request_id_: one call at a time
  std::unique_ptr<served> served_ = std::make_unique<served>();
};

int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<native_dispatcher>(self)->visit_handlers(visit, arg) : 0;
}
int clear(PyObject *self) {
  nb::inst_ptr<native_dispatcher>(self)->clear();
  return 0;
}

} // namespace

void bind_dispatcher(nb::module_ &m) {
  m.def("rpc_status_text", &cudaq_rpc_status_string, "Meaning of the status of a response.");
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(&traverse)},
                                {Py_tp_clear, reinterpret_cast<void *>(&clear)},
                                {0, nullptr}};
  nb::class_<native_dispatcher>(m, "NativeDispatcher", nb::type_slots(slots))
      .def(nb::init<std::uint32_t, std::uint32_t, std::uint64_t>(), nb::arg("slots"), nb::arg("slot_size"),
           nb::arg("grace_period_ns") = std::uint64_t{5'000'000'000})
      .def("add", &native_dispatcher::add, nb::arg("name"), nb::arg("handler"))
      .def("start", &native_dispatcher::start)
      .def("stop", &native_dispatcher::stop)
      .def("call", &native_dispatcher::call, nb::arg("name"), nb::arg("payload"), nb::arg("timeout"))
      .def("errors", &native_dispatcher::errors)
      .def("stats", &native_dispatcher::stats)
      .def("dump", &native_dispatcher::dump);
}

} // namespace cudaq_python
