// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/stream.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/qec/stream/bit_ring.h"
#include "lib/qec/stream/stream_factory.h"
#include "lib/qec/stream/window_set.h"
#include "lib/qec/stream/worker_pool.h"

#include <array>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// Keeps the bits of a stream, hands out its windows when they can be decoded, and puts their answers together in the
/// order of rounds. The same with and without a pool; without one the owner decodes every window as soon as it can.
///
/// Example, parallel windows with commit = buffer = 3. After 6 rounds window 0 (A) is complete and is handed out. After
/// 12 rounds windows 1 (B) and 2 (A) are added. 2 is handed out, 1 waits for both. 2 ends first: nothing is released. 0
/// ends: its rounds 0 to 2 are released, and 1 is handed out with the artificial events of 0 and 2. 1 ends: 1 and 2 are
/// released, and 9 rounds are final.
class stream_engine final : public stream_decoder, private pool_client {
public:
  /// `pool` may be null. `max_running`: windows that its threads decode at the same time.
  stream_engine(window_set windows, std::shared_ptr<worker_pool> pool, std::size_t max_running,
                std::uint64_t queue_rounds, std::string description);
  ~stream_engine() override;

  void listen(const stream_listener &listener) noexcept { listener_ = listener; }
  std::uint64_t complete_rounds() const noexcept;
  /// The values and flags that windows which are complete with these bits need.
  readout_place least_values(std::uint64_t bits) noexcept;

  /// Rounds that are kept at most while the next windows are not complete.
  static std::uint64_t least_rounds(const window_layout &layout) noexcept {
    return 2 * layout.stride() + 2 * layout.buffer;
  }

  decode_status push(std::span<const std::uint8_t> bits, std::uint64_t count,
                     const stream_values &known) noexcept override;
  decode_status finish(std::span<const std::uint8_t> bits, std::uint64_t count,
                       const stream_values &known) noexcept override;
  stream_values_info values_info() const noexcept override { return windows_.readout().info(); }
  void reset() noexcept override;
  stream_progress poll(std::span<std::uint8_t> observables) const noexcept override;
  stream_progress wait_committed(std::uint64_t round, std::chrono::steady_clock::time_point deadline,
                                 std::span<std::uint8_t> observables) const noexcept override;
  std::span<const std::uint8_t> observables() const noexcept override { return frame_; }
  std::uint64_t committed_rounds() const noexcept override { return committed_.load(); }
  std::uint64_t pushed_rounds() const noexcept override;
  std::uint64_t pushed_bits() const noexcept override { return bits_.load(); }
  std::uint64_t windows() const noexcept override { return statistics().windows; }
  stream_statistics statistics() const noexcept override;
  const char *fault() const noexcept override {
    return status() == decode_status::ok ? values_.fault() : fault_.data();
  }
  std::uint64_t head_detectors() const noexcept override { return head_; }
  std::uint64_t body_detectors() const noexcept override { return body_; }
  std::uint64_t tail_detectors() const noexcept override { return tail_; }
  std::uint64_t num_observables() const noexcept override { return model().num_observables(); }
  bool is_parallel() const noexcept override { return layout().parallel; }
  const std::string &description() const noexcept override { return description_; }
  const decoder_choice &choice() const noexcept { return windows_.choice(); }

private:
  /// A window from the arrival of its last bit until it is released.
  struct flight {
    enum class phase { waiting, ready, running, done };
    phase state = phase::waiting;
    std::uint32_t needs = 0; ///< neighbours that are not done
    window *shape = nullptr; ///< null: the last window, which is not built
    window_decoder *decoding = nullptr;
    bool is_last = false;
    std::uint64_t decode_ns = 0;
    deadline_counts deadlines;                    ///< of its decode
    std::uint64_t first_detector = 0;             ///< of the window
    readout_place first_value, values_come;       ///< from which its values count; and what had come when it was added
    std::uint64_t final_begin = 0, final_end = 0; ///< detectors that become final, and the one after the last
    std::vector<std::uint8_t> observables;
  };
  /// Numbers of windows, first in, first out. Room for all flights.
  struct number_queue {
    std::vector<std::uint64_t> numbers;
    std::uint64_t head = 0, tail = 0;
    bool empty() const noexcept { return head == tail; }
    std::uint64_t front() const noexcept { return numbers[head & (numbers.size() - 1)]; }
    void pop() noexcept { ++head; }
    void push(std::uint64_t number) noexcept { numbers[tail++ & (numbers.size() - 1)] = number; }
  };

  const repeating_model &model() const noexcept { return windows_.model(); }
  const window_layout &layout() const noexcept { return windows_.layout(); }
  decode_status status() const noexcept { return static_cast<decode_status>(status_.load()); }
  /// Holds the mutex if there are other threads.
  std::unique_lock<std::mutex> guard() const noexcept {
    return pool_ != nullptr ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  flight &flight_of(std::uint64_t number) noexcept { return flights_[number & (flights_.size() - 1)]; }

  std::uint64_t rounds_in_ring() const noexcept { return queue_rounds_ + 2 * model().body().size(); }
  /// The same, and those before a window whose heralds it needs.
  std::uint64_t raw_rounds_in_ring() const noexcept {
    const std::uint64_t before = windows_.heralds().rounds_before();
    return rounds_in_ring() + before + (before == 0 ? 0 : model().body().size());
  }
  bool has_come(std::uint64_t detector) const noexcept { return raw_.bits(detector / 64, detector, detector + 1) != 0; }
  void begin() noexcept;
  void cancel() noexcept;

  /// The values and flags that may have come with these bits.
  readout_place max_values(std::uint64_t bits) const noexcept;

  void store(std::span<const std::uint8_t> bits, std::uint64_t from, std::uint64_t count) noexcept;
  void add_complete() noexcept;
  void add(std::uint64_t number, window *shape, bool is_last) noexcept;
  void hand_out() noexcept;
  bool is_done(std::uint64_t number) noexcept;
  void make_ready(std::uint64_t number) noexcept;
  bool can_claim() const noexcept;
  bool is_all(std::uint64_t rounds) const noexcept { return rounds == total_rounds_.load(); }
  stream_progress progress(std::span<std::uint8_t> observables) const noexcept;

  static constexpr std::uint64_t kNone = UINT64_MAX;
  struct claimed {
    std::uint64_t window = kNone; ///< for decode_claimed
    bool more = false;            ///< another thread can claim another window
  };
  claimed claim() noexcept;
  /// True: another window can be claimed.
  bool decode_claimed(std::uint64_t number) noexcept;
  /// Decodes a window, if there is one that can be claimed.
  bool work() noexcept override;
  bool has_artificial_events(std::uint64_t number, const flight &f) const noexcept {
    return f.is_last || !layout().parallel || layout().is_between(number);
  }
  /// `why`: with internal_error what was wrong, valid as long as the caller has the window's decoder.
  decode_status decode(std::uint64_t number, flight &f, const char *&why) noexcept;
  void apply_answer(std::uint64_t number, flight &f) noexcept;
  void neighbour_is_done(std::uint64_t number) noexcept;
  void release() noexcept;
  void set_limit() noexcept;

  template <typename T>
  using shared = cudaq::realtime::detail::shared_word<T>;

  window_set windows_;
  const std::shared_ptr<worker_pool> pool_;
  const std::size_t max_running_;
  const std::string description_;
  const std::uint64_t head_, body_, tail_; ///< detectors
  const std::uint64_t queue_rounds_;
  const std::uint64_t max_push_; ///< bits, with a pool
  bit_ring raw_;                 ///< as they came; the owner writes
  value_ring values_;            ///< the same

  stream_listener listener_; ///< changed while no worker is in the stream

  // Of the owner.
  bool is_finished_ = false;
  std::uint64_t next_rounds_ = 0, next_end_ = 0; ///< when the next windows are complete: rounds, and their bits
  shared<std::uint64_t> bits_;                   ///< that have come
  shared<std::uint64_t> total_rounds_;           ///< kNone: the tail has not come

  shared<std::int32_t> status_;
  shared<std::uint64_t> committed_; ///< rounds
  shared<std::uint64_t> limit_;     ///< bits that may come until more is released

  // Guarded by the mutex if there is a pool.
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_; ///< committed_, status_, generation_
  mutable std::size_t waiting_ = 0;         ///< threads in wait_committed
  bit_ring artificial_;                     ///< events that committed errors cause beyond their window's rounds
  std::vector<std::uint8_t> frame_;         ///< the observables of committed_ rounds
  std::vector<flight> flights_;             ///< window j: element j modulo the size
  number_queue ready_[2];                   ///< those between others, and those that need no other
  std::uint64_t added_ = 0, released_ = 0;  ///< windows
  std::uint64_t added_line_ = 0;            ///< the first detector that no added window makes final
  std::uint64_t complete_rounds_ = 0;       ///< that the added windows need
  std::uint64_t not_begun_ = 0;             ///< of the added windows
  std::size_t running_ = 0;
  std::uint64_t repetitions_ = 0; ///< once it has come
  bool is_cancelled_ = false;
  std::uint64_t generation_ = 0; ///< counts resets
  stream_statistics counts_{};
  std::array<char, 384> fault_{};   ///< written before status_ shows the failure; then it stays until a reset
  std::array<char, 256> unbuilt_{}; ///< why the last window could not be built; of the thread that decodes it
};

} // namespace cudaq::qec::realtime
