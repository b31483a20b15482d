// SPDX-License-Identifier: Apache-2.0
// How a client gets its segment: a Unix socket whose name is made from the server's name, one message each way. The
// connection then stays open and carries nothing. The kernel closes it when either process ends, however it ends: this
// is how each side detects the death of the other.
#pragma once

#include "lib/base/descriptor.h"
#include "lib/gpu_memory/exported_memory.h"
#include "lib/transport/shm/shm_layout.h"

#include <cstdint>
#include <span>
#include <string>
#include <sys/un.h>

namespace cudaq::realtime::detail {

inline constexpr std::uint32_t kShmMagic = 0x53514355; // "UCQS" in memory
inline constexpr std::uint32_t kShmVersion = 1;
/// Version of the reply for a ring with requests in the memory of a GPU. Only a client that has said so gets it.
inline constexpr std::uint32_t kShmGpuVersion = 2;
inline constexpr std::size_t kShmLongestName = 64;

struct shm_attach_request {
  std::uint32_t magic = kShmMagic;
  std::uint32_t version = kShmVersion;
  std::uint32_t rings_me = 0; ///< 1: the client sleeps on its bell, so the server rings it after each answer
  /// The newest version of the reply that the client understands. 0, from a client that does not know the field: 1.
  std::uint32_t accepts = kShmGpuVersion;
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

/// The reply of version kShmGpuVersion. A third file is the memory of the requests.
struct shm_gpu_reply {
  shm_attach_reply reply;
  exported_memory requests;
};
inline constexpr std::size_t kShmMaxFiles = 3;
static_assert(sizeof(shm_attach_request) == 16 && sizeof(shm_layout) == 56 && sizeof(shm_attach_reply) == 264 &&
              sizeof(shm_gpu_reply) == 312);

/// A file descriptor that is closed at the end of its life. It is not one of the standard streams.
class file_handle {
public:
  file_handle() = default;
  explicit file_handle(int fd) : fd_(above_standard_streams(fd)) {}
  file_handle(file_handle &&other) noexcept : fd_(other.release()) {}
  file_handle &operator=(file_handle &&other) noexcept {
    reset(other.release());
    return *this;
  }
  ~file_handle() { reset(-1); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1); ///< fd: as that of the constructor
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

private:
  int fd_ = -1;
};

/// Accepts 1 to 64 letters, digits, '.', '_' and '-'; the first one is a letter or a digit.
expected<> check_shm_name(const std::string &name);
/// The path that belongs to a name, with the suffix "sock" or "lock".
std::string shm_path(const std::string &name, const char *suffix);
sockaddr_un shm_address(const std::string &name);

/// The text of an errno value: name the call first.
expected<> system_refused(const std::string &call, int error);

/// Sends one message, with `count` files. False: the peer has closed the connection, or does not read.
bool send_message(int socket, void *message, std::size_t bytes, const int *files = nullptr, std::size_t count = 0);
/// Receives one message of up to `bytes` bytes, and as many files as `files` has room for; further ones are closed.
/// Returns its length; 0: the peer has closed, the message is longer, or nothing has arrived on a socket that does not
/// block.
std::size_t receive_some(int socket, void *message, std::size_t bytes, std::span<file_handle> files);
/// The same for a message of exactly `bytes` bytes. False: it has another length.
inline bool receive_message(int socket, void *message, std::size_t bytes, std::span<file_handle> files) {
  return receive_some(socket, message, bytes, files) == bytes;
}

} // namespace cudaq::realtime::detail
