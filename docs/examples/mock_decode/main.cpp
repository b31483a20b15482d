// SPDX-License-Identifier: Apache-2.0
// A control program in plain C++ with a decoder on the GPU. It sends requests through both launch functions of the
// decoder.
#include "../device_session.h"
#include "mock_decode.h"

#include <random>

using namespace cudaq::qec::realtime;

/// Decodes `count` random syndromes. Returns the number of wrong answers.
static int decode(cudaq_dispatch_launch_fn_t launch, const cudaq_function_table_t &table, std::uint32_t count) {
  example::device_session session(launch, table);
  std::mt19937 random(7);
  int wrong = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<std::uint8_t> events(16);
    std::uint8_t correction = 0;
    for (std::uint8_t &byte : events)
      correction ^= byte = static_cast<std::uint8_t>(random());
    const example::answer got = session.call(MOCK_DECODE_FUNCTION_ID, events, i);
    wrong += got.header.status != 0 || got.header.request_id != i || got.result != std::vector{correction};
  }
  return wrong;
}

int main() {
  if (const int status = example::status_without_gpu())
    return status;
  constexpr std::uint32_t kCount = 1000;
  cudaStream_t stream = nullptr;
  cudaq_function_entry_t *entries = nullptr;
  TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TRY(cudaMallocAsync(reinterpret_cast<void **>(&entries), sizeof(*entries), stream));
  TRY(setup_mock_decode_function_table(entries, stream));

  const cudaq_function_table_t table{entries, 1};
  const int wrong = decode(mock_decode_launch_dispatch_kernel, table, kCount) +
                    decode(mock_decode_launch_dispatch_kernel_inlined, table, kCount);
  TRY(cudaFreeAsync(entries, stream));
  TRY(cudaStreamSynchronize(stream));
  TRY(cudaStreamDestroy(stream));
  std::printf("mock_decode: %u syndromes by table and %u inlined, %d wrong\n", kCount, kCount, wrong);
  return wrong == 0 ? 0 : 1;
}
