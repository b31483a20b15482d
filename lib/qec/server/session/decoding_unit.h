// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/decoding/decoder.h"
#include "cudaq/qec/decoding/stream.h"
#include "cudaq/realtime/detail/base/shared_word.h"
#include "lib/qec/server/session/detector_rates.h"
#include "lib/qec/server/session/shot_tap.h"
#include "lib/qec/server/session/unit_readout.h"
#include "lib/qec/stream/stream_factory.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

/// A matrix of bits by rows: row r has its ones in columns[first[r]] to columns[first[r + 1] - 1].
struct sparse_rows {
  std::vector<std::uint64_t> first{0};
  std::vector<std::uint64_t> columns;

  [[nodiscard]] std::size_t rows() const noexcept { return first.size() - 1; }
  [[nodiscard]] std::span<const std::uint64_t> row(std::size_t r) const noexcept {
    return std::span(columns).subspan(first[r], first[r + 1] - first[r]);
  }
};

/// What is known of a decoder besides its model. Any thread may read it while the decoder works.
struct decoder_identity {
  std::string name;                 ///< with its settings, as make_decoder or a stream takes it; "" if it is not known
  std::uint64_t deadline_ns = 0;    ///< of a decode, or of a window: the longest one in the name; 0: none
  std::vector<std::string> members; ///< of a race of shots, with their settings; else empty
  std::vector<cudaq::realtime::detail::counter> wins; ///< of each member: the answers that were its
  std::unique_ptr<detector_rates> rates;              ///< null: not counted
  std::shared_ptr<shot_tap> tap;                      ///< of shots, for a thread that learns; null: it does not
};

/// One decoder of the server: of shots, with the converter of the bits of a shot into detection events; or of a stream.
/// Not for two threads at once.
class decoding_unit {
public:
  /// `from_measurements`: row d has the measurements whose XOR is detector d; without rows the bits of a shot are the
  /// detection events themselves. `bits_per_shot`: not below the columns that it names. Throws std::bad_alloc.
  /// `digest`: model_digest of the decoder's model, and of its file of heralds.
  decoding_unit(std::unique_ptr<decoder> with, sparse_rows from_measurements, std::uint64_t bits_per_shot,
                std::uint64_t digest = 0);
  /// `digest`: of the repeating model. Throws std::bad_alloc.
  decoding_unit(std::unique_ptr<stream_decoder> with, std::uint64_t digest);

  /// Of shots, before the first use: each shot needs what the table takes. Null: no table.
  void need_readout(std::unique_ptr<unit_readout> table) noexcept { readout_ = std::move(table); }
  /// What each shot, or repetition of a stream, needs beside its bits.
  [[nodiscard]] readout_facts readout() const noexcept {
    return is_stream()           ? readout_facts_of(stream_->values_info())
           : readout_ == nullptr ? readout_facts{}
                                 : readout_->facts();
  }

  /// Bytes of a gap in answers: of a decoder that gives gaps 4, else 0.
  [[nodiscard]] std::size_t gap_bytes() const noexcept { return gaps_.empty() ? 0 : sizeof(float); }
  /// Of an answer with so many observables, and their gaps if there are any.
  [[nodiscard]] std::uint64_t answer_bytes(std::uint64_t observables) const noexcept {
    return (observables + 7) / 8 + observables * gap_bytes();
  }
  /// Of the last shot, a number of each observable, as of decode_details::gaps; empty without gaps.
  [[nodiscard]] std::span<const double> gaps() const noexcept { return gaps_; }

  /// Null: the unit decodes shots.
  [[nodiscard]] stream_decoder *stream() noexcept { return stream_.get(); }
  [[nodiscard]] const stream_decoder *stream() const noexcept { return stream_.get(); }
  [[nodiscard]] bool is_stream() const noexcept { return stream_ != nullptr; }
  /// Of a stream: as of stream_factory.h.
  void listen(const stream_listener &listener) noexcept { realtime::listen(*stream_, listener); }
  /// Bits of a whole shot. 0: the unit decodes a stream.
  [[nodiscard]] std::uint64_t bits_per_shot() const noexcept { return bits_per_shot_; }
  /// Detectors of a shot, or of a repetition of a stream.
  [[nodiscard]] std::uint64_t num_detectors() const noexcept { return num_detectors_; }
  [[nodiscard]] std::uint64_t num_observables() const noexcept { return num_observables_; }
  [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
  /// Of shots: the name of the decoder.
  [[nodiscard]] const char *decoder_name() const noexcept { return decoder_->name(); }
  /// Its name, rates and tap are written before the first use of the unit.
  [[nodiscard]] const std::shared_ptr<decoder_identity> &identity() const noexcept { return identity_; }
  /// The most bytes after the fields of one request: longer ones are refused by their length.
  [[nodiscard]] std::uint64_t max_request_bytes() const noexcept;
  /// Of shots: whether the last decode wrote the observables of a solution: with ok, and perhaps with deadline.
  [[nodiscard]] bool has_solution() const noexcept { return !is_refused_ && decoder_->has_solution(); }
  /// Of shots: whether the last decode ended after its deadline, with the observables of a solution.
  [[nodiscard]] bool is_late() const noexcept { return has_solution() && decoder_->is_late(); }
  /// decoder::fault() or stream_decoder::fault(); after is_refused() what is wrong in the readout of the shot.
  [[nodiscard]] const char *fault() const noexcept {
    return is_refused_ ? readout_->fault() : is_stream() ? stream_->fault() : decoder_->fault();
  }
  /// Of shots: the last one was not decoded, because its readout is not what the table takes.
  [[nodiscard]] bool is_refused() const noexcept { return is_refused_; }
  /// Of decodes of shots; all 0 for a stream, whose windows are in its statistics.
  [[nodiscard]] deadline_counts deadlines() const noexcept {
    return is_stream() ? deadline_counts{} : decoder_->deadlines();
  }
  /// Whether another unit can take the place of this one: requests and answers have the same lengths.
  [[nodiscard]] bool same_shape(const decoding_unit &other) const noexcept;
  /// "has 10 bits per shot, 10 detectors and 1 observables"
  [[nodiscard]] std::string shape_text() const;

  /// Of shots: decodes one. `bits`: bits_per_shot() bits, unused bits 0. `observables` as in decoder::decode. `known`:
  /// nothing without a table; else statuses as of readout_table::list_of, too.
  [[nodiscard]] decode_status decode_stream(std::span<const std::uint8_t> bits, std::span<std::uint8_t> observables,
                                            const shot_readout &known = {}) noexcept;
  /// Of shots: decodes detection events, one bit each.
  [[nodiscard]] decode_status decode_events(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables,
                                            const shot_readout &known = {}) noexcept;
  /// Of a race of shots: how many decodes of members have failed since the last call; fault() is the text.
  [[nodiscard]] std::uint64_t take_member_faults() noexcept;

private:
  [[nodiscard]] decode_status decode_with(std::span<const std::uint8_t> events, std::span<std::uint8_t> observables,
                                          shot_probabilities list) noexcept;

  std::unique_ptr<decoder> decoder_; ///< one of the two
  std::unique_ptr<stream_decoder> stream_;
  std::uint64_t num_detectors_, num_observables_;
  sparse_rows from_measurements_;
  std::uint64_t bits_per_shot_, digest_;
  std::vector<std::uint8_t> events_; ///< of one shot, if there are rows
  std::vector<double> gaps_;         ///< of one shot
  std::uint64_t member_faults_ = 0;
  std::unique_ptr<unit_readout> readout_; ///< may be null
  bool is_refused_ = false;
  const std::shared_ptr<decoder_identity> identity_ = std::make_shared<decoder_identity>();
};

/// The most bits of one request for a decoder of shots with these sizes.
[[nodiscard]] std::uint64_t longest_request_bits(std::uint64_t bits_per_shot, std::uint64_t num_detectors) noexcept;
/// The same for a stream whose longest part (head, repetition or tail) has these detectors.
[[nodiscard]] std::uint64_t longest_stream_request_bits(std::uint64_t longest_part) noexcept;
/// The most bytes of soft values and flags of one request for a stream: at least those of each part.
[[nodiscard]] std::uint64_t longest_stream_request_values(const stream_values_info &of) noexcept;

} // namespace cudaq::qec::realtime
