// SPDX-License-Identifier: Apache-2.0
// A dispatcher with its ring, client and C++ handlers in one object, for tests of the API's life cycle and errors.
#pragma once

#include "unittests/support/host_fixture.h"

#include "cudaq/realtime/detail/base/flag_word.h"

#include <atomic>
#include <functional>
#include <memory>

namespace cudaq::realtime::test {

/// A v2 handler as a C++ callable. The object must outlive the dispatcher.
using handler_function = std::function<std::int32_t(cudaq_host_call_t &)>;
inline std::int32_t call_function(cudaq_host_call_t *call, void *user) {
  return (*static_cast<handler_function *>(user))(*call);
}

/// Blocks handlers until it is opened. Every wait has a deadline.
class gate {
public:
  ~gate() {
    open();
    eventually([this] { return inside_.load() == 0; });
  }
  void pass() {
    inside_.fetch_add(1);
    eventually([this] { return open_.load(); }, std::chrono::seconds(60));
    inside_.fetch_sub(1);
  }
  void open() { open_.store(true); }
  void close() { open_.store(false); }
  bool occupied() const { return inside_.load() != 0; }

private:
  std::atomic<bool> open_{false};
  std::atomic<int> inside_{0};
};

/// Manager, ring, dispatcher and client. Handlers are v2. The order of the members destroys the dispatcher before the
/// handlers.
class bench {
public:
  explicit bench(const ring_shape &shape = {}, const std::vector<cudaq_function_entry_t> &table = {})
      : bench(shape, table, host_config(shape)) {}
  bench(const ring_shape &shape, const std::vector<cudaq_function_entry_t> &table,
        const cudaq_dispatcher_config_t &config)
      : ring(shape), client(ring),
        dispatcher(std::make_unique<host_dispatcher_handle>(manager.get, ring, table, config)),
        options(default_options()) {}

  /// Sets the handler of a function.
  void on(std::uint32_t function_id, handler_function fn) {
    handlers_.push_back(std::make_unique<handler_function>(std::move(fn)));
    CUDAQ_EXPECT_OK(
        cudaq_dispatcher_set_host_handler_v2(get(), function_id, call_function, handlers_.back().get(), nullptr));
  }
  void start() {
    CUDAQ_ASSERT_OK(cudaq_dispatcher_set_options(get(), &options));
    CUDAQ_ASSERT_OK(cudaq_dispatcher_start(get()));
  }
  cudaq_dispatcher_t *get() const { return dispatcher->get; }

private:
  std::vector<std::unique_ptr<handler_function>> handlers_;

public:
  manager_handle manager;
  host_ring ring;
  ring_client client;
  std::unique_ptr<host_dispatcher_handle> dispatcher;
  cudaq_dispatcher_options_t options;
};

using detail::load_acquire; // for words that the library also uses
using detail::store_release;

/// The time of `body` in milliseconds.
template <class Body>
double milliseconds(Body &&body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

inline std::uint64_t ms(std::uint64_t n) { return n * 1000000u; }

/// Succeeds if the calling thread's last error text contains all of `words`.
inline ::testing::AssertionResult error_names(const std::vector<std::string> &words) {
  const std::string text = cudaq_last_error_message();
  for (const std::string &word : words)
    if (text.find(word) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << text << "' does not contain '" << word << "'";
  return ::testing::AssertionSuccess();
}

} // namespace cudaq::realtime::test
