// SPDX-License-Identifier: Apache-2.0
// The three forms of a shot in a request, and how each is made from Stim's shots. docs/pipeline.md has the table.
#pragma once

#include "cudaq/qec/decoding/decode_status.h"
#include "lib/qec/decoding/decoding_config.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

enum class input_schema {
  packed_events,     ///< one bit per detector: a row of Stim's dets.b8
  uint8_events,      ///< one byte per detector, 0 or 1
  int32_measurements ///< INT32 [1, 3h, rounds], 0 or 1: outcomes of the measure qubits, parities of the final readout
};
/// "packed_events", "uint8_events", "int32_measurements".
std::string_view name_of(input_schema schema) noexcept;

/// One schema of one configuration. No call throws or allocates; any thread may call.
///
/// The INT32 tensor of a rotated memory circuit, h = (d^2 - 1) / 2, row-major, element (row, round):
///   rows 0 .. 2h-1   outcome of measure qubit `row`, in Stim's order of a round (by y, then x):
///                    record round * 2h + row
///   rows 2h .. 3h-1  last round: parity of the data qubits of the final readout around stabilizer row - 2h of the
///                    memory's basis, in the order of Stim's detectors (by x, then y); other rounds: 0
class input_mapping {
public:
  input_mapping(input_schema schema, const decoding_config &config);

  input_schema schema() const noexcept { return schema_; }
  const decoding_config &config() const noexcept { return config_; }
  std::size_t payload_bytes() const noexcept;

  /// Converts a request to detection events; `packed` has packed_input_bytes() bytes. buffer_too_small: fewer bytes
  /// than payload_bytes(), or `packed` is too short. bad_detector_index: more bytes, a value that is neither 0 nor 1,
  /// or a 1 where the schema requires 0.
  decode_status read(std::span<const std::uint8_t> payload, std::span<std::uint8_t> packed) const noexcept;
  /// Converts a row of dets.b8 to a request; writes payload_bytes() bytes. The measurements are those of a shot whose
  /// random outcomes are all 0. buffer_too_small: a span is too short.
  decode_status write(std::span<const std::uint8_t> packed, std::span<std::uint8_t> payload) const noexcept;
  /// Converts a row of Stim's measurements (b8) to a request, for int32_measurements. bad_detector_index: another
  /// schema.
  decode_status write_measurements(std::span<const std::uint8_t> record,
                                   std::span<std::uint8_t> payload) const noexcept;
  std::size_t record_bytes() const noexcept;

private:
  std::uint32_t per_round() const noexcept { return 2 * config_.stabilizers(); }
  std::size_t element(std::uint32_t row, std::uint32_t round) const noexcept {
    return std::size_t{row} * config_.rounds + round;
  }

  input_schema schema_;
  decoding_config config_;
  // One entry for each stabilizer of the basis, in the order of detectors: its measure qubit, and its data qubits as
  // positions in the readout.
  std::vector<std::uint32_t> row_of_;
  std::vector<std::vector<std::uint32_t>> data_around_;
};

} // namespace cudaq::qec::realtime
