/* SPDX-License-Identifier: Apache-2.0 */
// What the readout of a shot says beside its events: soft values of measurements, and flags of leakage. C++20. Link
// cudaq::qec-decoding.
//
//   readout_table_result table = read_readout_table(table_text, dem_text);
//   if (!table)
//     return report(table.error);
//   decode_status status = table.instance->list_of({.soft = values, .kind = soft_kind::u8}, list, fault);
//   if (status == decode_status::ok)
//     status = decoder.decode(events, observables, list);
//
// How the model and the table are made from a circuit, the table, the rules: docs/decoders/soft.md.
#ifndef CUDAQ_QEC_DECODING_READOUT_H
#define CUDAQ_QEC_DECODING_READOUT_H

#include "cudaq/qec/decoding/decoder.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cudaq::qec::realtime {

/// How the soft value of a measurement is written. The values never change.
enum class soft_kind : std::uint32_t {
  f32 = 0, ///< IEEE 754 single precision, 4 bytes in the byte order of the machine, at any address
  u8 = 1,  ///< one byte
  u4 = 2   ///< two in a byte: measurement 0 in the low half of byte 0, measurement 1 in its high half
};

/// What the readout of one shot says. The memory is the caller's.
struct shot_readout {
  std::span<const std::uint8_t> soft = {};    ///< a value for each measurement: soft_bytes(kind) bytes
  soft_kind kind = soft_kind::f32;            ///< of `soft`
  std::span<const std::uint8_t> leakage = {}; ///< 0, 1 or 2 for each flag, 2 bits each: leakage_bytes() bytes. Flag k
                                              ///< is in the bits 2 * (k % 4) and 2 * (k % 4) + 1 of byte k / 4
};

/// Which errors of a model the values of a readout mean. It does not change, so any thread may use it at any time.
class CUDAQ_QEC_DECODING_API readout_table {
public:
  struct content;
  explicit readout_table(std::unique_ptr<const content> all) noexcept;
  ~readout_table();
  readout_table(const readout_table &) = delete;
  readout_table &operator=(const readout_table &) = delete;

  /// Soft values of a shot; 0: the table has none.
  [[nodiscard]] std::uint64_t num_measurements() const noexcept;
  /// Flags of leakage of a shot; 0: the table has none.
  [[nodiscard]] std::uint64_t num_flags() const noexcept;
  [[nodiscard]] std::size_t soft_bytes(soft_kind kind) const noexcept;
  [[nodiscard]] std::size_t leakage_bytes() const noexcept { return static_cast<std::size_t>((num_flags() + 3) / 4); }
  /// The most errors that a list has.
  [[nodiscard]] std::size_t max_errors() const noexcept;

  /// Makes the list of probabilities for the decoder of the model. `list`: is replaced; its memory is used again.
  /// buffer_too_small: `soft` or `leakage` has another number of bytes. not_supported: a calibration does not take the
  /// kind. bad_probability: a soft value that the table uses is not finite, a flag is 3, or unused bits of the last
  /// byte are not 0. Then the list is empty, and `fault` says what is wrong; else `fault` is not written. Throws
  /// std::bad_alloc.
  [[nodiscard]] decode_status list_of(const shot_readout &shot, std::vector<error_probability> &list,
                                      std::string &fault) const;

  /// For the library and its own programs: users have no declaration of it.
  [[nodiscard]] const content &contents() const noexcept { return *all_; }

private:
  const std::unique_ptr<const content> all_;
};

/// A table, or an error text.
struct readout_table_result {
  std::unique_ptr<readout_table> instance;
  std::string error;
  explicit operator bool() const noexcept { return instance != nullptr; }
};

/// Reads the text of a table for this model. The texts are not kept. The error text says what is wrong, with the line.
[[nodiscard]] CUDAQ_QEC_DECODING_API readout_table_result read_readout_table(std::string_view table_text,
                                                                             std::string_view dem_text);

/// The reason why a decoder of the model would refuse a list of the table; "": it takes all. It decodes a shot without
/// events with the largest probability that the table can give each error, so matching is ready for such shots. For the
/// thread that decodes. Throws std::bad_alloc.
[[nodiscard]] CUDAQ_QEC_DECODING_API std::string refuses_readout(decoder &with, const readout_table &table);

} // namespace cudaq::qec::realtime

#endif
