// SPDX-License-Identifier: Apache-2.0
// Compiled without fused multiplications (lib/qec/CMakeLists.txt), which would change sums with the instruction set.
#include "lib/qec/decoders/relay_bp/min_sum_sweeps.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace cudaq::qec::realtime {
namespace {

template <typename T>
using word_of = std::conditional_t<sizeof(T) == sizeof(float), std::int32_t, std::int64_t>;
/// A vector of the compiler with `Bytes` bytes: those of one register, else the compiler takes it apart badly.
template <typename T, std::size_t Bytes>
struct vector_of {
  typedef T type __attribute__((vector_size(Bytes)));
};

// Inlined into each variant below. Vectors do not cross a function boundary: their passing depends on the target.

template <std::size_t Bytes, typename T>
[[gnu::always_inline]] inline void sweep_checks(const min_sum_state<T> &s, T scale) noexcept {
  using values = typename vector_of<T, Bytes>::type;
  using words = typename vector_of<word_of<T>, Bytes>::type;
  constexpr std::uint32_t kWidth = Bytes / sizeof(T);
  constexpr word_of<T> kSign = std::numeric_limits<word_of<T>>::min(); // the sign bit
  const auto &g = *s.graph;
  for (std::size_t lane = 0; lane < g.rows_of_check.size(); lane += kWidth) {
    const grouped_graph::check_group &checks = g.check_groups[lane / kLanes];
    T *const cells = s.messages + checks.first_cell + lane % kLanes;
    values least = values{} + kLargestMessage<T>, second = least;
    words sign{}, length{};
    std::memcpy(&sign, s.syndrome_sign + lane, sizeof sign);
    for (std::uint32_t k = 0; k < kWidth; ++k)
      length[k] = static_cast<word_of<T>>(g.rows_of_check[lane + k]);
    for (std::uint32_t row = 0; row < checks.rows; ++row) {
      words word{};
      std::memcpy(&word, cells + row * kLanes, sizeof word);
      values magnitude = reinterpret_cast<values>(word & ~kSign);
      if (row >= checks.full_rows) {
        const words is_used = length > static_cast<word_of<T>>(row);
        word &= is_used;
        magnitude = is_used ? magnitude : values{} + kLargestMessage<T>;
      }
      sign ^= word;
      const values larger = magnitude > least ? magnitude : least;
      second = larger < second ? larger : second;
      least = magnitude < least ? magnitude : least;
    }
    const words scaled_least = reinterpret_cast<words>(least * scale);
    const words scaled_second = reinterpret_cast<words>(second * scale);
    for (std::uint32_t row = 0; row < checks.rows; ++row) {
      words word{};
      std::memcpy(&word, cells + row * kLanes, sizeof word);
      // If two messages are the least, `second` equals `least`.
      const words is_least = reinterpret_cast<values>(word & ~kSign) == least;
      const words answer = (is_least ? scaled_second : scaled_least) | ((word ^ sign) & kSign);
      std::memcpy(cells + row * kLanes, &answer, sizeof answer);
    }
  }
}

template <std::size_t Bytes, typename T>
[[gnu::always_inline]] inline std::size_t sweep_columns(const min_sum_state<T> &s) noexcept {
  using values = typename vector_of<T, Bytes>::type;
  using words = typename vector_of<word_of<T>, Bytes>::type;
  constexpr std::uint32_t kWidth = Bytes / sizeof(T);
  const auto &g = *s.graph;
  auto *const prefix = reinterpret_cast<values *>(s.prefix), *const answers = reinterpret_cast<values *>(s.answers);
  T *const messages = s.messages;
  std::size_t num_decided = 0;
  for (std::size_t lane = 0; lane < g.column_at.size(); lane += kWidth) {
    const grouped_graph::column_group &columns = g.column_groups[lane / kLanes];
    const std::uint32_t *const places = g.places.data() + columns.first_place + lane % kLanes;
    values prior{}, gamma{}, sum{};
    std::memcpy(&prior, s.prior + lane, sizeof prior);
    std::memcpy(&gamma, s.gamma + lane, sizeof gamma);
    std::memcpy(&sum, s.posterior + lane, sizeof sum);
    sum = prior + gamma * sum;
    for (std::uint32_t row = 0; row < columns.rows; ++row) {
      const std::uint32_t *const at = places + row * kLanes;
      values answer{};
      if constexpr (kWidth == 8)
        answer = values{messages[at[0]], messages[at[1]], messages[at[2]], messages[at[3]],
                        messages[at[4]], messages[at[5]], messages[at[6]], messages[at[7]]};
      else if constexpr (kWidth == 4)
        answer = values{messages[at[0]], messages[at[1]], messages[at[2]], messages[at[3]]};
      else
        answer = values{messages[at[0]], messages[at[1]]};
      answers[row] = answer;
      prefix[row] = sum;
      sum += answer;
    }
    std::memcpy(s.posterior + lane, &sum, sizeof sum);
    values later{};
    for (std::uint32_t row = columns.rows; row-- > 0;) {
      const values message = prefix[row] + later;
#pragma GCC unroll 8
      for (std::uint32_t k = 0; k < kWidth; ++k)
        messages[places[row * kLanes + k]] = message[k];
      later += answers[row];
    }
    const words decided = sum <= 0;
    std::uint64_t halves[Bytes / sizeof(std::uint64_t)], any = 0;
    std::memcpy(halves, &decided, sizeof halves);
    for (const std::uint64_t half : halves)
      any |= half;
    if (any != 0) // seldom
      for (std::uint32_t k = 0; k < kWidth; ++k)
        if (decided[k] != 0 && g.column_at[lane + k] != grouped_graph::kUnused)
          s.decision[num_decided++] = g.column_at[lane + k];
  }
  return num_decided;
}

template <typename T>
void checks_plain(const min_sum_state<T> &s, T scale) noexcept {
  sweep_checks<16>(s, scale);
}
template <typename T>
std::size_t columns_plain(const min_sum_state<T> &s) noexcept {
  return sweep_columns<16>(s);
}
#if defined(__x86_64__)
template <typename T>
[[gnu::target("avx2")]] void checks_avx2(const min_sum_state<T> &s, T scale) noexcept {
  sweep_checks<32>(s, scale);
}
template <typename T>
[[gnu::target("avx2")]] std::size_t columns_avx2(const min_sum_state<T> &s) noexcept {
  return sweep_columns<32>(s);
}
#endif

} // namespace

template <typename T>
min_sum_sweeps<T> choose_min_sum_sweeps(bool plain) noexcept {
#if defined(__x86_64__)
  if (!plain && __builtin_cpu_supports("avx2"))
    return {&checks_avx2<T>, &columns_avx2<T>, "AVX2"};
#endif
  static_cast<void>(plain);
  return {&checks_plain<T>, &columns_plain<T>, "plain"};
}

template min_sum_sweeps<float> choose_min_sum_sweeps<float>(bool) noexcept;
template min_sum_sweeps<double> choose_min_sum_sweeps<double>(bool) noexcept;

} // namespace cudaq::qec::realtime
