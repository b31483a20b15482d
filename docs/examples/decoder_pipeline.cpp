// SPDX-License-Identifier: Apache-2.0
// A decoder in the realtime pipeline: each worker has its own decoder, which answers a request in its slot. The
// decoder's name, or the path of a plug-in, is the argument.
#include <cudaq/qec/decoding/decoder.h>
#include <cudaq/qec/realtime/pipeline.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <vector>

using namespace cudaq::qec::realtime;
namespace rt = cudaq::qec::realtime::experimental;

namespace {

constexpr std::uint32_t kFunction = 0x7A11;

/// Runs on a worker's thread. Request: one bit for each detector. Answer: one bit for each observable. The status of
/// the answer is 0, or that of the decode.
int decode(void *self, rt::host_stage_call *call) {
  auto &with = *static_cast<decoder *>(self);
  const decode_status status =
      with.decode_bits({static_cast<const std::uint8_t *>(call->payload), call->payload_size},
                       {static_cast<std::uint8_t *>(call->response_buffer), call->max_response_size});
  call->response_size = with.observable_bytes();
  return static_cast<int>(status);
}

} // namespace

int main(int argc, char **argv) {
  const char *const model = "error(0.01) D0 L0\n"
                            "error(0.02) D0 D1\n"
                            "error(0.01) D1\n";
  rt::pipeline_stage_config config;
  config.num_workers = 2;
  config.num_slots = 8;
  config.slot_size = 256;
  config.memory = rt::ring_memory::host;
  std::vector<std::unique_ptr<decoder>> decoders;
  for (int i = 0; i < config.num_workers; ++i) {
    decoder_result made = make_decoder(argc > 1 ? argv[1] : "auto", model);
    if (!made)
      return std::printf("%s\n", made.error.c_str()), 1;
    decoders.push_back(std::move(made.instance));
  }

  std::atomic<int> right{0};
  rt::realtime_pipeline pipeline(config);
  pipeline.set_gpu_stage([&](int worker) {
    rt::gpu_worker_resources r;
    r.function_id = kFunction;
    r.host_stage_fn = &decode;
    r.host_stage_data = decoders[static_cast<std::size_t>(worker)].get();
    return r;
  });
  pipeline.set_completion_handler([&](const rt::completion &c) { // on the consumer's thread
    const int expected = c.request_id % 4 == 1 ? 1 : 0;          // D0 alone comes from the error with L0
    right += c.success && c.status == 0 && *static_cast<const std::uint8_t *>(c.response) == expected;
  });
  pipeline.start();
  rt::ring_buffer_injector injector = pipeline.create_injector();
  constexpr int kShots = 100;
  for (std::uint32_t shot = 0; shot < kShots; ++shot) {
    const auto events = static_cast<std::uint8_t>(shot % 4);
    injector.submit(kFunction, &events, sizeof events, shot);
  }
  pipeline.stop(); // completes the submitted requests first
  std::printf("%s: %d of %d answers are right\n", decoders[0]->name(), right.load(), kShots);
  return right == kShots ? 0 : 1;
}
