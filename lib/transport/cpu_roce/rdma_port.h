// SPDX-License-Identifier: Apache-2.0
// What the provider needs of an RDMA adapter: queue pairs over the registered memory of a ring. ibverbs_port.cpp makes
// it of libibverbs; a test makes it of memory.
#pragma once

#include "lib/base/error_text.h"

#include <cstdint>
#include <memory>
#include <span>

namespace cudaq::realtime::detail {

/// Where the other side is.
struct rdma_peer {
  std::uint32_t qp = 0;      ///< number of its queue pair
  std::uint32_t address = 0; ///< IPv4: 10.0.0.2 is 0x0A000002
};

struct rdma_completion {
  enum class kind : std::uint8_t {
    request, ///< a write with immediate has arrived, and has taken a receive
    sent,    ///< the oldest frame that was posted and has not completed
    failed   ///< the queue pair is in an error state; its other completions mean nothing
  };
  kind what = kind::request;
  std::uint32_t immediate = 0;
  std::uint32_t bytes = 0;      ///< of the write
  const char *reason = nullptr; ///< failed: a text of static duration
};

/// One queue pair and its completions. One thread uses it at a time, except that halt may come from another one.
class rdma_queue_pair {
public:
  virtual ~rdma_queue_pair() = default;

  /// Receives and sends from now on, and is connected with the peer. `receives` receives are posted before the first
  /// message can arrive. May be called again, for the same or another peer: everything before is forgotten. May wait
  /// for the network.
  virtual expected<> start(const rdma_peer &peer, std::uint32_t receives) = 0;
  /// After it, the peer writes nothing more.
  virtual void halt() = 0;
  /// Its number, which the peer must know.
  virtual std::uint32_t number() const = 0;

  // --- none of these waits ---
  /// Another message with immediate may arrive. False: the adapter refused.
  virtual bool post_receive() = 0;
  /// Sends a frame of the size that the port was opened for, from the port's memory. A completion of the kind `sent`
  /// follows. False: the adapter refused.
  virtual bool post_send(const std::uint8_t *frame) = 0;
  /// The completions so far, in order. Returns their number.
  virtual std::uint32_t poll(std::span<rdma_completion> out) = 0;
};

class rdma_port {
public:
  virtual ~rdma_port() = default;
  /// A queue pair with a number that none of the last ones had.
  virtual expected<> make_queue_pair(std::unique_ptr<rdma_queue_pair> &out) = 0;
  /// The key of the requests' memory, which peers see from address 0 on.
  virtual std::uint32_t rkey() const = 0;
  /// The MTU in use: the smaller one of the option's and of the network's.
  virtual std::uint32_t mtu() const = 0;
};

/// The memory that a port registers.
struct rdma_memory {
  std::span<std::uint8_t> requests; ///< the peer writes it
  std::span<std::uint8_t> answers;  ///< frames are sent from here
  std::span<std::uint8_t> refusals; ///< and from here
};

struct rdma_port_options {
  std::string device;
  std::uint32_t ib_port = 1;
  std::uint32_t address = 0; ///< of this side, as rdma_peer::address
  bool reliable = false;     ///< RC, otherwise UC
  std::uint32_t mtu = 4096;
  std::uint32_t frame_size = 0;          ///< of the frames that are sent
  std::uint32_t receives = 0, sends = 0; ///< most that are posted at the same time
};

} // namespace cudaq::realtime::detail
