// SPDX-License-Identifier: Apache-2.0
// Serves requests that come over a transport: the calls in their order. The peer at the end of the file plays the
// control system; it speaks to the provider of socket_provider.cpp.
//   serve_transport LIBRARY
#include <cudaq/realtime/daemon/bridge/bridge_interface.h>
#include <cudaq/realtime/daemon/dispatcher/host_dispatcher.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#define TRY(call)                                                                                                      \
  if ((call) != CUDAQ_OK)                                                                                              \
  return std::printf("%s\n", cudaq_last_error_message()), 1

static constexpr std::uint32_t kIncrement = 0x1ACC;

static std::int32_t increment(cudaq_host_call_t *call, void *) {
  const auto *const in = static_cast<const unsigned char *>(call->payload);
  for (std::uint32_t i = 0; i < call->payload_len; ++i)
    static_cast<unsigned char *>(call->result)[i] = static_cast<unsigned char>(in[i] + 1);
  call->result_len = call->payload_len;
  return 0;
}

static int play_control_system(const std::string &path);

int main(int argc, char **argv) {
  if (argc != 2)
    return std::printf("usage: serve_transport LIBRARY\n"), 1;
  const std::string path = "/tmp/serve_transport." + std::to_string(getpid());
  std::string socket_option = "--socket=" + path;
  char *options[] = {socket_option.data()};
  cudaq_realtime_bridge_handle_t bridge = nullptr;
  char endpoint[256];
  cudaq_dispatcher_config_t config{};
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  TRY(cudaq_bridge_create_from_library(&bridge, argv[1], 1, options));
  TRY(cudaq_bridge_get_ring_geometry(bridge, &config.num_slots, &config.slot_size));
  TRY(cudaq_bridge_get_endpoint_info(bridge, endpoint, sizeof(endpoint)));

  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  cudaq_ringbuffer_t ring;
  cudaq_dispatcher_options_t answering;
  volatile int shutdown = 0;
  std::uint64_t processed = 0;
  config.skip_tx_markers = 1;
  TRY(cudaq_dispatch_manager_create(&manager));
  TRY(cudaq_dispatcher_create(manager, &config, &dispatcher));
  TRY(cudaq_bridge_get_transport_context(bridge, RING_BUFFER, &ring));
  TRY(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring));
  TRY(cudaq_dispatcher_options_init(&answering, sizeof(answering)));
  answering.unknown_function = CUDAQ_UNKNOWN_FUNCTION_ANSWER; // a peer with a wrong id gets a status, not silence
  TRY(cudaq_dispatcher_set_options(dispatcher, &answering));
  TRY(cudaq_dispatcher_set_host_handler_v2(dispatcher, kIncrement, increment, nullptr, nullptr));
  TRY(cudaq_dispatcher_set_control(dispatcher, &shutdown, &processed));
  TRY(cudaq_dispatcher_start(dispatcher));

  // Programs that start this one wait for the line. connect may wait for them: so the line comes first.
  std::printf("CUDAQ_REALTIME_SERVER_READY %s dispatch=ring slots=%u slot_size=%u\n", endpoint, config.num_slots,
              config.slot_size);
  std::fflush(stdout);
  int peer_result = 1;
  std::jthread peer([&] { peer_result = play_control_system(path); });
  cudaq_status_t connected = CUDAQ_ERR_TIMEOUT;
  for (int second = 0; second < 30 && connected == CUDAQ_ERR_TIMEOUT; ++second)
    connected = cudaq_bridge_connect_timeout(bridge, 1000000000); // a program looks at its own end here
  TRY(connected);
  TRY(cudaq_bridge_launch(bridge));
  peer.join();

  TRY(cudaq_dispatcher_destroy(dispatcher)); // before the ring's memory, which the provider frees
  TRY(cudaq_dispatch_manager_destroy(manager));
  TRY(cudaq_bridge_disconnect(bridge));
  TRY(cudaq_bridge_destroy(bridge));
  std::printf("CUDAQ_REALTIME_SERVER_PROCESSED count=%llu\n", static_cast<unsigned long long>(processed));
  return peer_result;
}

static int play_control_system(const std::string &path) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const timeval limit{20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0)
    return 1;
  int wrong = 0;
  for (std::uint32_t id = 1; id <= 101; ++id) { // the last one is for a function that there is not
    unsigned char request[sizeof(cudaq_rpc_header_t) + 8], answer[256];
    cudaq_rpc_header_t header{};
    header.magic = CUDAQ_RPC_MAGIC_REQUEST;
    header.function_id = id <= 100 ? kIncrement : 0x0BAD;
    header.arg_len = 8;
    header.request_id = id;
    std::memcpy(request, &header, sizeof(header));
    std::memset(request + sizeof(header), static_cast<int>(id), 8);
    if (send(fd, request, sizeof(request), 0) < 0 || recv(fd, answer, sizeof(answer), 0) < ssize_t{sizeof(header)})
      return 1;
    cudaq_rpc_response_t response;
    std::memcpy(&response, answer, sizeof(response));
    wrong += response.request_id != id;
    if (id > 100)
      wrong += response.status != CUDAQ_RPC_ERR_NO_SUCH_FUNCTION;
    else
      wrong += response.status != 0 || response.result_len != 8 || answer[sizeof(response)] != id + 1;
  }
  close(fd);
  return wrong;
}
