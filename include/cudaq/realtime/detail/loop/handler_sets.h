// SPDX-License-Identifier: Apache-2.0
// The handlers of a loop: those of the run-time table, or a list known at compile time. Both have these members:
//   judge(r, expected_flag, max_payload, payload, rules)   how to treat a request (detail/ring/judge.h)
//   callee(route)                                          the value that call() needs for the handler of a route
//   call(callee, in, out, arg_len, max_result_len, &len)   runs the handler on the calling thread
//   contradicts(route, result_len)                         the result contradicts the schema
//   kDefers                                                some routes are answered later, and a handler may trigger a
//                                                          graph (graph_handlers.h)
#pragma once

#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"
#include "cudaq/realtime/detail/kernel_abi/device_params.h"

namespace cudaq::realtime {

/// A handler known at compile time; it is inlined into the kernel.
template <std::uint32_t FunctionId, DeviceRPCFunction Function>
struct static_handler {
  static constexpr std::uint32_t function_id = FunctionId;
#if defined(__CUDACC__)
  __device__ static int call(const void *in, void *out, std::uint32_t arg_len, std::uint32_t max_result_len,
                             std::uint32_t *result_len) {
    return Function(in, out, arg_len, max_result_len, result_len);
  }
#endif
};

namespace detail {

/// The handlers of the function table.
class table_handler_set {
public:
  static constexpr bool kDefers = false;
  CUDAQ_REALTIME_HOST_DEVICE table_handler_set(const function_index_view &index, const std::uint64_t *handlers)
      : index_(index), handlers_(handlers) {}

  CUDAQ_REALTIME_HOST_DEVICE judgement judge(const request &r, bool expected_flag, std::uint32_t max_payload,
                                             const std::uint8_t *payload, const judge_rules &rules) const {
    return detail::judge(r, expected_flag, max_payload, payload, index_, rules);
  }
  CUDAQ_REALTIME_HOST_DEVICE DeviceRPCFunction callee(std::uint32_t route) const {
    return reinterpret_cast<DeviceRPCFunction>(handlers_[route]);
  }
  CUDAQ_REALTIME_HOST_DEVICE static int call(DeviceRPCFunction callee, const void *in, void *out, std::uint32_t arg_len,
                                             std::uint32_t max_result_len, std::uint32_t *result_len) {
    return callee(in, out, arg_len, max_result_len, result_len);
  }
  CUDAQ_REALTIME_HOST_DEVICE bool contradicts(std::uint32_t route, std::uint32_t result_len) const {
    return contradicts_results(index_.routes[route], result_len);
  }

protected:
  function_index_view index_;

private:
  const std::uint64_t *handlers_;
};

/// Handlers known at compile time: no table in memory, no indirect call.
template <class... StaticHandlers>
class static_handler_set {
public:
  static constexpr bool kDefers = false;
  CUDAQ_REALTIME_HOST_DEVICE judgement judge(const request &r, bool expected_flag, std::uint32_t max_payload,
                                             const std::uint8_t *payload, const judge_rules &rules) const {
    return detail::judge(r, expected_flag, max_payload, payload, list{}, rules);
  }
  CUDAQ_REALTIME_HOST_DEVICE static std::uint32_t callee(std::uint32_t route) { return route; }
  CUDAQ_REALTIME_HOST_DEVICE static int call(std::uint32_t route, const void *in, void *out, std::uint32_t arg_len,
                                             std::uint32_t max_result_len, std::uint32_t *result_len) {
    int status = 0;
    std::uint32_t position = 0;
    (void)((position++ == route &&
            ((status = StaticHandlers::call(in, out, arg_len, max_result_len, result_len)), true)) ||
           ...);
    return status;
  }
  CUDAQ_REALTIME_HOST_DEVICE bool contradicts(std::uint32_t, std::uint32_t) const { return false; }

private:
  /// The members of a function_index_view that judge() uses. There are no schemas.
  struct list {
    struct no_schemas {
      CUDAQ_REALTIME_HOST_DEVICE constexpr function_route operator[](std::uint32_t) const { return {}; }
    };
    no_schemas routes;
    CUDAQ_REALTIME_HOST_DEVICE function_bucket bucket(std::uint32_t function_id) const {
      function_bucket found{function_id, 0, 0, CUDAQ_DISPATCH_DEVICE_CALL};
      std::uint32_t position = 0;
      (void)((StaticHandlers::function_id == function_id ? (found.first = position, found.count = 1, true)
                                                         : (++position, false)) ||
             ...);
      return found;
    }
    CUDAQ_REALTIME_HOST_DEVICE std::uint32_t find_in(const function_bucket &run, const request &,
                                                     const std::uint8_t *) const {
      return run.first;
    }
  };
};

} // namespace detail
} // namespace cudaq::realtime
