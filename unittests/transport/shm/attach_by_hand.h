// SPDX-License-Identifier: Apache-2.0
// Both ends of the attach protocol as tests play them: a client that sends what it wants, and a server that lies.
#pragma once

#include "lib/transport/shm/shm_attach.h"

#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>

namespace cudaq::realtime::test {

using detail::file_handle;

/// A connection to the server.
inline file_handle connected(const std::string &name) {
  file_handle socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = detail::shm_address(name);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
  return socket;
}

/// The server's reply to the request, and its files.
inline detail::shm_attach_reply attach_by_hand(const file_handle &socket, std::span<file_handle> files,
                                               detail::shm_attach_request request = {}) {
  detail::shm_attach_reply reply{};
  EXPECT_TRUE(detail::send_message(socket.get(), &request, sizeof(request)));
  EXPECT_TRUE(detail::receive_message(socket.get(), &reply, sizeof(reply), files));
  return reply;
}

/// What one client gets.
struct attach_answer {
  detail::shm_attach_reply reply;
  std::size_t bytes = sizeof(detail::shm_attach_reply);
  std::uint64_t segment_bytes = 0, bell_bytes = 0;
  std::size_t files = 2;
  int seals = F_SEAL_SHRINK;
  detail::exported_memory requests{}; ///< in the longer reply
  std::uint64_t gpu_bytes = 0;        ///< of the third file; 0: it is the segment
};

inline attach_answer honest_answer() {
  attach_answer what;
  what.reply.layout = detail::make_shm_layout(4, 64, detail::shm_page(false));
  what.segment_bytes = what.reply.layout.bytes;
  what.bell_bytes = detail::shm_page(false);
  return what;
}

/// Its requests are in the memory of a "GPU", the third file: what the double of shm_gpu_double.cpp imports.
inline attach_answer honest_answer_on_gpu(std::uint32_t slot_size = 64) {
  attach_answer what = honest_answer();
  what.reply.version = detail::kShmGpuVersion;
  what.reply.layout = detail::make_gpu_layout(4, slot_size, detail::shm_page(false));
  what.segment_bytes = what.reply.layout.bytes;
  what.requests.bytes = what.gpu_bytes = detail::gpu_bytes(what.reply.layout);
  std::memcpy(what.requests.device_uuid, "a double", 8);
  what.bytes = sizeof(detail::shm_gpu_reply);
  what.files = 3;
  return what;
}

/// Serves one client after the other. The functions are called by its thread.
class lying_server {
public:
  lying_server(const std::string &name, std::function<attach_answer()> next,
               std::function<void(std::uint8_t *segment, std::uint8_t *gpu, const detail::shm_layout &)> use = {})
      : path_(detail::shm_path(name, "sock")), next_(std::move(next)), use_(std::move(use)),
        listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = detail::shm_address(name);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~lying_server() {
    ends_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::unlink(path_.c_str());
  }
  lying_server(const lying_server &) = delete;
  lying_server &operator=(const lying_server &) = delete;

private:
  static file_handle sealed_file(std::uint64_t bytes, int seals) {
    file_handle file(::memfd_create("lying", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
  }
  void serve() {
    while (!ends_) {
      const file_handle client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      detail::shm_attach_request request;
      if (!client || !detail::receive_message(client.get(), &request, sizeof(request), {}))
        continue;
      attach_answer what = next_();
      const file_handle segment = sealed_file(what.segment_bytes, what.seals),
                        bell = sealed_file(what.bell_bytes, what.seals);
      const file_handle gpu = what.gpu_bytes != 0 ? sealed_file(what.gpu_bytes, what.seals) : file_handle();
      const int files[] = {segment.get(), bell.get(), gpu ? gpu.get() : segment.get()};
      detail::shm_gpu_reply whole{what.reply, what.requests};
      (void)detail::send_message(client.get(), &whole, what.bytes, files, what.files);
      if (!use_)
        continue;
      void *const at = ::mmap(nullptr, what.segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
      void *const on_gpu =
          gpu ? ::mmap(nullptr, what.gpu_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, gpu.get(), 0) : nullptr;
      char byte = 0;
      while (!ends_ && ::recv(client.get(), &byte, 1, MSG_DONTWAIT) < 0)
        use_(static_cast<std::uint8_t *>(at), static_cast<std::uint8_t *>(on_gpu), what.reply.layout);
      ::munmap(at, what.segment_bytes);
      if (gpu)
        ::munmap(on_gpu, what.gpu_bytes);
    }
  }

  const std::string path_;
  const std::function<attach_answer()> next_;
  const std::function<void(std::uint8_t *, std::uint8_t *, const detail::shm_layout &)> use_;
  const file_handle listener_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

} // namespace cudaq::realtime::test
