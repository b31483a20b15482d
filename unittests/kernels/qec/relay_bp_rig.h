// SPDX-License-Identifier: Apache-2.0
// The blocks of the relay-bp kernel on CPU threads, and the caller's side of their mailbox.
#pragma once

#include "kernels/qec/relay_bp/relay_bp_layout.h"
#include "kernels/qec/relay_bp/relay_bp_team.h"
#include "lib/qec/decoders/stop_check.h"
#include "unittests/qec/pipeline/pipeline_rig.h"

#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace cudaq::qec::realtime::gpu {

/// The threads of a block.
class cpu_relay_group {
public:
  /// The memories of the blocks of a chain, and their barrier.
  struct cluster {
    cluster(std::uint32_t parts, std::uint32_t threads, std::size_t bytes)
        : memories(parts, std::vector<std::uint64_t>(bytes / 8)), barrier(parts * threads) {}
    std::vector<std::vector<std::uint64_t>> memories;
    std::barrier<> barrier;
  };
  struct shared {
    shared(cluster &all, std::uint32_t number, std::uint32_t n) : of(all), rank(number), pairs(n), barrier(n) {}
    cluster &of;
    const std::uint32_t rank;
    std::vector<relay_pair> pairs; ///< of the threads
    std::barrier<> barrier;
    std::atomic<bool> any{false};
  };
  static constexpr std::uint32_t kCheckLanes = 2;
  cpu_relay_group(shared &of, std::uint32_t thread) : of_(of), thread_(thread) {}
  std::uint32_t rank() const { return of_.rank; }
  template <class T>
  T *of_part(T *pointer, std::uint32_t part) const {
    const auto at =
        reinterpret_cast<std::uint8_t *>(pointer) - reinterpret_cast<std::uint8_t *>(of_.of.memories[of_.rank].data());
    return reinterpret_cast<T *>(reinterpret_cast<std::uint8_t *>(of_.of.memories[part].data()) + at);
  }
  void arrive() const { arrival_.emplace(of_.of.barrier.arrive()); }
  void wait() const { of_.of.barrier.wait(*std::exchange(arrival_, std::nullopt)); }
  relay_pair across(const relay_pair &pair, std::uint32_t distance) const {
    of_.pairs[thread_] = pair;
    sync();
    const relay_pair other = of_.pairs[thread_ ^ distance];
    sync();
    return other;
  }
  std::uint32_t thread() const { return thread_; }
  std::uint32_t threads() const { return static_cast<std::uint32_t>(of_.pairs.size()); }
  void sync() const { of_.barrier.arrive_and_wait(); }
  bool any(bool mine) const {
    if (mine)
      of_.any = true;
    sync();
    const bool result = of_.any;
    sync();
    if (thread_ == 0)
      of_.any = false;
    sync();
    return result;
  }
  bool any_word(const std::uint32_t *words, std::uint32_t n) const {
    return std::any_of(words, words + n, [](std::uint32_t word) { return word != 0; });
  }
  void flip_bits(std::uint32_t &word, std::uint32_t bits) const { std::atomic_ref(word) ^= bits; }
  void set_bits(std::uint32_t &word, std::uint32_t bits) const { std::atomic_ref(word) |= bits; }
  void add(std::uint64_t &word, std::uint64_t n) const { std::atomic_ref(word) += n; }
  std::uint32_t opaque(std::uint32_t word) const { return word; }
  std::uint32_t clock() const { return 0; }
  std::uint64_t now_ns() const { return monotonic_ns(); }
  void idle() const { std::this_thread::yield(); }

private:
  shared &of_;
  const std::uint32_t thread_;
  mutable std::optional<std::barrier<>::arrival_token> arrival_;
};

/// A kernel that runs from the constructor until end().
class cpu_relay_kernel {
public:
  cpu_relay_kernel(const tanner_graph &graph, const relay_bp_options &options, const relay_room &room,
                   std::uint32_t threads)
      : layout(graph, options, room), job_(layout.job()), syndrome_(job_.total_words),
        records_(options.ensemble * job_.record_bytes() / 8), values_(3 * options.ensemble * layout.log_odds.size()),
        messages_(std::size_t{options.ensemble} * job_.total_cells),
        frame_((24 + sizeof(relay_request)) / 8 + job_.total_words / 2 + 1), output_(job_.record_bytes() / 8) {
    job_.cuts = layout.cuts.data();
    job_.sends_to = layout.sends_to.data();
    job_.checks = layout.checks.data();
    job_.group_of_row = layout.group_of_row.data();
    job_.column_groups = layout.column_groups.data();
    job_.places = has_messages_in_device(layout.variant()) ? static_cast<const void *>(layout.places.data())
                                                           : layout.short_places.data();
    job_.log_odds = layout.log_odds.data();
    job_.units = layout.units.data();
    job_.column_at = layout.column_at.data();
    job_.scales = layout.scales.data();
    gammas_ = layout.gammas;
    job_.gammas = gammas_.data();
    job_.team = &team_;
    job_.syndrome = syndrome_.data();
    job_.records = reinterpret_cast<std::uint8_t *>(records_.data());
    job_.values = values_.data();
    job_.messages = messages_.data();
    job_.cancel = &cancel;
    EXPECT_TRUE(layout.variant() != relay_variant::registers ||
                (layout.log_odds.size() <= kColumns * threads && layout.checks.size() <= kChecks * threads));
    for (std::uint32_t chain = 0; chain < options.ensemble; ++chain) {
      clusters_.push_back(
          std::make_unique<cpu_relay_group::cluster>(job_.parts, threads, relay_memory_bytes(job_, layout.variant())));
      for (std::uint32_t part = 0; part < job_.parts; ++part)
        groups_.push_back(std::make_unique<cpu_relay_group::shared>(*clusters_.back(), part, threads));
    }
    for (std::uint32_t block = 0; block < groups_.size(); ++block)
      for (std::uint32_t t = 0; t < threads; ++t)
        running_.emplace_back([this, block, t] { run(block, t); });
  }
  ~cpu_relay_kernel() { end(); }

  void post(std::span<const std::uint8_t> syndrome, std::uint64_t budget_ns = UINT64_MAX) {
    auto *const request = reinterpret_cast<relay_request *>(frame_.data() + 3);
    *request = {budget_ns, ++number, 0};
    layout.pack_syndrome(syndrome, {reinterpret_cast<std::uint32_t *>(request + 1), job_.total_words});
    cudaq::realtime::detail::store_release<std::uint64_t>(flags_[0], 1);
  }
  bool take(relay_record &record, std::vector<std::uint32_t> &columns) {
    if (!test::eventually([&] { return cudaq::realtime::detail::claim_word(state_.ready, 1, 2); }))
      return false;
    std::memcpy(&record, output_.data(), sizeof record);
    layout.columns_of(
        {reinterpret_cast<const std::uint32_t *>(output_.data() + sizeof(relay_record) / 8), job_.total_column_groups},
        columns);
    if (record.found == 0)
      columns.clear();
    cudaq::realtime::detail::store_release(state_.ready, 0);
    return true;
  }
  void await_begin() {
    EXPECT_TRUE(test::eventually([&] { return cudaq::realtime::detail::load_acquire(state_.began) == 1; }));
  }
  /// Tells the kernel to end, and waits for that.
  void end() {
    cudaq::realtime::detail::store_release<std::uint64_t>(flags_[1], 1);
    for (std::thread &t : running_)
      t.join();
    running_.clear();
  }

  const relay_layout layout;
  std::uint32_t number = 0; ///< of the last request
  std::uint32_t cancel = 0;

private:
  static constexpr std::uint32_t kColumns = 18, kChecks = 8; ///< the most of a thread

  template <relay_variant Variant>
  void run_variant(std::uint32_t block, std::uint32_t thread) {
    const cpu_relay_group group(*groups_[block], thread);
    const std::uint32_t chain_number = block / job_.parts;
    relay_job job = job_;
    if constexpr (is_cluster(Variant))
      job = part_of<Variant>(job_, group.rank());
    const relay_memory<Variant> memory(clusters_[chain_number]->memories[group.rank()].data(), job);
    relay_chain<cpu_relay_group, Variant, kColumns, kChecks> chain(group, job, memory, chain_number);
    const resident_mailboxes boxes{flags_.data(),
                                   reinterpret_cast<std::uint8_t *>(frame_.data()),
                                   0,
                                   reinterpret_cast<std::uint8_t *>(output_.data()),
                                   0,
                                   &state_,
                                   1};
    if (block == 0)
      lead(group, boxes, job, memory, chain);
    else
      follow(group, job, memory, chain);
  }
  void run(std::uint32_t block, std::uint32_t thread) {
    with_variant(layout.variant(), [&](auto v) { run_variant<v()>(block, thread); });
  }

  relay_job job_;
  relay_team team_{};
  std::vector<std::uint32_t> syndrome_;
  std::vector<std::uint64_t> records_;
  std::vector<float> values_, messages_, gammas_;
  std::vector<std::uint64_t> frame_, output_;
  std::array<std::uint64_t, 2> flags_{};
  resident_state state_{};
  std::vector<std::unique_ptr<cpu_relay_group::cluster>> clusters_;
  std::vector<std::unique_ptr<cpu_relay_group::shared>> groups_;
  std::vector<std::thread> running_;
};

} // namespace cudaq::qec::realtime::gpu
