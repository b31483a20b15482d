// SPDX-License-Identifier: Apache-2.0
// Which requests of a recording are played, in the order of their arrival. Example, of a recording that begins in the
// middle of a shot:
//
//   recorded                       answer   played
//   enqueue, decoder 1             OK       no: what came before it is not known
//   qec_decode                     OK       yes: it needs nothing before it
//   enqueue, decoder 1             BUSY     no: it was not executed
//   reset_decoder, decoder 1       OK       yes
//   enqueue, decoder 1             OK       yes, and so are all later ones
//   the same once more             OK       no: a copy
#pragma once

#include "lib/qec/server/record/record_reader.h"
#include "lib/qec/server/session/wire_requests.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

/// Recorded requests that are not played, by the reason.
struct left_out_requests {
  std::uint64_t copies = 0;        ///< the first one was played
  std::uint64_t not_executed = 0;  ///< BUSY or NOT_READY
  std::uint64_t without_begin = 0; ///< the decoder's last reset, or a request after it, is not in the recording
  std::uint64_t unreadable = 0;    ///< a record that contradicts itself, was cut, or was just being written

  [[nodiscard]] std::uint64_t total() const noexcept { return copies + not_executed + without_begin + unreadable; }
};

/// Used by one thread.
class replay_plan {
public:
  explicit replay_plan(qec::record_reader &recording) : recording_(recording) {}

  /// The next request that is played; nothing after the last one. Throws std::bad_alloc.
  std::optional<qec::recorded_request> next();
  /// Of the requests before that of the last next().
  [[nodiscard]] const left_out_requests &left_out() const noexcept { return left_out_; }

private:
  /// What shows that an equal request is the same one.
  struct identity {
    std::uint32_t id;
    std::uint64_t timestamp, content;
    bool operator==(const identity &) const = default;
  };
  /// Of one decoder, as many as its server knew.
  struct last_requests {
    std::vector<identity> all;
    std::size_t oldest = 0;
  };

  [[nodiscard]] bool is_played(const qec::recorded_request &request);
  /// It is one of the last requests; else it is from now on.
  [[nodiscard]] bool is_copy(std::uint64_t decoder, const identity &request);

  qec::record_reader &recording_;
  std::size_t at_ = 0;
  std::uint64_t next_number_ = 0;
  bool has_begin_ = true;                       ///< no request is missing so far
  std::set<std::uint64_t> reset_;               ///< decoders that were reset since the last gap
  std::map<std::uint64_t, last_requests> last_; ///< of each decoder
  left_out_requests left_out_;
};

/// "qec_decode"; "function 0x12345678" if it is none of the server.
[[nodiscard]] std::string function_name(std::uint32_t function_id);

} // namespace cudaq::realtime::tools
