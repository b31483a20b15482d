// SPDX-License-Identifier: Apache-2.0
// A ring in host memory and a dispatcher with handlers in Python, for trying things out. Each call of a handler takes
// the GIL, so it costs microseconds and waits for all other Python code: not for measurements.
#include "bindings.h"

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
  const nb::gil_scoped_acquire locked;
  auto &handler = *static_cast<python_handler *>(user);
  try {
    const nb::object answer = handler.function(nb::bytes(static_cast<const char *>(call->payload), call->payload_len));
    const auto [status, result] = nb::cast<std::tuple<std::int32_t, nb::bytes>>(answer);
    if (result.size() <= call->max_result_len)
      std::memcpy(call->result, result.c_str(), result.size());
    // Too long: answered RESULT_TOO_LARGE.
    call->result_len = static_cast<std::uint32_t>(std::min<std::size_t>(result.size(), UINT32_MAX));
    return status;
  } catch (nb::python_error &raised) {
    handler.last_error = text_of(raised);
  } catch (const std::exception &e) { // a result of another type
    handler.last_error = e.what();
  }
  throw std::runtime_error("the handler threw"); // the request is answered HANDLER_THREW
}

class native_dispatcher {
public:
  native_dispatcher(std::uint32_t slots, std::uint32_t slot_size) : slots_(slots) {
    cudaq_ringbuffer_options_t memory;
    check(cudaq_ringbuffer_options_init(&memory, sizeof(memory)));
    memory.num_slots = slots;
    memory.slot_size = slot_size;
    check(cudaq_ringbuffer_create(&memory, &memory_, &ring_));
    try {
      cudaq_dispatcher_config_t config{};
      config.num_slots = slots;
      config.slot_size = slot_size;
      config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
      check(cudaq_dispatch_manager_create(&manager_));
      check(cudaq_dispatcher_create(manager_, &config, &dispatcher_));
      check(cudaq_dispatcher_set_ringbuffer(dispatcher_, &ring_));
      check(cudaq_dispatcher_set_control(dispatcher_, &shutdown_, &processed_));
      cudaq_dispatcher_options_t options;
      check(cudaq_dispatcher_options_init(&options, sizeof(options)));
      options.wait_policy = CUDAQ_WAIT_BLOCK;
      options.block_interval_ns = 50'000;
      options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
      check(cudaq_dispatcher_set_options(dispatcher_, &options));
    } catch (...) {
      close();
      throw;
    }
  }
  ~native_dispatcher() {
    const nb::gil_scoped_release released; // a handler may still wait for the GIL
    close();
  }
  native_dispatcher(const native_dispatcher &) = delete;
  native_dispatcher &operator=(const native_dispatcher &) = delete;

  /// For Python's search for cycles: a handler may refer to the object that owns it.
  int visit_handlers(visitproc visit, void *arg) const {
    for (const auto &handler : handlers_)
      Py_VISIT(handler->function.ptr());
    return 0;
  }
  void clear() {
    {
      const nb::gil_scoped_release released;
      close();
    }
    if (dispatcher_ == nullptr) // otherwise a handler still runs
      handlers_.clear();
  }

  void add(const std::string &name, nb::typed<nb::callable, std::tuple<int, nb::bytes>(nb::bytes)> function) {
    handlers_.push_back(std::make_unique<python_handler>(python_handler{std::move(function), {}}));
    check(cudaq_dispatcher_set_host_handler_v2(dispatcher_, cudaq::realtime::fnv1a_hash(name.c_str()), &call_python,
                                               handlers_.back().get(), nullptr));
  }
  void start() {
    const nb::gil_scoped_release released;
    check(cudaq_dispatcher_start(dispatcher_)); // a later start continues at the slot where the last run stopped
    running_ = true;
  }
  void stop() {
    const nb::gil_scoped_release released;
    check(cudaq_dispatcher_stop(dispatcher_));
    running_ = false;
  }

  /// Sends one request and waits for its answer: status and result. Throws if no answer can come.
  std::tuple<std::int32_t, nb::bytes> call(const std::string &name, nb::bytes payload, double timeout) {
    cudaq_rpc_response_t header{};
    std::string result;
    {
      const std::string request(payload.c_str(), payload.size());
      const nb::gil_scoped_release released;
      const std::lock_guard locked(client_);
      if (memory_ == nullptr)
        throw std::runtime_error("the dispatcher is closed");
      const std::uint32_t slot = next_;
      using clock = std::chrono::steady_clock;
      const auto begin = clock::now();
      auto next_look = begin;
      const auto wait_for = [&](auto done) {
        while (!done()) {
          if (!running_ && !done()) // stop answers what it has accepted
            throw std::runtime_error("the dispatcher does not run: call start(), or use it in a `with` statement");
          const auto now = clock::now();
          if (std::chrono::duration<double>(now - begin).count() > timeout)
            throw std::runtime_error("no answer within " + std::to_string(timeout) + " s: does the handler return?");
          if (now >= next_look) { // Ctrl-C
            next_look = now + std::chrono::milliseconds(50);
            const nb::gil_scoped_acquire acquired;
            if (PyErr_CheckSignals() != 0)
              throw nb::python_error();
          }
          std::this_thread::yield();
        }
      };
      wait_for([&] {
        // The late answer to a request that was given up.
        if (cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, nullptr) == CUDAQ_TX_READY)
          cudaq_host_ringbuffer_clear_slot(&ring_, slot);
        return running_ && cudaq_host_ringbuffer_slot_available(&ring_, slot) == 1;
      });
      check(cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, cudaq::realtime::fnv1a_hash(name.c_str()),
                                                    request.data(), static_cast<std::uint32_t>(request.size()),
                                                    ++request_id_, 0));
      cudaq_host_ringbuffer_signal_slot(&ring_, slot);
      next_ = (next_ + 1) % slots_;
      wait_for([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, nullptr) == CUDAQ_TX_READY; });
      const void *bytes = nullptr;
      check(cudaq_host_ringbuffer_read_rpc_response(&ring_, slot, &header, &bytes));
      result.assign(static_cast<const char *>(bytes), header.result_len);
      cudaq_host_ringbuffer_clear_slot(&ring_, slot);
    }
    return {std::int32_t{header.status}, nb::bytes(result.data(), result.size())};
  }

  /// The texts of the last exception of each handler that has thrown.
  std::vector<std::string> errors() const {
    std::vector<std::string> texts;
    for (const auto &handler : handlers_)
      if (!handler->last_error.empty())
        texts.push_back(handler->last_error);
    return texts;
  }
  nb::typed<nb::dict, nb::str, nb::int_> stats() const {
    cudaq_dispatcher_stats_t now{};
    now.struct_size = sizeof(now);
    check(cudaq_dispatcher_get_stats(dispatcher_, &now));
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
    check(cudaq_dispatcher_dump_state(dispatcher_, text.data(), text.size(), &length));
    text.resize(std::min(length, text.size() - 1));
    return text;
  }

private:
  void close() {
    if (dispatcher_ != nullptr && cudaq_dispatcher_destroy(dispatcher_) != CUDAQ_OK)
      return; // a handler does not return: its memory is kept
    dispatcher_ = nullptr;
    if (manager_ != nullptr)
      (void)cudaq_dispatch_manager_destroy(manager_);
    manager_ = nullptr;
    if (memory_ != nullptr)
      (void)cudaq_ringbuffer_destroy(memory_);
    memory_ = nullptr;
  }

  std::uint32_t slots_, next_ = 0, request_id_ = 0;
  cudaq_ringbuffer_memory_t *memory_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  cudaq_dispatch_manager_t *manager_ = nullptr;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  volatile int shutdown_ = 0;
  std::uint64_t processed_ = 0;
  std::atomic<bool> running_ = false;
  std::mutex client_;
  std::vector<std::unique_ptr<python_handler>> handlers_;
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
      .def(nb::init<std::uint32_t, std::uint32_t>(), nb::arg("slots"), nb::arg("slot_size"))
      .def("add", &native_dispatcher::add, nb::arg("name"), nb::arg("handler"))
      .def("start", &native_dispatcher::start)
      .def("stop", &native_dispatcher::stop)
      .def("call", &native_dispatcher::call, nb::arg("name"), nb::arg("payload"), nb::arg("timeout"))
      .def("errors", &native_dispatcher::errors)
      .def("stats", &native_dispatcher::stats)
      .def("dump", &native_dispatcher::dump);
}

} // namespace cudaq_python
