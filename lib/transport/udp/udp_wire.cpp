// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/udp/udp_wire.h"

#include "lib/transport/datagram/udp_socket.h"

#include <vector>

namespace cudaq::realtime::detail {
namespace {

class udp_receiver final : public frame_receiver {
public:
  int receive(const udp_socket &socket, std::uint32_t max_count) override { return batch_.receive(socket, max_count); }
  received_frame frame(std::uint32_t i) override { return {&batch_.from(i), batch_.bytes(i), batch_.cut(i)}; }
  std::uint32_t dropped_by_system() override { return batch_.dropped_by_system(); }

private:
  receive_batch batch_{targets_};
};

/// Datagrams of one size: a frame, then zeros.
class udp_sender final : public frame_sender {
public:
  explicit udp_sender(std::uint32_t slot_size) : zeros_(slot_size) {
    for (std::uint32_t i = 0; i < kUdpBatch; ++i) {
      msghdr &header = messages_[i].msg_hdr;
      header.msg_name = &to_[i].bytes;
      header.msg_iov = parts_[i].data();
      header.msg_iovlen = 2;
    }
  }
  udp_sender(const udp_sender &) = delete;
  udp_sender &operator=(const udp_sender &) = delete;

  std::uint32_t count() const override { return count_; }
  void add(const udp_address &to, std::span<std::uint8_t> frame) override {
    to_[count_] = to;
    messages_[count_].msg_hdr.msg_namelen = to.length;
    parts_[count_][0] = {frame.data(), frame.size()};
    parts_[count_][1] = {zeros_.data(), zeros_.size() - frame.size()};
    ++count_;
  }
  result flush(const udp_socket &socket) override {
    const result r = send_messages(socket, {messages_.data(), count_});
    count_ = 0;
    return r;
  }

private:
  std::array<mmsghdr, kUdpBatch> messages_{};
  std::array<std::array<iovec, 2>, kUdpBatch> parts_{};
  std::array<udp_address, kUdpBatch> to_{};
  std::uint32_t count_ = 0;
  std::vector<std::uint8_t> zeros_;
};

class udp_wire final : public datagram_wire {
public:
  explicit udp_wire(std::uint32_t slot_size) : slot_size_(slot_size) {}
  expected<> prepare(udp_socket &) override { return {}; }
  std::unique_ptr<frame_receiver> make_receiver() override { return std::make_unique<udp_receiver>(); }
  std::unique_ptr<frame_sender> make_sender() override { return std::make_unique<udp_sender>(slot_size_); }

private:
  const std::uint32_t slot_size_;
};

} // namespace

std::unique_ptr<datagram_wire> make_udp_wire(std::uint32_t slot_size) { return std::make_unique<udp_wire>(slot_size); }

} // namespace cudaq::realtime::detail
