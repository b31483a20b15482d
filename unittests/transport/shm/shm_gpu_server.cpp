// SPDX-License-Identifier: Apache-2.0
// The server process of shm_gpu_rings_test.cpp: the provider on the double of a GPU, and the loop of the device kernels
// on a thread. It serves checked function 1 until its input ends, and drops unknown functions.
//
//   shm_gpu_server NAME OPTION...    prints HOST and why a host dispatcher refuses the ring, and READY; at its end
//                                    DROPPED MAGIC UNKNOWN, and CLEAN or CORRUPT
#include "cudaq/realtime/detail/loop/posted_ring_transport.h"
#include "lib/transport/shm/shm_server.h"
#include "unittests/loop/loop_host.h"

#include <cstdio>

namespace {

using namespace cudaq::realtime::test;

void report(const std::string &line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> words{"--name", argc > 1 ? argv[1] : "", "--requests", "gpu", "--pinned"};
  words.insert(words.end(), argv + std::min(argc, 2), argv + argc);
  std::vector<char *> arguments;
  for (std::string &w : words)
    arguments.push_back(w.data());
  shm_options options;
  expected<> result = parse_shm_options(static_cast<int>(arguments.size()), arguments.data(), options);
  if (result.failed()) {
    report("REFUSED " + result.text());
    return 1;
  }
  shm_server server(options);
  result = server.start();
  if (result.failed()) {
    report("REFUSED " + result.text());
    return 1;
  }
  checked_function function(1, 1u << 22);
  checked_function::v1_by_id[1] = &function;
  const ring_shape shape{options.num_slots, options.slot_size, false};
  const host_ring shape_only(shape);
  loop_host host(shape_only, 1, 1, 1);
  cudaq_dispatcher_config_t config = host_config(shape);
  config.dispatch_path = CUDAQ_DISPATCH_PATH_DEVICE;
  const cudaq_ringbuffer_t ring = server.ring();
  host.params.ring = view_of(ring, config, ring_side::device); // with the laps, by the record
  if (host.params.ring.lap_offset == 0) {
    report("REFUSED the ring has no laps");
    return 1;
  }
  const manager_handle manager;
  cudaq_dispatcher_t *on_host = nullptr;
  const cudaq_dispatcher_config_t host_path = host_config(shape);
  CUDAQ_EXPECT_OK(cudaq_dispatcher_create(manager.get, &host_path, &on_host));
  report(cudaq_dispatcher_set_ringbuffer(on_host, &ring) == CUDAQ_ERR_UNSUPPORTED
             ? std::string("HOST ") + cudaq_last_error_message()
             : "HOST accepts it");
  CUDAQ_EXPECT_OK(cudaq_dispatcher_destroy(on_host));
  host.params.rules.answer_unknown = false;
  host.start_with<false>(posted_ring_transport<yielding_thread_group>(host.params.ring, 0));
  report("READY");
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  store_release(host.library_word, std::uint32_t{1});
  host.join();
  server.disconnect();
  report("DROPPED " + std::to_string(host.reports[0].dropped_bad_magic) + " " +
         std::to_string(host.reports[0].dropped_unknown_function));
  report(function.corrupt == 0 ? "CLEAN" : "CORRUPT " + std::to_string(function.corrupt.load()));
  return 0;
}
