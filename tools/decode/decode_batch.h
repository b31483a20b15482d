// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/stages/decoding_worker.h"
#include "tools/common/latency_histogram.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// Consecutive shots, and their answers. Its memory is allocated once.
struct decode_batch {
  decode_batch(std::size_t capacity_, std::size_t detection_bytes_, std::size_t observable_bytes_,
               std::uint64_t num_errors_, std::size_t num_gaps_ = 0)
      : capacity(capacity_), detection_bytes(detection_bytes_), observable_bytes(observable_bytes_),
        num_errors(num_errors_), num_gaps(num_gaps_), gaps(capacity * num_gaps), error_bytes((num_errors_ + 7) / 8),
        errors(capacity * error_bytes), detections(capacity * detection_bytes),
        observables(capacity * observable_bytes), predictions(capacity * observable_bytes),
        answers(capacity * observable_bytes), results(capacity), late(capacity) {}

  /// Of a shot that the decoder took. Without a solution the row of answers is 0.
  enum class result : std::uint8_t {
    solution,   ///< perhaps the best one at a deadline
    deadline,   ///< no solution when the deadline came
    unconverged ///< no solution within the limits of the decoder
  };

  std::size_t capacity, detection_bytes, observable_bytes;
  std::uint64_t num_errors; ///< of the model, if those of the corrections are wanted; else 0
  std::size_t num_gaps;     ///< observables, if their gaps are wanted; else 0
  std::vector<double> gaps;
  std::size_t error_bytes;
  std::vector<std::uint8_t> errors; ///< of the corrections
  std::vector<std::uint8_t> detections, observables, predictions, answers;
  std::vector<result> results;               ///< of each shot
  std::vector<qec::error_probability> flags; ///< what the shots replace, one after another
  std::vector<std::size_t> end_of_flags;     ///< of each shot; empty without --flags
  std::vector<std::uint8_t> late;            ///< of each shot: 1: decoder::is_late()
  std::size_t shots = 0;
  /// Shots with a result; fewer than `shots` if one cannot be decoded, or some time after a signal.
  std::size_t decoded = 0;
  qec::decode_status status = qec::decode_status::ok; ///< of the shot `decoded`
  std::string fault;                                  ///< decoder::fault() of it
  bool done = false;

  [[nodiscard]] qec::shot_probabilities flags_of(std::size_t shot) const noexcept {
    if (end_of_flags.empty())
      return {};
    const std::size_t begin = shot == 0 ? 0 : end_of_flags[shot - 1];
    return std::span(flags).subspan(begin, end_of_flags[shot] - begin);
  }
  std::span<double> gaps_of(std::size_t shot) noexcept { return std::span(gaps).subspan(shot * num_gaps, num_gaps); }
  static std::span<std::uint8_t> row(std::vector<std::uint8_t> &rows, std::size_t shot, std::size_t bytes) noexcept {
    return std::span(rows).subspan(shot * bytes, bytes);
  }
};

/// What the decoders of all threads counted.
struct decoder_totals {
  qec::deadline_counts deadlines;
  std::vector<std::pair<std::string, std::uint64_t>> wins; ///< decoder::wins()
  std::uint64_t member_faults = 0;                         ///< decoder::member_faults()
  std::string member_fault;                                ///< decoder::fault() of one of them
  latency_histogram shot_ns; ///< of each shot on its thread, also of those without a solution
};

/// Decodes batches on its threads. Each thread has its own worker. The public functions are for one thread.
class decoder_threads {
public:
  using worker_list = std::vector<std::unique_ptr<qec::decoding_worker>>;

  /// With one worker no thread is started, and submit() decodes. `num_errors`: as that of the batches. Throws
  /// std::runtime_error if the system starts fewer threads.
  explicit decoder_threads(worker_list workers, std::uint64_t num_errors = 0);
  ~decoder_threads();
  decoder_threads(const decoder_threads &) = delete;
  decoder_threads &operator=(const decoder_threads &) = delete;

  /// The batch must stay until wait_for() has returned for it, or this object is destroyed.
  void submit(decode_batch &batch);
  void wait_for(const decode_batch &batch);
  /// While no batch is decoded.
  [[nodiscard]] decoder_totals totals() const;

private:
  /// The memory of a thread.
  struct scratch {
    std::vector<std::uint8_t> response;
    std::vector<std::uint64_t> errors;
    latency_histogram shot_ns{};
  };
  void end() noexcept;
  static void decode(qec::decoding_worker &worker, scratch &memory, decode_batch &batch) noexcept;
  void serve(qec::decoding_worker &worker, scratch &memory);

  worker_list workers_;
  std::vector<scratch> memories_; ///< one for each worker
  std::mutex mutex_;              ///< for the members below, and `done` of all batches
  std::condition_variable work_, finished_;
  std::deque<decode_batch *> todo_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

} // namespace cudaq::realtime::tools
