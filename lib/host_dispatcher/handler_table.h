// SPDX-License-Identifier: Apache-2.0
// The handlers of a host dispatcher: lookup, calls, and checks of their answers.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "cudaq/realtime/detail/ring/function_index_builder.h"
#include "lib/base/callback.h"
#include "lib/base/error_text.h"
#include "lib/shared_ring/job_table.h"

namespace cudaq::realtime::detail {

/// A v2 handler as the caller registered it.
struct v2_handler {
  std::uint32_t function_id = 0;
  cudaq_host_handler_v2_t fn = nullptr;
  void *user = nullptr;
  cudaq_handler_schema_t schema{};
};

/// True for the statuses of the library's range (docs/message_protocol.md). A handler that returns one has given no
/// valid answer: NO_RESPONSE. A deferred completion may give one, because the work that it reports can end in these
/// ways: the pipeline does. CUDAQ_HOST_CALL_DEFERRED is one of these numbers.
constexpr bool is_protocol_status(std::int32_t status) { return status <= CUDAQ_RPC_ERR_BAD_ARG_LEN; }

/// For handlers that write their own frame. expect_frame, before the handler runs: clears the header in the TX slot, so
/// that the magic of an old answer is not taken for this one's. frame_answer, after the handler: reads its answer.
void expect_frame(const slot_ring &ring, std::uint32_t slot);
handler_result frame_answer(const slot_ring &ring, std::uint32_t slot);

/// Constant after prepare: any number of threads may call `run` at the same time.
class handler_table {
public:
  /// Copies the table and the v2 handlers. Each (function id, routing key) of a GRAPH_LAUNCH entry or of a worker
  /// becomes one route, also if several entries or workers have it. Refused: duplicate entries, and one function id in
  /// different dispatch modes. `max_result_len`: the longest result that an answer may have.
  expected<> prepare(const cudaq_function_table_t &table, const std::vector<v2_handler> &v2,
                     const std::vector<cudaq_host_worker_t> &workers, const judge_rules &rules,
                     std::uint32_t max_result_len);

  const function_index_view &index() const { return view_; }
  const judge_rules &rules() const { return rules_; }
  /// True if an answer may come after its handler has returned: there are v2 handlers or graph workers.
  bool may_defer() const { return may_defer_; }

  /// Calls the handler of `r` on the calling thread and returns its answer, unchecked. handler_result::now is false if
  /// the handler deferred. `generation` is the one that a v2 handler finds in its job.
  handler_result run(const slot_ring &ring, std::uint32_t slot, const request &r, std::uint32_t route,
                     std::uint64_t generation, thread_counters &here) const;

  /// Replaces an answer that the slots or the schema do not allow by a protocol error. Each answer of a handler is
  /// checked here once, before its publication.
  handler_result checked(std::uint32_t route, const handler_result &response) const {
    if (response.result_len > max_result_len_)
      return {true, CUDAQ_RPC_ERR_RESULT_TOO_LARGE, 0};
    if (is_protocol_status(response.status)) // from a completion, or from the library
      return {true, response.status, 0};
    if (rules_.check_schema && response.status == CUDAQ_RPC_OK &&
        contradicts_results(view_.routes[route], response.result_len))
      return {true, CUDAQ_RPC_ERR_SCHEMA_MISMATCH, 0};
    return response;
  }

private:
  struct handler {
    cudaq_host_rpc_fn_t v1 = nullptr;
    cudaq_host_handler_v2_t v2 = nullptr;
    void *user = nullptr;
  };
  handler_result run_v1(const slot_ring &ring, std::uint32_t slot, const handler &h) const;
  handler_result run_v2(const slot_ring &ring, std::uint32_t slot, const request &r, const handler &h,
                        std::uint64_t generation, thread_counters &here) const;

  function_index index_;
  function_index_view view_ = index_.view();
  judge_rules rules_;
  std::vector<handler> handlers_; ///< by route
  std::uint32_t max_result_len_ = 0;
  bool may_defer_ = false;
};

} // namespace cudaq::realtime::detail
