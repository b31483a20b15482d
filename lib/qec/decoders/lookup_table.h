// SPDX-License-Identifier: Apache-2.0
// The lookup table as plain data, for host and device code: one block of bytes without pointers, which can be copied
// anywhere, and a view that reads it.
//
// Layout (little endian; offsets are from the start of the block, which is 8-byte aligned):
//
//   0                     lookup_table_header
//   detector_map_offset   uint32[num_detectors]   what each detector does, see detector_role
//   part_offset_offset    uint64[num_parts]       where the rows of each part begin
//   rows                  per part 2^(detectors of the part) rows of row_bytes each
//
// A *part* is a connected piece of the code. Its row number is its syndrome: a detector with role bit b adds 2^b. A
// row holds the observables to flip, observable k in bit k % 8 of byte k / 8. Bit num_observables is 1 if no error
// causes this syndrome. The answer to a shot is the XOR of the rows of all parts.
#pragma once

#include "cudaq/qec/decoding/decode_status.h"

#include <cstdint>

namespace cudaq::qec::realtime {

inline constexpr std::uint32_t kLookupMagic = 0x54554C51; // "QLUT"
inline constexpr std::uint32_t kLookupVersion = 1;
inline constexpr std::uint32_t kLookupMaxParts = 16;
inline constexpr std::uint32_t kLookupMaxParityGroups = 32;

struct lookup_table_header {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t num_detectors;
  std::uint32_t num_observables;
  std::uint32_t num_parts;
  std::uint32_t num_parity_groups;
  std::uint32_t row_bytes; ///< num_observables / 8 + 1: the observables and the no-solution bit
  std::uint32_t reserved;
  std::uint64_t detector_map_offset;
  std::uint64_t part_offset_offset;
  std::uint64_t total_bytes;
};
static_assert(sizeof(lookup_table_header) == 56);

/// Entry of the detector map: role in bits 24..31, part in bits 8..15, bit or parity group in bits 0..7.
enum class detector_role : std::uint32_t {
  ignored = 0,   ///< touches no observable, and every syndrome of its piece has a cause
  part_bit = 1,  ///< a bit of a part's row number
  parity = 2,    ///< touches no observable; the number of events of its piece must be even
  forbidden = 3, ///< no error of the model flips it: an event here has no cause
};

struct lookup_table_view {
  std::uint32_t num_detectors;
  std::uint32_t num_observables;
  std::uint32_t num_parts;
  std::uint32_t row_bytes;
  const std::uint32_t *detector_map;
  const std::uint64_t *part_offset;
  const std::uint8_t *block;
};

/// Intermediate state of one shot. Each thread has its own, on its stack.
struct lookup_state {
  std::uint32_t row[kLookupMaxParts];
  std::uint32_t odd_groups;
  decode_status status;
};

/// `header` is the caller's copy of the block's first bytes; `block` may be device memory, which the host cannot read.
CUDAQ_QEC_HOST_DEVICE inline lookup_table_view make_lookup_table_view(const lookup_table_header &header,
                                                                      const std::uint8_t *block) {
  lookup_table_view view;
  view.num_detectors = header.num_detectors;
  view.num_observables = header.num_observables;
  view.num_parts = header.num_parts;
  view.row_bytes = header.row_bytes;
  // The block and both offsets are aligned to 8.
  view.detector_map = static_cast<const std::uint32_t *>(static_cast<const void *>(block + header.detector_map_offset));
  view.part_offset = static_cast<const std::uint64_t *>(static_cast<const void *>(block + header.part_offset_offset));
  view.block = block;
  return view;
}

CUDAQ_QEC_HOST_DEVICE inline void lookup_begin(lookup_state &state) {
  for (std::uint32_t part = 0; part < kLookupMaxParts; ++part)
    state.row[part] = 0;
  state.odd_groups = 0;
  state.status = decode_status::ok;
}

/// Adds one detection event; any order, each detector at most once. A repeated event is detected only if it is a bit
/// of a part, where it could change the answer. In a parity group it can hide an odd parity.
CUDAQ_QEC_HOST_DEVICE inline void lookup_add_event(const lookup_table_view &view, lookup_state &state,
                                                   std::uint64_t detector) {
  if (detector >= view.num_detectors) {
    state.status = decode_status::bad_detector_index;
    return;
  }
  const std::uint32_t entry = view.detector_map[detector];
  const std::uint32_t bit = std::uint32_t{1} << (entry & 0xFFU);
  switch (static_cast<detector_role>(entry >> 24)) {
  case detector_role::ignored:
    break;
  case detector_role::part_bit: {
    std::uint32_t &row = state.row[(entry >> 8) & 0xFFU];
    if ((row & bit) != 0)
      state.status = decode_status::duplicate_detector_index;
    row |= bit;
    break;
  }
  case detector_role::parity:
    state.odd_groups ^= bit;
    break;
  case detector_role::forbidden:
    if (state.status == decode_status::ok)
      state.status = decode_status::no_solution;
    break;
  }
}

/// The row of one part that the events so far select.
CUDAQ_QEC_HOST_DEVICE inline const std::uint8_t *lookup_row(const lookup_table_view &view, const lookup_state &state,
                                                            std::uint32_t part) {
  return view.block + view.part_offset[part] + std::uint64_t{state.row[part]} * view.row_bytes;
}

/// Writes ceil(num_observables / 8) bytes: the answer, or zeros with any status but ok.
CUDAQ_QEC_HOST_DEVICE inline decode_status lookup_finish(const lookup_table_view &view, lookup_state &state,
                                                         std::uint8_t *observables) {
  const std::uint32_t mark_byte = view.num_observables / 8;
  const std::uint32_t mark_bit = 1U << (view.num_observables % 8);
  bool unsolvable = state.odd_groups != 0;
  for (std::uint32_t part = 0; part < view.num_parts; ++part)
    unsolvable = unsolvable || (lookup_row(view, state, part)[mark_byte] & mark_bit) != 0;
  if (state.status == decode_status::ok && unsolvable)
    state.status = decode_status::no_solution;
  const std::uint32_t out_bytes = (view.num_observables + 7) / 8;
  for (std::uint32_t k = 0; k < out_bytes; ++k) {
    std::uint32_t flips = 0;
    if (state.status == decode_status::ok)
      for (std::uint32_t part = 0; part < view.num_parts; ++part)
        flips ^= lookup_row(view, state, part)[k];
    observables[k] = static_cast<std::uint8_t>(flips);
  }
  return state.status;
}

/// Decodes a whole shot from bit-packed events (detector k in bit k % 8 of byte k / 8). `packed` has
/// ceil(num_detectors / 8) bytes; a set bit after the last detector is refused.
CUDAQ_QEC_HOST_DEVICE inline decode_status lookup_decode_packed(const lookup_table_view &view,
                                                                const std::uint8_t *packed, std::uint8_t *observables) {
  lookup_state state;
  lookup_begin(state);
  const std::uint32_t bytes = (view.num_detectors + 7) / 8;
  for (std::uint32_t byte = 0; byte < bytes; ++byte)
    for (std::uint32_t rest = packed[byte], bit = 0; rest != 0; rest >>= 1, ++bit)
      if ((rest & 1U) != 0)
        lookup_add_event(view, state, std::uint64_t{byte} * 8 + bit);
  return lookup_finish(view, state, observables);
}

} // namespace cudaq::qec::realtime
