// SPDX-License-Identifier: Apache-2.0
// How one format stores the bits of a shot. Only shot_reader and shot_writer use these classes; they check the
// indices and the errors of the file.
#pragma once

#include "lib/qec/shots/shot_format.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

namespace cudaq::qec::realtime {

class format_decoder {
public:
  virtual ~format_decoder() = default;
  /// Appends the indices of the bits that are set, in any order and not checked, to `hits`. Returns false at the end of
  /// the file. Throws std::exception for bad data.
  virtual bool next(std::vector<std::uint64_t> &hits) = 0;
};

class format_encoder {
public:
  virtual ~format_encoder() = default;
  /// `row`: bit k in bit k % 8 of byte k / 8. Errors of the file are in ferror().
  virtual void write(std::span<const std::uint8_t> row) = 0;
};

/// Stim's own readers and writers. Without Stim in this build: nullptr. The file must outlive the codec.
std::unique_ptr<format_decoder> make_stim_decoder(std::FILE *file, shot_format format, shot_bits bits);
/// For observables; not for ptb64.
std::unique_ptr<format_encoder> make_stim_encoder(std::FILE *file, shot_format format, std::uint64_t observables);

} // namespace cudaq::qec::realtime
