// SPDX-License-Identifier: Apache-2.0
// The HOST_CALL handler of the demo. Input: bit-packed detection events. Output: bit-packed observables.
#pragma once

#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_types.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_types.h"

#include "cudaq/qec/decoding/decoder.h"
#include "lib/qec/decoding/shot_file.h"
#include "lib/qec/server/session/wire_requests.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

namespace qec = cudaq::qec::realtime;

inline constexpr std::uint32_t kDecodeFunctionId = qec::kOneShotFunctionId; ///< the decoding server serves it, too
static_assert(kDecodeFunctionId == fnv1a_hash("qec_decode"));

/// When a thread worked on the request of a slot.
struct handled_span {
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::uint32_t thread = 0; ///< in the order in which the threads handled their first request
};

/// A pool of decoders, one for each thread that may call the handler at the same time. The handler neither locks nor
/// allocates.
class decode_service {
public:
  /// Throws usage_error with the decoder's reason if no decoder can be made for this model.
  decode_service(const std::string &decoder_name, const qec::shot_set &shots, std::uint32_t instances);

  /// For cudaq_dispatcher_set_host_handler_v2; `self` is the decode_service. The status of an answer is the
  /// decode_status.
  static std::int32_t handle(cudaq_host_call_t *call, void *self) noexcept;

  /// From now on the handler writes its times. Call it while nothing is dispatched.
  void record_spans(std::uint32_t slots);
  /// By slot. The answer's flag orders the handler's writes before the reads of the thread that has seen it.
  [[nodiscard]] const std::vector<handled_span> &spans() const noexcept { return spans_; }

  /// Decodes one packed shot on the calling thread, without a ring. `observables` has observable_bytes() bytes. Returns
  /// internal_error if more than instances() threads call it at the same time. `fault`: null, or gets decoder::fault()
  /// with internal_error. `is_late`: null, or gets decoder::is_late(). `known`: of this shot.
  qec::decode_status decode(std::span<const std::uint8_t> packed, std::span<std::uint8_t> observables,
                            std::string *fault = nullptr, bool *is_late = nullptr,
                            qec::shot_probabilities known = {}) noexcept;
  /// decoder::refuses_probabilities().
  [[nodiscard]] const char *refuses_probabilities() const noexcept {
    return entries_.front().decoder->refuses_probabilities();
  }

  [[nodiscard]] const char *decoder_name() const noexcept { return entries_.front().decoder->name(); }
  /// Why "auto" took this decoder and not its first choice; "" otherwise.
  [[nodiscard]] const std::string &decoder_choice() const noexcept { return choice_; }
  [[nodiscard]] std::size_t instances() const noexcept { return entries_.size(); }
  [[nodiscard]] std::uint64_t num_detectors() const noexcept { return entries_.front().decoder->num_detectors(); }
  [[nodiscard]] std::size_t observable_bytes() const noexcept { return entries_.front().decoder->observable_bytes(); }
  /// Types of arguments and results, for cudaq_dispatcher_set_host_handler_v2.
  [[nodiscard]] cudaq_handler_schema_t schema() const noexcept;

private:
  struct alignas(64) entry {
    std::unique_ptr<qec::decoder> decoder;
    std::vector<std::uint64_t> events; ///< one element for each detector
    std::atomic<bool> busy{false};
  };
  entry *borrow() noexcept;
  std::uint32_t number_of_this_thread() noexcept;

  std::deque<entry> entries_;
  std::string choice_;
  std::vector<handled_span> spans_; ///< empty: nothing is recorded
  std::uint32_t recording_ = 0;     ///< calls of record_spans
  std::atomic<std::uint32_t> threads_{0};
};

} // namespace cudaq::realtime::tools
