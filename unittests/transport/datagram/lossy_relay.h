// SPDX-License-Identifier: Apache-2.0
// A network between a client and a server that loses, repeats and reorders datagrams, in both directions.
#pragma once

#include "unittests/transport/datagram/udp_peer.h"

#include <atomic>
#include <functional>
#include <random>
#include <thread>

namespace cudaq::realtime::test {

struct relay_faults {
  double lost = 0.01, repeated = 0.01, delayed = 0.01; ///< shares of the datagrams
};

/// From whom to whom a datagram goes.
struct relay_hop {
  detail::udp_address from, to;
};
/// Changes a datagram that arrived over one hop and leaves over the other: its wire may have a checksum of addresses.
using relay_rewrite =
    std::function<void(std::span<std::uint8_t> datagram, const relay_hop &arrived, const relay_hop &leaves)>;

/// Relays between one client and the server, on a thread of its own, until it is destroyed.
class lossy_relay {
public:
  lossy_relay(std::uint32_t server_port, const relay_faults &faults, unsigned seed, relay_rewrite rewrite = {})
      : faults_(faults), random_(seed), rewrite_(std::move(rewrite)) {
    detail::udp_address any;
    EXPECT_EQ(detail::udp_address_of("any", "127.0.0.1", 0, any).text(), "");
    EXPECT_EQ(detail::udp_address_of("server", "127.0.0.1", server_port, server_).text(), "");
    EXPECT_EQ(front_.open(any, 1 << 22).text(), "");
    EXPECT_EQ(back_.open(any, 1 << 22).text(), "");
    EXPECT_EQ(back_.connect(server_).text(), "");
    thread_ = std::thread([this] { run(); });
  }
  ~lossy_relay() {
    stop_.store(true);
    thread_.join();
  }
  lossy_relay(const lossy_relay &) = delete;
  lossy_relay &operator=(const lossy_relay &) = delete;

  std::uint32_t port() const { return front_.port(); }
  /// Other faults from now on.
  void set(double lost) { lost_now_.store(lost); }
  std::uint64_t lost() const { return lost_.load(); }
  std::uint64_t repeated() const { return repeated_.load(); }
  std::uint64_t delayed() const { return delayed_.load(); }

private:
  struct direction {
    bytes held;        ///< a datagram that waits until others have passed it; empty: none
    unsigned left = 0; ///< number of datagrams that pass it before it is sent
  };

  bool chance(double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; }

  void run() {
    std::vector<std::uint8_t> datagram(70000);
    direction there, back;
    while (!stop_.load()) {
      detail::udp_address from;
      from.length = sizeof(from.bytes);
      bool any = false;
      ssize_t n = ::recvfrom(front_.fd(), datagram.data(), datagram.size(), MSG_DONTWAIT, from.get(), &from.length);
      if (n >= 0) {
        client_ = from;
        any = true;
        rewrite({datagram.data(), static_cast<std::size_t>(n)}, true);
        pass({datagram.data(), static_cast<std::size_t>(n)}, there, true);
      }
      n = ::recv(back_.fd(), datagram.data(), datagram.size(), MSG_DONTWAIT);
      if (n >= 0) {
        any = true;
        rewrite({datagram.data(), static_cast<std::size_t>(n)}, false);
        pass({datagram.data(), static_cast<std::size_t>(n)}, back, false);
      }
      if (!any) { // nothing can overtake them any more
        release(there, true);
        release(back, false);
        std::this_thread::yield();
      }
    }
  }
  void rewrite(std::span<std::uint8_t> datagram, bool to_server) {
    if (!rewrite_)
      return;
    const relay_hop with_client = {client_, front_.local()}, with_server = {back_.local(), server_};
    if (to_server)
      rewrite_(datagram, with_client, with_server);
    else
      rewrite_(datagram, {with_server.to, with_server.from}, {with_client.to, with_client.from});
  }
  void pass(std::span<const std::uint8_t> datagram, direction &way, bool to_server) {
    if (chance(lost_now_.load() >= 0 ? lost_now_.load() : faults_.lost)) {
      lost_.fetch_add(1);
      return;
    }
    if (way.held.empty() && chance(faults_.delayed)) {
      way.held.assign(datagram.begin(), datagram.end());
      way.left = 1 + random_() % 8;
      delayed_.fetch_add(1);
      return;
    }
    forward(datagram, to_server);
    if (chance(faults_.repeated)) {
      forward(datagram, to_server);
      repeated_.fetch_add(1);
    }
    if (way.left != 0 && --way.left == 0)
      release(way, to_server);
  }
  void release(direction &way, bool to_server) {
    if (!way.held.empty())
      forward(way.held, to_server);
    way = {};
  }
  void forward(std::span<const std::uint8_t> datagram, bool to_server) {
    if (to_server)
      ::send(back_.fd(), datagram.data(), datagram.size(), MSG_NOSIGNAL);
    else
      ::sendto(front_.fd(), datagram.data(), datagram.size(), MSG_NOSIGNAL, client_.get(), client_.length);
  }

  const relay_faults faults_;
  std::mt19937 random_;
  const relay_rewrite rewrite_;
  detail::udp_socket front_, back_;
  detail::udp_address client_, server_;
  std::atomic<double> lost_now_{-1};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> lost_{0}, repeated_{0}, delayed_{0};
  std::thread thread_;
};

} // namespace cudaq::realtime::test
