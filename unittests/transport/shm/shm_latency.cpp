// SPDX-License-Identifier: Apache-2.0
// P20 of docs/performance.md: the round trip of 64 bytes through the provider shm, over two floors of the same run.
//
//   shm_latency [EXCHANGES [ROUNDS]]        measures; 20000 and 10; prints a table and one line of JSON
//   shm_latency serve unified|ring NAME     the server process of one round
//
//   case         the other end                                     what it does
//   flag         another process                                   answers one flag word by another one
//   in process   a dispatcher thread of this process               HOST_CALL, echo, as P9
//   unified      a dispatcher thread of another process, unified   the same through the provider
//   ring         a dispatcher thread of another process, ring      the same
//
// The cases alternate. Both ends spin; this thread is on the first CPU that the process may use, the other end on the
// last. A round trip begins before the store to the rx flag and ends after the load of the tx flag. Each answer is
// checked. The first tenth of each round is not measured.
#include "cudaq/realtime/detail/base/flag_word.h"
#include "unittests/support/host_fixture.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sched.h>
#include <sys/mman.h>

namespace {

using namespace cudaq::realtime::test;
using steady = std::chrono::steady_clock;

constexpr std::uint32_t kEcho = cudaq::realtime::fnv1a_hash("echo");
constexpr std::uint32_t kBytes = 64;

void echo(const void *rx_slot, void *tx_slot, std::size_t) {
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, 0, kBytes, 0, 0};
  std::memcpy(tx_slot, &response, sizeof(response));
  std::memcpy(static_cast<std::uint8_t *>(tx_slot) + sizeof(response),
              static_cast<const std::uint8_t *>(rx_slot) + CUDAQ_RPC_HEADER_SIZE, kBytes);
}

int cpu(bool last) {
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

void run_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof(one), &one);
}

[[noreturn]] void fail(const std::string &text) {
  std::fprintf(stderr, "shm_latency: %s\n", text.c_str());
  std::exit(1);
}

/// A dispatcher that echoes, over a ring or a dataplane.
class echo_dispatcher {
public:
  echo_dispatcher(const cudaq_ringbuffer_t *ring, const cudaq_cpu_dataplane_t *plane, std::uint32_t num_slots,
                  int core) {
    cudaq_dispatcher_config_t config = host_config({num_slots, 256});
    config.kernel_type = plane != nullptr ? CUDAQ_KERNEL_UNIFIED : CUDAQ_KERNEL_REGULAR;
    cudaq_dispatcher_options_t options = default_options();
    options.wait_policy = CUDAQ_WAIT_SPIN;
    options.dispatcher_core = core;
    const cudaq_function_table_t table{&entry_, 1};
    if (cudaq_dispatch_manager_create(&manager_) != CUDAQ_OK ||
        cudaq_dispatcher_create(manager_, &config, &dispatcher_) != CUDAQ_OK ||
        (plane != nullptr ? cudaq_dispatcher_set_cpu_dataplane(dispatcher_, plane)
                          : cudaq_dispatcher_set_ringbuffer(dispatcher_, ring)) != CUDAQ_OK ||
        cudaq_dispatcher_set_function_table(dispatcher_, &table) != CUDAQ_OK ||
        cudaq_dispatcher_set_control(dispatcher_, &shutdown_, &processed_) != CUDAQ_OK ||
        cudaq_dispatcher_set_options(dispatcher_, &options) != CUDAQ_OK ||
        cudaq_dispatcher_start(dispatcher_) != CUDAQ_OK)
      fail(cudaq_last_error_message());
  }
  ~echo_dispatcher() {
    cudaq_dispatcher_destroy(dispatcher_);
    cudaq_dispatch_manager_destroy(manager_);
  }
  echo_dispatcher(const echo_dispatcher &) = delete;
  echo_dispatcher &operator=(const echo_dispatcher &) = delete;

private:
  cudaq_function_entry_t entry_ = host_entry("echo", echo);
  volatile int shutdown_ = 0;
  std::uint64_t processed_ = 0;
  cudaq_dispatch_manager_t *manager_ = nullptr;
  cudaq_dispatcher_t *dispatcher_ = nullptr;
};

int serve(bool unified, const std::string &name) {
  std::vector<std::string> options{"--name", name};
  if (unified)
    options.push_back("--unified");
  provider_handle provider(options);
  if (provider.status != CUDAQ_OK)
    fail(provider.text);
  std::uint32_t num_slots = 0, slot_size = 0;
  provider.table->get_ring_geometry(provider.handle, &num_slots, &slot_size);
  cudaq_ringbuffer_t ring{};
  const cudaq_cpu_dataplane_t plane = provider.dataplane();
  if (!unified)
    provider.table->get_transport_context(provider.handle, RING_BUFFER, &ring);
  const echo_dispatcher dispatcher(&ring, unified ? &plane : nullptr, num_slots, cpu(true));
  std::puts(("READY transport=shm name=" + name).c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  return 0;
}

using times = std::vector<std::uint32_t>;

void exchange(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots, std::uint64_t count, times &out) {
  std::uint8_t payload[kBytes];
  for (std::uint64_t n = 0; n < count; ++n) {
    const auto slot = static_cast<std::uint32_t>(n % num_slots);
    std::memset(payload, static_cast<int>(n * 31 + 7), sizeof(payload));
    const auto give_up = steady::now() + std::chrono::seconds(20);
    while (cudaq_host_ringbuffer_slot_available(&ring, slot) != 1)
      if (steady::now() > give_up)
        fail("a slot does not become free");
    cudaq_host_ringbuffer_write_rpc_request(&ring, slot, kEcho, payload, kBytes, static_cast<std::uint32_t>(n), n);
    const auto begin = steady::now();
    cudaq_host_ringbuffer_signal_slot(&ring, slot);
    for (std::uint64_t polls = 0; cudaq_host_ringbuffer_poll_tx_flag(&ring, slot, nullptr) == CUDAQ_TX_EMPTY;)
      if (++polls % (1u << 20) == 0 && steady::now() > give_up)
        fail("no answer");
    const auto end = steady::now();
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    if (cudaq_host_ringbuffer_read_rpc_response(&ring, slot, &header, &result) != CUDAQ_OK ||
        header.result_len != kBytes || header.request_id != n || std::memcmp(result, payload, kBytes) != 0)
      fail("a wrong answer");
    cudaq_host_ringbuffer_clear_slot(&ring, slot);
    if (n >= count / 10)
      out.push_back(static_cast<std::uint32_t>((end - begin).count()));
  }
}

struct two_flags {
  alignas(128) cudaq::realtime::detail::shared_word<std::uint64_t> there;
  alignas(128) cudaq::realtime::detail::shared_word<std::uint64_t> back;
};

void flag_round(std::uint64_t count, times &out) {
  auto *flags = static_cast<two_flags *>(
      ::mmap(nullptr, sizeof(two_flags), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = ::fork();
  if (child == 0) {
    run_on(cpu(true));
    const auto give_up = steady::now() + std::chrono::seconds(60);
    for (std::uint64_t n = 1, polls = 0; n <= count; ++n) {
      while (flags->there.load() != n)
        if (++polls % (1u << 20) == 0 && steady::now() > give_up)
          ::_exit(1);
      flags->back.store(n);
    }
    ::_exit(0);
  }
  run_on(cpu(false));
  const auto give_up = steady::now() + std::chrono::seconds(60);
  for (std::uint64_t n = 1, polls = 0; n <= count; ++n) {
    const auto begin = steady::now();
    flags->there.store(n);
    while (flags->back.load() != n)
      if (++polls % (1u << 20) == 0 && steady::now() > give_up)
        fail("no flag");
    const auto end = steady::now();
    if (n >= count / 10)
      out.push_back(static_cast<std::uint32_t>((end - begin).count()));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::munmap(flags, sizeof(two_flags));
}

void in_process_round(std::uint64_t count, int other_core, times &out) {
  const host_ring ring;
  const echo_dispatcher dispatcher(&ring.ring, nullptr, 8, other_core);
  exchange(ring.ring, 8, count, out);
}

void provider_round(const char *program, const char *shape, std::uint64_t count, times &out) {
  const std::string name = own_name(shape);
  child_process server({program, "serve", shape, "--name", name});
  if (server.line().empty())
    fail("the server does not start");
  const shm_client client(name);
  if (client.status != CUDAQ_OK)
    fail(client.text);
  exchange(client.ring, client.num_slots, count, out);
  server.close_input();
  server.wait();
}

struct figures {
  std::uint32_t min, p50, p99, p999, max;
};

figures sorted(times &t) {
  std::sort(t.begin(), t.end());
  const auto at = [&](double q) { return t[static_cast<std::size_t>(q * static_cast<double>(t.size() - 1))]; };
  return {t.front(), at(0.5), at(0.99), at(0.999), t.back()};
}

int measure(const char *program, std::uint64_t count, std::uint64_t rounds) {
  const char *const names[] = {"flag", "in process", "unified", "ring"};
  times t[4];
  cpu_set_t all;
  sched_getaffinity(0, sizeof(all), &all);
  const int other_core = cpu(true);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    // Processes inherit the CPUs of their parent, so the whole set comes back before a start.
    const auto on_all = [&] { sched_setaffinity(0, sizeof(all), &all); };
    on_all();
    flag_round(count, t[0]);
    in_process_round(count, other_core, t[1]);
    for (int shape = 2; shape < 4; ++shape) {
      on_all();
      provider_round(program, names[shape], count, t[shape]);
    }
  }
  figures f[4];
  std::printf("%-12s %8s %8s %8s %8s %8s   ns, %llu exchanges\n", "64 B", "min", "p50", "p99", "p99.9", "max",
              static_cast<unsigned long long>(t[0].size()));
  for (int i = 0; i < 4; ++i) {
    f[i] = sorted(t[i]);
    std::printf("%-12s %8u %8u %8u %8u %8u\n", names[i], f[i].min, f[i].p50, f[i].p99, f[i].p999, f[i].max);
  }
  std::printf("{\"case\": \"P20\", \"flag_p50_ns\": %u, \"in_process_p50_ns\": %u, \"unified_p50_ns\": %u, "
              "\"unified_p99_ns\": %u, \"ring_p50_ns\": %u, \"ring_p99_ns\": %u, \"unified_over_in_process\": %.3f, "
              "\"unified_over_flag\": %.3f}\n",
              f[0].p50, f[1].p50, f[2].p50, f[2].p99, f[3].p50, f[3].p99, double(f[2].p50) / f[1].p50,
              double(f[2].p50) / f[0].p50);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  if (a.size() == 4 && a[0] == "serve")
    return serve(a[1] == "unified", a[3]);
  return measure(argv[0], a.empty() ? 20000 : std::stoull(a[0]), a.size() < 2 ? 10 : std::stoull(a[1]));
}
