// SPDX-License-Identifier: Apache-2.0
// Learning of the decoders of a running server. Two threads:
//
//   qec-learn  SCHED_IDLE: takes shots from the taps of the decoders, counts, learns, scores, and decodes shadows
//   qec-swap   at the priority of the program: makes decoders, whose threads, if they have some, get its priority; and
//              exchanges them. That takes the lock of a session, which a thread that gets no core must not hold
#pragma once

#include "lib/base/runner.h"
#include "lib/qec/server/learning/decoder_learner.h"
#include "lib/qec/server/server_config.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace cudaq::qec::realtime {

/// A decoder that learns, at one moment.
struct learning_report {
  std::uint64_t id = 0;
  std::uint64_t refused = 0, not_better = 0, better = 0; ///< rounds
  std::uint64_t swaps = 0;                               ///< of the model
  std::uint64_t lost = 0;                                ///< shots that were not learned from
  bool uses_learned = false;                             ///< the served model is a learned one
  learn_verdict last;                                    ///< of the last round, if there was one
};

/// Which model go_back() takes.
enum class earlier_model : std::uint8_t {
  configured,  ///< of the configuration
  before_swap, ///< that the decoder had before its last swap; after a second call that of the configuration
};

/// Threads: reports and take_lines by any thread; all others by one control thread, or by several in turn.
class live_learning {
public:
  /// `server` must live longer.
  explicit live_learning(decoding_server &server) : server_(server) {}
  ~live_learning() { stop(); }
  live_learning(const live_learning &) = delete;
  live_learning &operator=(const live_learning &) = delete;

  /// Begins with the decoders that the server has now, which were made from `config`. Without one that learns it starts
  /// no thread. Fails if the system refuses a thread. Throws std::bad_alloc.
  expected<> start(const server_config &config, const std::string &folder);
  /// Goes on after stop(), with the same decoders: they have not changed meanwhile.
  expected<> resume();
  /// Ends the threads; a model that was learned stays in use. Waits for a round's end, and for a swap.
  void stop();
  /// stop(), and decoders whose model is a learned one use `to` again. Nothing is learned until the next start(), also
  /// if it is not applied: then a decoder keeps its model.
  [[nodiscard]] reload_result go_back(std::uint64_t limit_ns, earlier_model to = earlier_model::configured);

  /// Throws std::bad_alloc.
  [[nodiscard]] std::vector<learning_report> reports() const;
  /// Lines for a log since the last call: each end of a round, and each swap. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::string> take_lines();

private:
  struct learning_decoder {
    std::size_t place; ///< in the server
    std::shared_ptr<shot_tap> tap;
    decoder_config config; ///< with its model, read
    std::unique_ptr<decoder_learner> learner;
    learning_report report;                      ///< under mutex_
    std::unique_ptr<decoding_unit> offered;      ///< under mutex_: for qec-swap
    decoder_learner::shared_model offered_model; ///< its
    /// The learned models that it serves, and that it served before the last swap; null: that of the configuration.
    /// Under mutex_, as offered_model.
    decoder_learner::shared_model served_model, before_model;
    bool is_swapping = false; ///< under mutex_: from the offer to its end
  };

  /// What qec-learn waits for.
  struct wanted_unit {
    const decoder_config &config;
    std::optional<expected<std::unique_ptr<decoding_unit>>> made;
    bool lacks_memory;
  };

  /// Called by qec-learn. Throws std::bad_alloc.
  [[nodiscard]] expected<std::unique_ptr<decoding_unit>> made_by_swap_thread(const decoder_config &config);
  void make_wanted(std::unique_lock<std::mutex> &lock) noexcept;
  void learn() noexcept;
  [[nodiscard]] bool learn_from(learning_decoder &decoder);
  void end_round(learning_decoder &decoder);
  void swap() noexcept;
  [[nodiscard]] reload_result exchange(std::size_t place, std::unique_ptr<decoding_unit> unit, std::uint64_t limit_ns);
  void log(std::string line);

  decoding_server &server_;
  std::string folder_;
  bool went_back_ = false; ///< nothing is learned until the next start()
  std::vector<std::unique_ptr<learning_decoder>> decoders_;
  cudaq::realtime::detail::shared_word<std::uint32_t> ending_;
  mutable std::mutex mutex_;      ///< protects the reports, offers and lines; never held during a decode or a swap
  wanted_unit *wanted_ = nullptr; ///< under mutex_
  std::condition_variable offered_, answered_;
  std::deque<std::string> lines_;
  cudaq::realtime::detail::loop_thread learn_thread_, swap_thread_; ///< the last members: they use the others
};

} // namespace cudaq::qec::realtime
