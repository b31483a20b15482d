// SPDX-License-Identifier: Apache-2.0
// Runs dispatch turns over random requests in slots with guard bytes, and compares each result with the expected one.
// Used by the libFuzzer target and by the deterministic test.
#pragma once

#include "lib/host_dispatcher/host_dispatcher.h"
#include "unittests/support/ring_fixture.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::test {

/// The fields of a request that the fuzzer chooses.
struct fuzzed_request {
  std::uint32_t magic, function_id, arg_len, request_id;
  std::uint64_t ptp_timestamp, flag;
};

/// A host dispatcher without threads on a ring with guard bytes. step() returns an error text, or an empty text.
class header_fuzz {
public:
  static constexpr std::uint32_t kV1 = 1, kV2 = 2, kGraph = 3;

  header_fuzz(std::uint32_t num_slots, std::uint32_t slot_size, std::size_t stride, bool in_place, bool strict,
              bool answer)
      : slots_(num_slots, slot_size, stride, in_place), strict_(strict), answer_(answer) {
    cudaq_function_entry_t v1{}, graph{};
    v1.function_id = kV1;
    v1.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
    v1.handler.host_fn = echo_v1;
    graph.function_id = kGraph;
    graph.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
    graph.routing_key = 42;
    entries_ = {v1, graph};
    detail::host_setup setup;
    setup.jobs = std::make_shared<detail::job_table>(num_slots, 1u << 20);
    setup.jobs->bind(slots_.view);
    setup.table = {entries_.data(), 2};
    setup.v2 = {{kV2, echo_v2, nullptr, {}}};
    setup.options.strict_flag_values = strict;
    setup.options.unknown_function = answer;
    setup.shutdown_flag = &shutdown_;
    setup.stats = &stats_;
    broken_ = dispatcher_.prepare(std::move(setup)).text();
  }

  std::string step(const fuzzed_request &f) {
    if (!broken_.empty())
      return broken_;
    const detail::slot_ring &ring = slots_.view;
    const std::uint32_t i = at_;
    at_ = ring.next(at_);
    const detail::request r{f.magic, f.function_id, f.arg_len, f.request_id, f.ptp_timestamp};
    std::memset(ring.rx_slot(i), static_cast<int>(f.request_id & 0xFF), ring.slot_size);
    detail::write_header(ring.rx_slot(i), r);
    const auto own = reinterpret_cast<std::uint64_t>(ring.rx_slot(i));
    const std::uint64_t flag = f.flag == 0 ? own : f.flag;
    detail::store_release(ring.rx_flags[i], flag);
    cudaq_dispatcher_stats_t before{}, after{};
    dispatcher_.read_stats(before);
    if (dispatcher_.turn() != 1)
      return "a turn over one request did not return 1";
    dispatcher_.read_stats(after);
    if (!slots_.guards_whole())
      return "guard bytes were overwritten";
    if (ring.ready(i) != 0)
      return "rx was not cleared";
    const bool silent =
        (strict_ && flag != own) || f.magic != CUDAQ_RPC_MAGIC_REQUEST || (!known(f.function_id) && !answer_);
    if (after.received != before.received + 1 || after.responded != before.responded + !silent || after.in_flight != 0)
      return "counters are wrong";
    if (silent)
      return ring.collected(i) ? "" : "a silent case was answered";
    return answer_is_right(i, r);
  }

private:
  static bool known(std::uint32_t id) { return id == kV1 || id == kV2 || id == kGraph; }

  std::string answer_is_right(std::uint32_t i, const detail::request &r) {
    const detail::slot_ring &ring = slots_.view;
    if (ring.answer(i) != reinterpret_cast<std::uint64_t>(ring.tx_slot(i)))
      return "tx is not the slot's address";
    const auto got = detail::read_header<detail::response>(ring.tx_slot(i));
    if (got.magic != CUDAQ_RPC_MAGIC_RESPONSE || got.request_id != r.request_id || got.ptp_timestamp != r.ptp_timestamp)
      return "the answer does not echo its request";
    const std::int32_t status = !known(r.function_id)            ? CUDAQ_RPC_ERR_NO_SUCH_FUNCTION
                                : r.arg_len > ring.max_payload() ? CUDAQ_RPC_ERR_BAD_ARG_LEN
                                : r.function_id == kGraph        ? CUDAQ_RPC_ERR_NO_SUCH_FUNCTION
                                                                 : CUDAQ_RPC_OK;
    if (got.status != status)
      return "status " + std::to_string(got.status) + " instead of " + std::to_string(status);
    if (got.result_len != (status == 0 ? r.arg_len : 0))
      return "result_len is wrong";
    for (std::uint32_t n = 0; n < got.result_len; ++n)
      if (ring.tx_slot(i)[24 + n] != static_cast<std::uint8_t>(r.request_id))
        return "the result is wrong";
    ring.collect(i);
    return "";
  }

  static void echo_v1(const void *rx, void *tx, std::size_t) {
    const auto r = detail::read_header<detail::request>(static_cast<const std::uint8_t *>(rx));
    auto *out = static_cast<std::uint8_t *>(tx);
    std::memmove(out + 24, static_cast<const std::uint8_t *>(rx) + 24, r.arg_len);
    detail::write_header(out, detail::response{CUDAQ_RPC_MAGIC_RESPONSE, 0, r.arg_len, 0, 0});
  }
  static std::int32_t echo_v2(cudaq_host_call_t *call, void *) {
    if (call->payload_len != 0)
      std::memcpy(call->result, call->payload, call->payload_len); // must not overlap
    call->result_len = call->payload_len;
    return 0;
  }

  guarded_slots slots_;
  const bool strict_, answer_;
  std::vector<cudaq_function_entry_t> entries_;
  volatile int shutdown_ = 0;
  std::uint64_t stats_ = 0;
  detail::host_dispatcher dispatcher_;
  std::uint32_t at_ = 0;
  std::string broken_;
};

} // namespace cudaq::realtime::test
