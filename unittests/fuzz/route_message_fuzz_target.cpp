// SPDX-License-Identifier: Apache-2.0
// Messages between a router and a node, of a peer that sends anything: each request that was submitted to the router
// gets exactly one answer, and a node gives each request that it takes back once.
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "lib/transport/route/node_sessions.h"
#include "lib/transport/route/request_router.h"
#include "unittests/fuzz/fuzz_input.h"

#include <vector>

namespace {

using namespace cudaq::realtime::detail;
using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;

constexpr std::uint32_t kEntries = 8, kSlots = 4, kSlotSize = 64, kFunction = 5, kReset = 6;
constexpr std::uint8_t kPayload[] = {1, 0, 0, 0, 0, 0, 0, 0, 9};

/// The router of a node that the input plays.
class fuzzed_router final : public router_port {
public:
  fuzzed_router() : router_(table(), limits(), static_cast<router_port &>(*this)) {}
  bool connect(std::uint32_t) override { return true; }
  void disconnect(std::uint32_t) override {}
  void send(std::uint32_t, const route_header &header, std::span<const std::uint8_t> payload) override {
    require(header.length == payload.size(), "the length of a message");
    last_ = header;
  }
  void answer(std::uint32_t entry, std::int32_t status, std::span<const std::uint8_t>) override {
    require(status != CUDAQ_HOST_CALL_DEFERRED, "an answer ends the request");
    require(entry < kEntries && open_[entry], "one answer");
    open_[entry] = false;
  }
  void state_changed(std::uint32_t, node_state) override {}

  void step(fuzz_input &input) {
    const auto what = input.take<std::uint8_t>();
    now_ += std::chrono::milliseconds(what >> 3);
    if (const std::uint32_t entry = what % kEntries; what % 3 == 0 && !open_[entry]) {
      open_[entry] = true;
      router_.submit(entry, what % 2 == 0 ? kFunction : kReset, kPayload, 0, now_);
    }
    router_.received({}, message(input), now_);
    router_.tick(now_);
  }
  void end() {
    router_.send_bye();
    router_.leave(now_);
    require(router_.idle(), "no request is open at the end");
    for (const bool open : open_)
      require(!open, "each request has its answer");
  }
  /// The header that the router has sent last, changed by the input, and a payload.
  std::vector<std::uint8_t> message(fuzz_input &input) {
    route_header header = last_;
    const auto changes = input.take<std::uint8_t>();
    header.kind = static_cast<route_kind>(input.take<std::uint8_t>() % 10);
    if ((changes & 1) != 0)
      header.slot = input.take<std::uint32_t>() % 16;
    if ((changes & 2) != 0)
      header.generation = input.take<std::uint16_t>();
    if ((changes & 4) != 0)
      header.epoch = input.take<std::uint16_t>() % 8;
    if ((changes & 8) != 0)
      header.function_id = input.take<std::uint32_t>();
    if ((changes & 16) != 0) {
      const auto status = input.take<std::uint8_t>();
      header.status = status == UINT8_MAX ? INT32_MIN : status % 3;
    }
    const auto payload = input.bytes(std::size_t{changes} >> 5 << 4);
    header.length = static_cast<std::uint32_t>(payload.size());
    const auto *const begin = reinterpret_cast<const std::uint8_t *>(&header);
    std::vector<std::uint8_t> made(begin, begin + sizeof header);
    made.insert(made.end(), payload.begin(), payload.end());
    return made;
  }

private:
  static route_table table() {
    return {1, {{kFunction, true, 0, false, true}, {kReset, true, 0, true, true}}, {{1, 0}}};
  }
  static router_limits limits() {
    router_limits chosen;
    chosen.num_entries = kEntries;
    chosen.draw = [next = std::uint64_t{0}]() mutable { return ++next; };
    chosen.max_credits = 3;
    chosen.queue_length = 2;
    chosen.answer_limit = std::chrono::milliseconds(500);
    return chosen;
  }
  request_router::time now_{};
  route_header last_{};
  bool open_[kEntries] = {};
  request_router router_;
};

/// The node of routers that the input plays.
class fuzzed_node final : public node_port {
public:
  fuzzed_node() : sessions_({kSlots, kSlotSize, 2, std::chrono::seconds(1)}, ring(), static_cast<node_port &>(*this)) {}
  void send(std::uint64_t, const route_header &header, std::span<const std::uint8_t> payload) override {
    require(header.length == payload.size(), "the length of a message");
  }
  void close(std::uint64_t) override {}

  void step(fuzz_input &input, const std::vector<std::uint8_t> &message) {
    const auto what = input.take<std::uint8_t>();
    now_ += std::chrono::milliseconds(what);
    if (what % 5 == 0)
      sessions_.connected(what % 4 + 1, now_);
    if (what % 7 == 0)
      sessions_.disconnected(what % 4 + 1);
    sessions_.received(what % 3, message, now_);
    std::uint32_t slot = 0;
    if (what % 2 == 0 && sessions_.take(slot)) {
      require(slot < kSlots && !taken_[slot], "a slot is taken once");
      taken_[slot] = true;
    }
    if (const std::uint32_t done = what % kSlots; what % 3 == 0) {
      std::memset(tx_ + done * kSlotSize, what, kSlotSize);
      require(sessions_.publish(done) == taken_[done], "exactly a taken slot is published");
      taken_[done] = false;
    }
    sessions_.tick(now_);
  }
  void end() { sessions_.close(); }

private:
  cudaq_ringbuffer_t ring() {
    cudaq_ringbuffer_t made{};
    made.rx_data_host = rx_;
    made.tx_data_host = tx_;
    made.rx_flags_host = flags_;
    made.rx_stride_sz = made.tx_stride_sz = kSlotSize;
    return made;
  }
  std::uint8_t rx_[kSlots * kSlotSize] = {}, tx_[kSlots * kSlotSize] = {};
  std::uint64_t flags_[kSlots] = {};
  bool taken_[kSlots] = {};
  node_sessions::time now_{};
  node_sessions sessions_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  fuzzed_router router;
  fuzzed_node node;
  while (!input.empty()) {
    router.step(input);
    node.step(input, router.message(input));
  }
  router.end();
  node.end();
  return 0;
}
