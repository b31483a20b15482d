// SPDX-License-Identifier: Apache-2.0
#include "unittests/support/gdrcopy_double/gdrcopy_double.h"

#include <cstdint>
#include <string_view>

namespace {

constexpr unsigned long kGpuPage = 65536;
constexpr unsigned long kHandle = 7; // of the only pinned memory

cudaq::realtime::test::gdrcopy_double state;
void *mapped = nullptr;
std::size_t mapped_bytes = 0;

struct handle {
  unsigned long value;
};

bool fails(const char *name) { return std::string_view(state.fails) == name; }
bool none_fails() { return *state.fails == 0; }
/// Notes a call that the module would refuse.
int refused(const char *why) {
  state.mistake = why;
  return 22; // EINVAL
}
bool is_pinned(handle h) { return state.pins == 1 && h.value == kHandle; }

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED cudaq::realtime::test::gdrcopy_double *gdrcopy_double_state() { return &state; }

EXPORTED void *gdr_open() {
  if (fails("gdr_open"))
    return nullptr;
  ++state.handles;
  return &state;
}
EXPORTED int gdr_close(void *gdr) {
  const bool fault = fails("gdr_close");
  ++state.closes;
  if (gdr != &state || state.handles != 1)
    return refused("gdr_close without an open handle");
  if (state.pins != 0 && none_fails())
    state.mistake = "gdr_close while memory is pinned";
  state.handles = state.pins = state.maps = 0; // the module ends what is left
  return fault ? 5 : 0;
}
EXPORTED int gdr_pin_buffer(void *gdr, unsigned long address, std::size_t bytes, std::uint64_t token,
                            std::uint32_t space, handle *out) {
  if (fails("gdr_pin_buffer"))
    return 12;
  if (gdr != &state || state.handles != 1 || state.pins != 0)
    return refused("gdr_pin_buffer on a handle that is not open, or twice");
  if (address % kGpuPage != 0 || bytes % kGpuPage != 0 || bytes == 0 || token != 0 || space != 0)
    return refused("gdr_pin_buffer of part of a page");
  ++state.pins;
  state.pinned_at = address;
  state.pinned_bytes = bytes;
  out->value = kHandle;
  return 0;
}
EXPORTED int gdr_unpin_buffer(void *gdr, handle h) {
  const bool fault = fails("gdr_unpin_buffer");
  ++state.unpins;
  if (gdr != &state || !is_pinned(h))
    return refused("gdr_unpin_buffer of memory that is not pinned");
  if (state.maps != 0 && none_fails())
    state.mistake = "gdr_unpin_buffer of memory that is mapped";
  state.pins -= !fault;
  return fault ? 5 : 0;
}
EXPORTED int gdr_map(void *gdr, handle h, void **out, std::size_t bytes) {
  if (fails("gdr_map"))
    return 11;
  if (gdr != &state || !is_pinned(h) || bytes != state.pinned_bytes || state.maps != 0)
    return refused("gdr_map of memory that is not pinned, or in another size");
  ++state.maps;
  mapped = *out = reinterpret_cast<void *>(state.pinned_at);
  mapped_bytes = bytes;
  return 0;
}
EXPORTED int gdr_unmap(void *gdr, handle h, void *address, std::size_t bytes) {
  const bool fault = fails("gdr_unmap");
  ++state.unmaps;
  if (gdr != &state || !is_pinned(h) || state.maps != 1 || address != mapped || bytes != mapped_bytes)
    return refused("gdr_unmap of what is not mapped");
  state.maps -= !fault;
  return fault ? 5 : 0;
}
