// SPDX-License-Identifier: Apache-2.0
// A handler of two arguments, which it finds by their schema. The host builds the function table.
#include "device_session.h"

#include <cudaq/realtime/daemon/dispatcher/device_arguments.h>
#include <cudaq/realtime/daemon/dispatcher/device_function_table.cuh>
#include <cudaq/realtime/daemon/dispatcher/dispatch_kernel.cuh>

using namespace cudaq::realtime;

/// Arguments: detection events, and a weight for each group of 8 events. Result: a correction. Function table and
/// handler share this schema.
CUDAQ_REALTIME_HOST_DEVICE constexpr cudaq_handler_schema_t advanced_decode_schema() {
  return make_schema({make_type_desc(TYPE_BIT_PACKED, 128), make_type_desc(TYPE_ARRAY_FLOAT32, 16)},
                     {make_type_desc(TYPE_UINT8, 1)});
}

/// The correction is 1 if the groups with an odd number of events have more than half of the total weight.
__device__ int advanced_decode_rpc(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                                   std::uint32_t *result_len) {
  constexpr cudaq_handler_schema_t schema = advanced_decode_schema();
  argument_reader arguments(schema, input, arg_len);
  result_writer results(schema, output, max_result_len);
  float odd = 0, all = 0;
  for (std::uint32_t group = 0; group < arguments.elements(1); ++group) {
    const float weight = arguments.get<float>(1, group);
    all += weight;
    if (__popc(arguments.get<std::uint8_t>(0, group)) % 2 != 0)
      odd += weight;
  }
  results.set(0, static_cast<std::uint8_t>(2 * odd > all));
  return arguments.ok() && results.finish(result_len) ? 0 : 1;
}

static cudaError_t launch(const cudaq_dispatch_launch_params_t *params) {
  return launch_dispatch_kernel<RegularKernel, table_handlers>(*params);
}

/// A request. The groups in `mask` have an odd number of events; group g has the weight g + 1; the total is 136.
static std::vector<std::uint8_t> request_of(std::uint32_t mask) {
  std::vector<std::uint8_t> payload(16 + 16 * sizeof(float));
  for (std::uint32_t group = 0; group < 16; ++group) {
    payload[group] = (mask >> group & 1u) != 0 ? 0x83 : 0x81;
    const float weight = static_cast<float>(group + 1);
    std::memcpy(payload.data() + 16 + group * sizeof(float), &weight, sizeof(weight));
  }
  return payload;
}

int main() {
  if (const int status = example::status_without_gpu())
    return status;
  constexpr std::uint32_t kAdvancedDecode = fnv1a_hash("advanced_decode"), kCount = 1000;
  cudaStream_t stream = nullptr;
  TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int wrong = 0;
  {
    device_function_table table(stream);
    if (table.add("advanced_decode", device_handler<advanced_decode_rpc>(), advanced_decode_schema()) != cudaSuccess ||
        table.upload() != cudaSuccess)
      example::fail("function table", table.error_text().c_str());

    example::device_session session(launch, table.view());
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const std::uint32_t mask = i * 2654435761u >> 16;
      std::uint32_t odd = 0;
      for (std::uint32_t group = 0; group < 16; ++group)
        odd += (mask >> group & 1u) * (group + 1);
      const std::vector<std::uint8_t> correction{static_cast<std::uint8_t>(2 * odd > 136)};
      const example::answer got = session.call(kAdvancedDecode, request_of(mask), i);
      wrong += got.header.status != 0 || got.header.request_id != i || got.result != correction;
    }
    // The second argument is missing. The handler must detect that: the dispatcher checks schemas only with an option.
    wrong += session.call(kAdvancedDecode, std::vector<std::uint8_t>(16), kCount).header.status != 1;
  }
  TRY(cudaStreamDestroy(stream));
  std::printf("advanced_decode: %u requests of two arguments and a short one, %d wrong\n", kCount, wrong);
  return wrong == 0 ? 0 : 1;
}
