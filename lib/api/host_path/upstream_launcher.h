// SPDX-License-Identifier: Apache-2.0
// For the upstream interface: a launcher that also writes the caller's words. Programs without these words have the
// launcher alone.
#pragma once

#include "lib/api/back_end.h"
#include "lib/host_dispatcher/graph_launcher.h"

#include <memory>

namespace cudaq::realtime::detail {

class upstream_launcher final : public graph_launcher {
public:
  upstream_launcher(std::shared_ptr<graph_launcher> launcher, const upstream_words &words)
      : inner_(std::move(launcher)), words_(words) {}

  void run_on_device(const std::function<void()> &body) override { inner_->run_on_device(body); }
  void stage(std::uint32_t worker, std::uint32_t slot, launch_result &result) override {
    tag(worker, slot);
    inner_->stage(worker, slot, result);
  }
  void launch(std::uint32_t worker, std::uint32_t slot, std::uint64_t launch_number, launch_result &result) override {
    inner_->launch(worker, slot, launch_number, result);
    if (result.error == 0 && words_.live_dispatched != nullptr)
      words_.live_dispatched->store(words_.live_dispatched->peek() + 1); // the loop is the only writer
  }
  void launch_elsewhere(std::uint32_t worker, std::uint32_t slot, bool stages, launch_result &result) override {
    tag(worker, slot);
    inner_->launch_elsewhere(worker, slot, stages, result);
  }
  const volatile std::uint64_t &done_word(std::uint32_t worker) const override { return inner_->done_word(worker); }
  int recover(std::uint32_t worker) override { return inner_->recover(worker); }
  int fault() override { return inner_->fault(); }
  bool idle(std::uint32_t worker) override { return inner_->idle(worker); }
  bool on_blocking_stream(std::uint32_t worker) const override { return inner_->on_blocking_stream(worker); }

private:
  /// The tag belongs to the thread that launches from the moment the worker's idle bit is cleared until the graph runs.
  void tag(std::uint32_t worker, std::uint32_t slot) const {
    if (words_.slot_tags != nullptr)
      words_.slot_tags[worker] = static_cast<int>(slot);
  }

  std::shared_ptr<graph_launcher> inner_;
  const upstream_words words_;
};

} // namespace cudaq::realtime::detail
