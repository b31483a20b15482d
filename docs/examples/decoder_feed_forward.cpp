// SPDX-License-Identifier: Apache-2.0
// Feed-forward at the pace of hardware: a surface code runs, one round each 2 us. In each logical cycle a conditional
// gate waits for the correction of all rounds up to the gate; meanwhile further rounds come. A cycle with commit 5 and
// buffer 5:
//
//   time     due
//   0 us     round 0, the first of the cycle
//   8 us     round 4: the gate needs the correction of rounds 0 to 4, a window
//   18 us    round 9, the last one of the buffer: the window is decoded
//   18 us+   the correction is here, the gate is applied; the next cycle begins with the next round
//
//   decoder_feed_forward                 decodes in this process, a short run
//   decoder_feed_forward CYCLES          the same, with this number of cycles
//   decoder_feed_forward CYCLES NAME     by the decoding server NAME in shared memory: its decoder 0
//   decoder_feed_forward model           prints the model, for the server
//
// docs/tutorials/feed_forward.md has the commands and results.
#include <cudaq/qec/decoding/stream.h>
#include <cudaq/realtime/daemon/bridge/shm_client.h>
#include <cudaq/realtime/daemon/dispatcher/rpc_types.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace cudaq::qec::realtime;

namespace {

constexpr int kDistance = 5;
constexpr std::uint64_t kCommit = 5, kBuffer = 5, kPeriodNs = 2000;
constexpr double kError = 0.002;                  // of each qubit and of each measurement, in each round
constexpr std::uint64_t kLimitNs = 5'000'000'000; // of each wait

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// The Z checks of the rotated surface code: for each data qubit (row * d + column) the one or two checks that its X
/// error flips. An X error on column 0 flips the observable.
struct surface_code {
  std::vector<std::vector<int>> checks_of = std::vector<std::vector<int>>(kDistance * kDistance);
  int checks = 0;

  surface_code() {
    for (int row = 0; row <= kDistance; ++row) // a check at each second corner of the qubits
      for (int column = 1; column < kDistance; ++column)
        if ((row + column) % 2 == 0) {
          for (int r = std::max(0, row - 1); r <= std::min(kDistance - 1, row); ++r)
            for (int c = column - 1; c <= column; ++c)
              checks_of[static_cast<std::size_t>(r * kDistance + c)].push_back(checks);
          ++checks;
        }
  }
  static bool flips_observable(std::size_t qubit) { return qubit % kDistance == 0; }

  /// In each round: an error of each qubit, and a wrong result of each measurement, which the next round shows as well.
  /// The tail is a round without wrong results.
  std::string model() const {
    std::string text = "repeat 1000 {\n" + round(true) + "shift_detectors(1) " + std::to_string(checks) + "\n}\n";
    return text + round(false);
  }

private:
  std::string round(bool measured) const {
    std::string text;
    for (int check = 0; check < checks; ++check) {
      text += "detector(0) D" + std::to_string(check) + "\n";
      if (measured)
        text += "error(" + std::to_string(kError) + ") D" + std::to_string(check) + " D" +
                std::to_string(check + checks) + "\n";
    }
    for (std::size_t qubit = 0; qubit < checks_of.size(); ++qubit) {
      text += "error(" + std::to_string(kError) + ")";
      for (const int check : checks_of[qubit])
        text += " D" + std::to_string(check);
      text += flips_observable(qubit) ? " L0\n" : "\n";
    }
    return text;
  }
};

/// The experiment: errors, and the detection events of one round after another.
class hardware {
public:
  explicit hardware(const surface_code &code) : code_(code), wrong_(static_cast<std::size_t>(code.checks)) {}

  /// Packed bits, one for each check. `measured`: with wrong results, and then each is an event in this round and in
  /// the next one.
  std::vector<std::uint8_t> next_round(bool measured) {
    std::vector<std::uint8_t> events(wrong_);
    std::fill(wrong_.begin(), wrong_.end(), std::uint8_t{0});
    const std::size_t qubits = code_.checks_of.size(), places = qubits + events.size();
    for (; next_error_ < places; next_error_ += 1 + skipped_(random_))
      if (next_error_ < qubits) {
        observable_ ^= surface_code::flips_observable(next_error_);
        for (const int check : code_.checks_of[next_error_])
          events[static_cast<std::size_t>(check)] ^= 1;
      } else if (measured) {
        events[next_error_ - qubits] ^= 1;
        wrong_[next_error_ - qubits] = 1;
      }
    next_error_ -= places;
    std::vector<std::uint8_t> packed((events.size() + 7) / 8);
    for (std::size_t check = 0; check < events.size(); ++check)
      packed[check / 8] |= static_cast<std::uint8_t>(events[check] << check % 8);
    return packed;
  }
  bool observable() const { return observable_; }
  void begin() {
    std::fill(wrong_.begin(), wrong_.end(), std::uint8_t{0});
    observable_ = false;
  }

private:
  const surface_code &code_;
  std::vector<std::uint8_t> wrong_;
  bool observable_ = false;
  std::mt19937 random_{1};
  std::geometric_distribution<std::size_t> skipped_{kError}; ///< places between two errors
  std::size_t next_error_ = skipped_(random_);               ///< place, from the first one of the next round on
};

/// Who decodes. Rounds go in; rounds() is how many are final, and observable() their correction.
class corrector {
public:
  virtual ~corrector() = default;
  virtual void begin() = 0;
  /// `wanted`: the number of rounds that should be final after this round; 0: no window ends here.
  virtual void send(const std::vector<std::uint8_t> &bits, std::uint64_t wanted) = 0;
  virtual void send_tail(const std::vector<std::uint8_t> &bits, std::uint64_t wanted) = 0;
  /// Takes the corrections that are final.
  virtual void poll() {}
  std::uint64_t rounds() const { return rounds_; }
  bool observable() const { return observable_; }

protected:
  std::uint64_t rounds_ = 0;
  bool observable_ = false;
};

class own_decoder final : public corrector {
public:
  own_decoder(const std::string &model, int checks) : checks_(static_cast<std::uint64_t>(checks)) {
    stream_result made = make_stream_decoder(model, {.decoder = "auto", .commit = kCommit, .buffer = kBuffer});
    if (!made)
      throw std::runtime_error(made.error);
    stream_ = std::move(made.instance);
  }
  void begin() override {
    stream_->reset();
    rounds_ = 0;
  }
  void send(const std::vector<std::uint8_t> &bits, std::uint64_t) override { take(stream_->push(bits, checks_)); }
  void send_tail(const std::vector<std::uint8_t> &bits, std::uint64_t) override {
    take(stream_->finish(bits, checks_));
  }

private:
  void take(decode_status status) {
    if (status != decode_status::ok)
      throw std::runtime_error(decode_status_text(status));
    rounds_ = stream_->committed_rounds();
    observable_ = (stream_->observables()[0] & 1) != 0;
  }
  const std::uint64_t checks_;
  std::unique_ptr<stream_decoder> stream_;
};

/// Requests in the slots of a ring, in their order; answers are taken in the same order.
class server final : public corrector {
public:
  server(const char *name, int checks) : checks_(static_cast<std::uint64_t>(checks)) {
    require(cudaq_shm_client_attach(&client_, name, kLimitNs, nullptr));
    require(cudaq_shm_client_ring(client_, &ring_, &slots_, nullptr));
  }
  ~server() override { cudaq_shm_client_detach(client_); }
  server(const server &) = delete;
  server &operator=(const server &) = delete;

  void begin() override {
    request("reset_decoder", {kDecoder});
    while (taken_ != sent_)
      poll();
    rounds_ = counter_ = 0;
  }
  void send(const std::vector<std::uint8_t> &bits, std::uint64_t wanted) override {
    request("enqueue_syndromes", {kDecoder, ++counter_, 0, checks_}, bits);
    if (wanted != 0)
      request("get_committed", {kDecoder, 1, 0, wanted}); // the answer waits for the window
  }
  void send_tail(const std::vector<std::uint8_t> &bits, std::uint64_t wanted) override {
    request("begin_tail", {kDecoder, ++counter_});
    send(bits, wanted);
  }
  void poll() override {
    while (taken_ != sent_ && take_one()) {
    }
  }

private:
  static constexpr std::uint64_t kDecoder = 0;

  void request(const char *function, std::initializer_list<std::uint64_t> words,
               const std::vector<std::uint8_t> &bits = {}) {
    std::uint8_t payload[256];
    std::size_t size = 0;
    for (const std::uint64_t word : words) { // the wire is little-endian, as the machines that this library runs on
      std::memcpy(payload + size, &word, sizeof word);
      size += sizeof word;
    }
    for (const std::uint8_t byte : bits)
      payload[size++] = byte;
    const auto slot = static_cast<std::uint32_t>(sent_ % slots_);
    while (cudaq_host_ringbuffer_slot_available(&ring_, slot) == 0) { // also shortly after its answer was taken
      poll();
      require_progress();
    }
    require(cudaq_host_ringbuffer_write_rpc_request(&ring_, slot, cudaq::realtime::fnv1a_hash(function), payload,
                                                    static_cast<std::uint32_t>(size), 0, 0));
    cudaq_shm_client_signal(client_, slot);
    if (sent_++ == taken_)
      quiet_since_ns_ = now_ns();
  }
  bool take_one() {
    const auto slot = static_cast<std::uint32_t>(taken_ % slots_);
    if (cudaq_host_ringbuffer_poll_tx_flag(&ring_, slot, nullptr) != CUDAQ_TX_READY)
      return require_progress(), false;
    cudaq_rpc_response_t header;
    const void *result = nullptr;
    require(cudaq_host_ringbuffer_read_rpc_response(&ring_, slot, &header, &result));
    if (header.status != 0)
      throw std::runtime_error("the server answers with the status " + std::to_string(header.status));
    if (header.result_len == 17) { // get_committed
      std::memcpy(&rounds_, result, sizeof rounds_);
      observable_ = (static_cast<const std::uint8_t *>(result)[16] & 1) != 0;
    }
    cudaq_host_ringbuffer_clear_slot(&ring_, slot);
    ++taken_;
    quiet_since_ns_ = now_ns();
    return true;
  }
  void require_progress() const {
    if (now_ns() - quiet_since_ns_ > kLimitNs)
      throw std::runtime_error("the server does not answer");
  }
  static void require(cudaq_status_t status) {
    if (status != CUDAQ_OK)
      throw std::runtime_error(std::string(cudaq_status_string(status)) + ": " + cudaq_shm_client_error());
  }

  const std::uint64_t checks_;
  cudaq_shm_client_t *client_ = nullptr;
  cudaq_ringbuffer_t ring_{};
  std::uint32_t slots_ = 0;
  std::uint64_t sent_ = 0, taken_ = 0, counter_ = 0, quiet_since_ns_ = 0;
};

struct times {
  std::vector<std::uint64_t> cycle, wait; ///< ns: of a cycle; from the last round of its window to the gate
  std::uint64_t rounds = 0, late_rounds = 0, gates = 0, wrong = 0, experiments = 0;
};

/// One experiment: cycles with a gate each, then the tail.
void run(hardware &source, corrector &decoder, int cycles, times &found) {
  source.begin();
  decoder.begin();
  const std::uint64_t begin = now_ns() + 20'000;
  std::uint64_t round = 0;
  const auto due = [&](std::uint64_t k) { return begin + k * kPeriodNs; };
  for (int cycle = 0; cycle < cycles; ++cycle) {
    const std::uint64_t first = round, last_of_gate = first + kDistance;
    const std::uint64_t needed = (last_of_gate + kCommit - 1) / kCommit * kCommit; // windows end at these rounds
    while (decoder.rounds() < needed) {
      decoder.poll();
      if (decoder.rounds() >= needed || now_ns() < due(round))
        continue;
      const std::vector<std::uint8_t> bits = source.next_round(true);
      ++round;
      const bool window = round >= kCommit + kBuffer && (round - kBuffer) % kCommit == 0;
      found.late_rounds += now_ns() > due(round) ? 1 : 0; // a whole period after its time
      decoder.send(bits, window ? round - kBuffer : 0);
    }
    const std::uint64_t now = now_ns();
    found.gates += decoder.observable() ? 1 : 0; // the conditional gate
    found.cycle.push_back(now - due(first));
    found.wait.push_back(now - due(needed + kBuffer - 1));
  }
  const std::uint64_t all = round + 1;
  decoder.send_tail(source.next_round(false), all);
  while (decoder.rounds() < all)
    decoder.poll();
  found.rounds += all;
  found.wrong += decoder.observable() != source.observable() ? 1 : 0;
  ++found.experiments;
}

void print(const char *what, std::vector<std::uint64_t> &ns) {
  std::sort(ns.begin(), ns.end());
  const auto at = [&](double part) {
    return static_cast<double>(ns[static_cast<std::size_t>(part * static_cast<double>(ns.size() - 1))]) / 1000;
  };
  std::printf("%-14s p50 %.2f us, p99 %.2f us, max %.2f us\n", what, at(0.5), at(0.99), at(1));
}

} // namespace

int main(int argc, char **argv) {
  const surface_code code;
  if (argc > 1 && std::strcmp(argv[1], "model") == 0)
    return std::printf("%s", code.model().c_str()) < 0;
  constexpr int kCyclesOfExperiment = 20;
  const long cycles = argc > 1 ? std::atol(argv[1]) : 1000;
  if (cycles < kCyclesOfExperiment)
    return std::fprintf(stderr, "usage: decoder_feed_forward [model | CYCLES [NAME]], at least 20 cycles\n"), 2;
  try {
    std::unique_ptr<corrector> decoder;
    if (argc > 2)
      decoder = std::make_unique<server>(argv[2], code.checks);
    else
      decoder = std::make_unique<own_decoder>(code.model(), code.checks);
    hardware source(code);
    times found;
    for (long done = 0; done < cycles; done += kCyclesOfExperiment)
      run(source, *decoder, kCyclesOfExperiment, found);
    print("logical cycle", found.cycle);
    print("wait for it", found.wait);
    std::printf("rounds         %llu, %.2f a cycle, one each 2 us; %llu sent a round or more too late\n",
                static_cast<unsigned long long>(found.rounds),
                static_cast<double>(found.rounds) / static_cast<double>(found.cycle.size()),
                static_cast<unsigned long long>(found.late_rounds));
    std::printf("gates          %llu of %zu; %llu of %llu experiments with a wrong final correction\n",
                static_cast<unsigned long long>(found.gates), found.cycle.size(),
                static_cast<unsigned long long>(found.wrong), static_cast<unsigned long long>(found.experiments));
    return found.wrong > 5 + found.rounds / 5000; // of experiments that are never corrected a third or more are wrong
  } catch (const std::exception &error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
}
