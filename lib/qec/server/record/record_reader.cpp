// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/record/record_reader.h"

#include "lib/base/descriptor.h"
#include "lib/base/error_text.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cudaq::qec::realtime {

using cudaq::realtime::detail::make_reason;
using cudaq::realtime::detail::read_at;

namespace {

/// "" if the head can be used.
const char *fault_of(const record_file_head &head) noexcept {
  if (head.magic != kRecordMagic)
    return "it is no recording";
  if (head.byte_order != kRecordByteOrder)
    return "it comes from a machine with another byte order";
  if (head.version != kRecordVersion)
    return "it has another version; read it with the program that has written it";
  const bool is_good = head.head_bytes == kRecordHeadBytes && head.places <= kMaxRecords &&
                       std::has_single_bit(head.places) && head.place_bytes % 64 == 0 &&
                       head.place_bytes >= sizeof(record_head) && head.place_bytes <= kMaxRecordBytes;
  return is_good ? "" : "its head contradicts itself";
}

} // namespace

expected<std::unique_ptr<record_reader>> record_reader::open(const std::string &path) {
  // Without O_NONBLOCK the open of a pipe waits for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return make_reason(errno == EMFILE || errno == ENFILE ? CUDAQ_ERR_UNSUPPORTED : CUDAQ_ERR_INVALID_ARG,
                       "%s: it cannot be opened: %s", path.c_str(), std::strerror(errno));
  return read_from(descriptor, path);
}

expected<std::unique_ptr<record_reader>> record_reader::read_from(int descriptor, const std::string &name) {
  record_file_head head{};
  struct stat about {};
  const bool is_file = ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  const bool has_head = is_file && read_at(descriptor, &head, sizeof head, 0);
  const char *fault = !is_file ? "it is no file" : !has_head ? "it is no recording" : fault_of(head);
  if (*fault == '\0' && static_cast<std::uint64_t>(about.st_size) < head.head_bytes + head.places * head.place_bytes)
    fault = "it has fewer bytes than its head says: it is cut off, or the server has not begun yet";
  if (*fault != '\0') {
    ::close(descriptor);
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: %s", name.c_str(), fault);
  }
  std::unique_ptr<record_reader> made(new record_reader(descriptor, head));
  made->find_all();
  return made;
}

record_reader::record_reader(int descriptor, const record_file_head &head)
    : descriptor_(descriptor), head_(head), place_(head.place_bytes) {}

record_reader::~record_reader() { ::close(descriptor_); }

void record_reader::find_all() {
  for (std::uint64_t k = 0; k < head_.places; ++k) {
    std::uint64_t mark = 0;
    if (!read_at(descriptor_, &mark, sizeof mark, head_.head_bytes + k * head_.place_bytes) || mark == 0)
      continue;
    const std::uint64_t number = number_of_mark(mark);
    if (mark < 4 || (number & (head_.places - 1)) != k)
      ++damaged_;
    else if (state_of_mark(mark) == record_state::requesting)
      ++torn_;
    else
      found_.push_back({number, k});
  }
  std::ranges::sort(found_, {}, &found::number);
}

std::optional<recorded_request> record_reader::read(std::size_t index) {
  const auto [number, place] = found_[index];
  const std::uint64_t at = head_.head_bytes + place * head_.place_bytes;
  std::uint64_t mark = 0, mark_after = 0;
  // A writer changes the mark before it changes the rest.
  if (!read_at(descriptor_, &mark, sizeof mark, at) || !read_at(descriptor_, place_.data(), place_.size(), at) ||
      !read_at(descriptor_, &mark_after, sizeof mark_after, at) || mark != mark_after ||
      number_of_mark(mark) != number || mark < 4 || state_of_mark(mark) == record_state::requesting)
    return std::nullopt;
  record_head head{};
  std::memcpy(static_cast<void *>(&head), place_.data(), sizeof head);
  const std::uint64_t result_at = result_offset(head.kept_payload);
  recorded_request out;
  out.is_answered = state_of_mark(mark) == record_state::answered;
  if (head.kept_payload > head.payload_bytes || sizeof head + std::uint64_t{head.kept_payload} > place_.size() ||
      (out.is_answered && (head.kept_result > head.result_bytes ||
                           (head.kept_result != 0 && result_at + head.kept_result > place_.size())))) {
    ++damaged_;
    return std::nullopt;
  }
  out.number = number;
  out.arrived_ns = head.arrived_ns;
  out.timestamp = head.timestamp;
  out.function_id = head.function_id;
  out.request_id = head.request_id;
  out.payload_bytes = head.payload_bytes;
  const auto bytes = [this](std::uint64_t from, std::uint32_t count) {
    const auto *const first = reinterpret_cast<const std::uint8_t *>(place_.data()) + from;
    return std::vector<std::uint8_t>(first, first + count);
  };
  out.payload = bytes(sizeof head, head.kept_payload);
  if (!out.is_answered)
    return out;
  out.status = head.status;
  out.stage_ns = head.stage_ns;
  out.result_bytes = head.result_bytes;
  if (head.kept_result != 0)
    out.result = bytes(result_at, head.kept_result);
  return out;
}

} // namespace cudaq::qec::realtime
