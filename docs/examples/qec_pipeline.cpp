// SPDX-License-Identifier: Apache-2.0
// The realtime QEC pipeline without a GPU. The program has its own predecoder, which runs before the matcher. The code
// is a chain of 9 bits: error i flips the detectors i - 1 and i; error 0 flips detector 0 and the logical bit. Up to
// three errors are always decoded correctly, so the program can check every answer.
#include "lib/qec/stages/decoding_worker.h"

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <bit>
#include <cstdio>
#include <vector>

using namespace cudaq::qec::realtime;
namespace rt = cudaq::qec::realtime::experimental;

namespace {

constexpr std::uint32_t kErrors = 9, kDetectors = kErrors - 1;
constexpr std::uint32_t kFunction = cudaq::realtime::fnv1a_hash("decode_chain");

/// Two fired neighbours without other fired neighbours are matched: the error between them is certain. The rest goes to
/// the matcher.
class pair_predecoder final : public predecoder {
public:
  pair_predecoder() : predecoder({kDetectors, 1}) {}
  const char *name() const noexcept override { return "pair"; }

protected:
  std::uint32_t residual_of(std::span<const std::uint64_t> fired, std::span<std::uint64_t> /*frame*/,
                            std::span<std::uint64_t> residual) noexcept override {
    const std::uint64_t f = fired[0], alone = f & ~(f << 1) & (f >> 1) & ~(f >> 2); // the lower detector of each pair
    residual[0] = f & ~(alone | alone << 1);
    return static_cast<std::uint32_t>(std::popcount(alone)); // none is error 0: the frame does not change
  }
};

std::string chain_model() {
  std::string dem = "error(0.01) D0 L0\n";
  for (std::uint32_t i = 1; i < kDetectors; ++i)
    dem += "error(0.01) D" + std::to_string(i - 1) + " D" + std::to_string(i) + "\n";
  return dem + "error(0.01) D" + std::to_string(kDetectors - 1) + "\n";
}

} // namespace

int main() {
  // Each worker has its own predecoder and its own matcher.
  rt::pipeline_stage_config config;
  config.num_workers = 2;
  config.num_slots = 8;
  config.slot_size = 256;
  config.memory = rt::ring_memory::host;
  std::vector<std::unique_ptr<decoding_worker>> workers;
  const char *matcher_name = "";
  for (int i = 0; i < config.num_workers; ++i) {
    decoder_result matcher = make_decoder("auto", chain_model()); // PyMatching, if it was built in
    if (!matcher)
      return std::printf("%s\n", matcher.error.c_str()), 1;
    matcher_name = matcher.instance->name();
    workers.push_back(
        std::make_unique<decoding_worker>(std::make_unique<pair_predecoder>(), std::move(matcher.instance)));
  }

  std::vector<int> answers(std::size_t{1} << kErrors, -1); // by request id; -1: no answer
  rt::realtime_pipeline pipeline(config);
  pipeline.set_gpu_stage([&](int id) { return workers[static_cast<std::size_t>(id)]->resources(kFunction); });
  pipeline.set_cpu_stage(&decoding_worker::match);
  pipeline.set_completion_handler([&](const rt::completion &c) { // on the consumer's thread
    if (c.success && c.status == 0 && answers[c.request_id] == -1)
      answers[c.request_id] = static_cast<const std::uint8_t *>(c.response)[sizeof(DecodeResponse)] & 1;
  });
  pipeline.start();

  // The control system: it sends every set of up to three errors. A request has one bit per detector.
  rt::ring_buffer_injector injector = pipeline.create_injector();
  for (std::uint32_t errors = 0; errors < 1U << kErrors; ++errors)
    if (std::popcount(errors) <= 3) {
      const auto events = static_cast<std::uint8_t>(errors ^ errors >> 1);
      injector.submit(kFunction, &events, sizeof events, errors);
    }
  pipeline.stop(); // completes the submitted requests first

  int right = 0, wrong = 0;
  for (std::uint32_t errors = 0; errors < 1U << kErrors; ++errors)
    if (std::popcount(errors) <= 3)
      ++(answers[errors] == static_cast<int>(errors & 1) ? right : wrong);
  std::printf("%s: %d answers, %d wrong or missing\n", matcher_name, right, wrong);
  return right == 130 && wrong == 0 ? 0 : 1;
}
