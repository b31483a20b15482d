// SPDX-License-Identifier: Apache-2.0
#include "tools/decode/decode_batch.h"

#include <algorithm>
#include <utility>

namespace cudaq::realtime::tools {

decoder_threads::decoder_threads(worker_list workers) : workers_(std::move(workers)) {
  for (const auto &worker : workers_)
    responses_.emplace_back(worker->stage().response_bytes());
  if (workers_.size() > 1)
    for (std::size_t k = 0; k < workers_.size(); ++k)
      threads_.emplace_back([this, k] { serve(*workers_[k], responses_[k]); });
}

decoder_threads::~decoder_threads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread &t : threads_)
    t.join();
}

void decoder_threads::submit(decode_batch &batch) {
  batch.done = threads_.empty();
  if (batch.done) {
    decode(*workers_.front(), responses_.front(), batch);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    todo_.push_back(&batch);
  }
  work_.notify_one();
}

void decoder_threads::wait_for(const decode_batch &batch) {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&batch] { return batch.done; });
}

void decoder_threads::serve(qec::decoding_worker &worker, std::span<std::uint8_t> response) {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || !todo_.empty(); });
    if (stop_)
      return;
    decode_batch &batch = *todo_.front();
    todo_.pop_front();
    lock.unlock();
    decode(worker, response, batch);
    lock.lock();
    batch.done = true;
    finished_.notify_all();
  }
}

void decoder_threads::decode(qec::decoding_worker &worker, std::span<std::uint8_t> response,
                             decode_batch &batch) noexcept {
  batch.status = qec::decode_status::ok;
  for (batch.decoded = 0; batch.decoded < batch.shots; ++batch.decoded) {
    worker.decode(decode_batch::row(batch.detections, batch.decoded, batch.detection_bytes), response, batch.status);
    if (batch.status != qec::decode_status::ok)
      return;
    std::ranges::copy(response.subspan(sizeof(qec::DecodeResponse), batch.observable_bytes),
                      decode_batch::row(batch.answers, batch.decoded, batch.observable_bytes).begin());
  }
}

} // namespace cudaq::realtime::tools
