// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/record/request_recorder.h"

#include "lib/base/descriptor.h"
#include "lib/base/error_text.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <new>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cudaq::qec::realtime {

namespace rt = cudaq::realtime::detail;
using rt::make_reason;

namespace {

reason refused(const std::string &path, const char *what, int error) {
  return make_reason(CUDAQ_ERR_UNSUPPORTED, "%s: %s: %s", path.c_str(), what, std::strerror(error));
}
reason wrong(const std::string &path, const char *why) {
  return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: %s", path.c_str(), why);
}

class open_file {
public:
  open_file() = default;
  explicit open_file(int descriptor) { set(descriptor); }
  open_file(const open_file &) = delete;
  open_file &operator=(const open_file &) = delete;
  ~open_file() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
  }
  void set(int descriptor) noexcept { descriptor_ = rt::above_standard_streams(descriptor); } ///< once
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  int release() noexcept { return std::exchange(descriptor_, -1); }

private:
  int descriptor_ = -1;
};

reason in_use(const std::string &path) {
  return wrong(path, "a server that runs writes to it; give each server a file of its own");
}
/// Locks the file for this recorder. Refused, too, if the path has another file by now: between the open and the lock
/// of a file another server may take it for an earlier recording.
expected<> lock_file(const std::string &path, const open_file &file) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? in_use(path) : refused(path, "it cannot be locked", errno);
  struct stat ours {
  }, now{};
  if (::fstat(file.get(), &ours) != 0 || ::lstat(path.c_str(), &now) != 0 || ours.st_dev != now.st_dev ||
      ours.st_ino != now.st_ino)
    return in_use(path);
  return {};
}

/// A recording that is there, or an empty file; without a descriptor: there is none. Refused: any other file.
expected<> open_earlier(const std::string &path, open_file &file) {
  file.set(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT)
      return {};
    return errno == ELOOP ? wrong(path, "it is a symbolic link; name the file itself")
                          : refused(path, "a file is there that cannot be read", errno);
  }
  struct stat about {};
  std::array<char, kRecordMagic.size()> magic{};
  const bool is_regular = ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode);
  const bool is_recording = is_regular && rt::read_at(file.get(), &magic, sizeof magic, 0) && magic == kRecordMagic;
  if (!is_recording && !(is_regular && about.st_size == 0))
    return wrong(path, "there is another file, which is no recording; remove it, or give another name");
  return {};
}

bool has_requests(const open_file &recording) {
  std::uint64_t first_mark = 0;
  return rt::read_at(recording.get(), &first_mark, sizeof first_mark, kRecordHeadBytes) && first_mark != 0;
}

/// A server that was started again must not overwrite what the one before it has left.
expected<> keep_earlier(const std::string &path) {
  open_file file, before_it;
  if (expected<> result = open_earlier(path, file); result.failed() || file.get() < 0)
    return result;
  if (expected<> result = lock_file(path, file); result.failed())
    return result;
  const bool is_kept = has_requests(file);
  if (is_kept)
    if (expected<> result = open_earlier(path + ".1", before_it); result.failed())
      return result;
  // One without a request must not take the place of the one before it, which may show a failure.
  if (is_kept ? ::rename(path.c_str(), (path + ".1").c_str()) != 0 : ::unlink(path.c_str()) != 0)
    return refused(path, "the earlier recording cannot get the suffix .1", errno);
  return {};
}

/// A reservation above this limit would end the process by a signal.
bool is_above_limit(std::uint64_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
}

} // namespace

expected<> request_recorder::check(const std::string &path) {
  const std::string parent = std::filesystem::path(path).parent_path().string(), folder = parent.empty() ? "." : parent;
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return refused(path, "no file can be made in its folder", errno);
  open_file earlier, before_it;
  if (expected<> result = open_earlier(path, earlier); result.failed() || earlier.get() < 0)
    return result;
  return has_requests(earlier) ? open_earlier(path + ".1", before_it) : expected<>();
}

expected<std::unique_ptr<request_recorder>> request_recorder::create(const std::string &path, const sizes &size,
                                                                     std::uint64_t boot_id,
                                                                     const rt::tick_clock &ticks) {
  if (size.records == 0 || size.records > kMaxRecords)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s: %" PRIu64 " requests, accepted: 1 to %" PRIu64, path.c_str(),
                       size.records, kMaxRecords);
  record_file_head head{};
  head.byte_order = kRecordByteOrder;
  head.version = kRecordVersion;
  head.head_bytes = kRecordHeadBytes;
  head.places = std::bit_ceil(size.records);
  // A longer request or answer is kept in part.
  head.place_bytes =
      std::min((sizeof(record_head) + std::min(size.bytes, kMaxRecordBytes) + 8 + 63) / 64 * 64, kMaxRecordBytes);
  head.boot_id = boot_id;
  head.magic = kRecordMagic;
  head.start_unix_ns =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  const std::uint64_t bytes = head.head_bytes + head.places * head.place_bytes;
  if (is_above_limit(bytes))
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "%s: it needs %" PRIu64 " bytes, more than a file may have here (ulimit "
                       "-f)",
                       path.c_str(), bytes);
  if (expected<> result = keep_earlier(path); result.failed())
    return result.reason();
  open_file file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() < 0)
    return errno == EEXIST ? in_use(path) : refused(path, "it cannot be made", errno);
  if (expected<> result = lock_file(path, file); result.failed()) // the path may be another's, so it stays
    return result.reason();
  const auto give_up = [&](const char *what, int error) {
    ::unlink(path.c_str());
    return refused(path, what, error);
  };
  if (::pwrite(file.get(), &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head))
    return give_up("it cannot be written", errno);
  if (const int error = rt::reserve_bytes(file.get(), bytes); error != 0) {
    const std::string what = std::to_string(bytes) + " bytes cannot be reserved";
    return give_up(what.c_str(), error);
  }
  void *const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file.get(), 0);
  if (at == MAP_FAILED)
    return give_up("it cannot be mapped", errno);
  std::unique_ptr<request_recorder> made(new (std::nothrow)
                                             request_recorder(file.get(), static_cast<std::byte *>(at), head, ticks));
  if (made == nullptr) {
    ::munmap(at, bytes);
    ::unlink(path.c_str());
    throw std::bad_alloc();
  }
  (void)file.release();
  return made;
}

request_recorder::request_recorder(int descriptor, std::byte *begin, const record_file_head &head,
                                   const rt::tick_clock &ticks)
    : descriptor_(descriptor), begin_(begin), mask_(head.places - 1), place_bytes_(head.place_bytes),
      bytes_(head.head_bytes + head.places * head.place_bytes), ticks_(ticks), start_(ticks.now()) {}

request_recorder::~request_recorder() {
  ::munmap(begin_, bytes_);
  ::close(descriptor_);
}

record_head &request_recorder::place(std::uint64_t number) const noexcept {
  return *reinterpret_cast<record_head *>(begin_ + kRecordHeadBytes + (number & mask_) * place_bytes_);
}

void request_recorder::copy(record_head &to, std::uint64_t offset, std::span<const std::uint8_t> from,
                            std::uint32_t &kept) const noexcept {
  const std::uint64_t room = offset < place_bytes_ ? place_bytes_ - offset : 0;
  kept = static_cast<std::uint32_t>(std::min<std::uint64_t>(from.size(), room));
  if (kept != 0)
    std::memcpy(reinterpret_cast<std::byte *>(&to) + offset, from.data(), kept);
}

std::uint64_t request_recorder::add_request(std::uint32_t function_id, std::span<const std::uint8_t> payload,
                                            std::uint32_t request_id, std::uint64_t timestamp,
                                            std::uint64_t arrived) noexcept {
  const std::uint64_t number = next_.add(1);
  record_head &here = place(number);
  const std::uint64_t before = here.mark.load();
  const bool is_in_use = before != 0 && (state_of_mark(before) == record_state::requesting ||
                                         state_of_mark(before) == record_state::answering);
  if (is_in_use || before > mark_of(number, record_state::answered) ||
      !here.mark.claim(before, mark_of(number, record_state::requesting))) {
    reinterpret_cast<record_file_head *>(begin_)->left_out.add();
    return 0;
  }
  here.arrived_ns = ticks_.ns_between(start_, arrived);
  here.timestamp = timestamp;
  here.function_id = function_id;
  here.request_id = request_id;
  here.payload_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(payload.size(), UINT32_MAX));
  here.result_bytes = here.kept_result = 0;
  here.status = 0;
  copy(here, sizeof(record_head), payload, here.kept_payload);
  const std::uint64_t mark = mark_of(number, record_state::requested);
  here.mark.store(mark);
  return mark;
}

bool request_recorder::add_answer(std::uint64_t mark, std::int32_t status,
                                  std::span<const std::uint8_t> result) noexcept {
  if (mark == 0)
    return false;
  const std::uint64_t number = number_of_mark(mark);
  record_head &here = place(number);
  if (!here.mark.claim(mark, mark_of(number, record_state::answering)))
    return false;
  here.status = status;
  here.result_bytes = static_cast<std::uint32_t>(result.size());
  copy(here, result_offset(here.kept_payload), result, here.kept_result);
  return true;
}

void request_recorder::end(const request_moments &m, std::uint64_t answered) noexcept {
  const std::uint64_t number = number_of_mark(m.record);
  record_head &here = place(number);
  const std::array<std::uint64_t, 5> moments{m.accepted, m.queued, m.taken, m.decoded, answered};
  for (std::size_t k = 0; k < moments.size(); ++k)
    here.stage_ns[k] = moments[k] == 0 ? 0 : ticks_.ns_between(m.arrived, moments[k]);
  here.mark.store(mark_of(number, record_state::answered));
}

} // namespace cudaq::qec::realtime
