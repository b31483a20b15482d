// SPDX-License-Identifier: Apache-2.0
// The server of the two-process tests: udp_server_program LIBRARY [provider options]. It serves the functions of
// udp_service.h until its standard input ends. With --unified it polls the provider itself.
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/transport/udp/udp_provider_library.h"
#include "unittests/transport/udp/udp_service.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

int failed(const char *what, const std::string &why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  return 1;
}

/// Returns when the other side has closed standard input, or after `limit_ms`.
bool input_ended(int limit_ms) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte;
  return poll(&input, 1, limit_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

std::int32_t handler(cudaq_host_call_t *call, void *user) {
  return static_cast<udp_service *>(user)->serve(
      call->function_id, {static_cast<const std::uint8_t *>(call->payload), call->payload_len},
      {static_cast<std::uint8_t *>(call->result), call->max_result_len}, call->result_len);
}

/// The ring shape: a dispatcher with a pool of handlers serves the provider's ring.
class ring_server {
public:
  ~ring_server() {
    if (dispatcher_ != nullptr)
      cudaq_dispatcher_destroy(dispatcher_);
    if (manager_ != nullptr)
      cudaq_dispatch_manager_destroy(manager_);
  }
  cudaq_status_t start(const cudaq_ringbuffer_t &ring, std::uint32_t slots, std::uint32_t slot_size,
                       udp_service &service) {
    cudaq_dispatcher_config_t config{};
    config.num_slots = slots;
    config.slot_size = slot_size;
    config.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
    config.skip_tx_markers = 1;
    cudaq_dispatcher_options_t options;
    cudaq_dispatcher_options_init(&options, sizeof(options));
    options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;
    options.handler_pool_size = 2;
    const cudaq_function_table_t none{nullptr, 0};
    cudaq_status_t status = cudaq_dispatch_manager_create(&manager_);
    const auto then = [&](auto &&call) { status = status == CUDAQ_OK ? call() : status; };
    then([&] { return cudaq_dispatcher_create(manager_, &config, &dispatcher_); });
    then([&] { return cudaq_dispatcher_set_ringbuffer(dispatcher_, &ring); });
    then([&] { return cudaq_dispatcher_set_function_table(dispatcher_, &none); });
    then([&] { return cudaq_dispatcher_set_control(dispatcher_, &shutdown_, &processed_); });
    then([&] { return cudaq_dispatcher_set_options(dispatcher_, &options); });
    for (const std::uint32_t id : {kIncrement, kRecord, kSleep})
      then([&] { return cudaq_dispatcher_set_host_handler_v2(dispatcher_, id, handler, &service, nullptr); });
    then([&] { return cudaq_dispatcher_start(dispatcher_); });
    return status;
  }
  std::uint64_t stop() {
    std::uint64_t processed = 0;
    cudaq_dispatcher_stop(dispatcher_);
    cudaq_dispatcher_get_processed(dispatcher_, &processed);
    return processed;
  }

private:
  cudaq_dispatch_manager_t *manager_ = nullptr;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
  volatile int shutdown_ = 0;
  std::uint64_t processed_ = 0;
};

/// The unified shape: this thread is the loop, until standard input ends.
std::uint64_t poll_until_the_end(const cudaq_cpu_dataplane_t &plane, std::uint32_t slot_size, udp_service &service) {
  std::uint64_t processed = 0;
  std::uint32_t empty = 0;
  for (;;) {
    std::uint32_t slot = 0;
    if (plane.rx_poll(plane.ctx, &slot) != CUDAQ_RX_READY) {
      if (++empty % 1000 == 0 && input_ended(1))
        return processed;
      continue;
    }
    ++processed;
    cudaq_rpc_header_t header;
    const std::uint8_t *const request = plane.ring.rx_data_host + slot * plane.ring.rx_stride_sz;
    std::uint8_t *const response = plane.ring.tx_data_host + slot * plane.ring.tx_stride_sz;
    std::memcpy(&header, request, sizeof(header));
    if (header.function_id != kIncrement && header.function_id != kRecord && header.function_id != kSleep) {
      detail::store_release<std::uint64_t>(plane.ring.rx_flags_host[slot], 0);
      continue;
    }
    cudaq_rpc_response_t answer = {CUDAQ_RPC_MAGIC_RESPONSE, CUDAQ_RPC_ERR_BAD_ARG_LEN, 0, header.request_id,
                                   header.ptp_timestamp};
    if (header.arg_len <= slot_size - sizeof(header)) {
      std::uint32_t length = 0;
      answer.status = service.serve(header.function_id, {request + sizeof(header), header.arg_len},
                                    {response + sizeof(answer), slot_size - sizeof(answer)}, length);
      answer.result_len = length;
    }
    std::memcpy(response, &answer, sizeof(answer));
    plane.tx_publish(plane.ctx, slot);
  }
}

int run(int argc, char **argv) {
  if (argc < 2)
    return failed("usage", "udp_server_program LIBRARY [provider options]");
  const udp_provider_library library(argv[1]);
  if (library.table == nullptr)
    return failed("dlopen", library.error);
  const std::vector<std::string> words(argv + 2, argv + argc);
  cudaq_realtime_bridge_handle_t handle = nullptr;
  if (library.create(words, handle) != CUDAQ_OK)
    return failed("create", library.error_text());
  udp_service service;
  std::uint32_t slots = 0, slot_size = 0;
  library.table->get_ring_geometry(handle, &slots, &slot_size);
  const std::string endpoint = library.endpoint(handle);
  const bool unified = std::find(words.begin(), words.end(), "--unified") != words.end();
  std::uint64_t processed = 0;
  {
    ring_server server;
    cudaq_ringbuffer_t ring{};
    if (!unified && (library.table->get_transport_context(handle, RING_BUFFER, &ring) != CUDAQ_OK ||
                     server.start(ring, slots, slot_size, service) != CUDAQ_OK))
      return failed("start", cudaq_last_error_message());
    std::printf("READY %s\n", endpoint.c_str());
    std::fflush(stdout);
    if (library.table->connect(handle) != CUDAQ_OK || library.table->launch(handle) != CUDAQ_OK)
      return failed("launch", library.error_text());
    if (unified) {
      cudaq_cpu_dataplane_t plane{};
      library.table->get_cpu_dataplane(handle, &plane);
      processed = poll_until_the_end(plane, slot_size, service);
    } else {
      while (!input_ended(1000)) {
      }
      processed = server.stop();
    }
    library.table->disconnect(handle);
  }
  cudaq_udp_statistics_t all;
  library.statistics(endpoint, all);
  std::printf("PROCESSED count=%llu different=%llu twice=%llu replays=%llu duplicates=%llu reordered=%llu stale=%llu "
              "magic=%llu short=%llu long=%llu kernel=%llu received=%llu\n",
              static_cast<unsigned long long>(processed), static_cast<unsigned long long>(service.different()),
              static_cast<unsigned long long>(service.twice()), static_cast<unsigned long long>(all.replays),
              static_cast<unsigned long long>(all.dropped_duplicates), static_cast<unsigned long long>(all.reordered),
              static_cast<unsigned long long>(all.answered_stale), static_cast<unsigned long long>(all.dropped_magic),
              static_cast<unsigned long long>(all.dropped_short), static_cast<unsigned long long>(all.dropped_long),
              static_cast<unsigned long long>(all.dropped_kernel), static_cast<unsigned long long>(all.received));
  if (library.table->destroy(handle) != CUDAQ_OK)
    return failed("destroy", library.error_text());
  return 0;
}

} // namespace
} // namespace cudaq::realtime::test

int main(int argc, char **argv) { return cudaq::realtime::test::run(argc, argv); }
