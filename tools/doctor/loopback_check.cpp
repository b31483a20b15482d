// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/loopback_check.h"

#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "lib/transport/datagram/datagram_client.h"
#include "lib/transport/roce/roce_wire.h"
#include "lib/transport/udp/udp_wire.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"
#include "tools/doctor/doctor_checks.h"
#include "tools/doctor/ucx_request.h"
#include "tools/ring/ring_port.h"
#include "tools/services/provider_service.h"
#include "tools/services/provider_statistics.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kLoopbackId = 1;

std::uint32_t port_of(const provider_service &service) {
  return static_cast<std::uint32_t>(std::stoul(endpoint_value(service.endpoint(), "port", "0")));
}

class datagram_request final : public one_request {
public:
  datagram_request(const std::string &transport, const provider_service &service) {
    detail::datagram_client_options options;
    options.port = port_of(service);
    options.slot_size = service.slot_bytes();
    options.from_any_port = true;
    std::unique_ptr<detail::datagram_wire> wire = detail::make_udp_wire(options.slot_size);
    if (transport == "roce") {
      detail::roce_wire_options roce;
      roce.server = false;
      roce.slot_size = options.slot_size;
      roce.num_slots = service.num_slots();
      roce.own_qp = detail::kRequesterQp;
      roce.peer_qp = detail::kServerQp;
      wire = detail::make_roce_wire(roce, std::make_shared<detail::roce_counters>());
    }
    if (const detail::expected<> result = client_.open(options, std::move(wire)); result.failed())
      throw api_error("the client's socket: " + result.text());
  }
  bool send() override { return client_.send(kLoopbackId, kLoopbackFunction, kLoopbackPayload); }
  bool receive(std::vector<std::uint8_t> &result) override {
    const auto reply = client_.receive();
    if (reply)
      result.assign(reply->result.begin(), reply->result.end());
    return reply.has_value();
  }

private:
  detail::datagram_client client_;
};

class shm_request final : public one_request {
public:
  shm_request(const std::string &name, std::uint64_t limit_ns) {
    if (cudaq_shm_client_attach(&client_, name.c_str(), limit_ns, nullptr) != CUDAQ_OK)
      throw api_error(std::string("the client does not attach: ") + cudaq_shm_client_error());
    std::uint32_t slots = 0, bytes = 0;
    if (cudaq_shm_client_ring(client_, &ring_, &slots, &bytes) != CUDAQ_OK) {
      const std::string reason = cudaq_shm_client_error();
      cudaq_shm_client_detach(client_);
      throw api_error("the client's ring: " + reason);
    }
  }
  ~shm_request() override { cudaq_shm_client_detach(client_); }
  shm_request(const shm_request &) = delete;
  shm_request &operator=(const shm_request &) = delete;

  bool send() override {
    port_.write(0, kLoopbackFunction, kLoopbackPayload, kLoopbackId, 0);
    cudaq_shm_client_signal(client_, 0);
    return true;
  }
  bool receive(std::vector<std::uint8_t> &result) override {
    cudaq_rpc_response_t header{};
    std::span<const std::uint8_t> bytes;
    if (port_.poll(0) != CUDAQ_TX_READY || !port_.read(0, header, bytes))
      return false;
    result.assign(bytes.begin(), bytes.end());
    port_.give_back(0);
    return true;
  }

private:
  cudaq_shm_client_t *client_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  const ring_port port_{ring_};
};

/// Polls `done` until it returns true. False: not within the limit.
template <class Done>
bool within(std::uint64_t limit_ns, Done &&done) {
  const std::uint64_t begin = now_ns();
  while (!done()) {
    if (now_ns() - begin >= limit_ns)
      return false;
    std::this_thread::yield();
  }
  return true;
}

/// If it is a provider over datagrams. Its library is loaded already.
void count_datagrams(const std::string &library, const std::string &endpoint, hop_counts &counts) {
  const auto all = provider_statistics(library).read<cudaq_udp_statistics_t>("cudaq_udp_get_statistics", endpoint);
  if (!all)
    return;
  counts.provider_counts = true;
  counts.arrived = all->received;
  counts.accepted = all->accepted;
}

finding result_of(const std::string &transport, std::uint64_t limit_ns) {
  const finding wrong{"loopback", grade::wrong, "",
                      "run `cudaq-realtime doctor`: if its line `dispatcher` is good, the cause is in the transport"};
  const std::string library = provider_library(transport), name = "doctor-" + std::to_string(getpid());
  const auto calls = std::make_shared<std::atomic<int>>(0);
  std::vector<std::string> args = {"--port=0"};
  if (transport == "shm")
    args = {"--name=" + name};
  else if (transport == "roce")
    args.push_back("--peer-port=0");
  provider_service service(library, args, CUDAQ_WAIT_SPIN_YIELD);
  service.serve(kLoopbackFunction, &echo_and_count, calls.get());
  service.start();
  if (!service.connect(limit_ns)) {
    (void)service.stop(limit_ns);
    return {wrong.name, wrong.is, "the provider is not ready to serve", wrong.remedy};
  }
  service.launch();
  std::unique_ptr<one_request> client;
  if (transport == "shm")
    client = std::make_unique<shm_request>(name, limit_ns);
  else if (transport == "ucx")
    client = make_ucx_request(port_of(service), service.slot_bytes());
  else
    client = std::make_unique<datagram_request>(transport, service);
  hop_counts counts;
  counts.connected = within(limit_ns, [&] { return client->connect(); });
  const std::uint64_t begin = now_ns();
  counts.sent = counts.connected && client->send();
  std::vector<std::uint8_t> result;
  const bool answered = counts.sent && within(limit_ns, [&] { return client->receive(result); });
  const double took_ns = static_cast<double>(now_ns() - begin);
  counts.handled =
      calls->load(); // from the last hop to the first: a request that comes now is in none, or in all before
  const cudaq_dispatcher_stats_t stats = service.stats();
  counts.heartbeat = stats.heartbeat;
  counts.received = stats.received;
  count_datagrams(library, service.endpoint(), counts);
  const std::string carrier = client->carrier();
  client.reset();
  if (!service.stop(limit_ns))
    return {wrong.name, wrong.is, "the dispatcher does not stop", wrong.remedy};
  if (!answered)
    return {wrong.name, wrong.is, silent_hop(counts), wrong.remedy};
  if (!std::ranges::equal(result, kLoopbackPayload))
    return {wrong.name, wrong.is, "the answer is wrong", wrong.remedy};
  return judged_round_trip(wrong.name, "one request through client, provider and dispatcher and back", took_ns,
                           carrier.empty() ? "" : ", over " + carrier);
}

} // namespace

std::int32_t echo_and_count(cudaq_host_call_t *call, void *user) {
  static_cast<std::atomic<int> *>(user)->fetch_add(1);
  std::copy_n(static_cast<const std::uint8_t *>(call->payload), call->payload_len,
              static_cast<std::uint8_t *>(call->result));
  call->result_len = call->payload_len;
  return 0;
}

finding judged_round_trip(const std::string &name, const std::string &what, double took_ns, const std::string &after) {
  constexpr double kLimitNs = 1e6;
  const std::string text = fmt::format("{} in {}{}", what, format_ns(took_ns), after);
  if (took_ns <= kLimitNs)
    return {name, grade::good, text, ""};
  return {name, grade::warning, fmt::format("{}: more than {}", text, format_ns(kLimitNs)),
          "other programs use the cores, or the cores sleep: run it again without them, and see the part `machine`; "
          "`cudaq-realtime latency --quick` has the distribution"};
}

std::string silent_hop(const hop_counts &c) {
  if (!c.connected) // the dispatcher's thread moves the data of a provider that answers
    return c.heartbeat == 0 ? "the dispatcher's thread does not run"
                            : "the provider does not answer the client: does UCX_TLS lack tcp, or a firewall block the "
                              "loopback interface?";
  if (!c.sent)
    return "the client cannot send the request";
  if (c.provider_counts && c.arrived == 0)
    return "the request does not arrive at the provider: does a firewall block the loopback interface?";
  if (c.provider_counts && c.accepted == 0)
    return "the provider drops the request: client and provider are of different versions";
  if (c.heartbeat == 0)
    return "the dispatcher's thread does not run";
  if (c.received == 0)
    return "the dispatcher does not see the request";
  if (c.handled == 0)
    return "the handler was not called";
  return "the handler ran, but its answer did not arrive at the client";
}

std::vector<finding> check_loopback(const std::string &transport, std::uint64_t limit_ns) {
  if (transport == "gpu-roce")
    return {{"loopback", grade::warning, "not tested: that needs an RDMA adapter, a GPU, and a peer that sends",
             "start `serve --transport gpu-roce`, and send from the sensor bridge"}};
  if (transport == "cpu_roce")
    return {{"loopback", grade::warning, "not tested: that needs an RDMA adapter, and a peer that sends",
             "start `serve --transport cpu_roce`, and send from the peer"}};
  try {
    return {result_of(transport, limit_ns)};
  } catch (const std::exception &e) { // api_error, and usage_error of a provider that cannot be loaded
    return {{"loopback", grade::wrong, e.what(), "remove the reason that the text names"}};
  }
}

} // namespace cudaq::realtime::tools
