// SPDX-License-Identifier: Apache-2.0
// Device handlers and launch functions for the tests of the dispatch kernels. This header is plain C++.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#include <cstdint>
#include <cuda_runtime_api.h>

namespace cudaq::realtime::test {

/// Number of checked functions. Function k has the id k + 1.
inline constexpr std::uint32_t kCheckedFunctions = 12;

/// Each handler has two forms: for one thread, and for all threads of a grid (cooperative kernels).
enum class handler : std::uint32_t {
  reverse,    ///< returns the payload, last byte first
  flip,       ///< returns the payload inverted and reversed, in two steps with a barrier of all threads between them
  describe,   ///< returns a handler_view
  own_status, ///< returns the i32 at the beginning of the payload; no result
  claims_too_much, ///< sets a result length that is one more than the room for it
  count,           ///< the payload is a device address; adds one to the u32 there and returns the old value
  meet,            ///< takes meet_request; waits until `wanted` calls have come; status 0: they came, 1: time-out
  wait_for_word,   ///< takes wait_request; waits until the word is not 0; status 0: it is not 0, 1: time-out
  echo,            ///< returns the payload, 8 bytes at a time
  trap,            ///< ends the context with an error
  checked,         ///< the first of kCheckedFunctions handlers that run check_traffic
  end = checked + kCheckedFunctions
};
inline constexpr std::uint32_t kHandlers = static_cast<std::uint32_t>(handler::end);

struct handler_view {
  std::uint32_t arg_len, max_result_len;
  std::uint32_t threads; ///< number of threads that ran the handler; the handler counts them
  std::uint32_t overlap; ///< 1: input and output share bytes
};
struct meet_request {
  std::uint64_t max_cycles;
  std::uint64_t calls; ///< device address of a u32 that counts the calls
  std::uint64_t wanted;
};
struct wait_request {
  std::uint64_t max_cycles;
  std::uint64_t word; ///< device address of a u32
};

/// What a checked handler has found, in device memory. `served` has one word per sequence number.
struct checked_record {
  std::uint64_t calls, corrupt, doubled, out_of_order, side_by_side;
  std::uint32_t *served;
  std::uint32_t size;
  std::uint32_t expected, inside;
};

/// Writes the addresses of the kHandlers handlers on the current device to `out`: their form for the grid, or for one
/// thread. It loads every kernel below, so call it before a dispatcher runs. Uses `stream` and waits for it.
cudaError_t handler_addresses(bool grid, void **out, cudaStream_t stream);
/// Sets the kCheckedFunctions records that the checked handlers of the current device use.
cudaError_t use_checked_records(checked_record *records_dev, cudaStream_t stream);

/// A kernel unrelated to dispatchers; it stores 42. It is loaded by preload_other_kernel or by its first launch.
cudaError_t preload_other_kernel();
cudaError_t launch_other_kernel(int *out_dev, cudaStream_t stream);

/// A kernel that waits for the answer in slot 0 until a device_deadline of `ns` has passed. It stores 1 + the state at
/// its end. It is loaded by handler_addresses or by its first launch.
cudaError_t launch_wait_for_answer(const cudaq_ringbuffer_t &ring, std::uint32_t num_slots, std::uint64_t ns,
                                   std::uint32_t *out_dev, cudaStream_t stream);

/// Launch functions that fail.
void launch_too_many_threads(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                             cudaq_function_entry_t *, size_t, volatile int *, uint64_t *, size_t, uint32_t, uint32_t,
                             cudaStream_t stream);
void launch_nothing(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                    cudaq_function_entry_t *, size_t, volatile int *, uint64_t *, size_t, uint32_t, uint32_t,
                    cudaStream_t stream);
cudaError_t launch_refused(const cudaq_dispatch_launch_params_t *params);
/// A user's launch function. It launches a kernel that only waits for the shutdown flag, at most about 20 s.
void launch_own_kernel(volatile uint64_t *, volatile uint64_t *, uint8_t *, uint8_t *, size_t, size_t,
                       cudaq_function_entry_t *, size_t, volatile int *shutdown_flag, uint64_t *, size_t, uint32_t,
                       uint32_t, cudaStream_t stream);

} // namespace cudaq::realtime::test
