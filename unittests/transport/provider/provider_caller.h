// SPDX-License-Identifier: Apache-2.0
// Clients of servers in other processes, one class for each kind of provider, and numbered messages whose answers are
// checked: number, checksum, and how often the server has executed each. Every wait has a deadline.
#pragma once

#include "lib/transport/udp/udp_wire.h"
#include "unittests/support/test_scale.h"
#include "unittests/transport/datagram/datagram_service.h"
#include "unittests/transport/roce/roce_requester.h"
#include "unittests/transport/shm/shm_traffic.h"

#include <csignal>
#include <deque>
#include <functional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cudaq::realtime::test {

class provider_caller {
public:
  using reply = detail::datagram_reply;
  virtual ~provider_caller() = default;

  /// False: too many are open.
  bool send(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
            std::uint64_t timestamp = 0) {
    return put(id, function_id, payload, timestamp);
  }
  /// The next answer, of any request that is open.
  virtual std::optional<reply> receive_within(std::chrono::nanoseconds time) = 0;
  std::optional<reply> receive() { return receive_within(std::chrono::nanoseconds(0)); }
  /// Answers to no open request.
  virtual std::uint64_t unexpected() const { return 0; }
  /// Of a socket.
  virtual std::uint32_t own_port() const { return 0; }
  /// With udp and shm they stay 0.
  virtual const detail::roce_counters &packets() const {
    static const detail::roce_counters none;
    return none;
  }

protected:
  virtual bool put(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
                   std::uint64_t timestamp) = 0;
};

/// A socket of its own, of udp or roce.
class datagram_caller : public provider_caller {
public:
  std::optional<reply> receive_within(std::chrono::nanoseconds time) override { return get().receive_within(time); }
  std::uint64_t unexpected() const override { return requester.client.unexpected(); }
  std::uint32_t own_port() const override { return requester.client.socket().port(); }
  const detail::roce_counters &packets() const override { return *requester.counters; }

  datagram_caller(std::uint32_t slot_size, std::uint32_t num_slots, std::uint32_t mtu)
      : requester(slot_size, num_slots, mtu) {}
  void open(bool roce, std::uint32_t port) {
    requester.options.from_any_port = roce;
    requester.options.port = port;
    EXPECT_EQ(roce ? requester.open(port)
                   : get().open(requester.options, detail::make_udp_wire(requester.options.slot_size)).text(),
              "");
  }
  detail::datagram_client &get() { return requester.client; }

  roce_requester requester;

private:
  bool put(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
           std::uint64_t timestamp) override {
    return get().send(id, function_id, payload, timestamp);
  }
};

/// A ring of its own, whose slots it fills in their order: a request waits until the next one is free.
class shm_caller : public provider_caller {
public:
  explicit shm_caller(const std::string &name) : client_(name) { EXPECT_EQ(client_.status, CUDAQ_OK) << client_.text; }
  std::optional<reply> receive_within(std::chrono::nanoseconds time) override {
    reply found;
    const auto arrives = [&] { return write_waiting(), take(found); };
    return arrives() || (time.count() != 0 && eventually(arrives, time)) ? std::optional(found) : std::nullopt;
  }

private:
  static constexpr std::size_t kMaxWaiting = 64;
  struct request {
    std::uint32_t id, function_id;
    std::uint64_t timestamp;
    bytes payload;
  };
  bool put(std::uint32_t id, std::uint32_t function_id, std::span<const std::uint8_t> payload,
           std::uint64_t timestamp) override {
    if (waiting_.size() >= kMaxWaiting)
      return false;
    waiting_.push_back({id, function_id, timestamp, {payload.begin(), payload.end()}});
    write_waiting();
    return true;
  }
  void write_waiting() {
    for (; !waiting_.empty() && cudaq_host_ringbuffer_slot_available(&client_.ring, next_) == 1; waiting_.pop_front()) {
      const request &r = waiting_.front();
      EXPECT_EQ(cudaq_host_ringbuffer_write_rpc_request(&client_.ring, next_, r.function_id, r.payload.data(),
                                                        static_cast<std::uint32_t>(r.payload.size()), r.id,
                                                        r.timestamp),
                CUDAQ_OK);
      cudaq_shm_client_signal(client_.get, next_);
      next_ = (next_ + 1) % client_.num_slots;
    }
  }
  bool take(reply &out) {
    for (std::uint32_t slot = 0; slot < client_.num_slots; ++slot) {
      const void *result = nullptr;
      if (cudaq_host_ringbuffer_poll_tx_flag(&client_.ring, slot, nullptr) != CUDAQ_TX_READY ||
          cudaq_host_ringbuffer_read_rpc_response(&client_.ring, slot, &out.header, &result) != CUDAQ_OK)
        continue;
      const auto *const first = static_cast<const std::uint8_t *>(result);
      result_.assign(first, first + out.header.result_len);
      out.result = result_;
      cudaq_host_ringbuffer_clear_slot(&client_.ring, slot);
      return true;
    }
    return false;
  }

  shm_client client_;
  std::deque<request> waiting_;
  std::uint32_t next_ = 0; ///< slot
  bytes result_;
};

struct traffic_result {
  std::uint64_t answered = 0, wrong = 0, executed_twice = 0;
};

/// The payload of a message: its number, then bytes that follow from it.
inline bytes payload_of(std::uint64_t number, std::size_t words = 5) {
  bytes payload(words * sizeof(number));
  std::uint64_t word = number;
  for (std::size_t at = 0; at < payload.size(); at += sizeof(word)) {
    std::memcpy(payload.data() + at, &word, sizeof(word));
    word = (word ^ word >> 31) * 0x9E3779B97F4A7C15u + at;
  }
  return payload;
}

/// Sends messages first .. first + count - 1, as many at a time as the client may have open. Ends early if no answer
/// comes for 30 s.
inline traffic_result send_messages(provider_caller &client, std::uint64_t first, std::uint64_t count,
                                    std::size_t payload_words = 5) {
  traffic_result result;
  std::uint64_t next = first;
  while (result.answered < count) {
    while (next < first + count &&
           client.send(static_cast<std::uint32_t>(next), kRecord, payload_of(next, payload_words), next))
      ++next;
    auto reply = client.receive_within(std::chrono::seconds(30));
    if (!reply)
      break;
    for (; reply; reply = client.receive()) {
      ++result.answered;
      record_answer answer{};
      if (reply->header.status == 0 && reply->result.size() == sizeof(answer))
        std::memcpy(&answer, reply->result.data(), sizeof(answer));
      const std::uint64_t number = reply->header.ptp_timestamp;
      result.wrong += static_cast<std::uint32_t>(number) != reply->header.request_id || answer.number != number ||
                      answer.checksum != checksum_of(payload_of(number, payload_words));
      result.executed_twice += answer.executions != 1;
    }
  }
  return result;
}

/// The messages and the kills of a campaign.
inline std::uint64_t campaign_messages(std::uint64_t usual) { return number_from("CUDAQ_UDP_MESSAGES", usual); }
inline std::uint64_t campaign_kills(std::uint64_t usual) { return number_from("CUDAQ_UDP_KILLS", usual); }

/// A client in a process of its own, which opens it. Its messages have the numbers from `first` on; 20 of them are
/// answered before it is killed.
inline void kill_while_it_sends(const std::function<std::unique_ptr<provider_caller>()> &open, std::uint64_t first,
                                std::chrono::microseconds after) {
  int started[2];
  ASSERT_EQ(pipe(started), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto client = open();
    send_messages(*client, first, 20);
    const ssize_t written = write(started[1], "1", 1);
    send_messages(*client, first + 20, written == 1 ? 1u << 30 : 0);
    _exit(0);
  }
  close(started[1]);
  char byte = 0;
  EXPECT_EQ(read(started[0], &byte, 1), 1) << "the client has ended";
  std::this_thread::sleep_for(after);
  kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the client ended before it was killed";
  close(started[0]);
}

} // namespace cudaq::realtime::test
