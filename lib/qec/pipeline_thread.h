// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cudaq::qec::realtime::detail {

/// Marks the calling thread as one of a pipeline's own, while it lives: such a thread cannot wait for its own end.
class pipeline_thread {
public:
  explicit pipeline_thread(const void *pipeline) { owner() = pipeline; }
  ~pipeline_thread() { owner() = nullptr; }
  pipeline_thread(const pipeline_thread &) = delete;
  pipeline_thread &operator=(const pipeline_thread &) = delete;

  static bool is_of(const void *pipeline) { return owner() == pipeline; }

private:
  static const void *&owner() {
    thread_local const void *of = nullptr;
    return of;
  }
};

} // namespace cudaq::qec::realtime::detail
