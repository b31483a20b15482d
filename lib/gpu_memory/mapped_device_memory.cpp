// SPDX-License-Identifier: Apache-2.0
#include "lib/gpu_memory/mapping_ways.h"

namespace cudaq::realtime::detail {
namespace {

/// A kernel that sees a flag must see the frame that the CPU wrote before it. Memory whose writes are not ordered would
/// need a flush between the two, which the stateless slot helpers cannot make.
expected<> check_ordering(int device, int &ordering) {
  if (const cudaError_t error = cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, device))
    return cuda_failed("cudaDevAttrGPUDirectRDMAWritesOrdering", error);
  if (ordering < cudaGPUDirectRDMAWritesOrderingOwner)
    return lacks("device %d does not order writes from outside (cudaDevAttrGPUDirectRDMAWritesOrdering is %d, needed "
                 "is %d or more)",
                 device, ordering, int{cudaGPUDirectRDMAWritesOrderingOwner});
  return {};
}

} // namespace

expected<> zero_device_memory(void *device, std::size_t bytes) {
  return on_own_stream("zeroing the mapped memory",
                       [&](cudaStream_t stream) { return zero_by_copies(device, bytes, stream); });
}

expected<> map_device_memory(const mapping_request &request, mapping_result &out, std::string &why) {
  constexpr auto by_gdrcopy = [](const mapping_request &r, mapping_result &o) { return map_by_gdrcopy(r, o, {}); };
  return on_device(request.device, [&]() -> expected<> {
    int ordering = 0;
    if (expected<> result = check_ordering(request.device, ordering); result.failed())
      return result;
    constexpr struct {
      const char *name;
      expected<> (*map)(const mapping_request &, mapping_result &);
    } ways[] = {{"coherent memory", map_coherent}, {"GDRCopy", by_gdrcopy}, {"Vulkan", map_by_vulkan}};
    for (const auto &way : ways) {
      const expected<> result = way.map(request, out);
      if (result.ok()) {
        out->ordering_ = ordering;
        return {};
      }
      out.reset();
      cudaGetLastError();                           // a program that asks after its next launch must not find it
      if (result.status() != CUDAQ_ERR_UNSUPPORTED) // the way exists, but a call of it has failed
        return make_reason(result.status(), "%s: %s", way.name, result.text().c_str());
      why += (why.empty() ? "" : "; ") + std::string(way.name) + ": " + result.text();
    }
    return lacks("no way to map memory of device %d for the CPU. %s", request.device, why.c_str());
  });
}

} // namespace cudaq::realtime::detail
