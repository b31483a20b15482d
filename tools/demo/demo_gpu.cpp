// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_gpu.h"

#include "tools/demo/demo.h"
#include "tools/services/decode_service.h"
#include "tools/services/device_service.h"

#include "lib/qec/decoders/lookup_decoder.h"
#include "lib/qec/decoding/dem.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace cudaq::realtime::tools {
namespace {

/// The lookup table of a detector error model, in device memory.
class device_lookup_table {
public:
  explicit device_lookup_table(const qec::shot_set &shots) {
    const auto model = qec::parse_dem(shots.dem_text);
    if (model.failed())
      throw usage_error(fmt::format("--device gpu: {}: {}", shots.name, model.text()));
    const auto table = qec::build_lookup_table(*model);
    if (table.failed())
      throw usage_error(fmt::format("--device gpu: no lookup table for {}: {}", shots.name, table.text()));
    const qec::lookup_table_header &header = table->header();
    memory_.emplace(header.total_bytes, stream_);
    require_cuda(
        cudaMemcpyAsync(memory_->as<void>(), table->data(), header.total_bytes, cudaMemcpyHostToDevice, stream_.get()),
        "uploading the lookup table");
    // This call synchronises: the table on the host is freed when this function returns.
    require_cuda(set_decode_table(qec::make_lookup_table_view(header, memory_->as<std::uint8_t>()), stream_.get()),
                 "uploading the lookup table");
  }

private:
  gpu_stream stream_;
  std::optional<gpu_memory> memory_;
};

device_service_config service_config(const demo_options &o, const cudaq_handler_schema_t &schema,
                                     std::uint32_t slot_bytes) {
  device_service_config c;
  c.device = o.gpu;
  c.num_slots = o.slots;
  c.slot_bytes = slot_bytes;
  c.in_place = o.in_place;
  c.options = default_options();
  c.options.check_schema = 1;
  c.options.strict_flag_values = 1;
  c.fill = [schema](cudaq_function_entry_t *entry, std::uint32_t, cudaStream_t stream) {
    return fill_decode_entry(entry, kDecodeFunctionId, schema, stream);
  };
  return c;
}

} // namespace

int run_demo_on_gpu(const demo_options &options, const output &out) {
  if (options.decoder == "pymatching")
    throw usage_error("--decoder pymatching: PyMatching runs on the CPU; --device gpu has the lookup decoder");
  if (options.workers != 0)
    throw usage_error("--workers: handler threads belong to the host path; --device gpu has none");
  open_gpu(options.gpu);
  cudaDeviceProp properties{};
  require_cuda(cudaGetDeviceProperties(&properties, options.gpu), "cudaGetDeviceProperties");
  demo_options o = options;
  o.decoder = "lookup";
  std::optional<device_lookup_table> table;
  decode_place place;
  place.text = fmt::format("by a kernel on GPU {} ({})", o.gpu, properties.name);
  place.prepare = [&table](const qec::shot_set &shots) { table.emplace(shots); };
  place.make = [&o](const cudaq_handler_schema_t &schema, std::uint32_t slot_bytes) {
    return std::make_unique<device_service>(service_config(o, schema, slot_bytes));
  };
  return run_demo(o, out, &place);
}

} // namespace cudaq::realtime::tools
