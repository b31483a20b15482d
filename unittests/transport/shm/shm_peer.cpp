// SPDX-License-Identifier: Apache-2.0
// The processes of the two-process tests. All but `send`, `call`, `lied` and `early` run until their input ends, or
// until they are killed.
//
//   shm_peer server unified|ring OPTION...   serves with a dispatcher; prints READY and PROCESSED
//   shm_peer send NAME COUNT WINDOW [block|FUNCTION]
//                                            exchanges COUNT checked messages; prints DONE
//   shm_peer stream NAME WINDOW [FUNCTION]   exchanges checked messages; prints GO after the first, and DONE
//   shm_peer call NAME FUNCTION NUMBER       one request with an i32; prints ANSWER STATUS LENGTH, or DROPPED
//   shm_peer lied NAME COUNT                 attaches COUNT times to a server that lies, sends and waits a little;
//                                            prints DONE and how often it got a ring
//   shm_peer early NAME                      plays a GPU whose stores come late; prints EARLY and what it finds
//   shm_peer scribble NAME SEED              writes random words over all memory that it shares; prints GO
#include "cudaq/realtime/detail/ring/ring_record.h"
#include "unittests/support/provider_dispatcher.h"
#include "unittests/transport/shm/provider_handle.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <cstdio>
#include <fstream>
#include <poll.h>
#include <random>
#include <sstream>

namespace {

using namespace cudaq::realtime::test;

void report(const std::string &line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

bool input_ended(int wait_ms) {
  pollfd input{0, POLLIN, 0};
  return ::poll(&input, 1, wait_ms) > 0;
}

void respond(void *tx_slot, std::int32_t status, std::uint32_t bytes) {
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, status, bytes, 0, 0};
  std::memcpy(tx_slot, &response, sizeof(response));
}

/// A copy of the request's payload: the client may write it at any time. The length was checked by the dispatcher, but
/// may have changed since.
std::vector<std::uint8_t> payload_of(const void *rx_slot, std::size_t slot_size) {
  cudaq_rpc_header_t request;
  std::memcpy(&request, rx_slot, sizeof(request));
  const auto *at = static_cast<const std::uint8_t *>(rx_slot) + sizeof(request);
  return {at, at + std::min<std::size_t>(request.arg_len, slot_size - sizeof(request))};
}

void increment(const void *rx_slot, void *tx_slot, std::size_t slot_size) {
  const std::vector<std::uint8_t> payload = payload_of(rx_slot, slot_size);
  respond(tx_slot, 0, static_cast<std::uint32_t>(payload.size()));
  auto *out = static_cast<std::uint8_t *>(tx_slot) + CUDAQ_RPC_HEADER_SIZE;
  for (std::size_t i = 0; i < payload.size(); ++i)
    out[i] = static_cast<std::uint8_t>(payload[i] + 1);
}

void checked(const void *rx_slot, void *tx_slot, std::size_t slot_size) {
  const std::vector<std::uint8_t> payload = payload_of(rx_slot, slot_size);
  std::uint32_t sequence = 0;
  if (!intact_frame(payload.data(), static_cast<std::uint32_t>(payload.size()), kRequestSalt, sequence))
    return respond(tx_slot, 1, 0);
  const std::uint32_t bytes =
      checked_result_size(sequence, static_cast<std::uint32_t>(slot_size) - CUDAQ_RPC_HEADER_SIZE);
  respond(tx_slot, 0, bytes);
  fill_frame(static_cast<std::uint8_t *>(tx_slot) + CUDAQ_RPC_HEADER_SIZE, bytes, sequence, result_salt(kChecked));
}

int fail(const std::string &text) {
  report("FAILED " + text);
  return 1;
}

int server(bool unified, std::vector<std::string> options) {
  if (unified)
    options.push_back("--unified");
  provider_handle provider(options);
  if (provider.status != CUDAQ_OK)
    return fail(provider.text);
  std::uint32_t num_slots = 0, slot_size = 0;
  char endpoint[256] = {};
  provider.table->get_ring_geometry(provider.handle, &num_slots, &slot_size);
  provider.table->get_endpoint_info(provider.handle, endpoint, sizeof(endpoint));

  cudaq_dispatcher_config_t config = host_config({num_slots, slot_size});
  config.skip_tx_markers = unified ? 0 : 1;
  const cudaq_cpu_dataplane_t plane = provider.dataplane();
  cudaq_ringbuffer_t ring{};
  if (!unified)
    provider.table->get_transport_context(provider.handle, RING_BUFFER, &ring);
  cudaq_function_entry_t entries[] = {host_entry("increment", increment), host_entry("checked", checked)};
  const cudaq_function_table_t table{entries, 2};
  std::uint64_t processed = 0;
  {
    provider_dispatcher dispatcher(config, ring, unified ? &plane : nullptr, [&](cudaq_dispatcher_t *d) {
      return cudaq_dispatcher_set_function_table(d, &table);
    });
    if (!dispatcher.is_running())
      return fail("the dispatcher does not run");
    report(std::string("READY ") + endpoint);
    provider.table->connect(provider.handle);
    provider.table->launch(provider.handle);
    while (!input_ended(1000)) {
    }
    processed = dispatcher.stop();
  }
  provider.destroy();
  report("PROCESSED " + std::to_string(processed));
  return 0;
}

int report(const checked_traffic &traffic, cudaq_status_t status) {
  if (status == CUDAQ_ERR_STATE) {
    report("GONE " + std::to_string(traffic.answered));
    return 3;
  }
  if (status != CUDAQ_OK)
    return fail(traffic.wrong);
  report("DONE " + std::to_string(traffic.answered));
  return 0;
}

int send(const std::string &name, std::uint64_t count, std::uint32_t window, bool block, std::uint32_t function_id) {
  shm_client client(name, block ? CUDAQ_WAIT_BLOCK : CUDAQ_WAIT_SPIN_YIELD);
  if (client.status != CUDAQ_OK)
    return fail(client.text);
  checked_traffic traffic(client, window, function_id);
  return report(traffic, traffic.exchange(count));
}

int stream(const std::string &name, std::uint32_t window, std::uint32_t function_id) {
  shm_client client(name);
  if (client.status != CUDAQ_OK)
    return fail(client.text);
  checked_traffic traffic(client, window, function_id);
  cudaq_status_t status = traffic.exchange(1);
  report("GO");
  while (status == CUDAQ_OK && !input_ended(0))
    status = traffic.exchange(200);
  return report(traffic, status);
}

int call(const std::string &name, std::uint32_t function_id, std::int32_t number) {
  shm_client client(name);
  if (client.status != CUDAQ_OK)
    return fail(client.text);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kPatience);
  while (!client.try_send(0, function_id, &number, sizeof(number), 1))
    if (std::chrono::steady_clock::now() > give_up)
      return fail("slot 0 does not become free");
  const cudaq_status_t status = cudaq_shm_client_wait(client.get, 0, kPatience);
  cudaq_rpc_response_t header{};
  const void *result = nullptr;
  if (status == CUDAQ_ERR_UNSUPPORTED)
    report("DROPPED");
  else if (status != CUDAQ_OK)
    return fail(cudaq_shm_client_error());
  else if (cudaq_host_ringbuffer_read_rpc_response(&client.ring, 0, &header, &result) != CUDAQ_OK)
    return fail(cudaq_last_error_message());
  else
    report("ANSWER " + std::to_string(header.status) + " " + std::to_string(header.result_len));
  return 0;
}

/// Every byte that an answer is said to have is read.
int lied(const std::string &name, std::uint64_t count) {
  std::uint64_t taken = 0, sum = 0;
  for (std::uint64_t n = 0; n < count; ++n) {
    shm_client client(name, CUDAQ_WAIT_SPIN_YIELD, 0);
    if (client.status != CUDAQ_OK && client.text.empty())
      return fail("a refusal without a text");
    if (client.status != CUDAQ_OK)
      continue;
    ++taken;
    for (std::uint32_t slot = 0; slot < std::min(client.num_slots, 6U); ++slot) {
      const auto number = static_cast<std::int32_t>(n);
      if (!client.try_send(slot, kIncrement, &number, sizeof(number), slot))
        continue;
      cudaq_rpc_response_t header{};
      const void *result = nullptr;
      if (cudaq_shm_client_wait(client.get, slot, 1'000'000) != CUDAQ_OK ||
          cudaq_host_ringbuffer_read_rpc_response(&client.ring, slot, &header, &result) != CUDAQ_OK)
        continue;
      // The helper does not know the size of a slot: as its contract says, the caller compares it.
      if (header.result_len <= client.slot_size - CUDAQ_RPC_HEADER_SIZE)
        for (std::uint32_t k = 0; k < header.result_len; ++k)
          sum += static_cast<const std::uint8_t *>(result)[k];
      cudaq_host_ringbuffer_clear_slot(&client.ring, slot);
    }
  }
  report("DONE " + std::to_string(taken) + " " + std::to_string(sum));
  return 0;
}

/// The device has given slot 0 back, and its rx = 0 is seen. Then tx = 0 says nothing before the lap has come.
int early(const std::string &name) {
  shm_client client(name);
  if (client.status != CUDAQ_OK)
    return fail(client.text);
  const std::size_t distance = cudaq::realtime::detail::lap_distance(client.num_slots);
  const auto look = [&] {
    const cudaq_status_t status = cudaq_shm_client_wait(client.get, 0, 20'000'000);
    const bool available = cudaq_host_ringbuffer_slot_available(&client.ring, 0) != 0;
    return std::string(status == CUDAQ_ERR_UNSUPPORTED ? "free" : "pending") + (available ? " available" : " taken");
  };
  const std::uint64_t count = client.ring.rx_flags_host[distance] + 1;
  client.ring.rx_flags_host[distance] = count;
  const std::string without_lap = look();
  client.ring.tx_flags_host[distance] = count;
  report("EARLY " + without_lap + ", " + look());
  return 0;
}

struct range {
  std::uint64_t *begin, *end;
};

/// All memory that this process shares with the server.
std::vector<range> shared_memory() {
  std::vector<range> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:cudaq-realtime-shm") == std::string::npos)
      continue;
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    found.push_back({reinterpret_cast<std::uint64_t *>(begin), reinterpret_cast<std::uint64_t *>(end)});
  }
  return found;
}

int scribble(const std::string &name, unsigned seed) {
  shm_client client(name);
  if (client.status != CUDAQ_OK)
    return fail(client.text);
  const std::vector<range> ranges = shared_memory();
  if (ranges.size() < 2)
    return fail("found no shared memory");
  std::mt19937_64 random(seed);
  // Values that mean something to a server, and values that do not.
  const std::uint64_t words[] = {0,
                                 1,
                                 ~0ull,
                                 CUDAQ_TX_FLAG_IN_FLIGHT,
                                 CUDAQ_RPC_MAGIC_REQUEST,
                                 std::uint64_t{kChecked} << 32 | CUDAQ_RPC_MAGIC_REQUEST,
                                 0xffffffff00000000ull | kIncrement};
  report("GO");
  while (!input_ended(0))
    for (int i = 0; i < 20000; ++i) {
      const range &r = ranges[random() % ranges.size()];
      const auto count = static_cast<std::size_t>(r.end - r.begin);
      // Flags and the first frames more often than the rest.
      const std::size_t at = random() % (random() % 2 == 0 ? std::min<std::size_t>(count, 128) : count);
      const std::uint64_t value = random() % 3 == 0 ? random() : words[random() % std::size(words)];
      __builtin_memcpy(&r.begin[at], &value, sizeof(value));
    }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  const auto number_at = [&](std::size_t i) { return static_cast<std::uint32_t>(std::stoul(a[i])); };
  if (a.size() >= 2 && a[0] == "server")
    return server(a[1] == "unified", {a.begin() + 2, a.end()});
  if (a.size() >= 4 && a[0] == "send")
    return send(a[1], std::stoull(a[2]), number_at(3), a.size() > 4 && a[4] == "block",
                a.size() > 4 && a[4] != "block" ? number_at(4) : kChecked);
  if (a.size() >= 3 && a[0] == "stream")
    return stream(a[1], number_at(2), a.size() > 3 ? number_at(3) : kChecked);
  if (a.size() == 4 && a[0] == "call")
    return call(a[1], number_at(2), std::stoi(a[3]));
  if (a.size() == 3 && a[0] == "lied")
    return lied(a[1], std::stoull(a[2]));
  if (a.size() == 2 && a[0] == "early")
    return early(a[1]);
  if (a.size() == 3 && a[0] == "scribble")
    return scribble(a[1], static_cast<unsigned>(std::stoul(a[2])));
  return fail("see the head of shm_peer.cpp");
}
