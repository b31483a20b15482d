// SPDX-License-Identifier: Apache-2.0
// How a client gets its segment: a Unix socket whose name is made from the server's name, one message each way. The
// connection then stays open and carries nothing. The kernel closes it when either process ends, however it ends: this
// is how each side detects the death of the other.
#pragma once

#include "lib/base/error_text.h"
#include "lib/transport/shm/shm_layout.h"

#include <cstdint>
#include <string>
#include <sys/un.h>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kShmMagic = 0x53514355; // "UCQS" in memory
inline constexpr std::uint32_t kShmVersion = 1;
inline constexpr std::size_t kShmLongestName = 64;

struct shm_attach_request {
  std::uint32_t magic = kShmMagic;
  std::uint32_t version = kShmVersion;
  std::uint32_t rings_me = 0; ///< 1: the client sleeps on its bell, so the server rings it after each answer
  std::uint32_t reserved = 0;
};

/// With status 0 it carries two files: the segment, and the memory of the server's bell.
struct shm_attach_reply {
  std::uint32_t magic = kShmMagic;
  std::uint32_t version = kShmVersion;
  std::int32_t status = 0;        ///< a cudaq_status_t
  std::uint32_t server_waits = 0; ///< 1: the server sleeps on its bell, so the client rings it after each request
  shm_layout layout;
  char text[192] = {}; ///< the reason of a refusal
};

/// A file descriptor that is closed at the end of its life.
class file_handle {
public:
  file_handle() = default;
  explicit file_handle(int fd) : fd_(fd) {}
  file_handle(file_handle &&other) noexcept : fd_(other.release()) {}
  file_handle &operator=(file_handle &&other) noexcept {
    reset(other.release());
    return *this;
  }
  ~file_handle() { reset(-1); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1);
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

private:
  int fd_ = -1;
};

/// Accepts 1 to 64 letters, digits, '.', '_' and '-'; the first one is a letter or a digit.
status_or_reason check_shm_name(const std::string &name);
/// The path that belongs to a name, with the suffix "sock" or "lock".
std::string shm_path(const std::string &name, const char *suffix);
sockaddr_un shm_address(const std::string &name);

/// The text of an errno value: name the call first.
status_or_reason system_refused(const std::string &call, int error);

/// Sends one message, with `count` files. False: the peer is gone, or does not read.
bool send_message(int socket, void *message, std::size_t bytes, const int *files = nullptr, std::size_t count = 0);
/// Receives one message of exactly `bytes` bytes, and up to two files. False: the peer is gone, the message has another
/// length, or nothing has arrived on a socket that does not block.
bool receive_message(int socket, void *message, std::size_t bytes, file_handle files[2]);

} // namespace cudaq::realtime::detail
