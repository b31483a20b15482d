// SPDX-License-Identifier: Apache-2.0
// Round trips of 64 bytes, as the programs that measure the provider shm make them. A round trip begins before the
// store to the rx flag and ends after the load of the tx flag. Each answer is checked. The first tenth is not measured.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <string>
#include <vector>

namespace cudaq::realtime::test {

inline constexpr std::uint32_t kEcho = fnv1a_hash("echo");
inline constexpr std::uint32_t kEchoBytes = 64;

using steady = std::chrono::steady_clock;
using times = std::vector<std::uint32_t>;

/// The first or the last CPU that this process may use.
inline int usable_cpu(bool last) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof(usable), &usable);
  int found = 0;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &usable)) {
      found = i;
      if (!last)
        break;
    }
  return found;
}

inline void run_on_cpu(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

[[noreturn]] inline void end_measurement(const std::string &text) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, text.c_str());
  std::exit(1);
}

/// The producer's end of a ring, by the slot helpers.
struct helper_port {
  const cudaq_ringbuffer_t &ring;
  std::uint32_t num_slots;
  std::uint32_t slot = 0;

  /// Writes the next request, in `slot`. False: the slot is not free.
  bool write(std::uint64_t n, const void *payload) {
    slot = static_cast<std::uint32_t>(n % num_slots);
    return cudaq_host_ringbuffer_slot_available(&ring, slot) == 1 &&
           cudaq_host_ringbuffer_write_rpc_request(&ring, slot, kEcho, payload, kEchoBytes,
                                                   static_cast<std::uint32_t>(n), n) == CUDAQ_OK;
  }
  void signal() const { cudaq_host_ringbuffer_signal_slot(&ring, slot); }
};

template <class Port>
void round_trips(const cudaq_ringbuffer_t &ring, Port port, std::uint64_t count, times &out) {
  std::uint8_t payload[kEchoBytes];
  for (std::uint64_t n = 0; n < count; ++n) {
    std::memset(payload, static_cast<int>(n * 31 + 7), sizeof(payload));
    const auto give_up = steady::now() + std::chrono::seconds(20);
    while (!port.write(n, payload))
      if (steady::now() > give_up)
        end_measurement("a slot does not become free");
    const std::uint32_t slot = port.slot;
    const auto begin = steady::now();
    port.signal();
    for (std::uint64_t polls = 0; cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr) == CUDAQ_TX_EMPTY;)
      if (++polls % (1u << 20) == 0 && steady::now() > give_up)
        end_measurement("no answer");
    const auto end = steady::now();
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    if (cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result) != CUDAQ_OK ||
        header.result_len != kEchoBytes || header.request_id != n || std::memcmp(result, payload, kEchoBytes) != 0)
      end_measurement("a wrong answer");
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
    if (n >= count / 10)
      out.push_back(static_cast<std::uint32_t>((end - begin).count()));
  }
}

struct figures {
  std::uint32_t min, p50, p99, p999, max;
};

inline figures sorted(times &t) {
  std::sort(t.begin(), t.end());
  const auto at = [&](double q) { return t[static_cast<std::size_t>(q * static_cast<double>(t.size() - 1))]; };
  return {t.front(), at(0.5), at(0.99), at(0.999), t.back()};
}

inline void print_figures_head(std::size_t exchanges) {
  std::printf("%-16s %8s %8s %8s %8s %8s   ns, %zu exchanges\n", "64 B", "min", "p50", "p99", "p99.9", "max",
              exchanges);
}
inline void print_figures(const char *name, const figures &f) {
  std::printf("%-16s %8u %8u %8u %8u %8u\n", name, f.min, f.p50, f.p99, f.p999, f.max);
}

} // namespace cudaq::realtime::test
