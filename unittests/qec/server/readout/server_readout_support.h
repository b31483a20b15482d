// SPDX-License-Identifier: Apache-2.0
// A decoder of the server whose answer to one event depends on what the readout says.
#pragma once

#include "unittests/qec/model_text.h"
#include "unittests/qec/server/server_test_support.h"

#include <cstring>

namespace cudaq::qec::realtime::test {

/// Only D0 fires: error 1 explains it, which flips the observable; errors 0 and 2 do, too, and are likelier only if the
/// readout of the shot says that both are likely.
inline constexpr const char *kReadoutModel = "error(0.1) D0 D1\nerror(0.05) D0 L0\nerror(0.1) D1\n";
/// Measurement 1 misreads error 0, and 2 error 2. Values near 12 are 0, near 3 are 1, 7 and 8 are in the middle. Flag 4
/// has error 2, too. No detector sees measurement 0.
inline constexpr const char *kReadoutLines = "measurements 3\nflags 5\ngaussian 0 12 3 2 0.5\nmisread 0 0.01 1 0\n"
                                             "misread 2 0.01 2 0\nflag 4 2 2 0.5\n";

inline std::string readout_text(const std::string &lines = kReadoutLines, const std::string &model = kReadoutModel) {
  return head_of_text("cudaq-realtime-readout 1", model) + lines;
}

inline std::unique_ptr<readout_table> readout_table_for(const std::string &lines = kReadoutLines,
                                                        const std::string &model = kReadoutModel) {
  readout_table_result read = read_readout_table(readout_text(lines, model), model);
  if (!read)
    throw std::runtime_error(read.error);
  return std::move(read.instance);
}

inline std::unique_ptr<decoding_unit> readout_unit(const std::string &lines = kReadoutLines,
                                                   const std::string &model = kReadoutModel) {
  auto unit = unit_for(model, {}, 0, "bp-osd");
  unit->need_readout(std::make_unique<unit_readout>(readout_table_for(lines, model)));
  return unit;
}

/// Values as bytes: of u4 two in one.
inline bytes soft_bytes_of(const std::vector<unsigned> &values, soft_kind kind) {
  bytes out;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const auto value = static_cast<float>(values[k]);
    if (kind == soft_kind::f32)
      out.insert(out.end(), reinterpret_cast<const std::uint8_t *>(&value),
                 reinterpret_cast<const std::uint8_t *>(&value + 1));
    else if (kind == soft_kind::u8 || k % 2 == 0)
      out.push_back(static_cast<std::uint8_t>(values[k]));
    else
      out.back() = static_cast<std::uint8_t>(out.back() | values[k] << 4);
  }
  return out;
}

inline bytes flag_bytes_of(const std::vector<unsigned> &flags) {
  bytes out((flags.size() + 3) / 4);
  for (std::size_t k = 0; k < flags.size(); ++k)
    out[k / 4] = static_cast<std::uint8_t>(out[k / 4] | flags[k] << 2 * (k % 4));
  return out;
}

/// What a shot, or a part of one, has.
struct readout_shot {
  std::string bits;
  std::vector<unsigned> values, flags;
};

inline bytes readout_payload(std::uint64_t id, std::uint64_t counter, const readout_shot &shot, soft_kind kind) {
  bytes payload;
  for (const std::uint64_t number : {id, counter, std::uint64_t{shot.bits.size()}, std::uint64_t{shot.values.size()},
                                     std::uint64_t{shot.flags.size()}, static_cast<std::uint64_t>(kind)})
    append_number(payload, number);
  for (const bytes &array : {packed(shot.bits), soft_bytes_of(shot.values, kind), flag_bytes_of(shot.flags)})
    payload.insert(payload.end(), array.begin(), array.end());
  return payload;
}

/// The payload of qec_decode.
inline bytes one_shot_payload(const readout_shot &shot, soft_kind kind) {
  bytes payload;
  for (const bytes &array : {packed(shot.bits), soft_bytes_of(shot.values, kind), flag_bytes_of(shot.flags)})
    payload.insert(payload.end(), array.begin(), array.end());
  return payload;
}

inline constexpr soft_kind kAllKinds[] = {soft_kind::f32, soft_kind::u8, soft_kind::u4};

} // namespace cudaq::qec::realtime::test
