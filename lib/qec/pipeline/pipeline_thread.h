// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cudaq::qec::realtime::detail {

/// Marks the calling thread, for the lifetime of this object, as a thread of a pipeline or as one that runs a
/// callback of start(). Such a thread must not start the pipeline or wait for its end.
class pipeline_thread {
public:
  explicit pipeline_thread(const void *pipeline) : of_(pipeline), outer_(innermost()) { innermost() = this; }
  ~pipeline_thread() { innermost() = outer_; }
  pipeline_thread(const pipeline_thread &) = delete;
  pipeline_thread &operator=(const pipeline_thread &) = delete;

  /// True also inside another pipeline's factory that a callback of this pipeline has started.
  static bool is_of(const void *pipeline) {
    for (const pipeline_thread *at = innermost(); at != nullptr; at = at->outer_)
      if (at->of_ == pipeline)
        return true;
    return false;
  }

private:
  static const pipeline_thread *&innermost() {
    thread_local const pipeline_thread *at = nullptr;
    return at;
  }
  const void *of_;
  const pipeline_thread *outer_;
};

} // namespace cudaq::qec::realtime::detail
