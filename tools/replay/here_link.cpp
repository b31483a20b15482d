// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/here_link.h"

#include "lib/qec/server/hosted_server.h"
#include "tools/common/api_objects.h"
#include "tools/serve/serve_config.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>

namespace cudaq::realtime::tools {
namespace {

namespace server_ns = cudaq::qec::realtime;

/// A stream's request that waits for a round needs a queue.
constexpr std::uint32_t kStreamQueue = 16;
constexpr std::size_t kLongestResult = std::size_t{1} << 18; ///< observables, and the name of a decoder

void take_out_of_time(server_ns::server_config &config) {
  for (server_ns::decoder_config &decoder : config.decoders) {
    decoder.limits.queue_length = decoder.stream ? std::max(decoder.limits.queue_length, kStreamQueue) : 0;
    decoder.limits.age_limit_ns = 0;
    decoder.learn.is_on = false; // a model that changes would give other answers
  }
  config.realtime = {};
  config.record = {};
}

server_ns::loaded_config load(const std::string &path) {
  const config_text file = read_config("--config", path);
  auto loaded = server_ns::load_config(file.yaml, file.folder, &take_out_of_time);
  if (loaded.failed())
    refuse(loaded.status() != CUDAQ_ERR_INVALID_ARG, fmt::format("--config {}: {}", path, loaded.text()));
  return std::move(*loaded);
}

class here_link final : public link {
public:
  explicit here_link(const std::string &config) : config_(config), host_(load(config)) {
    if (const auto result = host_.start(CUDAQ_WAIT_BLOCK, 0); result.failed())
      throw api_error("the decoders' threads: " + result.text());
  }
  // Its threads answer until it has stopped.
  ~here_link() override { host_.server().stop(std::chrono::steady_clock::time_point::max()); }

  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t) override {
    one *const request = take_one(id);
    // Without an id and a time no request is taken for a copy.
    host_.submit(function_id, payload, request->result, 0, 0, {&one::answered, request});
    return true;
  }
  std::optional<link_answer> receive() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (read_ != nullptr)
      free_.push_back(std::exchange(read_, nullptr));
    if (answered_.empty())
      return {};
    read_ = answered_.front();
    answered_.pop_front();
    link_answer answer;
    answer.header.request_id = read_->id;
    answer.header.status = read_->status;
    answer.header.result_len = static_cast<std::uint32_t>(read_->bytes);
    answer.result = std::span<const std::uint8_t>(read_->result).first(read_->bytes);
    return answer;
  }
  void give_up(std::uint32_t) override {}
  bool alive() override { return true; }
  link_counters counters() const override { return {}; }
  std::string describe() const override { return "the decoders of " + config_ + ", in this process"; }

private:
  struct one {
    here_link *owner;
    std::uint32_t id;
    std::int32_t status;
    std::size_t bytes;
    std::vector<std::uint8_t> result;

    static void answered(void *self, std::int32_t status, std::uint64_t bytes) {
      auto &here = *static_cast<one *>(self);
      const std::lock_guard<std::mutex> lock(here.owner->mutex_);
      here.status = status;
      here.bytes = static_cast<std::size_t>(bytes);
      here.owner->answered_.push_back(&here);
    }
  };
  one *take_one(std::uint32_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      all_.push_back({this, 0, 0, 0, std::vector<std::uint8_t>(kLongestResult)});
      free_.push_back(&all_.back());
    }
    one *const request = free_.back();
    free_.pop_back();
    request->id = id;
    return request;
  }

  const std::string config_;
  std::mutex mutex_; ///< protects the members up to host_
  std::list<one> all_;
  std::vector<one *> free_;
  std::deque<one *> answered_;
  one *read_ = nullptr; ///< its result is in use until the next receive()
  server_ns::hosted_server host_;
};

} // namespace

std::unique_ptr<link> make_here_link(const std::string &config) { return std::make_unique<here_link>(config); }

} // namespace cudaq::realtime::tools
