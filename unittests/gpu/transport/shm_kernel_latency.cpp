// SPDX-License-Identifier: Apache-2.0
// The round trip of 64 bytes between a process and a kernel of another process, through the provider shm.
//
//   shm_kernel_latency [EXCHANGES [ROUNDS]]     measures; 20000 and 10; prints a table and one line of JSON
//   shm_kernel_latency serve pinned NAME        the server process of one round
//
//   case          the kernel                  requests in       what it shows
//   alone pinned  of this process             pinned memory     the floor: the same kernel, without another process
//   shm pinned    of another process          pinned memory     serve --pinned
//
// The cases alternate. The kernel is the regular one, 1 block of 32 threads; its handler copies 64 bytes. This thread
// spins on the first CPU that the process may use. round_trips.h says what is measured. CUDAQ_TEST_DEVICE: the device.
#include "unittests/gpu/support/gpu_dispatcher.h"
#include "unittests/transport/shm/peers.h"
#include "unittests/transport/shm/round_trips.h"
#include "unittests/transport/shm/shm_traffic.h"

namespace {

using namespace cudaq::realtime::test;

constexpr std::uint32_t kSlots = 8, kSlotSize = 256;

/// The echo kernel on a ring.
class echo_kernel {
public:
  explicit echo_kernel(const cudaq_ringbuffer_t &ring) {
    gpu_setup setup;
    setup.shape = {kSlots, kSlotSize, false};
    setup.ring = ring;
    setup.entries = {device_entry(kEcho, known_addresses(false)[static_cast<std::size_t>(handler::echo)])};
    dispatcher_ = std::make_unique<gpu_dispatcher>(manager_.get, setup);
    if (const call_result started = dispatcher_->start(); started.status != CUDAQ_OK)
      end_measurement(started.text);
  }

private:
  manager_handle manager_;
  std::unique_ptr<gpu_dispatcher> dispatcher_;
};

int serve(const std::string &name) {
  provider_handle provider(
      {"--name", name, "--pinned", "--num-slots", std::to_string(kSlots), "--slot-size", std::to_string(kSlotSize)});
  if (provider.status != CUDAQ_OK)
    end_measurement(provider.text);
  cudaq_ringbuffer_t ring{};
  provider.table->get_transport_context(provider.handle, RING_BUFFER, &ring);
  const echo_kernel kernel(ring);
  std::puts(("READY transport=shm name=" + name).c_str());
  std::fflush(stdout);
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  return 0;
}

void alone_round(std::uint64_t count, times &out) {
  const host_ring ring({kSlots, kSlotSize, false}, CUDAQ_MEMORY_MAPPED);
  const echo_kernel kernel(ring.ring);
  round_trips(ring.ring, helper_port{ring.ring, kSlots}, count, out);
}

void provider_round(const char *where, std::uint64_t count, times &out) {
  const std::string name = own_name(where);
  child_process server({beside_program("shm_kernel_latency"), "serve", where, name});
  if (server.line().rfind("READY", 0) != 0)
    end_measurement("the server does not start");
  const shm_client client(name);
  if (client.status != CUDAQ_OK)
    end_measurement(client.text);
  round_trips(client.ring, helper_port{client.ring, client.num_slots}, count, out);
  server.close_input();
  if (server.wait() != 0)
    end_measurement("the server does not end");
}

int measure(std::uint64_t count, std::uint64_t rounds) {
  const char *const names[] = {"alone pinned", "shm pinned"};
  times t[2];
  cpu_set_t all;
  sched_getaffinity(0, sizeof(all), &all);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    run_on_cpu(usable_cpu(false));
    alone_round(count, t[0]);
    sched_setaffinity(0, sizeof(all), &all); // a process inherits the CPUs of its parent
    provider_round("pinned", count, t[1]);
  }
  figures f[2];
  print_figures_head(t[0].size());
  for (int i = 0; i < 2; ++i) {
    f[i] = sorted(t[i]);
    print_figures(names[i], f[i]);
  }
  std::printf("{\"case\": \"shm kernel\", \"alone_pinned_p50_ns\": %u, \"shm_pinned_p50_ns\": %u, "
              "\"shm_pinned_p99_ns\": %u, \"shm_over_alone_pinned\": %.3f}\n",
              f[0].p50, f[1].p50, f[1].p99, double(f[1].p50) / f[0].p50);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  if (const cudaError_t error = cudaSetDevice(test_device()))
    end_measurement(std::string("device ") + std::to_string(test_device()) + ": " + cudaGetErrorString(error));
  if (a.size() == 3 && a[0] == "serve")
    return serve(a[2]);
  return measure(a.empty() ? 20000 : std::stoull(a[0]), a.size() < 2 ? 10 : std::stoull(a[1]));
}
