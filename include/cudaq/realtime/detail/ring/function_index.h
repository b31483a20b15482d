// SPDX-License-Identifier: Apache-2.0
// Function lookup without a scan: a hash table from function id to the routes of that id, built once at start.
//
// Routes are sorted by (function id, routing key), so the routes of one id are adjacent. A bucket holds the position
// of the first route of an id, and the number of its routes. Example with three entries:
//
//   entry  id   mode   key        route   id   key   entry       buckets (id -> first, count)
//   0      70   host   0          0       50   0     2           70 -> 2, 1
//   1      50   graph  9          1       50   9     1           50 -> 0, 2
//   2      50   graph  0          2       70   0     0
//
// A request for id 50 whose first 8 payload bytes are 9 gets route 1. Any other key gets route 0, which has key 0.
// The index is plain arrays and raw pointers: a device can search a copy of the arrays.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/detail/ring/frame.h"

namespace cudaq::realtime::detail {

/// One entry of the function table, reduced to the data that a request needs.
struct function_route {
  std::uint64_t routing_key = 0;
  std::uint32_t function_id = 0;
  std::uint32_t entry = 0;      ///< position in the function table
  std::uint32_t args_bytes = 0; ///< sum of the fixed argument sizes of the schema
  std::uint32_t results_bytes = 0;
  std::uint8_t mode = 0;          ///< cudaq_dispatch_mode_t
  std::uint8_t args_stated = 0;   ///< the schema states arguments
  std::uint8_t args_fixed = 0;    ///< arguments are stated and none has a variable size
  std::uint8_t results_fixed = 0; ///< results are stated and none has a variable size
};

/// The routes of one function id, which all have one dispatch mode. count 0: an empty bucket. One 16-byte load.
struct alignas(16) function_bucket {
  std::uint32_t function_id = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t mode = 0; ///< cudaq_dispatch_mode_t
};

struct function_index_view {
  const function_bucket *buckets = nullptr; ///< bucket_mask + 1 buckets, a power of two, at most half full
  const function_route *routes = nullptr;
  std::uint32_t bucket_mask = 0;
  std::uint32_t num_routes = 0;

  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t hash(std::uint32_t id) {
    const std::uint32_t mixed = id * 0x9E3779B1u; // ids may be hashes or small integers
    return mixed ^ (mixed >> 16);
  }

  /// The bucket of `function_id`, or an empty bucket.
  CUDAQ_REALTIME_HOST_DEVICE const function_bucket &bucket(std::uint32_t function_id) const {
    std::uint32_t b = hash(function_id) & bucket_mask;
    while (buckets[b].count != 0 && buckets[b].function_id != function_id)
      b = (b + 1) & bucket_mask;
    return buckets[b];
  }

  CUDAQ_REALTIME_HOST_DEVICE bool contains(std::uint32_t function_id) const { return bucket(function_id).count != 0; }
  /// True if the index has `function_id` in a mode of `modes` (bit m: mode m).
  CUDAQ_REALTIME_HOST_DEVICE bool serves(std::uint32_t function_id, std::uint32_t modes) const {
    const function_bucket &run = bucket(function_id);
    return run.count != 0 && (modes >> run.mode & 1u) != 0;
  }

  /// The route that serves the request, or kNone. `payload` holds the first min(arg_len, 8) payload bytes,
  /// aligned to 8.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t find(const request &r, const std::uint8_t *payload) const {
    const function_bucket &run = bucket(r.function_id);
    return run.count == 0 ? kNone : find_in(run, r, payload);
  }
  /// The same; `run` is the non-empty bucket of the request's function id.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t find_in(const function_bucket &run, const request &r,
                                                   const std::uint8_t *payload) const {
    if (run.mode != CUDAQ_DISPATCH_GRAPH_LAUNCH)
      return run.first;
    return find_key(run, routing_key_of(r, payload));
  }

private:
  CUDAQ_REALTIME_HOST_DEVICE static std::uint64_t routing_key_of(const request &r, const std::uint8_t *payload) {
    std::uint64_t key = 0;
    if (r.arg_len >= sizeof(key)) {
#if defined(__CUDA_ARCH__) // the loop's own copy
      std::memcpy(&key, payload, sizeof(key));
#else
      key = load_frame<std::uint64_t>(payload);
#endif
    }
    return key;
  }

  /// The route with this key, else the route with key 0, else kNone.
  CUDAQ_REALTIME_HOST_DEVICE std::uint32_t find_key(const function_bucket &run, std::uint64_t key) const {
    std::uint32_t low = run.first, high = run.first + run.count;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (routes[middle].routing_key < key)
        low = middle + 1;
      else
        high = middle;
    }
    if (low < run.first + run.count && routes[low].routing_key == key)
      return low;
    return routes[run.first].routing_key == 0 ? run.first : kNone;
  }
};

} // namespace cudaq::realtime::detail
