// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/pipeline/completions.h"

#include "lib/base/callback.h"
#include "lib/base/trace_range.h"

#include <algorithm>

namespace cudaq::qec::realtime::detail {

using cudaq::realtime::detail::must_return;
using experimental::completion;

namespace {
constexpr std::size_t kLeastRoom = 1024; ///< external rings: smallest limit of queued completions
/// Workers check for room before they reserve it, so the limit can be exceeded by one request per worker (64 workers
/// at most). The queue has places for that excess, for the same excess of failed launches, and for all requests that
/// are open at a stop, launched late or not.
constexpr std::size_t kExcess = 2 * 64;

bool is_protocol_error(std::int32_t status) {
  return status <= CUDAQ_RPC_ERR_BAD_ARG_LEN && status > CUDAQ_RPC_ERR_BAD_ARG_LEN - CUDAQ_RPC_ERROR_COUNT;
}
} // namespace

completions::completions(pipeline_ring &ring)
    : ring_(ring), room_(std::max<std::size_t>(kLeastRoom, 4 * ring.num_slots())),
      queued_(ring.external() ? room_ + 2 * kExcess + ring.num_slots() : 1) {}

void completions::enqueue(const answered_request &queued) noexcept {
  if (!queued_.push(queued))
    lost_.add();
}

void completions::enqueue_failed_launch(const answered_request &queued) noexcept {
  const bool fits = is_below(room_ + kExcess);
  expect();
  if (fits)
    enqueue(queued);
  else
    lost_.add();
}

std::uint32_t completions::turn() {
  std::uint32_t work = 0;
  if (ring_.external()) {
    for (answered_request r; queued_.pop(r); ++work)
      deliver(r);
    return work;
  }
  const std::uint64_t drawn = ring_.drawn();
  for (std::uint64_t t = oldest_; t != drawn; ++t)
    if (ring_.open_ticket(t) && collect(t))
      ++work;
  while (oldest_ != drawn && !ring_.open_ticket(oldest_))
    ++oldest_;
  return work;
}

bool completions::collect(std::uint64_t ticket) {
  const auto slot = static_cast<std::uint32_t>(ticket % ring_.num_slots());
  int launch_error = 0;
  const cudaq_tx_status_t flag = cudaq_host_ringbuffer_poll_tx_flag(&ring_.ring(), slot, &launch_error);
  if (flag != CUDAQ_TX_READY && flag != CUDAQ_TX_ERROR)
    return false;
  // The dispatcher answers a fault of the device while workers may still be in their CPU stages and write to the slots.
  // So no request may come into such a slot. The pipeline cannot be started again.
  if (flag == CUDAQ_TX_ERROR && device_has_failed())
    ring_.close();
  // The record was written before the answer's flag was set.
  const request_record &record = ring_.record(slot);
  completion c{record.request_id, static_cast<int>(slot), false, launch_error};
  cudaq_rpc_response_t header{};
  if (flag == CUDAQ_TX_ERROR) {
    c.status = CUDAQ_RPC_ERR_LAUNCH_FAILED;
  } else if (cudaq_host_ringbuffer_read_rpc_response(&ring_.ring(), slot, &header, &c.response) == CUDAQ_OK) {
    c.status = header.status;
    // With other statuses no error was written, or a worker that was slower than a stop is writing it.
    if (c.status == CUDAQ_RPC_ERR_LAUNCH_FAILED || c.status == CUDAQ_RPC_ERR_DEVICE_FAULT)
      c.cuda_error = record.error;
    c.response_size = header.result_len;
  } else {
    c.status = CUDAQ_RPC_ERR_NO_RESPONSE;
  }
  c.success = c.cuda_error == 0 && !is_protocol_error(c.status);
  deliver(c);
  ring_.collect(ticket);
  return true;
}

bool completions::device_has_failed() const {
  cudaq_dispatcher_state_t now = CUDAQ_DISPATCHER_RUNNING;
  (void)cudaq_dispatcher_get_state(dispatcher_, &now);
  return now == CUDAQ_DISPATCHER_FAILED;
}

void completions::deliver(const answered_request &queued) {
  deliver({queued.request_id, static_cast<int>(queued.slot), queued.error == 0 && !is_protocol_error(queued.status),
           queued.error, queued.status, nullptr, 0});
}

void completions::deliver(const completion &c) {
  if (c.status == CUDAQ_RPC_ERR_SHUTTING_DOWN)
    given_up_.bump();
  if (handler_ != nullptr && *handler_) {
    in_handler_.set(1);
    try {
      const cudaq::realtime::detail::trace_range range("qec completion");
      must_return([&] { (*handler_)(c); }, "the completion handler");
    } catch (...) {
      handler_errors_.bump();
    }
    in_handler_.set(0);
  }
  completed_.bump();
}

} // namespace cudaq::qec::realtime::detail
