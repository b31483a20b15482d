// SPDX-License-Identifier: Apache-2.0
// The structs of the C API, as a program that was compiled with another header might pass them: configuration, options,
// ring, function table, statistics. Each is in memory of exactly its size. Each call accepts it, or refuses it with a
// text; nothing is read or written outside.
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "unittests/fuzz/fuzz_input.h"

#include <memory>
#include <vector>

namespace {

using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;

/// Memory of exactly this many bytes, aligned for every struct. The address sanitizer finds each byte outside.
class exact_bytes {
public:
  explicit exact_bytes(std::size_t size) : memory_(new std::uint8_t[size]()), size_(size) {}
  void fill(std::span<const std::uint8_t> from) {
    std::copy_n(from.begin(), std::min(from.size(), size_), memory_.get());
  }
  template <class Struct>
  Struct *as() {
    return reinterpret_cast<Struct *>(memory_.get());
  }

private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t size_;
};

void accepted_or_explained(cudaq_status_t status, const char *call) {
  require(status >= CUDAQ_OK && status <= CUDAQ_ERR_STATE, std::string(call) + " returns a status");
  if (status == CUDAQ_OK)
    return;
  const std::string text = cudaq_last_error_message();
  require(text.starts_with(std::string(call) + ": ") && text.size() > std::strlen(call) + 5,
          std::string(call) + " explains a refusal: " + text);
}

/// A struct that begins with its own size, with the defaults of `init`, over which bytes of the input are copied.
template <class Struct, class Init>
exact_bytes sized_struct(fuzz_input &input, Init init, std::uint32_t &size) {
  size = input.take<std::uint8_t>() + (input.take<std::uint8_t>() % 4u) * 256u;
  exact_bytes memory(std::max<std::size_t>(size, sizeof(std::uint32_t)));
  Struct defaults;
  if (init(&defaults, sizeof(defaults)) == CUDAQ_OK)
    memory.fill({reinterpret_cast<const std::uint8_t *>(&defaults), std::min<std::size_t>(size, sizeof(defaults))});
  const auto at = input.take<std::uint8_t>() % sizeof(Struct);
  const auto changed = input.bytes(input.take<std::uint8_t>() % 32u);
  for (std::size_t k = 0; k < changed.size() && at + k < size; ++k)
    memory.as<std::uint8_t>()[at + k] = changed[k];
  std::memcpy(memory.as<std::uint8_t>(), &size, sizeof(size));
  return memory;
}

void try_options(cudaq_dispatcher_t *dispatcher, fuzz_input &input) {
  std::uint32_t size = 0;
  exact_bytes options = sized_struct<cudaq_dispatcher_options_t>(input, cudaq_dispatcher_options_init, size);
  accepted_or_explained(cudaq_dispatcher_set_options(dispatcher, options.as<cudaq_dispatcher_options_t>()),
                        "cudaq_dispatcher_set_options");
}

void try_init(fuzz_input &input) {
  const std::uint32_t size = input.take<std::uint8_t>() * 4u;
  exact_bytes options(std::max(size, 4u)), ring_options(std::max(size, 4u));
  accepted_or_explained(cudaq_dispatcher_options_init(options.as<cudaq_dispatcher_options_t>(), size),
                        "cudaq_dispatcher_options_init");
  accepted_or_explained(cudaq_ringbuffer_options_init(ring_options.as<cudaq_ringbuffer_options_t>(), size),
                        "cudaq_ringbuffer_options_init");
}

void try_statistics(const cudaq_dispatcher_t *dispatcher, fuzz_input &input) {
  const std::uint32_t size = input.take<std::uint8_t>() + (input.take<std::uint8_t>() % 4u) * 256u;
  exact_bytes out(std::max<std::size_t>(size, sizeof(size)));
  std::memcpy(out.as<std::uint8_t>(), &size, sizeof(size));
  accepted_or_explained(cudaq_dispatcher_get_stats(dispatcher, out.as<cudaq_dispatcher_stats_t>()),
                        "cudaq_dispatcher_get_stats");
}

void try_ring_memory(fuzz_input &input) {
  std::uint32_t size = 0;
  exact_bytes options = sized_struct<cudaq_ringbuffer_options_t>(input, cudaq_ringbuffer_options_init, size);
  cudaq_ringbuffer_options_t seen{};
  std::memcpy(&seen, options.as<std::uint8_t>(), std::min<std::size_t>(size, sizeof(seen)));
  if (std::uint64_t{seen.num_slots} * seen.slot_size > 1u << 20 || seen.num_slots > 1u << 16)
    return; // a program that asks for so much memory gets it
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  const cudaq_status_t status = cudaq_ringbuffer_create(options.as<cudaq_ringbuffer_options_t>(), &memory, &ring);
  accepted_or_explained(status, "cudaq_ringbuffer_create");
  require((status == CUDAQ_OK) == (memory != nullptr), "there is memory or a refusal");
  if (status == CUDAQ_OK)
    require(cudaq_ringbuffer_destroy(memory) == CUDAQ_OK, "ring memory can be freed");
}

void try_ring(cudaq_dispatcher_t *dispatcher, fuzz_input &input) {
  alignas(8) static std::uint64_t flags[2][8];
  alignas(8) static std::uint64_t data[2][8 * 64];
  cudaq_ringbuffer_t ring{};
  ring.rx_flags_host = flags[0];
  ring.tx_flags_host = flags[1];
  ring.rx_data_host = reinterpret_cast<std::uint8_t *>(data[0]);
  ring.tx_data_host = reinterpret_cast<std::uint8_t *>(data[1]);
  ring.rx_stride_sz = ring.tx_stride_sz = 64;
  const auto at = input.take<std::uint8_t>() % sizeof(ring);
  const auto changed = input.bytes(std::min<std::size_t>(input.take<std::uint8_t>() % 24u, sizeof(ring) - at));
  std::copy(changed.begin(), changed.end(), reinterpret_cast<std::uint8_t *>(&ring) + at);
  accepted_or_explained(cudaq_dispatcher_set_ringbuffer(dispatcher, &ring), "cudaq_dispatcher_set_ringbuffer");
}

void try_table(cudaq_dispatcher_t *dispatcher, fuzz_input &input) {
  const std::uint32_t count = input.take<std::uint8_t>() % 5u;
  std::vector<cudaq_function_entry_t> entries(count);
  for (cudaq_function_entry_t &entry : entries) {
    const auto changed = input.bytes(sizeof(entry));
    std::copy(changed.begin(), changed.end(), reinterpret_cast<std::uint8_t *>(&entry));
  }
  const cudaq_function_table_t table{count != 0 ? entries.data() : nullptr, count};
  accepted_or_explained(cudaq_dispatcher_set_function_table(dispatcher, &table), "cudaq_dispatcher_set_function_table");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  cudaq_dispatcher_config_t config{};
  config.dispatch_path = CUDAQ_DISPATCH_PATH_HOST;
  config.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  config.num_slots = 8;
  config.slot_size = 64;
  const auto at = input.take<std::uint8_t>() % sizeof(config);
  const auto changed = input.bytes(std::min<std::size_t>(input.take<std::uint8_t>() % 16u, sizeof(config) - at));
  std::copy(changed.begin(), changed.end(), reinterpret_cast<std::uint8_t *>(&config) + at);

  cudaq_dispatch_manager_t *manager = nullptr;
  cudaq_dispatcher_t *dispatcher = nullptr;
  require(cudaq_dispatch_manager_create(&manager) == CUDAQ_OK, "there is a manager");
  const cudaq_status_t created = cudaq_dispatcher_create(manager, &config, &dispatcher);
  accepted_or_explained(created, "cudaq_dispatcher_create");
  require((created == CUDAQ_OK) == (dispatcher != nullptr), "there is a dispatcher or a refusal");
  while (created == CUDAQ_OK && !input.empty())
    switch (input.take<std::uint8_t>() % 6) {
    case 0:
      try_options(dispatcher, input);
      break;
    case 1:
      try_init(input);
      break;
    case 2:
      try_statistics(dispatcher, input);
      break;
    case 3:
      try_ring_memory(input);
      break;
    case 4:
      try_ring(dispatcher, input);
      break;
    default:
      try_table(dispatcher, input);
    }
  if (created == CUDAQ_OK)
    require(cudaq_dispatcher_destroy(dispatcher) == CUDAQ_OK, "a dispatcher can be destroyed");
  require(cudaq_dispatch_manager_destroy(manager) == CUDAQ_OK, "a manager can be destroyed");
  return 0;
}
