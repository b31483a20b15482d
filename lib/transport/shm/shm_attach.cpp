// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/shm/shm_attach.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace cudaq::realtime::detail {

void file_handle::reset(int fd) {
  if (fd_ >= 0)
    ::close(fd_);
  fd_ = above_standard_streams(fd);
}

expected<> check_shm_name(const std::string &name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 && c < 0x80; };
  const auto accepted = [&](unsigned char c) { return plain(c) || c == '.' || c == '_' || c == '-'; };
  if (name.empty() || name.size() > kShmLongestName || !plain(static_cast<unsigned char>(name[0])) ||
      !std::all_of(name.begin(), name.end(), accepted))
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "name is '%.80s': accepted are 1 to %zu letters, digits, '.', '_' and '-', beginning with a "
                       "letter or a digit",
                       name.c_str(), kShmLongestName);
  return {};
}

std::string shm_path(const std::string &name, const char *suffix) {
  return "/dev/shm/cudaq-realtime-" + name + "." + suffix;
}

sockaddr_un shm_address(const std::string &name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = shm_path(name, "sock"); // at most 93 characters
  std::memcpy(address.sun_path, path.c_str(), std::min(path.size() + 1, sizeof(address.sun_path) - 1));
  return address;
}

expected<> system_refused(const std::string &call, int error) {
  return {CUDAQ_ERR_INTERNAL, call + ": " + std::generic_category().message(error)};
}

namespace {

union control_buffer {
  cmsghdr header;
  char bytes[CMSG_SPACE(kShmMaxFiles * sizeof(int))];
};

} // namespace

bool send_message(int socket, void *message, std::size_t bytes, const int *files, std::size_t count) {
  iovec part{message, bytes};
  msghdr m{};
  m.msg_iov = &part, m.msg_iovlen = 1;
  control_buffer control{};
  if (count != 0) {
    m.msg_control = control.bytes, m.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr *head = CMSG_FIRSTHDR(&m);
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(head), files, count * sizeof(int));
  }
  ssize_t sent = 0;
  do
    sent = ::sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes);
}

std::size_t receive_some(int socket, void *message, std::size_t bytes, std::span<file_handle> files) {
  iovec part{message, bytes};
  msghdr m{};
  m.msg_iov = &part, m.msg_iovlen = 1;
  control_buffer control{};
  // CMSG_LEN, not CMSG_SPACE: in the padding the kernel would pass one descriptor more.
  m.msg_control = control.bytes, m.msg_controllen = CMSG_LEN(kShmMaxFiles * sizeof(int));
  ssize_t got = 0;
  do
    got = ::recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    return 0;
  for (cmsghdr *head = CMSG_FIRSTHDR(&m); head != nullptr; head = CMSG_NXTHDR(&m, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
      continue;
    int fds[kShmMaxFiles] = {};
    const std::size_t count = std::min((head->cmsg_len - CMSG_LEN(0)) / sizeof(int), kShmMaxFiles);
    std::memcpy(fds, CMSG_DATA(head), count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) {
      file_handle file(fds[i]);
      if (i < files.size())
        files[i] = std::move(file);
    }
  }
  return (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 ? static_cast<std::size_t>(got) : 0;
}

} // namespace cudaq::realtime::detail
