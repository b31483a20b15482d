// SPDX-License-Identifier: Apache-2.0
#include "tools/common/clock.h"
#include "tools/doctor/doctor_checks.h"
#include "tools/doctor/loopback_check.h"
#include "tools/ring/ring_client.h"
#include "tools/services/host_service.h"

#include <atomic>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kEcho = 0xD0C;

/// The first step of a request without an effect.
std::string silent_step(const cudaq_dispatcher_stats_t &s, int calls) {
  if (s.heartbeat == 0)
    return "the dispatcher's thread does not run";
  if (s.received == 0)
    return "the dispatcher does not see the request";
  return calls == 0 ? "the handler was not called" : "the handler ran, but its answer did not arrive";
}

} // namespace

std::vector<finding> check_dispatcher() {
  constexpr const char *name = "dispatcher";
  constexpr const char *remedy = "run `cudaq-realtime latency --quick`, and report its output";
  try {
    ring_service_config config;
    config.options = default_options();
    config.options.wait_policy = CUDAQ_WAIT_SPIN_YIELD;
    const auto calls = std::make_shared<std::atomic<int>>(0);
    host_service service(config, kEcho, echo_and_count, calls, nullptr);
    sent_requests sent(service.num_slots());
    ring_producer producer(service.ring(), sent);
    ring_consumer consumer(service.ring(), sent);
    service.start();
    const std::uint8_t payload[] = {0x43, 0x51};
    bool right = false;
    const std::uint64_t begin = now_ns(), limit = begin + 20'000'000'000; // other programs may use all cores
    producer.try_send(kEcho, payload, 0, begin);
    while (consumer.collected() == 0 && now_ns() < limit) {
      consumer.collect([&](const answer &a) {
        right = a.fault == answer_fault::none && a.header.status == 0 &&
                std::equal(a.result.begin(), a.result.end(), std::begin(payload), std::end(payload));
      });
      std::this_thread::yield();
    }
    const double took_ns = static_cast<double>(now_ns() - begin);
    const cudaq_dispatcher_stats_t stats = service.stats();
    service.stop();
    if (right)
      return {judged_round_trip(name, "one request through a ring and back", took_ns)};
    const std::string why = consumer.collected() != 0 ? "the answer is wrong" : silent_step(stats, calls->load());
    return {{name, grade::wrong, why, remedy}};
  } catch (const api_error &e) {
    return {{name, grade::wrong, e.what(), remedy}};
  }
}

} // namespace cudaq::realtime::tools
