// SPDX-License-Identifier: Apache-2.0
// A dispatcher of a shared ring beside one that its manager does not know: a dispatcher of another manager, or a kernel
// that the program has launched itself. Programs of the existing system are of this form, and give one table, with the
// entries of host and device, to both.
#include "unittests/support/host_fixture.h"

namespace cudaq::realtime::test {
namespace {

constexpr std::uint32_t kHere = 0x11, kOutside = 0x22, kSlotBytes = 64, kRequests = 400;

void answer(const void *rx_slot, void *tx_slot, std::uint32_t add) {
  cudaq_rpc_header_t request;
  std::uint32_t word = 0;
  std::memcpy(&request, rx_slot, sizeof(request));
  std::memcpy(&word, static_cast<const std::uint8_t *>(rx_slot) + sizeof(request), sizeof(word));
  word += add;
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, 0, sizeof(word), request.request_id,
                                      request.ptp_timestamp};
  std::memcpy(tx_slot, &response, sizeof(response));
  std::memcpy(static_cast<std::uint8_t *>(tx_slot) + sizeof(response), &word, sizeof(word));
}
void answer_here(const void *rx_slot, void *tx_slot, std::size_t) { answer(rx_slot, tx_slot, 1); }
void answer_outside(const void *rx_slot, void *tx_slot, std::size_t) { answer(rx_slot, tx_slot, 1000); }

/// Memory of the program: a ring of the library notices two managers, and refuses the second.
struct program_ring {
  explicit program_ring(std::uint32_t slots)
      : rx_flags(slots), tx_flags(slots), rx(slots * kSlotBytes / 8), tx(slots * kSlotBytes / 8) {
    ring.rx_flags_host = rx_flags.data(), ring.tx_flags_host = tx_flags.data();
    ring.rx_data_host = reinterpret_cast<std::uint8_t *>(rx.data());
    ring.tx_data_host = reinterpret_cast<std::uint8_t *>(tx.data());
    ring.rx_stride_sz = ring.tx_stride_sz = kSlotBytes;
  }
  std::vector<std::uint64_t> rx_flags, tx_flags, rx, tx;
  cudaq_ringbuffer_t ring{};
};

/// A dispatcher with a manager of its own. Its table has an entry of the function outside, too, in a mode that it does
/// not serve.
class lone_member {
public:
  lone_member(const cudaq_ringbuffer_t &ring, std::uint32_t slots, std::uint32_t function, cudaq_host_rpc_fn_t handler,
              std::uint32_t other) {
    entries_[0].function_id = function;
    entries_[0].dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    entries_[0].handler.host_fn = handler;
    entries_[1].function_id = other;
    entries_[1].dispatch_mode = CUDAQ_DISPATCH_DEVICE_CALL;
    cudaq_dispatcher_config_t config = host_config({slots, kSlotBytes, false});
    config.shared_ring_mode = 1;
    const cudaq_function_table_t table{entries_, 2};
    const cudaq_dispatcher_options_t options = default_options();
    CUDAQ_EXPECT_OK(cudaq_dispatch_manager_create(&manager_));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager_, &config, &dispatcher_));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_options(dispatcher_, &options));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_ringbuffer(dispatcher_, &ring));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_function_table(dispatcher_, &table));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_set_control(dispatcher_, &shutdown_, &stats_));
    CUDAQ_EXPECT_OK(cudaq_dispatcher_start(dispatcher_));
  }
  ~lone_member() {
    CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(dispatcher_));
    CUDAQ_EXPECT_OK(cudaq_dispatch_manager_destroy(manager_));
  }
  lone_member(const lone_member &) = delete;
  lone_member &operator=(const lone_member &) = delete;
  std::string dump() const {
    std::string text(4096, '\0');
    std::size_t length = 0;
    CUDAQ_EXPECT_OK(cudaq_dispatcher_dump_state(dispatcher_, text.data(), text.size(), &length));
    return text.c_str();
  }

private:
  cudaq_dispatch_manager_t *manager_ = nullptr;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  cudaq_function_entry_t entries_[2]{};
  volatile int shutdown_ = 0;
  std::uint64_t stats_ = 0;
};

struct flavour {
  const char *name;
  std::uint32_t slots;     ///< an odd number: a slot has another function in each lap
  bool one_number = false; ///< requests of one function have equal headers
  std::uint32_t batch = 1; ///< requests that are sent before one is collected
};
void PrintTo(const flavour &f, std::ostream *out) { *out << f.name; }

class OutsideDispatcher : public ::testing::TestWithParam<flavour> {
protected:
  static std::uint32_t function_of(std::uint32_t n) { return n % 2 == 0 ? kHere : kOutside; }
  void send(const cudaq_ringbuffer_t &ring, std::uint32_t n) const {
    const std::uint32_t slot = n % GetParam().slots;
    ASSERT_EQ(cudaq_host_ringbuffer_slot_available(&ring, slot), 1);
    CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&ring, slot, function_of(n), &n, sizeof(n),
                                                            GetParam().one_number ? 0 : n, 0));
    cudaq_host_ringbuffer_signal_slot(&ring, slot);
  }
  void collect(const cudaq_ringbuffer_t &ring, std::uint32_t n, const lone_member &member) const {
    const std::uint32_t slot = n % GetParam().slots;
    ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr) == CUDAQ_TX_READY; }))
        << "request " << n << " in slot " << slot << "\n"
        << member.dump();
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result));
    ASSERT_EQ(header.status, 0) << "request " << n;
    ASSERT_EQ(header.result_len, sizeof(std::uint32_t));
    std::uint32_t word = 0;
    std::memcpy(&word, result, sizeof(word));
    ASSERT_EQ(word, n + (n % 2 == 0 ? 1 : 1000));
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
    ASSERT_TRUE(eventually([&] { return cudaq_host_ringbuffer_slot_available(&ring, slot) == 1; }));
  }
  void exchange(const cudaq_ringbuffer_t &ring, const lone_member &member) const {
    for (std::uint32_t n = 0; n < kRequests && !HasFatalFailure(); n += GetParam().batch) {
      for (std::uint32_t k = 0; k < GetParam().batch && !HasFatalFailure(); ++k)
        send(ring, n + k);
      for (std::uint32_t k = 0; k < GetParam().batch && !HasFatalFailure(); ++k)
        collect(ring, n + k, member);
    }
  }
};

TEST_P(OutsideDispatcher, OfAnotherManagerGetsTheRequestsOfItsFunction) {
  const program_ring memory(GetParam().slots);
  const lone_member here(memory.ring, GetParam().slots, kHere, answer_here, kOutside);
  const lone_member outside(memory.ring, GetParam().slots, kOutside, answer_outside, kHere);
  exchange(memory.ring, here);
}

INSTANTIATE_TEST_SUITE_P(Flavours, OutsideDispatcher,
                         ::testing::Values(flavour{"SevenSlots", 7}, flavour{"EightSlots", 8}, flavour{"OneSlot", 1},
                                           flavour{"EqualHeaders", 8, true}, flavour{"Batches", 8, false, 8},
                                           flavour{"BatchesOfEqualHeaders", 8, true, 8}),
                         [](const auto &tested) { return std::string(tested.param.name); });

TEST(OutsideDispatcherAlone, ARequestInAModeThatNoMemberServesWaitsForTheDispatcherOutside) {
  const program_ring memory(4);
  const lone_member here(memory.ring, 4, kHere, answer_here, kOutside);
  const std::uint32_t word = 5;
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    CUDAQ_ASSERT_OK(cudaq_host_ringbuffer_write_rpc_request(&memory.ring, slot, slot == 0 ? kOutside : kHere, &word,
                                                            sizeof(word), slot, 0));
    cudaq_host_ringbuffer_signal_slot(&memory.ring, slot);
  }
  ASSERT_TRUE(
      eventually([&] { return cudaq_host_ringbuffer_poll_tx_flag(&memory.ring, 1, nullptr) == CUDAQ_TX_READY; }));
  EXPECT_EQ(cudaq_host_ringbuffer_poll_tx_flag(&memory.ring, 0, nullptr), CUDAQ_TX_EMPTY) << "not MODE_NOT_SERVED";
  EXPECT_EQ(cudaq_host_ringbuffer_slot_available(&memory.ring, 0), 0);
}

} // namespace
} // namespace cudaq::realtime::test
