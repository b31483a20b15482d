// SPDX-License-Identifier: Apache-2.0
// The parts that all scripts have: a manager, a ring, dispatchers with their control words, and requests.
#pragma once

#include "unittests/fault_injection/fault_sweep.h"

namespace cudaq::realtime::test {

inline constexpr std::uint32_t kSlots = 4, kSlotBytes = 128;
inline constexpr std::chrono::microseconds kNap{20}; ///< between two looks of all threads: tests share few cores

inline cudaq_dispatcher_options_t sleeping_options() {
  cudaq_dispatcher_options_t options = default_options();
  options.wait_policy = CUDAQ_WAIT_BLOCK;
  options.block_interval_ns = std::chrono::nanoseconds(kNap).count();
  options.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER;
  return options;
}

/// Waits until `done` holds. False: the deadline has passed.
template <class Done>
bool soon(Done &&done) {
  return eventually([&] {
    if (done())
      return true;
    std::this_thread::sleep_for(kNap);
    return false;
  });
}

class dispatch_script : public script {
public:
  struct member {
    cudaq_dispatcher_t *get = nullptr;
    volatile int *flag = nullptr;
    std::uint64_t *stats = nullptr;
  };

  explicit dispatch_script(std::uint32_t dispatchers, cudaMemoryType control_words = cudaMemoryTypeHost)
      : members(dispatchers) {
    cudaq_ringbuffer_options_init(&ring_options, sizeof(ring_options));
    ring_options.num_slots = kSlots;
    ring_options.slot_size = kSlotBytes;
    words_ = static_cast<std::uint64_t *>(fake_cuda::allocate(2 * dispatchers * sizeof(std::uint64_t), control_words));
    for (std::uint32_t m = 0; m < dispatchers; ++m) {
      members[m].flag = reinterpret_cast<volatile int *>(words_ + 2 * m);
      members[m].stats = words_ + 2 * m + 1;
      *members[m].flag = 5; // a failed start leaves it so
    }
  }
  /// Objects are left only if a run has failed.
  ~dispatch_script() override {
    for (const member &m : members)
      if (m.get != nullptr)
        (void)cudaq_dispatcher_destroy(m.get);
    if (memory != nullptr)
      (void)cudaq_ringbuffer_destroy(memory);
    if (manager != nullptr)
      (void)cudaq_dispatch_manager_destroy(manager);
    fake_cuda::release(words_);
  }

  std::string snapshot() override {
    std::string text = std::to_string(manager != nullptr) + std::to_string(memory != nullptr);
    text += " ring " + std::to_string(ring.rx_stride_sz);
    for (const member &m : members)
      text += m.get == nullptr ? "; no dispatcher" : "; " + describe(m);
    int device = -1;
    cudaGetDevice(&device);
    return text + "; current device " + std::to_string(device) + ", capture mode " +
           std::to_string(fake_cuda::capture_mode());
  }

protected:
  using status = cudaq_status_t;

  template <class T>
  static status forget(T *&object, status (*end)(T *)) {
    const status result = end(object);
    if (result == CUDAQ_OK)
      object = nullptr;
    return result;
  }

  step make_manager() {
    return {"cudaq_dispatch_manager_create", [this] { return cudaq_dispatch_manager_create(&manager); }};
  }
  step make_ring() {
    return {"cudaq_ringbuffer_create", [this] { return cudaq_ringbuffer_create(&ring_options, &memory, &ring); }};
  }
  step make_dispatcher(std::uint32_t m, const cudaq_dispatcher_config_t &config) {
    return {"cudaq_dispatcher_create",
            [this, m, config] { return cudaq_dispatcher_create(manager, &config, &members[m].get); }};
  }
  step set_ring(std::uint32_t m) {
    return {"cudaq_dispatcher_set_ringbuffer", [this, m] {
              const status result = cudaq_dispatcher_set_ringbuffer(members[m].get, &ring);
              next_slot_ = result == CUDAQ_OK ? 0 : next_slot_;
              return result;
            }};
  }
  step set_table(std::uint32_t m, const cudaq_function_table_t &table) {
    return {"cudaq_dispatcher_set_function_table",
            [this, m, table] { return cudaq_dispatcher_set_function_table(members[m].get, &table); }};
  }
  step set_control(std::uint32_t m) {
    return {"cudaq_dispatcher_set_control",
            [this, m] { return cudaq_dispatcher_set_control(members[m].get, members[m].flag, members[m].stats); }};
  }
  step set_options(std::uint32_t m, const cudaq_dispatcher_options_t &options) {
    return {"cudaq_dispatcher_set_options",
            [this, m, options] { return cudaq_dispatcher_set_options(members[m].get, &options); }};
  }
  step start(std::uint32_t m) {
    return {"cudaq_dispatcher_start", [this, m] { return cudaq_dispatcher_start(members[m].get); }};
  }
  step stop(std::uint32_t m) {
    return {"cudaq_dispatcher_stop", [this, m] { return cudaq_dispatcher_stop(members[m].get); }, promise::succeeds};
  }
  step stop_timeout(std::uint32_t m) {
    return {"cudaq_dispatcher_stop_timeout",
            [this, m] { return cudaq_dispatcher_stop_timeout(members[m].get, 5'000'000'000); }, promise::succeeds};
  }
  step destroy(std::uint32_t m) {
    return {"cudaq_dispatcher_destroy", [this, m] { return forget(members[m].get, cudaq_dispatcher_destroy); },
            promise::succeeds};
  }
  step destroy_ring() {
    return {"cudaq_ringbuffer_destroy", [this] { return forget(memory, cudaq_ringbuffer_destroy); }};
  }
  step destroy_manager() {
    return {"cudaq_dispatch_manager_destroy", [this] { return forget(manager, cudaq_dispatch_manager_destroy); },
            promise::succeeds};
  }
  /// A call that is refused: the fault may cost the text, but not the status.
  static step refused(step s, cudaq_status_t why) {
    s.holds = promise::succeeds;
    s.expected = why;
    return s;
  }
  /// The calls that only read.
  void add_readers(std::vector<step> &to, std::uint32_t m) {
    to.push_back({"cudaq_dispatcher_get_state",
                  [this, m] {
                    cudaq_dispatcher_state_t out{};
                    return cudaq_dispatcher_get_state(members[m].get, &out);
                  },
                  promise::succeeds});
    to.push_back({"cudaq_dispatcher_get_stats",
                  [this, m] {
                    cudaq_dispatcher_stats_t out{};
                    out.struct_size = sizeof(out);
                    return cudaq_dispatcher_get_stats(members[m].get, &out);
                  },
                  promise::succeeds});
    to.push_back({"cudaq_dispatcher_get_processed", [this, m] {
                    std::uint64_t out = 0;
                    return cudaq_dispatcher_get_processed(members[m].get, &out);
                  }});
    to.push_back({"cudaq_dispatcher_dump_state", [this, m] {
                    char text[64];
                    return cudaq_dispatcher_dump_state(members[m].get, text, sizeof(text), nullptr);
                  }});
  }

  /// Sends a request with one byte of payload, and waits until `done` holds or it is answered. CUDAQ_OK: done.
  /// CUDAQ_ERR_CUDA: answered with an error.
  template <class Done>
  status request_until(std::uint32_t function_id, std::uint8_t payload, Done &&done) {
    const faults::exempt_scope client;
    const std::uint32_t slot = next_slot_;
    next_slot_ = (next_slot_ + 1) % kSlots;
    cudaq_host_ringbuffer_write_rpc_request(&ring, slot, function_id, &payload, 1, 7, 0);
    cudaq_host_ringbuffer_signal_slot(&ring, slot);
    const auto poll_tx = [&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr); };
    const auto answered = [&] { return poll_tx() == CUDAQ_TX_READY || poll_tx() == CUDAQ_TX_ERROR; };
    if (!soon([&] { return done() || answered(); }))
      return CUDAQ_ERR_TIMEOUT;
    return answered() ? take(slot) : CUDAQ_OK;
  }
  status take(std::uint32_t slot) {
    const faults::exempt_scope client;
    if (!soon([&] { return cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr) > CUDAQ_TX_IN_FLIGHT; }))
      return CUDAQ_ERR_TIMEOUT;
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    const bool ready = cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr) == CUDAQ_TX_READY &&
                       cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result) == CUDAQ_OK;
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
    return ready && header.status == 0 && header.request_id == 7 ? CUDAQ_OK : CUDAQ_ERR_CUDA;
  }
  step serve(std::uint32_t function_id) {
    return {"a request", [this, function_id] { return request_until(function_id, 0, [] { return false; }); },
            promise::serves};
  }
  std::uint32_t last_slot() const { return (next_slot_ + kSlots - 1) % kSlots; }

  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_ringbuffer_options_t ring_options{};
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  std::vector<member> members;

private:
  static std::string describe(const member &m) {
    cudaq_dispatcher_stats_t s{};
    s.struct_size = sizeof(s);
    EXPECT_EQ(cudaq_dispatcher_get_stats(m.get, &s), CUDAQ_OK);
    std::uint64_t processed = 0;
    EXPECT_EQ(cudaq_dispatcher_get_processed(m.get, &processed), CUDAQ_OK);
    std::string text = "state " + std::to_string(s.state) + ", flag " + std::to_string(*m.flag);
    if (s.state == CUDAQ_DISPATCHER_RUNNING)
      return text;
    text += ", stats " + std::to_string(detail::load_relaxed(*m.stats)) + ", processed " + std::to_string(processed);
    for (const std::uint64_t count : {s.received, s.dispatched, s.responded, s.in_flight, s.handler_errors, s.launches})
      text += " " + std::to_string(count);
    return text;
  }

  std::uint64_t *words_ = nullptr;
  std::uint32_t next_slot_ = 0;
};

} // namespace cudaq::realtime::test
