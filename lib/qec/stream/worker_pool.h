// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/base/runner.h"
#include "lib/qec/decoding/qec_expected.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace cudaq::qec::realtime {

/// A stream, as the pool sees it. Its functions are called by the pool's threads.
class pool_client {
public:
  static constexpr std::uint64_t kNone = UINT64_MAX;
  struct claimed {
    std::uint64_t window = kNone; ///< for decode_claimed
    bool more = false;            ///< another thread can claim another window
  };
  [[nodiscard]] virtual claimed claim() noexcept = 0;
  /// Decodes a window. True: another window can be claimed.
  [[nodiscard]] virtual bool decode_claimed(std::uint64_t window) noexcept = 0;

protected:
  ~pool_client() = default;

private:
  friend class worker_pool;
  // Guarded by the pool's mutex.
  pool_client *next_ = nullptr; ///< in the pool's list
  bool is_listed_ = false;
  bool is_withdrawn_ = false;
  std::size_t inside_ = 0; ///< threads that are in its functions
};

/// The threads that decode the windows of streams. Streams with windows that can be claimed stand in a list. A thread
/// takes the first stream of it and one window of that stream; the stream goes to the end of the list if it has more.
/// So each stream gets a window before any gets two.
class worker_pool final : public stream_workers {
public:
  static expected<std::shared_ptr<worker_pool>> make(std::size_t threads);
  ~worker_pool() override;
  std::size_t count() const noexcept override { return threads_.size(); }

  /// The stream has a window that can be claimed. Any thread.
  void submit(pool_client &stream) noexcept;
  /// Takes the stream out of the list and waits until no thread is in it. Until readmit, submit has no effect.
  void withdraw(pool_client &stream) noexcept;
  void readmit(pool_client &stream) noexcept;

private:
  worker_pool() = default;
  void work() noexcept;
  pool_client *next_stream(std::unique_lock<std::mutex> &lock) noexcept;

  std::mutex mutex_;
  std::condition_variable wake_; ///< the list has a stream, or stop_
  std::condition_variable left_; ///< a thread has left a withdrawn stream
  pool_client *first_ = nullptr, *last_ = nullptr;
  std::size_t sleeping_ = 0, polling_ = 0; ///< workers without a window: nothing is woken while one polls
  bool stop_ = false;
  cudaq::realtime::detail::shared_word<std::uint32_t> has_work_; ///< the list is not empty, or stop_
  std::deque<cudaq::realtime::detail::loop_thread> threads_;
};

} // namespace cudaq::qec::realtime
