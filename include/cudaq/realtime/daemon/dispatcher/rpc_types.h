// SPDX-License-Identifier: Apache-2.0
// C++ names of the protocol, for hosts and devices: frames, function ids, handler types, payload schemas. They need no
// function of the C API and no CUDA header.
#ifndef CUDAQ_REALTIME_RPC_TYPES_H
#define CUDAQ_REALTIME_RPC_TYPES_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include "cudaq/realtime/detail/base/host_device.h"

#include <cstddef>
#include <cstdint>

namespace cudaq::realtime {

inline constexpr std::uint32_t RPC_MAGIC_REQUEST = CUDAQ_RPC_MAGIC_REQUEST;
inline constexpr std::uint32_t RPC_MAGIC_RESPONSE = CUDAQ_RPC_MAGIC_RESPONSE;

/// Request header: the C struct `cudaq_rpc_header_t` under its C++ name.
struct __attribute__((packed)) RPCHeader {
  std::uint32_t magic;
  std::uint32_t function_id;
  std::uint32_t arg_len;
  std::uint32_t request_id;
  std::uint64_t ptp_timestamp;
};

/// Response header: the C struct `cudaq_rpc_response_t` under its C++ name.
struct __attribute__((packed)) RPCResponse {
  std::uint32_t magic;
  std::int32_t status;
  std::uint32_t result_len;
  std::uint32_t request_id;
  std::uint64_t ptp_timestamp;
};

/// 32-bit FNV-1a of a NUL-terminated name: the function id of the handler with that name.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t fnv1a_hash(const char *name) {
  std::uint32_t hash = 2166136261u;
  for (; *name != '\0'; ++name)
    hash = (hash ^ static_cast<std::uint8_t>(*name)) * 16777619u;
  return hash;
}

/// A DEVICE_CALL handler. Input (`arg_len` bytes) and output (`max_result_len` bytes) never overlap. It returns the
/// status of the response and sets `*result_len`, which is 0 on entry. Which threads call it depends on the kernel
/// kind: docs/device_dispatch.md.
using DeviceRPCFunction = int (*)(const void *input, void *output, std::uint32_t arg_len, std::uint32_t max_result_len,
                                  std::uint32_t *result_len);

/// Arguments with which a graph handler answers: it writes an RPCResponse frame to `tx_slot`, then stores
/// `tx_flag_value` to `*tx_flag` with system-scope release. The address of the context is a fixed argument of the
/// graph's kernels, so a context belongs to one graph exec.
struct GraphIOContext {
  void *rx_slot;
  std::uint8_t *tx_slot;
  volatile std::uint64_t *tx_flag;
  std::uint64_t tx_flag_value;
  std::size_t tx_stride_sz;
};

/// The same for a graph that publishes to the ring itself, which saves one step. The graph stores `io.tx_flag_value` to
/// `*io.tx_flag`, which is the ring's own flag. When it touches the slot no more, it stores `done_value` to `*done`.
/// Both are stores with system-scope release. publish_graph_response (graph_io.cuh) does this.
struct GraphIOContextV2 {
  GraphIOContext io;
  volatile std::uint64_t *done;
  std::uint64_t done_value;
};

/// Payload types under their C++ names. The values are those of cudaq_payload_type_t.
enum PayloadTypeID : std::uint8_t {
  TYPE_UINT8 = CUDAQ_TYPE_UINT8,
  TYPE_INT32 = CUDAQ_TYPE_INT32,
  TYPE_INT64 = CUDAQ_TYPE_INT64,
  TYPE_FLOAT32 = CUDAQ_TYPE_FLOAT32,
  TYPE_FLOAT64 = CUDAQ_TYPE_FLOAT64,
  TYPE_UINT32 = CUDAQ_TYPE_UINT32,
  TYPE_ARRAY_UINT8 = CUDAQ_TYPE_ARRAY_UINT8,
  TYPE_ARRAY_INT32 = CUDAQ_TYPE_ARRAY_INT32,
  TYPE_ARRAY_FLOAT32 = CUDAQ_TYPE_ARRAY_FLOAT32,
  TYPE_ARRAY_FLOAT64 = CUDAQ_TYPE_ARRAY_FLOAT64,
  TYPE_BIT_PACKED = CUDAQ_TYPE_BIT_PACKED
};

/// Bytes of one element of an array type, or of a scalar; 0 for BIT_PACKED and for unknown ids.
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t payload_element_bytes(std::uint8_t type_id) {
  switch (type_id) {
  case TYPE_UINT8:
  case TYPE_ARRAY_UINT8:
    return 1;
  case TYPE_INT32:
  case TYPE_UINT32:
  case TYPE_FLOAT32:
  case TYPE_ARRAY_INT32:
  case TYPE_ARRAY_FLOAT32:
    return 4;
  case TYPE_INT64:
  case TYPE_FLOAT64:
  case TYPE_ARRAY_FLOAT64:
    return 8;
  default:
    return 0;
  }
}

/// Descriptor of `num_elements` elements of a type. For BIT_PACKED `num_elements` is the number of bits; the size is
/// rounded up to bytes.
CUDAQ_REALTIME_HOST_DEVICE constexpr cudaq_type_desc_t make_type_desc(std::uint8_t type_id,
                                                                      std::uint32_t num_elements) {
  const std::uint32_t bytes = type_id == TYPE_BIT_PACKED ? num_elements / 8 + (num_elements % 8 != 0)
                                                         : payload_element_bytes(type_id) * num_elements;
  return cudaq_type_desc_t{type_id, {0, 0, 0}, bytes, num_elements};
}

/// Byte offset of argument `index` in a payload. Arguments follow each other in schema order, without padding. The
/// offset has no meaning after an argument of variable size (size_bytes 0).
CUDAQ_REALTIME_HOST_DEVICE constexpr std::uint32_t argument_offset(const cudaq_handler_schema_t &schema,
                                                                   std::uint32_t index) {
  std::uint32_t offset = 0;
  for (std::uint32_t i = 0; i < index && i < schema.num_args && i < CUDAQ_MAX_ARGS; ++i)
    offset += schema.args[i].size_bytes;
  return offset;
}

static_assert(sizeof(RPCHeader) == sizeof(cudaq_rpc_header_t) && sizeof(RPCHeader) == CUDAQ_RPC_HEADER_SIZE);
static_assert(sizeof(RPCResponse) == sizeof(cudaq_rpc_response_t) && sizeof(RPCResponse) == CUDAQ_RPC_HEADER_SIZE);
static_assert(offsetof(RPCHeader, ptp_timestamp) == offsetof(cudaq_rpc_header_t, ptp_timestamp));
static_assert(offsetof(RPCResponse, ptp_timestamp) == offsetof(cudaq_rpc_response_t, ptp_timestamp));

} // namespace cudaq::realtime

#endif
