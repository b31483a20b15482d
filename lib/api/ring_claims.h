// SPDX-License-Identifier: Apache-2.0
// Which memory the running dispatchers of a manager use. A second owner of a ring or of a control word is refused at
// start, as far as the library can know it:
//
//   same manager     ranges of addresses: the arrays of a ring in both views, the shutdown flag, the counter
//   two managers     the owner word in the record (ring_record.h) of a ring that cudaq_ringbuffer_create has made
//
// The members of a shared ring may use its arrays together.
#pragma once

#include "lib/base/error_text.h"

#include "cudaq/realtime/detail/base/shared_word.h"

#include <array>
#include <map>

namespace cudaq::realtime::detail {

/// What a run uses. Plain addresses: nothing is read or written through them.
class memory_claim {
public:
  /// `known_slots`: how far the arrays of the ring certainly reach. `shared_ring`: identifies the ring if it may have
  /// other members, else NULL.
  memory_claim(const cudaq_ringbuffer_t *ring, std::uint32_t known_slots, const volatile void *shared_ring,
               const volatile int *shutdown_flag, const std::uint64_t *stats);

  /// Names the first two ranges that overlap.
  expected<> check_against(const memory_claim &other) const;
  /// The owner word of the ring; NULL: it has none.
  shared_word<std::uint64_t> *owner_word() const { return owner_word_; }

private:
  struct range {
    const char *field = "";
    std::uintptr_t begin = 0;
    std::uint64_t bytes = 0; ///< 0: not used
    bool of_ring = false;
  };
  void add_ring(const cudaq_ringbuffer_t &ring, std::uint64_t num_slots);

  std::array<range, 10> ranges_{};
  const volatile void *shared_ring_ = nullptr;
  shared_word<std::uint64_t> *owner_word_ = nullptr;
};

/// The claims of a manager's running dispatchers. The manager's mutex protects it.
class ring_claims {
public:
  /// Refused: `what` overlaps memory of another dispatcher of this manager, or another manager owns the ring.
  expected<> add(const void *who, const memory_claim &what);
  /// No effect if `who` has no claim.
  void remove(const void *who);
  /// For a manager that the caller cannot reach afterwards, while a graph may still write to its rings: they get
  /// no other dispatcher, and can be destroyed if CUDA frees their memory, which waits for the graph.
  void leave_to_a_graph();

private:
  std::map<const void *, memory_claim> claims_;
};

} // namespace cudaq::realtime::detail
