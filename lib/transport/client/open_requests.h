// SPDX-License-Identifier: Apache-2.0
// The requests of a client that wait for their answers: when each frame is sent, and what an answer means. It knows
// neither a network nor a clock: the caller sends the frames and gives the times, in ns of any steady clock. One thread
// uses an object at a time.
//
// An example: repeated after 20 ms, sent again as another request after BUSY of the decoding server.
//
//   time     event                          frame that is due
//   0 ms     begin                          id 7, time 0 ms
//   20 ms    (no answer)                    the same bytes
//   21 ms    BUSY (-1011) for id 7          the same bytes, 20 us later: that answer is of one frame only
//   22 ms    BUSY (5) for id 7              id 8, time 22 ms, 20 us later: no frame of id 7 was or will be executed
//   23 ms    OK for id 7                    none; it is passed over: id 7 is not open any more
//   24 ms    OK for id 8                    none; delivered, as the answer of the request that began with id 7
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "lib/transport/client/busy_backoff.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cudaq::realtime::detail {

inline constexpr std::uint64_t kNever = UINT64_MAX;

struct repeat_rules {
  std::uint64_t after_ns = kNever; ///< a frame without an answer is sent again after this time
  std::uint64_t for_ns = kNever;   ///< not later than this after it was first sent
  bool repeats_busy = false;       ///< BUSY of the library is no answer: the same frame is sent again
  /// So many requests may begin after one that may be repeated: the server remembers no more.
  std::uint32_t max_later = UINT32_MAX;
  /// An answer that echoes another time than its frame has is a stray one: it may be for another process that had this
  /// port, or forged.
  bool checks_time = false;
  std::uint32_t ids_after = 0; ///< last_id() before the first request
};

class open_requests {
public:
  enum class meaning : std::uint8_t {
    stray,  ///< of no open request
    passed, ///< the request stays open, and is sent again
    final   ///< the request is answered, and not open any more
  };
  struct result {
    meaning means = meaning::stray;
    std::uint32_t id = 0;       ///< with which the request began
    std::uint32_t attempts = 0; ///< frames that were sent for it
  };
  /// A request whose time is over.
  struct ended {
    std::uint32_t id = 0, attempts = 0;
    /// It was not executed: this answer, a BUSY, refused each of its frames. 0: that is not known.
    std::int32_t refusal = 0;
  };

  /// `window`: most open requests, a power of two. Ids that are open together must differ modulo this number.
  /// `frame_bytes`: of the longest frame.
  open_requests(std::uint32_t window, std::uint32_t frame_bytes, const repeat_rules &rules);

  /// The frame of `header` and the two parts of its payload is due now. Nothing: its place in the window is in use, the
  /// frame is too long, or max_later requests began after an open one. `renews`: after BUSY of the decoding server it
  /// is sent as another request. Its id is then larger by the window: the caller's next ids come after last_id().
  std::optional<std::uint32_t> begin(const cudaq_rpc_header_t &header, std::span<const std::uint8_t> head,
                                     std::span<const std::uint8_t> payload = {}, bool renews = false,
                                     std::uint64_t deadline = kNever);
  /// The place of a frame that is due, or nothing. It stays due until mark_sent.
  std::optional<std::uint32_t> due(std::uint64_t now);
  void mark_sent(std::uint32_t place, std::uint64_t now);
  /// The last frames were refused, and there is another address: all that were sent are due now.
  void send_again(std::uint64_t now);
  [[nodiscard]] std::span<std::uint8_t> frame(std::uint32_t place) {
    return {frames_.data() + std::size_t{place} * frame_bytes_, requests_[place].length};
  }

  result handle(const cudaq_rpc_response_t &answer, std::uint64_t now);
  /// A request whose deadline has come; it is not open any more. A late answer is a stray one.
  std::optional<ended> expire(std::uint64_t now);
  /// The same at any time, for the request that began with this id. Nothing: it is not open.
  std::optional<ended> give_up(std::uint32_t id);
  /// The same, for the request whose present id is `id`: the other side has dropped its frame without an answer.
  std::optional<ended> drop(std::uint32_t id);

  /// False: max_later requests began after an open one, so begin takes none.
  [[nodiscard]] bool has_room_for_one_more() const;
  [[nodiscard]] std::uint32_t max_later() const { return rules_.max_later; }

  /// The next time at which due or expire may have something; kNever: none. It may be too early.
  [[nodiscard]] std::uint64_t next_time() const { return next_time_; }
  [[nodiscard]] std::uint32_t size() const { return open_; }
  [[nodiscard]] std::uint32_t window() const { return static_cast<std::uint32_t>(requests_.size()); }
  /// The largest id that was sent, as ids count up. Before that: ids_after of the rules.
  [[nodiscard]] std::uint32_t last_id() const { return last_id_; }
  [[nodiscard]] std::uint64_t repeated() const { return repeated_; } ///< frames that were not the first of a request
  [[nodiscard]] std::uint64_t busy() const { return busy_; }         ///< answers BUSY of both kinds, to open requests

private:
  struct request {
    bool open = false, renews = false;
    bool refused = false; ///< by the decoding server: the next frame is another request
    std::uint32_t id = 0, first_id = 0;
    std::uint64_t number = 0;                  ///< running number of `id`
    std::uint32_t frames = 0, busy_frames = 0; ///< of `id`
    std::uint32_t attempts = 0;                ///< of all ids
    std::uint32_t length = 0;
    std::uint64_t due = 0, first_sent = 0, deadline = kNever;
    busy_backoff backoff;
  };

  /// An attempt that is sent later than this before the deadline would have no answer in time, and it would not be
  /// known whether it was executed.
  static constexpr std::uint64_t kLastAttempt = 5'000'000;

  [[nodiscard]] bool is_one_shot(std::uint32_t place);
  [[nodiscard]] bool is_server_busy(std::uint32_t place, std::int32_t status);
  bool postpone(request &r, std::uint64_t now);
  void renew(std::uint32_t place, std::uint64_t now);
  ended close(request &r);
  [[nodiscard]] std::uint32_t place_of(std::uint32_t id) const { return id & (window() - 1); }

  repeat_rules rules_;
  std::uint32_t frame_bytes_;
  std::vector<request> requests_;
  std::vector<std::uint8_t> frames_; ///< one for each place of the window
  std::uint32_t open_ = 0, last_id_ = 0;
  std::uint64_t next_time_ = kNever, begun_ = 0, repeated_ = 0, busy_ = 0;
};

} // namespace cudaq::realtime::detail
