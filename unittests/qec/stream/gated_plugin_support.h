// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unittests/qec/soon.h"
#include "unittests/support/program_paths.h"

#include <chrono>
#include <dlfcn.h>
#include <stdexcept>
#include <thread>

namespace cudaq::qec::realtime::test {

/// The plug-in's own functions. Loaded once more, so that its memory stays.
class gate {
public:
  gate() : library_(dlopen(CUDAQ_TEST_GATED_PLUGIN, RTLD_NOW)) {
    if (library_ == nullptr)
      throw std::runtime_error(dlerror());
    close();
  }
  ~gate() {
    open();
    dlclose(library_);
  }
  gate(const gate &) = delete;
  gate &operator=(const gate &) = delete;
  void open() const { function<void(int)>("gated_plugin_set")(1); }
  void close() const { function<void(int)>("gated_plugin_set")(0); }
  unsigned begun() const { return function<unsigned()>("gated_plugin_begun")(); }
  int alive() const { return function<int()>("gated_plugin_alive")(); }
  int listed(unsigned k) const { return function<int(unsigned)>("gated_plugin_listed")(k); }
  /// Waits until this number of decodes have begun.
  bool wait_for_begun(unsigned wanted) const {
    for (const auto deadline = soon(); begun() < wanted && std::chrono::steady_clock::now() < deadline;)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return begun() >= wanted;
  }

private:
  template <typename Function>
  Function *function(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(library_, name));
  }
  void *library_;
};

} // namespace cudaq::qec::realtime::test
