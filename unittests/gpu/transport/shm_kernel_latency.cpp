// SPDX-License-Identifier: Apache-2.0
// The round trip of 64 bytes between a process and a kernel of another process, through the provider shm.
//
//   shm_kernel_latency [EXCHANGES [ROUNDS]]     measures; 20000 and 10; prints a table and one line of JSON
//   shm_kernel_latency serve host|gpu NAME      the server process of one round
//
//   case          the kernel           requests in       written by            what it shows
//   alone pinned  of this process      pinned memory     the slot helpers      the floor: no other process
//   shm pinned    of another process   pinned memory     the slot helpers      --pinned
//   alone gpu     of this process      GPU memory        a producer's handle   the floor
//   shm gpu       of another process   GPU memory        a producer's handle   --pinned --requests gpu
//
// The cases alternate. The kernel is the regular one, 1 block of 32 threads; its handler copies 64 bytes. This thread
// spins on the first CPU that the process may use. round_trips.h says what is measured. A machine where the requests
// cannot be in GPU memory has the first two cases only, and says why. CUDAQ_TEST_DEVICE: the device.
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

/// The producer's end of a ring with requests in GPU memory.
struct handle_port {
  cudaq_ringbuffer_producer_t *producer;
  std::uint32_t slot = 0;

  bool write(std::uint64_t n, const void *payload) {
    std::uint32_t count = 0;
    return cudaq_ringbuffer_producer_claim(producer, 1, &slot, &count) == CUDAQ_OK && count == 1 &&
           cudaq_ringbuffer_producer_write(producer, slot, kEcho, payload, kEchoBytes, static_cast<std::uint32_t>(n),
                                           n) == CUDAQ_OK;
  }
  void signal() const { cudaq_ringbuffer_producer_commit(producer, slot, 1); }
};

int serve(const std::string &requests, const std::string &name) {
  std::vector<std::string> options{
      "--name", name, "--pinned", "--num-slots", std::to_string(kSlots), "--slot-size", std::to_string(kSlotSize)};
  if (requests == "gpu")
    options.insert(options.end(), {"--requests", "gpu", "--gpu", std::to_string(test_device())});
  provider_handle provider(options);
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

/// NULL: the ring's requests are in host memory.
void measure_ring(const cudaq_ringbuffer_t &ring, cudaq_ringbuffer_producer_t *producer, std::uint64_t count,
                  times &out) {
  if (producer != nullptr)
    round_trips(ring, handle_port{producer}, count, out);
  else
    round_trips(ring, helper_port{ring, kSlots}, count, out);
}

void alone_round(bool on_gpu, std::uint64_t count, times &out) {
  const host_ring ring({kSlots, kSlotSize, false}, on_gpu ? CUDAQ_MEMORY_DEVICE_RX : CUDAQ_MEMORY_MAPPED);
  cudaq_ringbuffer_producer_t *producer = nullptr;
  if (on_gpu && cudaq_ringbuffer_producer_open(ring.memory(), &producer) != CUDAQ_OK)
    end_measurement(cudaq_last_error_message());
  {
    const echo_kernel kernel(ring.ring);
    measure_ring(ring.ring, producer, count, out);
  }
  if (producer != nullptr)
    cudaq_ringbuffer_producer_close(producer);
}

/// False, with a line, if requests in GPU memory are refused.
bool provider_round(bool on_gpu, std::uint64_t count, times &out) {
  const std::string name = own_name("latency");
  started_program server({beside_program("shm_kernel_latency"), "serve", on_gpu ? "gpu" : "host", name});
  if (server.line().rfind("READY", 0) != 0) {
    if (on_gpu && server.wait() == 1)
      return false; // the reason is printed already
    end_measurement("the server does not start");
  }
  run_on_cpu(usable_cpu(false)); // not before the server has started
  const shm_client client(name);
  if (client.status != CUDAQ_OK && on_gpu && client.status == CUDAQ_ERR_UNSUPPORTED) {
    std::fprintf(stderr, "shm_kernel_latency: %s\n", client.text.c_str());
    return false;
  }
  if (client.status != CUDAQ_OK)
    end_measurement(client.text);
  measure_ring(client.ring, client.producer, count, out);
  server.close_input();
  if (server.wait() != 0)
    end_measurement("the server does not end");
  return true;
}

int measure(std::uint64_t count, std::uint64_t rounds) {
  const char *const names[] = {"alone pinned", "shm pinned", "alone gpu", "shm gpu"};
  times t[4];
  cpu_set_t all;
  sched_getaffinity(0, sizeof(all), &all);
  bool has_gpu_requests = true;
  const auto of_provider = [&](bool on_gpu, times &out) {
    sched_setaffinity(0, sizeof(all), &all); // a process inherits the CPUs of its parent
    return provider_round(on_gpu, count, out);
  };
  for (std::uint64_t round = 0; round < rounds; ++round) {
    run_on_cpu(usable_cpu(false));
    alone_round(false, count, t[0]);
    of_provider(false, t[1]);
    has_gpu_requests = has_gpu_requests && of_provider(true, t[3]);
    run_on_cpu(usable_cpu(false));
    if (has_gpu_requests)
      alone_round(true, count, t[2]);
  }
  figures f[4] = {};
  print_figures_head(t[0].size());
  for (int i = 0; i < (has_gpu_requests ? 4 : 2); ++i) {
    f[i] = sorted(t[i]);
    print_figures(names[i], f[i]);
  }
  std::printf("{\"case\": \"shm kernel\", \"alone_pinned_p50_ns\": %u, \"shm_pinned_p50_ns\": %u, "
              "\"shm_pinned_p99_ns\": %u, \"shm_over_alone_pinned\": %.3f",
              f[0].p50, f[1].p50, f[1].p99, double(f[1].p50) / f[0].p50);
  if (has_gpu_requests)
    std::printf(", \"alone_gpu_p50_ns\": %u, \"shm_gpu_p50_ns\": %u, \"shm_gpu_p99_ns\": %u, "
                "\"shm_over_alone_gpu\": %.3f",
                f[2].p50, f[3].p50, f[3].p99, double(f[3].p50) / f[2].p50);
  std::puts("}");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  if (const cudaError_t error = cudaSetDevice(test_device()))
    end_measurement(std::string("device ") + std::to_string(test_device()) + ": " + cudaGetErrorString(error));
  if (a.size() == 3 && a[0] == "serve")
    return serve(a[1], a[2]);
  return measure(a.empty() ? 20000 : std::stoull(a[0]), a.size() < 2 ? 10 : std::stoull(a[1]));
}
