// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unittests/qec/server/server_test_support.h"

#include <deque>
#include <mutex>
#include <optional>

namespace cudaq::qec::realtime::test {

namespace rt = cudaq::realtime::detail;

/// A decoder of one detector and one observable that waits in decode until the gate is open, at most 20 s.
class gated_decoder : public decoder {
public:
  explicit gated_decoder(rt::shared_word<std::uint32_t> &open) : decoder(1, 1), open_(open) {}
  const char *name() const noexcept override { return "gated"; }

protected:
  decode_status decode_checked(const std::vector<std::uint64_t> &events, std::span<std::uint8_t> observables,
                               decode_details *) noexcept override {
    if (!rt::wait_until(soon(), [this] { return open_.load() != 0; }))
      return decode_status::internal_error;
    observables[0] = events.empty() ? 0 : 1;
    return decode_status::ok;
  }

private:
  rt::shared_word<std::uint32_t> &open_;
};

inline std::unique_ptr<decoding_unit> unit_with_gate(rt::shared_word<std::uint32_t> &open) {
  return std::make_unique<decoding_unit>(std::make_unique<gated_decoder>(open), sparse_rows{}, 1);
}

/// A requester: sends requests with their number as request_id, or another id, and keeps the answers. Its requests may
/// wait in a server, so it must live until the server has stopped.
class requester {
public:
  explicit requester(decoding_server &server) : server_(server) {}

  /// Sends a request and returns its number. With an equal payload, id and time it is a copy.
  std::uint32_t send(std::uint32_t function, const bytes &payload, std::optional<std::uint32_t> id = {},
                     std::uint64_t time = 0) {
    record *r = nullptr;
    std::uint32_t number = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      number = static_cast<std::uint32_t>(records_.size());
      r = &records_.emplace_back();
      r->result.resize(64);
    }
    server_answer now;
    const cudaq_host_job_t job{reinterpret_cast<std::uint64_t>(this), number, id.value_or(number)};
    if (server_.submit(function, payload, r->result, job, now, time))
      take(number, now);
    return number;
  }

  /// Waits for the answer.
  full_answer answer(std::uint32_t number) {
    if (!rt::wait_until(soon(), [&] { return answers_to(number) != 0; }))
      throw std::runtime_error("request " + std::to_string(number) + " was not answered");
    const std::lock_guard<std::mutex> lock(mutex_);
    record &r = records_[number];
    return {r.answer.status, bytes(r.result.begin(), r.result.begin() + r.answer.bytes)};
  }
  full_answer call(std::uint32_t function, const bytes &payload, std::optional<std::uint32_t> id = {},
                   std::uint64_t time = 0) {
    return answer(send(function, payload, id, time));
  }

  std::size_t answers_to(std::uint32_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return records_[number].answers;
  }
  /// Numbers of the requests in the order of their answers.
  std::vector<std::uint32_t> order() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return order_;
  }

  /// The receiver for decoding_server::start: the job names the requester.
  static answer_receiver receiver() {
    return {[](void *, const cudaq_host_job_t &job, const server_answer &answer) {
              reinterpret_cast<requester *>(job.generation)->take(job.slot, answer);
            },
            nullptr};
  }

private:
  struct record {
    bytes result;
    server_answer answer;
    std::size_t answers = 0;
  };
  void take(std::uint32_t number, const server_answer &answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    records_[number].answer = answer;
    ++records_[number].answers;
    order_.push_back(number);
  }

  decoding_server &server_;
  std::mutex mutex_;
  std::deque<record> records_;
  std::vector<std::uint32_t> order_;
};

/// A receiver whose thread waits with each answer until the word is set, at most 20 s.
inline answer_receiver waiting_receiver(rt::shared_word<std::uint32_t> &goes_on) {
  return {[](void *user, const cudaq_host_job_t &job, const server_answer &answer) {
            const auto *const open = static_cast<rt::shared_word<std::uint32_t> *>(user);
            (void)rt::wait_until(soon(), [&] { return open->load() != 0; });
            requester::receiver().answer(nullptr, job, answer);
          },
          &goes_on};
}

/// A server that runs until its end, and one that sends requests to it. `threads`: 0, as many as the server chooses.
struct started_server {
  explicit started_server(std::vector<decoder_setup> setups, std::uint32_t threads = 0,
                          const answer_receiver &receiver = requester::receiver())
      : server(std::move(setups)) {
    if (const expected<> result = server.start(receiver, CUDAQ_WAIT_BLOCK, threads); result.failed())
      throw std::runtime_error(result.text());
  }
  ~started_server() { EXPECT_TRUE(server.stop(soon())); }
  const served_decoder &decoder() const { return *server.decoders()[0]; }
  bool all_served() const {
    return rt::wait_until(soon(), [this] { return decoder().waiting() == 0; });
  }
  decoding_server server;
  requester client{server};
};

} // namespace cudaq::qec::realtime::test
