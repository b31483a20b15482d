// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cudaq::qec::realtime::detail {

/// Marks the calling thread as one of a pipeline's own, or as one that calls back from start, while it lives: such a thread
/// cannot start the pipeline, or wait for its end.
class pipeline_thread {
public:
  explicit pipeline_thread(const void *pipeline) : outer_(owner()) { owner() = pipeline; }
  ~pipeline_thread() { owner() = outer_; }
  pipeline_thread(const pipeline_thread &) = delete;
  pipeline_thread &operator=(const pipeline_thread &) = delete;

  static bool is_of(const void *pipeline) { return owner() == pipeline; }

private:
  static const void *&owner() {
    thread_local const void *of = nullptr;
    return of;
  }
  const void *outer_;
};

} // namespace cudaq::qec::realtime::detail
