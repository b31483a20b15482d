// SPDX-License-Identifier: Apache-2.0
// Reads the file of a flight recorder, also one that a server is writing, or one that was damaged: what it returns was
// checked.
#pragma once

#include "lib/qec/decoding/qec_expected.h"
#include "lib/qec/server/record/record_file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cudaq::qec::realtime {

struct recorded_request {
  std::uint64_t number = 0;     ///< since the start of the server; without gaps but for requests that had no place
  std::uint64_t arrived_ns = 0; ///< since the start of the recording
  std::uint64_t timestamp = 0;
  std::uint32_t function_id = 0, request_id = 0;
  std::uint32_t payload_bytes = 0, result_bytes = 0; ///< as they were; more than the vectors have if those are cut
  std::vector<std::uint8_t> payload, result;
  bool is_answered = false; ///< else the members of the answer have no meaning
  std::int32_t status = 0;
  std::array<std::uint64_t, 5> stage_ns{}; ///< accepted, queued, taken, decoded, answered: since the arrival

  [[nodiscard]] bool is_whole() const noexcept {
    return payload.size() == payload_bytes && (!is_answered || result.size() == result_bytes);
  }
};

/// Not for two threads at once.
class record_reader {
public:
  /// Finds the requests in the file. Refused: what is no recording of this version and byte order, or shorter than its
  /// head says. Its status is CUDAQ_ERR_UNSUPPORTED if the system refuses to open it. Throws std::bad_alloc.
  static expected<std::unique_ptr<record_reader>> open(const std::string &path);
  /// The same for an open file, which it closes. `name`: for error texts.
  static expected<std::unique_ptr<record_reader>> read_from(int descriptor, const std::string &name);
  record_reader(const record_reader &) = delete;
  record_reader &operator=(const record_reader &) = delete;
  ~record_reader();

  /// Requests that were found, by their numbers.
  [[nodiscard]] std::size_t size() const noexcept { return found_.size(); }
  /// Nothing if a writer has taken the place since open(), or if the record contradicts itself. Throws std::bad_alloc.
  [[nodiscard]] std::optional<recorded_request> read(std::size_t index);
  /// Its number, without a read.
  [[nodiscard]] std::uint64_t number(std::size_t index) const noexcept { return found_[index].number; }
  [[nodiscard]] std::uint64_t boot_id() const noexcept { return head_.boot_id; }
  [[nodiscard]] std::uint64_t start_unix_ns() const noexcept { return head_.start_unix_ns; }
  [[nodiscard]] std::uint64_t places() const noexcept { return head_.places; }
  [[nodiscard]] std::uint64_t left_out() const noexcept { return head_.left_out.value(); }
  /// Places whose request was just being written.
  [[nodiscard]] std::uint64_t torn() const noexcept { return torn_; }
  /// Places whose content cannot be of a recorder.
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }

private:
  struct found {
    std::uint64_t number, place;
  };
  record_reader(int descriptor, const record_file_head &head);
  void find_all();

  const int descriptor_;
  const record_file_head head_;
  std::vector<found> found_;
  std::vector<std::byte> place_; ///< the last one that was read
  std::uint64_t torn_ = 0, damaged_ = 0;
};

} // namespace cudaq::qec::realtime
