// SPDX-License-Identifier: Apache-2.0
// The slot protocol: the two flags and two data areas of each slot, and the legal operations on them.
//
//   producer    free_for_producer(i) -> write rx_slot(i) -> signal(i)
//   dispatcher  ready(i) -> collected(i) -> handler writes tx_slot(i) -> publish(i)         answered inline
//               ready(i) -> mark_in_flight(i) -> launch -> release_rx(i) ... publish_tx(i)  with markers
//               ready(i) -> launch ... publish(i)                                           without markers
//   consumer    answer(i) -> read tx_slot(i) -> collect(i)
//
// On a ring whose requests lie in device memory (CUDAQ_MEMORY_DEVICE_RX) a CPU cannot read an rx flag cheaply. There,
// the device also posts a lap to host memory: the number of times that the slot was given back. Kernels do it as
// posted_ring_transport.h does, graph schedulers by give_back. docs/ring_protocol.md section 13.
//
// The normative text, with the reasons, is docs/ring_protocol.md. Host and device compile this source.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "cudaq/realtime/detail/base/flag_word.h"

#include <cstddef>

namespace cudaq::realtime::detail {

/// The addresses of one slot, for code that uses the slot more than once: on a device, computing them takes longer than
/// serving a short request.
template <thread_scope Scope>
struct slot_words {
  volatile std::uint64_t *rx_flag, *tx_flag;
  std::uint8_t *request, *response;
  std::size_t lap_offset; ///< see scoped_slot_ring

  /// First the answer, then the request side. In the other order the producer would see a free slot for a moment.
  CUDAQ_REALTIME_HOST_DEVICE void publish() const {
    publish_tx();
    release_rx();
  }
  CUDAQ_REALTIME_HOST_DEVICE void publish_tx() const {
    store_release<std::uint64_t, Scope>(*tx_flag, reinterpret_cast<std::uint64_t>(response));
  }
  CUDAQ_REALTIME_HOST_DEVICE void release_rx() const {
    store_release<std::uint64_t, Scope>(*rx_flag, std::uint64_t{0});
  }
  /// release_rx on a ring that may have laps: the lap comes after rx = 0. In the other order rx = 0 could wipe out the
  /// producer's next signal.
  CUDAQ_REALTIME_HOST_DEVICE void give_back() const {
    if (Scope != thread_scope_system || lap_offset == 0) // answers in host memory: a ring with laps has system scope
      return release_rx();
    const std::uint64_t lap = load_relaxed(rx_flag[lap_offset]) + 1;
    store_relaxed(rx_flag[lap_offset], lap);
    store_release<std::uint64_t>(*rx_flag, std::uint64_t{0});
    store_release<std::uint64_t>(tx_flag[lap_offset], lap);
  }
};

/// One side's view (host or device) of a ring. Plain data; copies are views of the same ring. Scope: system, unless all
/// threads that touch the flags run on one device.
template <thread_scope Scope>
struct scoped_slot_ring {
  volatile std::uint64_t *rx_flags = nullptr;
  volatile std::uint64_t *tx_flags = nullptr;
  std::uint8_t *rx_data = nullptr;
  std::uint8_t *tx_data = nullptr; ///< == rx_data on an in-place ring
  std::size_t rx_stride = 0;
  std::size_t tx_stride = 0;
  std::uint64_t rx_alias = 0; ///< address of rx_data on the other side of the bus, 0 if unknown
  /// Laps: words from a slot's rx flag to its count in device memory, and from its tx flag to its lap in host memory,
  /// which is a copy of the count. 0: the ring has none.
  std::size_t lap_offset = 0;
  std::uint32_t num_slots = 0;
  std::uint32_t slot_size = 0; ///< usable bytes of a slot, header included

  /// The same view for flags that are accessed with another scope.
  template <thread_scope Other>
  CUDAQ_REALTIME_HOST_DEVICE scoped_slot_ring<Other> with_scope() const {
    return {rx_flags, tx_flags, rx_data, tx_data, rx_stride, tx_stride, rx_alias, lap_offset, num_slots, slot_size};
  }

  CUDAQ_REALTIME_HOST_DEVICE bool in_place() const { return rx_data == tx_data; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t max_payload() const { return slot_size - CUDAQ_RPC_HEADER_SIZE; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *rx_slot(std::uint32_t i) const { return rx_data + i * rx_stride; }
  CUDAQ_REALTIME_HOST_DEVICE std::uint8_t *tx_slot(std::uint32_t i) const { return tx_data + i * tx_stride; }
  CUDAQ_REALTIME_HOST_DEVICE slot_words<Scope> slot(std::uint32_t i) const {
    return {rx_flags + i, tx_flags + i, rx_slot(i), tx_slot(i), lap_offset};
  }
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t next(std::uint32_t i) const { return i + 1 == num_slots ? 0 : i + 1; }

  // --- producer ---

  /// Reads rx, then tx. Between the dispatcher's two stores tx is set, so in this order the producer never sees both as
  /// 0 too early.
  CUDAQ_REALTIME_HOST_DEVICE bool free_for_producer(std::uint32_t i) const {
    return load_acquire<std::uint64_t, Scope>(rx_flags[i]) == 0 && load_acquire<std::uint64_t, Scope>(tx_flags[i]) == 0;
  }
  /// With laps: the slot was given back `laps` times, and its last answer is collected. Reads host memory only.
  bool free_after(std::uint32_t i, std::uint64_t laps) const {
    return load_acquire(tx_flags[i + lap_offset]) == laps && load_acquire(tx_flags[i]) == 0;
  }
  CUDAQ_REALTIME_HOST_DEVICE void signal(std::uint32_t i) const {
    store_release<std::uint64_t, Scope>(rx_flags[i], reinterpret_cast<std::uint64_t>(rx_slot(i)));
  }

  // --- dispatcher ---

  /// The rx flag: non-zero means that the slot holds a request. The value is never dereferenced.
  CUDAQ_REALTIME_HOST_DEVICE std::uint64_t ready(std::uint32_t i) const {
    return load_acquire<std::uint64_t, Scope>(rx_flags[i]);
  }
  /// True if `flag` is the slot's own address, as this side or the other side of the bus sees it.
  CUDAQ_REALTIME_HOST_DEVICE bool is_own_address(std::uint32_t i, std::uint64_t flag) const {
    return flag == reinterpret_cast<std::uint64_t>(rx_slot(i)) || (rx_alias != 0 && flag == rx_alias + i * rx_stride);
  }
  /// True if the consumer has taken the slot's last answer.
  CUDAQ_REALTIME_HOST_DEVICE bool collected(std::uint32_t i) const {
    return load_acquire<std::uint64_t, Scope>(tx_flags[i]) == 0;
  }
  CUDAQ_REALTIME_HOST_DEVICE void publish(std::uint32_t i) const { slot(i).publish(); }
  CUDAQ_REALTIME_HOST_DEVICE void publish_tx(std::uint32_t i) const { slot(i).publish_tx(); }
  CUDAQ_REALTIME_HOST_DEVICE void release_rx(std::uint32_t i) const { slot(i).release_rx(); }
  CUDAQ_REALTIME_HOST_DEVICE void give_back(std::uint32_t i) const { slot(i).give_back(); }
  /// Call it before the launch: then it cannot overwrite an answer.
  CUDAQ_REALTIME_HOST_DEVICE void mark_in_flight(std::uint32_t i) const {
    store_release<std::uint64_t, Scope>(tx_flags[i], std::uint64_t{CUDAQ_TX_FLAG_IN_FLIGHT});
  }

  /// Stores a CUDA error instead of an answer; it replaces the IN_FLIGHT marker. With markers only.
  CUDAQ_REALTIME_HOST_DEVICE void publish_error(std::uint32_t i, std::uint32_t cuda_error) const {
    store_release<std::uint64_t, Scope>(tx_flags[i], CUDAQ_TX_FLAG_ERROR_TAG << CUDAQ_TX_FLAG_ERROR_SHIFT | cuda_error);
  }

  // --- consumer ---

  CUDAQ_REALTIME_HOST_DEVICE std::uint64_t answer(std::uint32_t i) const {
    return load_acquire<std::uint64_t, Scope>(tx_flags[i]);
  }
  CUDAQ_REALTIME_HOST_DEVICE void collect(std::uint32_t i) const {
    store_release<std::uint64_t, Scope>(tx_flags[i], std::uint64_t{0});
  }
};

using slot_ring = scoped_slot_ring<thread_scope_system>;

} // namespace cudaq::realtime::detail
