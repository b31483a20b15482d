// SPDX-License-Identifier: Apache-2.0
// The input is the file of a network. One that is accepted gives the same outputs whatever its memory held before.
#include "lib/qec/decoding/learned/predecoder_network.h"
#include "unittests/fuzz/fuzz_input.h"

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace cudaq::qec::realtime;
  using cudaq::realtime::test::require;
  const auto network = predecoder_network::parse({data, size});
  if (network.failed()) {
    require(!network.text().empty(), "a refusal has a text");
    return 0;
  }
  const network_grid grid{2, 3};
  std::vector<float> input(grid.cells() * predecoder_network::kInputs, 1.0f);
  std::vector<float> first(grid.cells() * predecoder_network::kOutputs), second(first.size());
  for (std::vector<float> *output : {&first, &second}) {
    std::vector<float> memory(network->memory_floats(grid), output == &first ? 0.0f : 7.0f);
    network->run(grid, input, *output, memory);
  }
  require(std::memcmp(first.data(), second.data(), first.size() * sizeof(float)) == 0, "a run starts anew");
  return 0;
}
