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
#include "cudaq/realtime/detail/base/shared_word.h"
#include "unittests/support/provider_dispatcher.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/round_trips.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <cstdio>
#include <sys/mman.h>

namespace {

using namespace cudaq::realtime::test;
void echo(const void *rx_slot, void *tx_slot, std::size_t) {
  const cudaq_rpc_response_t response{CUDAQ_RPC_MAGIC_RESPONSE, 0, kEchoBytes, 0, 0};
  std::memcpy(tx_slot, &response, sizeof(response));
  std::memcpy(static_cast<std::uint8_t *>(tx_slot) + sizeof(response),
              static_cast<const std::uint8_t *>(rx_slot) + CUDAQ_RPC_HEADER_SIZE, kEchoBytes);
}

/// A dispatcher that echoes, over a ring or a dataplane.
class echo_dispatcher {
public:
  echo_dispatcher(const cudaq_ringbuffer_t &ring, const cudaq_cpu_dataplane_t *plane, std::uint32_t num_slots, int core)
      : dispatcher_(
            host_config({num_slots, 256}), ring, plane,
            [this](cudaq_dispatcher_t *d) { return cudaq_dispatcher_set_function_table(d, &table_); },
            options_on(core)) {
    if (!dispatcher_.is_running())
      end_measurement("the dispatcher does not run");
  }

private:
  static cudaq_dispatcher_options_t options_on(int core) {
    cudaq_dispatcher_options_t options = default_options();
    options.wait_policy = CUDAQ_WAIT_SPIN;
    options.dispatcher_core = core;
    return options;
  }
  cudaq_function_entry_t entry_ = host_entry("echo", echo);
  const cudaq_function_table_t table_{&entry_, 1};
  const provider_dispatcher dispatcher_;
};

int serve(bool unified, const std::string &name) {
  std::vector<std::string> options{"--name", name};
  if (unified)
    options.push_back("--unified");
  provider_handle provider(options);
  if (provider.status != CUDAQ_OK)
    end_measurement(provider.text);
  std::uint32_t num_slots = 0, slot_size = 0;
  provider.table->get_ring_geometry(provider.handle, &num_slots, &slot_size);
  cudaq_ringbuffer_t ring{};
  const cudaq_cpu_dataplane_t plane = provider.dataplane();
  if (!unified)
    provider.table->get_transport_context(provider.handle, RING_BUFFER, &ring);
  const echo_dispatcher dispatcher(ring, unified ? &plane : nullptr, num_slots, usable_cpu(true));
  std::puts(("READY transport=shm name=" + name).c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  return 0;
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
    run_on_cpu(usable_cpu(true));
    const auto give_up = steady::now() + std::chrono::seconds(60);
    for (std::uint64_t n = 1, polls = 0; n <= count; ++n) {
      while (flags->there.load() != n)
        if (++polls % (1u << 20) == 0 && steady::now() > give_up)
          ::_exit(1);
      flags->back.store(n);
    }
    ::_exit(0);
  }
  run_on_cpu(usable_cpu(false));
  const auto give_up = steady::now() + std::chrono::seconds(60);
  for (std::uint64_t n = 1, polls = 0; n <= count; ++n) {
    const auto begin = steady::now();
    flags->there.store(n);
    while (flags->back.load() != n)
      if (++polls % (1u << 20) == 0 && steady::now() > give_up)
        end_measurement("no flag");
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
  const echo_dispatcher dispatcher(ring.ring, nullptr, 8, other_core);
  round_trips(ring.ring, helper_port{ring.ring, 8}, count, out);
}

void provider_round(const char *program, const char *shape, std::uint64_t count, times &out) {
  const std::string name = own_name(shape);
  started_program server({program, "serve", shape, "--name", name});
  if (server.line().empty())
    end_measurement("the server does not start");
  const shm_client client(name);
  if (client.status != CUDAQ_OK)
    end_measurement(client.text);
  round_trips(client.ring, helper_port{client.ring, client.num_slots}, count, out);
  server.close_input();
  server.wait();
}

int measure(const char *program, std::uint64_t count, std::uint64_t rounds) {
  const char *const names[] = {"flag", "in process", "unified", "ring"};
  times t[4];
  cpu_set_t all;
  sched_getaffinity(0, sizeof(all), &all);
  const int other_core = usable_cpu(true);
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
  print_figures_head(t[0].size());
  for (int i = 0; i < 4; ++i) {
    f[i] = sorted(t[i]);
    print_figures(names[i], f[i]);
  }
  std::printf("{\"case\": \"shm-round-trip-64B\", "
              "\"flag_p50_ns\": %u, \"in_process_p50_ns\": %u, \"unified_p50_ns\": %u, "
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
