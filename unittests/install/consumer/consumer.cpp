// SPDX-License-Identifier: Apache-2.0
// A C++17 program that uses the installed library: the C++ names, and a v2 handler.
#include <cudaq/realtime/daemon/dispatcher/cudaq_realtime.h>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h>
#include <cudaq/realtime/daemon/dispatcher/host_dispatcher.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr std::uint32_t kEcho = cudaq::realtime::fnv1a_hash("echo");

void check(cudaq_status_t status) {
  if (status != CUDAQ_OK)
    throw std::runtime_error(std::string(cudaq_status_string(status)) + ": " + cudaq_last_error_message());
}

std::int32_t echo(cudaq_host_call_t *call, void *user) {
  std::memcpy(call->result, call->payload, call->payload_len);
  call->result_len = call->payload_len;
  ++*static_cast<int *>(user);
  return 0;
}

struct ring_owner {
  ring_owner(std::uint32_t slots, std::uint32_t slot_size) {
    cudaq_ringbuffer_options_t options;
    check(cudaq_ringbuffer_options_init(&options, sizeof options));
    options.num_slots = slots;
    options.slot_size = slot_size;
    check(cudaq_ringbuffer_create(&options, &memory, &ring));
  }
  ~ring_owner() { cudaq_ringbuffer_destroy(memory); }
  ring_owner(const ring_owner &) = delete;
  ring_owner &operator=(const ring_owner &) = delete;

  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
};

void exchange(const cudaq_ringbuffer_t &ring, const std::string &text) {
  check(cudaq_host_ringbuffer_write_rpc_request(&ring, 0, kEcho, text.data(), static_cast<std::uint32_t>(text.size()),
                                                5, 0));
  cudaq_host_ringbuffer_signal_slot(&ring, 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (cudaq_host_ringbuffer_poll_tx_flag(&ring, 0, nullptr) != CUDAQ_TX_READY)
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("no answer");
  cudaq_rpc_response_t response{};
  const void *result = nullptr;
  check(cudaq_host_ringbuffer_read_rpc_response(&ring, 0, &response, &result));
  if (std::string(static_cast<const char *>(result), response.result_len) != text || response.request_id != 5)
    throw std::runtime_error("wrong answer");
  cudaq_host_ringbuffer_clear_slot(&ring, 0);
}

void serve_with_a_dispatcher() {
  const ring_owner ring(2, 128);
  cudaq_dispatcher_config_t config{};
  config.num_slots = 2;
  config.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  int calls = 0;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  check(cudaq_dispatch_manager_create(&manager));
  check(cudaq_dispatcher_create(manager, &config, &dispatcher));
  check(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring.ring));
  check(cudaq_dispatcher_set_host_handler_v2(dispatcher, kEcho, echo, &calls, nullptr));
  check(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed));
  check(cudaq_dispatcher_start(dispatcher));
  exchange(ring.ring, "syndrome");
  check(cudaq_dispatcher_destroy(dispatcher));
  check(cudaq_dispatch_manager_destroy(manager));
  if (calls != 1)
    throw std::runtime_error("the handler did not get its user pointer");
}

} // namespace

int main() {
  try {
    serve_with_a_dispatcher();
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::puts("answered");
  return 0;
}
