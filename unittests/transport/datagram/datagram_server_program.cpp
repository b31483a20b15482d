// SPDX-License-Identifier: Apache-2.0
// The server of the two-process tests, over a provider that provider_library.h knows: datagram_server_program
// LIBRARY [provider options]. It serves the functions of datagram_service.h by a dispatcher with a pool of handlers,
// until its standard input ends. With $CUDAQ_TEST_SLEEP it
// does not spin: an emulated guest has few cores.
#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "unittests/transport/datagram/datagram_service.h"
#include "unittests/transport/provider_library.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace cudaq::realtime::test {
namespace {

/// Ends the server with the reason if a call fails.
#define TRY(call)                                                                                                      \
  if ((call) != CUDAQ_OK)                                                                                              \
  return std::fprintf(stderr, "%s: %s\n", #call, cudaq_last_error_message()), 1

/// Returns when the other side has closed standard input.
void wait_for_the_end() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

std::int32_t handler(cudaq_host_call_t *call, void *user) {
  return static_cast<datagram_service *>(user)->serve(
      call->function_id, {static_cast<const std::uint8_t *>(call->payload), call->payload_len},
      {static_cast<std::uint8_t *>(call->result), call->max_result_len}, call->result_len);
}

void print_counts(const cudaq_udp_statistics_t &all) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(" replays=%llu duplicates=%llu reordered=%llu stale=%llu magic=%llu short=%llu long=%llu kernel=%llu "
              "received=%llu",
              number(all.replays), number(all.dropped_duplicates), number(all.reordered), number(all.answered_stale),
              number(all.dropped_magic), number(all.dropped_short), number(all.dropped_long),
              number(all.dropped_kernel), number(all.received));
}

void print_messages(const cudaq_cpu_roce_statistics_t &all) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(" received=%llu accepted=%llu replied=%llu immediate=%llu short=%llu long=%llu truncated=%llu busy=%llu "
              "overwritten=%llu unanswered=%llu orphaned=%llu peers=%llu lost=%llu refused=%llu",
              number(all.received), number(all.accepted), number(all.replied), number(all.dropped_immediate),
              number(all.dropped_short), number(all.dropped_long), number(all.answered_truncated),
              number(all.answered_busy), number(all.overwritten), number(all.unanswered), number(all.orphaned),
              number(all.peers), number(all.peers_lost), number(all.callers_refused));
}

void print_packets(const cudaq_roce_statistics_t &all) {
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  const std::uint64_t unfit = all.dropped_short + all.dropped_opcode + all.dropped_version + all.dropped_padding +
                              all.dropped_icrc + all.dropped_qp + all.dropped_pkey + all.dropped_rkey +
                              all.dropped_address + all.dropped_length + all.dropped_immediate + all.dropped_peers;
  std::printf(" packets=%llu messages=%llu parts=%llu unfit=%llu sequence=%llu icrc=%llu partly=%llu lost=%llu "
              "broken=%llu",
              number(all.packets), number(all.messages), number(all.parts), number(unfit), number(all.dropped_sequence),
              number(all.dropped_icrc), number(all.icrc_partly), number(all.packets_lost), number(all.messages_broken));
}

int run(int argc, char **argv) {
  if (argc < 2)
    return std::fprintf(stderr, "usage: datagram_server_program LIBRARY [provider options]\n"), 2;
  const bool unified = std::find(argv + 2, argv + argc, std::string("--unified")) != argv + argc;
  cudaq_realtime_bridge_handle_t bridge = nullptr;
  char endpoint[256];
  cudaq_dispatcher_config_t config{};
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  config.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  config.kernel_type = unified ? CUDAQ_KERNEL_UNIFIED : CUDAQ_KERNEL_REGULAR;
  config.skip_tx_markers = !unified;
  TRY(cudaq_bridge_create_from_library(&bridge, argv[1], argc - 2, argv + 2));
  TRY(cudaq_bridge_get_ring_geometry(bridge, &config.num_slots, &config.slot_size));
  TRY(cudaq_bridge_get_endpoint_info(bridge, endpoint, sizeof(endpoint)));

  datagram_service service;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  cudaq_dispatcher_options_t options;
  TRY(cudaq_dispatcher_options_init(&options, sizeof(options)));
  options.wait_policy = std::getenv("CUDAQ_TEST_SLEEP") != nullptr ? CUDAQ_WAIT_BLOCK : CUDAQ_WAIT_SPIN_YIELD;
  options.block_interval_ns = 50000;
  options.handler_pool_size = 2;
  TRY(cudaq_dispatch_manager_create(&manager));
  TRY(cudaq_dispatcher_create(manager, &config, &dispatcher));
  cudaq_ringbuffer_t ring{};
  cudaq_cpu_dataplane_t plane{};
  if (unified) {
    TRY(cudaq_bridge_get_cpu_dataplane(bridge, &plane));
    TRY(cudaq_dispatcher_set_cpu_dataplane(dispatcher, &plane));
  } else {
    TRY(cudaq_bridge_get_transport_context(bridge, RING_BUFFER, &ring));
    TRY(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring));
  }
  for (const std::uint32_t id : {kIncrement, kRecord, kHold, kOpen})
    TRY(cudaq_dispatcher_set_host_handler_v2(dispatcher, id, handler, &service, nullptr));
  TRY(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed));
  TRY(cudaq_dispatcher_set_options(dispatcher, &options));
  TRY(cudaq_dispatcher_start(dispatcher));
  std::printf("READY %s\n", endpoint);
  std::fflush(stdout);
  TRY(cudaq_bridge_connect(bridge));
  TRY(cudaq_bridge_launch(bridge));
  wait_for_the_end();

  TRY(cudaq_dispatcher_stop(dispatcher));
  TRY(cudaq_dispatcher_get_processed(dispatcher, &processed));
  TRY(cudaq_dispatcher_destroy(dispatcher));
  TRY(cudaq_dispatch_manager_destroy(manager));
  TRY(cudaq_bridge_disconnect(bridge));
  std::printf("PROCESSED count=%llu different=%llu twice=%llu", static_cast<unsigned long long>(processed),
              static_cast<unsigned long long>(service.different()), static_cast<unsigned long long>(service.twice()));
  const provider_library library(argv[1]);
  cudaq_udp_statistics_t requests;
  cudaq_roce_statistics_t packets;
  cudaq_cpu_roce_statistics_t messages;
  if (library.counts_requests() && library.statistics(endpoint, requests) == CUDAQ_OK)
    print_counts(requests);
  if (library.counts_packets() && library.packets(endpoint, packets) == CUDAQ_OK)
    print_packets(packets);
  if (library.counts_messages() && library.messages(endpoint, messages) == CUDAQ_OK)
    print_messages(messages);
  std::printf("\n");
  TRY(cudaq_bridge_destroy(bridge));
  return 0;
}

} // namespace
} // namespace cudaq::realtime::test

int main(int argc, char **argv) { return cudaq::realtime::test::run(argc, argv); }
