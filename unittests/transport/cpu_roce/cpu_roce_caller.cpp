// SPDX-License-Identifier: Apache-2.0
// A control system on the kernel's soft-RoCE, by verbs: the peer of a cpu_roce provider. It obeys the rule of credits,
// except where a step breaks it on purpose. Each step ends the program if an answer is wrong.
//
//   cpu_roce_caller KEY=VALUE...
//     server, own         IPv4 addresses of the provider and of this program
//     port                of the rendezvous. Without it the program is a sensor bridge: it writes the number of its
//                         queue pair to the file /queue_pair and waits for the file /go with "QP RKEY" of the provider
//     type, mtu, slots, slot_size, frame_size      as the provider's
//     plan                all, short, vanish (ends with requests that are not answered), killed (has requests open
//                         until the provider's process ends), serve (a decoding server)
//     messages (plan=all), strangers (1: others connect to the rendezvous first)
#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "unittests/transport/cpu_roce/bare_echo.h"
#include "unittests/transport/cpu_roce/rendezvous_call.h"
#include "unittests/transport/datagram/datagram_service.h"
#include "unittests/transport/roce/soft_roce/verbs_pair.h"

#include <algorithm>
#include <map>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <string>
#include <vector>

namespace cudaq::realtime::test {
namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::uint32_t kRoundTrips = 200;

std::map<std::string, std::string> words;

std::uint32_t number(const char *key, std::uint32_t otherwise = 0) {
  return words.count(key) != 0 ? static_cast<std::uint32_t>(std::stoul(words[key])) : otherwise;
}

struct answer {
  cudaq_rpc_response_t header;
  std::vector<std::uint8_t> result;
};

class caller {
public:
  caller()
      : slots_(number("slots", 8)), slot_size_(number("slot_size", 256)), frame_size_(number("frame_size", slot_size_)),
        bridge_(words.count("port") == 0),
        verbs_(verbs_open(std::size_t{slots_ + 1} * slot_size_ + std::size_t{2} * slots_ * frame_size_, 8 * slots_,
                          words["type"] == "rc" ? IBV_QPT_RC : IBV_QPT_UC, words["own"].c_str())) {
    for (std::uint32_t i = 0; i < 2 * slots_; ++i)
      receive(i);
    bridge_ ? meet_by_file() : meet_by_tcp();
    verbs_connect(&verbs_, number("mtu", 4096), words["server"].c_str(), server_qp_, 0);
  }

  std::uint32_t slots() const { return slots_; }
  std::uint32_t slot_size() const { return slot_size_; }
  std::uint32_t next_id() const { return next_id_; }
  bool at_last_slot() const { return next_slot_ + 1 == slots_; }
  bool is_bridge() const { return bridge_; }
  std::uint32_t max_result() const { return frame_size_ - CUDAQ_RPC_HEADER_SIZE; }

  /// Makes a request in the memory of the next slot. Returns its id.
  std::uint32_t make(std::uint32_t function, std::span<const std::uint8_t> payload,
                     std::uint32_t magic = CUDAQ_RPC_MAGIC_REQUEST) {
    const cudaq_rpc_header_t header = {magic, function, static_cast<std::uint32_t>(payload.size()), next_id_, 7};
    std::uint8_t *const frame = bytes(next_slot_ * slot_size_);
    std::memcpy(frame, &header, sizeof(header));
    std::copy(payload.begin(), payload.end(), frame + sizeof(header));
    return next_id_++;
  }
  /// Writes so many bytes of it to the provider.
  void write(std::size_t length) {
    const std::uint32_t at = next_slot_ * slot_size_, size = static_cast<std::uint32_t>(length);
    if (!bridge_)
      return verbs_post_send(&verbs_, IBV_WR_RDMA_WRITE_WITH_IMM, at, size, at, server_rkey_, next_slot_);
    const std::uint32_t first = size / 2; // in two parts, as a sensor bridge
    verbs_post_send(&verbs_, IBV_WR_RDMA_WRITE, at, first, at, server_rkey_, 0);
    verbs_post_send(&verbs_, IBV_WR_RDMA_WRITE_WITH_IMM, at + first, size - first, at + first, server_rkey_,
                    next_slot_ | (next_id_ & 0xFFFFF) << 12);
  }
  void advance() { next_slot_ = (next_slot_ + 1) % slots_; }
  void back() { next_slot_ = (next_slot_ + slots_ - 1) % slots_; }
  std::uint32_t send(std::uint32_t function, std::span<const std::uint8_t> payload) {
    const std::uint32_t id = make(function, payload);
    write(CUDAQ_RPC_HEADER_SIZE + payload.size());
    advance();
    return id;
  }

  std::optional<answer> poll() {
    ibv_wc done;
    const int n = ibv_poll_cq(verbs_.completions, 1, &done);
    if (n == 0) {
      sched_yield();
      return {};
    }
    if (n < 0 || done.status != IBV_WC_SUCCESS) {
      std::printf("FAILED: completion: %s\n", n < 0 ? "none" : ibv_wc_status_str(done.status));
      std::exit(1);
    }
    if ((done.opcode & IBV_WC_RECV) == 0)
      return {};
    CHECK(done.byte_len == frame_size_);
    const std::uint8_t *const frame = bytes(answer_at(static_cast<std::uint32_t>(done.wr_id)));
    answer a{};
    std::memcpy(&a.header, frame, sizeof(a.header));
    CHECK(a.header.magic == CUDAQ_RPC_MAGIC_RESPONSE && a.header.ptp_timestamp == 7);
    CHECK(a.header.result_len <= max_result());
    const std::uint8_t *const begin = frame + sizeof(a.header), *const end = begin + a.header.result_len;
    a.result.assign(begin, end);
    CHECK(std::all_of(end, frame + frame_size_, [](std::uint8_t byte) { return byte == 0; }));
    receive(static_cast<std::uint32_t>(done.wr_id));
    return a;
  }
  answer wait() {
    for (const auto end = clock::now() + 30s; clock::now() < end;)
      if (std::optional<answer> a = poll())
        return *a;
    std::printf("FAILED: no answer within 30 s, the next id is %u\n", next_id_);
    std::exit(1);
  }
  /// Waits until the provider's process has closed the rendezvous.
  bool provider_ends_within(int ms) {
    char byte = 0;
    pollfd entry{rendezvous_, POLLIN, 0};
    return ::poll(&entry, 1, ms) == 1 && ::recv(rendezvous_, &byte, 1, 0) <= 0;
  }
  void expect_silence() {
    for (const auto end = clock::now() + 300ms; clock::now() < end;)
      CHECK(!poll());
  }

private:
  std::uint8_t *bytes(std::uint32_t at) const { return reinterpret_cast<std::uint8_t *>(verbs_.buffer) + at; }
  std::uint32_t answer_at(std::uint32_t i) const { return (slots_ + 1) * slot_size_ + i * frame_size_; }
  void receive(std::uint32_t i) { verbs_post_receive(&verbs_, answer_at(i), frame_size_, i); }

  void meet_by_tcp() {
    in_addr own{};
    CHECK(inet_pton(AF_INET, words["own"].c_str(), &own) == 1);
    rendezvous_ = rendezvous_connect(words["server"], number("port"));
    CHECK(rendezvous_ >= 0);
    CHECK(rendezvous_send(rendezvous_, {verbs_.pair->qp_num, 0, ntohl(own.s_addr)}));
    const std::optional<call_numbers> reply = rendezvous_receive(rendezvous_);
    CHECK(reply.has_value());
    server_qp_ = reply->qp;
    server_rkey_ = reply->rkey;
  }
  void meet_by_file() {
    FILE *const mine = std::fopen("/queue_pair", "w");
    CHECK(mine != nullptr);
    std::fprintf(mine, "%u", verbs_.pair->qp_num);
    std::fclose(mine);
    while (access("/go", F_OK) != 0)
      usleep(10000);
    FILE *const other = std::fopen("/go", "r");
    CHECK(other != nullptr && std::fscanf(other, "%i %u", reinterpret_cast<int *>(&server_qp_), &server_rkey_) == 2);
    std::fclose(other);
  }

  const std::uint32_t slots_, slot_size_, frame_size_;
  const bool bridge_;
  const verbs_pair verbs_;
  int rendezvous_ = -1; ///< stays open until the program ends
  std::uint32_t server_qp_ = 0, server_rkey_ = 0;
  std::uint32_t next_slot_ = 0, next_id_ = 1;
};

std::vector<std::uint8_t> some_bytes(std::size_t length, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(length);
  for (std::size_t i = 0; i < length; ++i)
    bytes[i] = static_cast<std::uint8_t>(seed * 31 + i * 7);
  return bytes;
}

/// Requests of the function "increment", as many open as there are slots.
std::uint32_t burst(caller &c, std::uint32_t count) {
  std::map<std::uint32_t, std::vector<std::uint8_t>> open;
  for (std::uint32_t sent = 0, done = 0; done < count;) {
    // A credit for a slot comes back with the answer to its request, and not with any other.
    while (sent < count && open.count(c.next_id() - c.slots()) == 0 && open.size() < c.slots()) {
      const auto payload = some_bytes(1 + sent * 13 % std::min(c.max_result(), c.slot_size() - 24), sent);
      open[c.send(kIncrement, payload)] = payload;
      ++sent;
    }
    const answer a = c.wait();
    CHECK(a.header.status == 0 && open.count(a.header.request_id) == 1);
    std::vector<std::uint8_t> expected = open[a.header.request_id];
    for (std::uint8_t &byte : expected)
      ++byte;
    CHECK(a.result == expected);
    open.erase(a.header.request_id);
    ++done;
  }
  return count;
}

/// Messages with a number and a checksum: each is executed once, and answered with its own number.
std::uint32_t record(caller &c, std::uint32_t count) {
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> open;
  static std::uint64_t next = 0;
  for (std::uint32_t sent = 0, done = 0; done < count;) {
    while (sent < count && open.count(c.next_id() - c.slots()) == 0 && open.size() < c.slots()) {
      auto payload = some_bytes(8 + sent * 29 % (c.slot_size() - 32), sent);
      std::memcpy(payload.data(), &next, sizeof(next));
      const std::uint64_t sum = checksum_of(payload);
      open[c.send(kRecord, payload)] = {next++, sum};
      ++sent;
    }
    const answer a = c.wait();
    CHECK(a.header.status == 0 && open.count(a.header.request_id) == 1);
    record_answer got{};
    CHECK(a.result.size() == sizeof(got));
    std::memcpy(&got, a.result.data(), sizeof(got));
    const auto [expected_number, checksum] = open[a.header.request_id];
    CHECK(got.number == expected_number && got.checksum == checksum && got.executions == 1);
    open.erase(a.header.request_id);
    ++done;
  }
  return count;
}

void step(const char *name) {
  std::printf("%s\n", name);
  std::fflush(stdout);
}

std::uint32_t greet(caller &c) {
  const std::string text = "HAL";
  c.send(kIncrement, {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()});
  const answer a = c.wait();
  CHECK(a.header.status == 0 && std::string(a.result.begin(), a.result.end()) == "IBM");
  return 1;
}

/// Requests that the dispatcher drops. Their slots come back without an answer, after a moment.
void dropped_by_the_dispatcher(caller &c) {
  c.make(kIncrement, {}, 0x12345678);
  c.write(CUDAQ_RPC_HEADER_SIZE);
  c.advance();
  c.expect_silence();
  c.send(0xDEADBEEF, {});
  c.expect_silence();
}

/// Frames that are no request: they take no slot.
void dropped_by_the_provider(caller &c) {
  if (c.is_bridge())
    return; // its writes have no length
  c.make(kIncrement, {});
  c.write(10);
  c.expect_silence();
  const auto payload = some_bytes(40, 1);
  const std::uint32_t id = c.make(kIncrement, payload);
  c.write(CUDAQ_RPC_HEADER_SIZE + 39);
  const answer a = c.wait();
  CHECK(a.header.status == CUDAQ_RPC_ERR_BAD_ARG_LEN && a.header.request_id == id);
}

/// A frame that is longer than a slot, where a slot follows.
std::uint32_t too_long(caller &c) {
  if (c.is_bridge())
    return 0;
  const std::uint32_t requests = c.at_last_slot() ? greet(c) : 0;
  c.make(kIncrement, {});
  c.write(c.slot_size() + 1);
  c.expect_silence();
  return requests;
}

/// Breaks the rule of credits: writes to a slot whose request is being executed.
std::uint32_t overrun(caller &c) {
  const std::uint32_t held = c.send(kHold, {});
  for (const auto end = clock::now() + 200ms; clock::now() < end;)
    CHECK(!c.poll());
  c.back();
  const std::uint32_t second = c.send(kIncrement, some_bytes(5, 5));
  const answer busy = c.wait();
  CHECK(busy.header.status == CUDAQ_RPC_ERR_BUSY && busy.header.request_id == second);
  const std::uint32_t open = c.send(kOpen, {});
  std::map<std::uint32_t, std::int32_t> status;
  for (int i = 0; i < 2; ++i) {
    const answer a = c.wait();
    status[a.header.request_id] = a.header.status;
  }
  CHECK(status.count(held) == 1 && status[held] == CUDAQ_RPC_ERR_NO_RESPONSE);
  CHECK(status.count(open) == 1 && status[open] == 0);
  return 2;
}

void print_times(const char *name, const std::vector<double> &us) {
  std::printf("%s p50 %.0f us, p99 %.0f us, min %.0f us, %zu rounds, type %s, frames of %s bytes\n", name,
              us[us.size() / 2], us[us.size() * 99 / 100], us[0], us.size(), words["type"].c_str(),
              words["frame_size"].c_str());
}

/// Beside the floor of the same run; the two alternate.
void round_trips(caller &c, std::uint32_t rounds) {
  constexpr std::uint32_t kPart = 20, kPayload = 16;
  bare_echo bare(words["type"] == "rc" ? IBV_QPT_RC : IBV_QPT_UC, number("mtu", 4096), words["own"].c_str(),
                 words["server"].c_str(), CUDAQ_RPC_HEADER_SIZE + kPayload, number("frame_size", c.slot_size()));
  std::vector<double> us, floor;
  for (std::uint32_t i = 0; i < rounds; ++i) {
    if (i % kPart == 0)
      bare.exchange(kPart, floor);
    const auto begin = clock::now();
    c.send(kIncrement, some_bytes(kPayload, i));
    CHECK(c.wait().header.status == 0);
    us.push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
  }
  std::sort(us.begin(), us.end());
  std::sort(floor.begin(), floor.end());
  print_times("ROUND TRIP", us);
  print_times("FLOOR", floor);
  std::printf("RATIO %.2f of p50, %.2f of p99\n", us[us.size() / 2] / floor[floor.size() / 2],
              us[us.size() * 99 / 100] / floor[floor.size() * 99 / 100]);
}

void strangers() {
  const std::string server = words["server"];
  const std::uint32_t port = number("port");
  for (int i = 0; i < 12; ++i)
    CHECK(rendezvous_connect(server, port) >= 0); // they say nothing, and stay
  for (const std::string &greeting :
       {std::string("12345"), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(12, '\xFF'), std::string(12, '\0')}) {
    const int fd = rendezvous_connect(server, port);
    CHECK(fd >= 0 &&
          ::send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(greeting.size()));
    if (greeting.size() < 12)
      shutdown(fd, SHUT_WR);
    CHECK(!rendezvous_receive(fd));
    close(fd);
  }
}

/// The functions of a decoding server, and one that it does not have.
std::uint32_t serve(caller &c) {
  constexpr std::uint32_t kReset = 0x977A59CF;
  std::uint8_t decoder[8] = {};
  c.send(kReset, decoder);
  CHECK(c.wait().header.status == 0);
  c.send(kIncrement, {});
  CHECK(c.wait().header.status == CUDAQ_RPC_ERR_NO_SUCH_FUNCTION);
  return 1;
}

int run(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    words[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  if (number("strangers") != 0)
    strangers();
  step("connect");
  caller c;
  const std::string plan = words["plan"];
  std::uint32_t requests = plan == "serve" ? serve(c) : greet(c);
  if (plan == "all") {
    step("burst");
    requests += burst(c, 3 * c.slots() + 1);
    step("dropped by the dispatcher");
    dropped_by_the_dispatcher(c);
    requests += burst(c, 2 * c.slots());
    step("dropped by the provider");
    dropped_by_the_provider(c);
    requests += burst(c, 2 * c.slots() + 1);
    requests += too_long(c);
    requests += burst(c, c.slots());
    step("overrun");
    requests += overrun(c);
    step("messages");
    requests += record(c, number("messages"));
    step("round trips");
    round_trips(c, kRoundTrips);
    requests += kRoundTrips;
  } else if (plan == "short") {
    requests += burst(c, 2 * c.slots());
  } else if (plan == "vanish") {
    for (std::uint32_t i = 0; i < c.slots() / 2; ++i)
      c.send(kIncrement, some_bytes(20, i));
    _exit(0);
  } else if (plan == "killed") {
    for (std::uint32_t i = 0; i < c.slots() / 2; ++i)
      c.send(kHold, {}); // the first one waits in its handler, the others for it
    c.expect_silence();
    step("OPEN");
    CHECK(c.provider_ends_within(120000));
  }
  std::printf("GOOD cpu_roce %s requests=%u\n", plan.c_str(), requests);
  return 0;
}

} // namespace
} // namespace cudaq::realtime::test

int main(int argc, char **argv) { return cudaq::realtime::test::run(argc, argv); }
