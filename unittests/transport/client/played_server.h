// SPDX-License-Identifier: Apache-2.0
// A server over UDP that a test plays: it keeps the requests, and answers each as the test says.
#pragma once

#include "cudaq/qec/realtime/decoding_client.h"
#include "unittests/support/eventually.h"
#include "unittests/transport/datagram/udp_peer.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::test {

struct played_request {
  cudaq_rpc_header_t header{};
  bytes frame;
};
struct played_answer {
  std::int32_t status = 0;
  bytes result;
  std::vector<bytes> before{}; ///< datagrams that are sent first
};

class played_server {
public:
  /// `play`: the answer to request `number`, which counts from 0; nothing: none. It runs on a thread of its own.
  using play = std::function<std::optional<played_answer>(const played_request &, std::size_t number)>;

  explicit played_server(play answers, std::uint32_t port = 0, const char *address = "127.0.0.1")
      : play_(std::move(answers)) {
    detail::udp_address local;
    EXPECT_EQ(detail::udp_address_of("address", address, port, local).text(), "");
    EXPECT_EQ(socket_.open(local, 0).text(), "");
    port_ = socket_.port();
    thread_ = std::thread([this] { run(); });
  }
  ~played_server() {
    stop_.store(true);
    thread_.join();
  }
  played_server(const played_server &) = delete;
  played_server &operator=(const played_server &) = delete;

  [[nodiscard]] std::uint16_t port() const { return static_cast<std::uint16_t>(port_); }
  /// Those that have come.
  std::vector<played_request> requests() {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }

private:
  void run() {
    bytes datagram(65536);
    while (!stop_.load()) {
      socket_.wait(true, std::chrono::milliseconds(5));
      detail::udp_address from;
      from.length = sizeof(from.bytes);
      const ssize_t n =
          ::recvfrom(socket_.fd(), datagram.data(), datagram.size(), MSG_DONTWAIT, from.get(), &from.length);
      if (n < static_cast<ssize_t>(sizeof(cudaq_rpc_header_t)))
        continue;
      played_request request;
      request.frame.assign(datagram.begin(), datagram.begin() + n);
      std::memcpy(&request.header, datagram.data(), sizeof(request.header));
      std::size_t number = 0;
      {
        const std::scoped_lock lock(mutex_);
        number = requests_.size();
        requests_.push_back(request);
      }
      const auto answer = play_(request, number);
      if (!answer)
        continue;
      for (const bytes &other : answer->before)
        ::sendto(socket_.fd(), other.data(), other.size(), 0, from.get(), from.length);
      const cudaq_rpc_response_t header{CUDAQ_RPC_MAGIC_RESPONSE, answer->status,
                                        static_cast<std::uint32_t>(answer->result.size()), request.header.request_id,
                                        request.header.ptp_timestamp};
      const auto *const first = reinterpret_cast<const std::uint8_t *>(&header);
      bytes frame(first, first + sizeof(header));
      frame.insert(frame.end(), answer->result.begin(), answer->result.end());
      frame.resize(256);
      ::sendto(socket_.fd(), frame.data(), frame.size(), 0, from.get(), from.length);
    }
  }

  play play_;
  detail::udp_socket socket_;
  std::uint32_t port_ = 0;
  std::mutex mutex_;
  std::vector<played_request> requests_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

inline constexpr std::uint64_t kMs = 1'000'000;
inline constexpr std::uint64_t kLong = 50'000 * kMs; ///< only so that a hang ends

/// The descriptor of the socket that is opened next: the first one of a client that is made after this call.
inline int next_socket() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  ::close(fd);
  return fd;
}

/// Waits until the system has reported to this socket that nothing listens. The report stays.
inline void wait_for_refusal(int fd) {
  pollfd refused{fd, 0, 0};
  EXPECT_EQ(::poll(&refused, 1, 20'000), 1);
  EXPECT_NE(refused.revents & POLLERR, 0);
}

/// A client that closes itself.
class udp_client {
public:
  explicit udp_client(std::uint16_t port, std::uint64_t repeat_after_ns = 20 * kMs, std::uint32_t max_open = 1,
                      const char *host = "127.0.0.1", std::uint64_t patience_ns = 0) {
    cudaq_qec_client_options_t options{};
    options.struct_size = sizeof(options);
    options.max_open = max_open;
    options.repeat_after_ns = repeat_after_ns;
    options.start_patience_ns = patience_ns;
    EXPECT_EQ(cudaq_qec_client_open_udp(&client_, host, port, &options), CUDAQ_OK) << cudaq_qec_client_error();
  }
  ~udp_client() { cudaq_qec_client_close(client_); }
  udp_client(const udp_client &) = delete;
  udp_client &operator=(const udp_client &) = delete;

  cudaq_qec_client_t *get() { return client_; }
  static cudaq_qec_client_request_t request(std::uint32_t function, const bytes &body, std::uint64_t timeout_ns = kLong,
                                            std::uint32_t flags = 0) {
    return {function, flags, nullptr, 0, body.data(), body.size(), timeout_ns};
  }
  cudaq_status_t call(std::uint32_t function, const bytes &body, cudaq_qec_client_answer_t &answer,
                      std::uint64_t timeout_ns = kLong, std::uint32_t flags = 0) {
    const cudaq_qec_client_request_t r = request(function, body, timeout_ns, flags);
    return cudaq_qec_client_call(client_, &r, &answer);
  }

private:
  cudaq_qec_client_t *client_ = nullptr;
};

} // namespace cudaq::realtime::test
