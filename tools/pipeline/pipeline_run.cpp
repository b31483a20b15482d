// SPDX-License-Identifier: Apache-2.0
#include "tools/pipeline/pipeline_run.h"

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/common/terminal.h"
#include "tools/services/decode_service.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace cudaq::realtime::tools {
namespace {

namespace pipe = cudaq::qec::realtime::experimental;

/// Times of a request, by its number or by its slot. The thread that writes an entry passes it on together with the
/// request, so the entries are plain memory.
struct moments {
  explicit moments(std::size_t num_slots)
      : sent(2 * num_slots), due(2 * num_slots), begin(num_slots), end(num_slots), worker(num_slots) {}
  // Index: request number modulo twice the number of slots. A request gets its times while the previous request of its
  // slot may still be open.
  std::vector<std::uint64_t> sent, due;
  std::vector<std::uint64_t> begin, end; ///< of the CPU stage, by slot
  std::vector<int> worker;               ///< the same
};

class run {
public:
  run(const pipeline_options &o, const pipe::pipeline_stage_config &config, const pipeline_shots &shots, gpu_stage *gpu,
      run_trace *trace)
      : options_(o), shots_(shots), trace_(trace), num_slots_(static_cast<std::uint64_t>(config.num_slots)),
        moments_(static_cast<std::size_t>(config.num_slots)), due_(static_cast<std::size_t>(config.num_slots)),
        pipeline_(config) {
    for (int id = 0; id < config.num_workers; ++id)
      workers_.push_back(shots.make_worker(gpu == nullptr));
    for (std::size_t slot = 0; slot < due_.size(); ++slot)
      due_[slot] = slot;
    pipeline_.set_gpu_stage([this, gpu](int id) {
      qec::decoding_worker &worker = *workers_[static_cast<std::size_t>(id)];
      return gpu != nullptr ? gpu->resources(id, kDecodeFunctionId, &worker) : worker.resources(kDecodeFunctionId);
    });
    pipeline_.set_cpu_stage([this](const pipe::cpu_stage_context &c) {
      const auto slot = static_cast<std::size_t>(c.origin_slot);
      moments_.begin[slot] = now_ns();
      const std::size_t size = qec::decoding_worker::match(c);
      moments_.end[slot] = now_ns();
      moments_.worker[slot] = c.worker_id;
      return size;
    });
    pipeline_.set_completion_handler([this](const pipe::completion &c) { complete(c); });
  }

  pipeline_result go() {
    if (const std::string refused = pin_this_thread(options_.cores.producer); !refused.empty())
      throw usage_error(refused);
    pipeline_.start();
    const std::uint64_t begin = now_ns();
    {
      const progress_thread display(
          {"pipeline", "shots", options_.shots, static_cast<std::uint64_t>(options_.duration_s * 1e9)},
          [this] { return pipeline_.stats().completed; });
      inject(begin);
      if (result_.problems.empty())
        wait_for_the_rest();
    }
    const std::uint64_t end = last_completion_.load();
    if (!result_.problems.empty())
      result_.dump = pipeline_.dump();
    pipeline_.stop();
    result_.wall_ns = end > begin ? end - begin : 0;
    judge();
    return std::move(result_);
  }

private:
  void inject(std::uint64_t begin) {
    pipe::ring_buffer_injector injector = pipeline_.create_injector();
    const auto timeout_ns = static_cast<std::uint64_t>(options_.timeout_s * 1e9);
    spin_then_yield idle(200);
    const auto duration_ns = static_cast<std::uint64_t>(options_.duration_s * 1e9);
    const auto more = [&](std::uint64_t k) {
      return duration_ns != 0 ? now_ns() - begin < duration_ns : k < options_.shots;
    };
    for (std::uint64_t k = 0; more(k); ++k) {
      const auto at = static_cast<std::size_t>(k % (2 * num_slots_));
      const std::uint64_t due =
          options_.rate == 0 ? 0 : begin + static_cast<std::uint64_t>(static_cast<double>(k) * 1e9 / options_.rate);
      while (due != 0 && now_ns() < due && !interrupt_guard::interrupted())
        idle.idle();
      if (interrupt_guard::interrupted()) // the shot is not due
        return;
      const auto row = shots_.shots().detection_row(shots_.shot_of(k));
      const std::uint64_t first = now_ns();
      bool stalled = false;
      for (;;) {
        const std::uint64_t now = now_ns();
        moments_.sent[at] = now;
        moments_.due[at] = due == 0 ? now : due;
        if (injector.try_submit(kDecodeFunctionId, row.data(), row.size(), k))
          break;
        stalled = true;
        if (interrupt_guard::interrupted() || (duration_ns != 0 && now - begin > duration_ns))
          return;
        if (now - first > timeout_ns) {
          result_.problems.push_back(fmt::format("no free slot for {}: {} of {} completed",
                                                 format_ns(static_cast<double>(timeout_ns)),
                                                 pipeline_.stats().completed, k));
          return;
        }
        idle.idle();
      }
      idle.worked();
      ++result_.submitted;
      if (traced_request *const r = traced(k))
        r->accepted = now_ns();
      result_.backpressure_stalls += stalled;
      result_.stalled_ns += stalled ? now_ns() - first : 0;
    }
  }

  void wait_for_the_rest() {
    const auto timeout_ns = static_cast<std::uint64_t>(options_.timeout_s * 1e9);
    std::uint64_t seen = pipeline_.stats().completed, since = now_ns();
    for (spin_then_yield idle(200); seen != result_.submitted; idle.idle()) {
      const std::uint64_t completed = pipeline_.stats().completed, now = now_ns();
      if (completed != seen) {
        seen = completed;
        since = now;
      } else if (now - since > timeout_ns) {
        result_.problems.push_back(fmt::format("{} of {} completed, and no more for {}", seen, result_.submitted,
                                               format_ns(static_cast<double>(timeout_ns))));
        return;
      }
    }
  }

  /// Called on the consumer's thread, which owns the histograms and the counts of answers until stop.
  void complete(const pipe::completion &c) {
    const std::uint64_t now = now_ns();
    const auto slot = static_cast<std::size_t>(c.slot);
    // There is one injector. So request k is in slot k mod n, and the requests of a slot complete in order.
    result_.out_of_turn += c.request_id != due_[slot];
    due_[slot] = c.request_id + num_slots_;
    if (c.status == CUDAQ_RPC_ERR_SHUTTING_DOWN) {
      ++result_.timed_out;
      return;
    }
    ++result_.completed;
    const auto at = static_cast<std::size_t>(c.request_id % (2 * num_slots_));
    const std::uint64_t sent = moments_.sent[at], latency = now - sent;
    result_.from_submit.record(latency);
    result_.timeline.record(now, latency);
    result_.sum_of_squares += static_cast<double>(latency) * static_cast<double>(latency);
    result_.from_due.record(now - std::min(now, moments_.due[at]));
    result_.failed += !c.success;
    if (c.success) {
      result_.stage_a.record(moments_.begin[slot] - sent);
      result_.stage_b.record(moments_.end[slot] - moments_.begin[slot]);
      result_.stage_c.record(now - moments_.end[slot]);
      const std::uint32_t shot = shots_.shot_of(c.request_id);
      const qec::decode_status offline = shots_.expected_status(shot), status{c.status};
      const auto expected = shots_.expected(shot);
      const auto *bytes = static_cast<const std::uint8_t *>(c.response);
      const bool undecided = result_.undecided.add(status);
      if (!undecided && status != qec::decode_status::ok)
        ++result_.error_status;
      else
        result_.mismatches += !unanswered_shots::agree(status, offline) ||
                              (status == qec::decode_status::ok && offline == qec::decode_status::ok &&
                               !std::equal(expected.begin(), expected.end(), bytes, bytes + c.response_size));
    }
    if (traced_request *const r = traced(c.request_id)) {
      r->sent = sent;
      r->begin = c.success ? moments_.begin[slot] : 0;
      r->end = c.success ? moments_.end[slot] : 0;
      r->worker = static_cast<std::uint32_t>(moments_.worker[slot]);
      r->slot = static_cast<std::uint32_t>(slot);
      r->seen = now;
      r->collected = now_ns();
    }
    last_completion_.store(now);
  }
  [[nodiscard]] traced_request *traced(std::uint64_t request) const noexcept {
    return trace_ == nullptr ? nullptr : trace_->at(request);
  }

  void judge() {
    const auto must_be_zero = [this](std::uint64_t n, const char *what) {
      if (n != 0)
        result_.problems.push_back(fmt::format("{} {}", n, what));
    };
    must_be_zero(result_.failed, "requests failed");
    must_be_zero(result_.error_status, "answers with an error of the decoder");
    must_be_zero(result_.mismatches, "answers that differ from the offline decode");
    must_be_zero(result_.out_of_turn, "completions in a wrong order");
    must_be_zero(result_.timed_out, "requests timed out");
    if (result_.completed + result_.timed_out != result_.submitted)
      result_.problems.push_back(
          fmt::format("{} submitted, {} completed", result_.submitted, result_.completed + result_.timed_out));
  }

  const pipeline_options &options_;
  const pipeline_shots &shots_;
  run_trace *const trace_;
  const std::uint64_t num_slots_;
  moments moments_;
  std::vector<std::uint64_t> due_; ///< by slot: the request whose completion must come next
  std::vector<std::unique_ptr<qec::decoding_worker>> workers_;
  pipeline_result result_;
  std::atomic<std::uint64_t> last_completion_{0};
  pipe::realtime_pipeline pipeline_;
};

} // namespace

double pipeline_result::standard_deviation() const noexcept {
  const auto n = static_cast<double>(from_submit.count());
  const double mean = from_submit.mean();
  return n == 0 ? 0 : std::sqrt(std::max(0.0, sum_of_squares / n - mean * mean));
}

pipeline_result run_shots(const pipeline_options &o, const pipe::pipeline_stage_config &config,
                          const pipeline_shots &shots, gpu_stage *gpu, run_trace *trace) {
  return run(o, config, shots, gpu, trace).go();
}

} // namespace cudaq::realtime::tools
