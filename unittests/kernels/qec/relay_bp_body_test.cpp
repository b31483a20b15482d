// SPDX-License-Identifier: Apache-2.0
// The relay-bp kernel on CPU threads, against relay_bp of the CPU: the same corrections, bit for bit.
#include "unittests/kernels/qec/relay_bp_rig.h"

#include "lib/qec/decoders/relay_bp/relay_bp.h"
#include "unittests/qec/propagation/bp_osd_test_support.h"

#include <algorithm>
#include <random>
#include <set>

namespace cudaq::qec::realtime::gpu {
namespace {

constexpr relay_room kLargeBlock{232448, 0}; ///< shared memory of a block of sm_90
constexpr std::uint32_t kThreads = 8;        ///< enough for the columns of bicycle_72_capacity in registers

relay_bp_options options_of(const std::string &setting) {
  auto name = decoder_name::parse(setting.empty() ? "relay-bp" : "relay-bp:" + setting);
  const relay_bp_options options = relay_bp_options_of(name->settings, true);
  EXPECT_EQ(name->settings.check().text(), "");
  return options;
}

struct relay_case {
  const char *set, *setting;
  relay_variant variant;
  std::uint32_t threads, blocks = 0;
};
void PrintTo(const relay_case &c, std::ostream *out) { *out << c.set << " " << c.setting; }

/// The largest block that leads to this variant.
relay_room room_for(const relay_case &c, const tanner_graph &graph) {
  if (c.variant == relay_variant::registers || c.variant == relay_variant::cluster)
    return {kLargeBlock.block_bytes, c.blocks, cpu_relay_group::kCheckLanes};
  if (is_cluster(c.variant)) {
    relay_room room{kLargeBlock.block_bytes, c.blocks, cpu_relay_group::kCheckLanes};
    room.block_bytes = relay_memory_bytes(relay_layout(graph, options_of(c.setting), room).job(), c.variant);
    return room;
  }
  const relay_job job = relay_layout(graph, options_of(c.setting), {}).job();
  const std::size_t shared = relay_memory_bytes(job, relay_variant::shared);
  return {c.variant == relay_variant::shared ? shared : shared - 1};
}

/// Decodes the events of each shot with the kernel and with relay_bp.
void expect_corrections_of_the_cpu(const tanner_graph &graph, const relay_bp_options &options, cpu_relay_kernel &kernel,
                                   std::span<const std::vector<std::uint64_t>> shots) {
  graph_syndrome syndrome(graph);
  relay_bp expected(graph, options);
  std::size_t found = 0;
  for (std::size_t shot = 0; shot < shots.size(); ++shot) {
    ASSERT_TRUE(syndrome.set_events(shots[shot]));
    const decode_status status = expected.solve(syndrome.bytes());
    kernel.post(syndrome.bytes());
    relay_record record{};
    std::vector<std::uint32_t> columns;
    ASSERT_TRUE(kernel.take(record, columns));
    EXPECT_EQ(record.status, relay_status::complete);
    ASSERT_EQ(record.found != 0, status == decode_status::ok) << shot;
    found += record.found;
    if (record.found != 0) {
      ASSERT_TRUE(std::ranges::equal(columns, expected.correction())) << shot;
    }
  }
  EXPECT_GT(found, 0U);
}

class RelayBpBody : public testing::TestWithParam<relay_case> {};

TEST_P(RelayBpBody, GivesTheCorrectionsOfTheCpuBitForBit) {
  const relay_case &c = GetParam();
  const test::oracle_set set(c.set);
  const tanner_graph graph = test::graph_or_throw(set.dem_text);
  const relay_bp_options options = options_of(c.setting);
  cpu_relay_kernel kernel(graph, options, room_for(c, graph), c.threads);
  ASSERT_EQ(kernel.layout.variant(), c.variant);
  expect_corrections_of_the_cpu(graph, options, kernel, std::span(set.shots).first(25));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RelayBpBody,
    testing::Values(
        relay_case{"bicycle_72_capacity_p0.04", "mode=least_weight", relay_variant::registers, 8},
        relay_case{"bicycle_72_capacity_p0.04", "mode=least_weight,ensemble=3,num_sets=4,stop_nconv=2,seed=5",
                   relay_variant::registers, 8},
        relay_case{"bicycle_72_capacity_p0.04", "mode=in_step,ensemble=3,pre_iter=9,num_sets=20,alpha=0",
                   relay_variant::registers, 8},
        relay_case{"bicycle_72_capacity_p0.04", "mode=least_weight,pre_iter=7", relay_variant::cluster, 4, 1},
        relay_case{"bicycle_72_capacity_p0.04", "mode=least_weight,num_sets=4,stop_nconv=2,pre_iter=7,set_max_iter=9",
                   relay_variant::cluster, 2, 4},
        relay_case{"bicycle_72_capacity_p0.04", "mode=in_step,ensemble=2,pre_iter=5,set_max_iter=7,num_sets=9,alpha=0",
                   relay_variant::cluster, 2, 2},
        relay_case{"bicycle_72_capacity_p0.04", "mode=in_step,num_sets=4,pre_iter=5,set_max_iter=7",
                   relay_variant::cluster, 2, 8},
        relay_case{"bicycle_72_capacity_p0.04", "mode=least_weight,ensemble=2,num_sets=10,stop_nconv=2,pre_iter=5",
                   relay_variant::cluster_shared, 2, 4},
        relay_case{"color_d5_p0.003", "mode=in_step,ensemble=2,pre_iter=5,set_max_iter=7",
                   relay_variant::cluster_shared, 4, 2},
        relay_case{"bicycle_72_capacity_p0.04", "mode=in_step,ensemble=3,num_sets=10,pre_iter=5,set_max_iter=7,alpha=0",
                   relay_variant::cluster_device, 4, 2},
        relay_case{"color_d5_p0.003", "mode=least_weight,num_sets=10,pre_iter=6", relay_variant::cluster_device, 2, 4},
        relay_case{"bicycle_72_capacity_p0.04", "mode=in_step,num_sets=4,pre_iter=5,set_max_iter=7",
                   relay_variant::cluster_device, 2, 8},
        relay_case{"color_d5_p0.003", "mode=in_step,ensemble=2,pre_iter=5,set_max_iter=7", relay_variant::shared, 2},
        relay_case{"color_d5_p0.003", "mode=least_weight,num_sets=3,pre_iter=6", relay_variant::device, 3}));

/// Errors of 1 to 15 detectors, the same number of each.
std::string model_of_long_columns(std::mt19937 &random) {
  std::string dem;
  for (std::uint32_t error = 0; error < 45; ++error) {
    std::set<std::uint32_t> detectors;
    while (detectors.size() <= error % 15)
      detectors.insert(static_cast<std::uint32_t>(random() % 30));
    dem += "error(0.0" + std::to_string(1 + error % 9) + ")";
    for (const std::uint32_t d : detectors)
      dem += " D" + std::to_string(d);
    dem += "\n";
  }
  return dem;
}

TEST(RelayRequestNumber, OfTheNextRoundForgetsTheCancellationOfTheLast) {
  int forgets = 0;
  const auto after = [&](std::uint32_t last) { return number_after(last, [&] { ++forgets; }); };
  EXPECT_EQ(after(0), 1u);
  EXPECT_EQ(after(UINT32_MAX - 1), UINT32_MAX);
  EXPECT_EQ(forgets, 0);
  EXPECT_EQ(after(UINT32_MAX), 1u) << "0 is no request";
  EXPECT_EQ(forgets, 1);
}

TEST(RelayBpColumns, MayHaveAnyNumberOfMessages) {
  std::mt19937 random(11);
  const tanner_graph graph = test::graph_or_throw(model_of_long_columns(random));
  std::vector<std::vector<std::uint64_t>> shots;
  while (shots.size() < 12) {
    std::set<std::uint64_t> events;
    for (int error = 0; error < 2; ++error)
      for (const std::uint32_t check : graph.checks_of(static_cast<std::uint32_t>(random() % graph.num_columns())))
        if (!events.erase(check))
          events.insert(check);
    shots.emplace_back(events.begin(), events.end());
  }
  const relay_bp_options options = options_of("mode=least_weight,num_sets=3,pre_iter=6,set_max_iter=5");
  for (const std::uint32_t blocks : {1U, 2U}) {
    const relay_room room{kLargeBlock.block_bytes, blocks, cpu_relay_group::kCheckLanes};
    cpu_relay_kernel kernel(graph, options, room, 4);
    expect_corrections_of_the_cpu(graph, options, kernel, shots);
  }
}

struct bicycle {
  const test::oracle_set set{"bicycle_72_capacity_p0.04"};
  const tanner_graph graph = test::graph_or_throw(set.dem_text);
  graph_syndrome syndrome{graph};
};

TEST(RelayBpTeam, TheFirstSolutionEndsAllChains) {
  bicycle b;
  cpu_relay_kernel kernel(b.graph, options_of("mode=first,ensemble=3"), kLargeBlock, kThreads);
  for (std::size_t shot = 0; shot < 30; ++shot) {
    ASSERT_TRUE(b.syndrome.set_events(b.set.shots[shot]));
    kernel.post(b.syndrome.bytes());
    relay_record record{};
    std::vector<std::uint32_t> columns;
    ASSERT_TRUE(kernel.take(record, columns));
    ASSERT_EQ(record.status, relay_status::complete);
    ASSERT_EQ(record.found, 1U);
    std::vector<std::uint8_t> left(b.syndrome.bytes().begin(), b.syndrome.bytes().end());
    for (const std::uint32_t column : columns)
      for (const std::uint32_t check : b.graph.checks_of(column))
        left[check] ^= 1;
    ASSERT_EQ(left, std::vector<std::uint8_t>(left.size()));
  }
}

/// A shot that no chain solves within its many legs.
struct endless : bicycle {
  explicit endless(const std::string &setting)
      : kernel(graph, options_of("num_sets=1000000,stop_nconv=1000000," + setting), kLargeBlock, kThreads) {
    EXPECT_TRUE(syndrome.set_events(set.shots.front()));
  }
  relay_record record{};
  std::vector<std::uint32_t> columns;
  cpu_relay_kernel kernel;
};

TEST(RelayBpTeam, EndsAtItsDeadlineWithTheBestSolutionSoFar) {
  endless e("mode=least_weight,ensemble=2");
  std::uint64_t budget = 1000000;
  do {
    e.kernel.post(e.syndrome.bytes(), budget);
    ASSERT_TRUE(e.kernel.take(e.record, e.columns));
    EXPECT_EQ(e.record.status, relay_status::deadline);
    budget *= 2;
  } while (e.record.found == 0 && budget < 20000000000U);
  EXPECT_EQ(e.record.found, 1U);
  EXPECT_FALSE(e.columns.empty());
}

TEST(RelayBpTeam, EndsWhenItsRequestIsCancelledAndServesTheNextOne) {
  endless e("mode=first,ensemble=2");
  for (int k = 0; k < 3; ++k) {
    e.kernel.post(e.syndrome.bytes());
    cudaq::realtime::detail::store_relaxed(e.kernel.cancel, e.kernel.number - 1); // an earlier request
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    cudaq::realtime::detail::store_relaxed(e.kernel.cancel, e.kernel.number);
    ASSERT_TRUE(e.kernel.take(e.record, e.columns));
    EXPECT_EQ(e.record.status, relay_status::cancelled);
  }
}

TEST(RelayBpTeam, EndsWhileItIsBusy) {
  endless e("mode=in_step,ensemble=3");
  e.kernel.await_begin();
  e.kernel.post(e.syndrome.bytes());
  e.kernel.end(); // joins all threads
  ASSERT_TRUE(e.kernel.take(e.record, e.columns));
  EXPECT_EQ(e.record.status, relay_status::cancelled);
}

TEST(RelayBpTeam, EndsBeforeAllBlocksRun) {
  const bicycle b;
  for (int k = 0; k < 20; ++k)
    cpu_relay_kernel(b.graph, options_of("ensemble=3"), kLargeBlock, kThreads).end();
}

/// Lanes that read a bank of shared memory which another lane of the same step reads: each costs a cycle.
std::size_t bank_conflicts(const relay_layout &layout) {
  constexpr std::size_t kBanks = 32;
  std::size_t conflicts = 0;
  for (std::size_t step = 0; step < layout.places.size(); step += kWarpLanes) {
    std::array<std::size_t, kBanks> load{};
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane)
      ++load[layout.places[step + lane] % kBanks];
    conflicts += *std::ranges::max_element(load) - 1;
  }
  return conflicts;
}

TEST(RelayBpLayout, SpreadsTheMessagesOverTheBanks) {
  const tanner_graph graph = test::graph_or_throw(test::oracle_set("bicycle_72_r6_p0.003").dem_text);
  const relay_layout layout(graph, options_of(""), kLargeBlock);
  // Without any care a step costs some 2.5 cycles more than one.
  EXPECT_LT(bank_conflicts(layout), layout.places.size() / kWarpLanes / 2);
  // The same messages as before: each check has each of its cells once.
  std::vector<std::uint32_t> cells;
  for (std::size_t g = 0; g < layout.column_groups.size(); ++g)
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane)
      if (const std::uint32_t column = layout.column_at[g * kWarpLanes + lane]; column != grouped_graph::kUnused)
        for (std::uint32_t row = 0; row < layout.column_groups[g].rows; ++row) {
          const std::uint32_t cell = layout.places[(layout.column_groups[g].first_row + row) * kWarpLanes + lane];
          const std::uint32_t check = graph.checks_of(column)[row], at = layout.lane_of_check[check];
          ASSERT_EQ(layout.group_of_row[cell / kRowStride], at / kWarpLanes);
          ASSERT_EQ(cell % kRowStride, at % kWarpLanes);
          cells.push_back(cell);
        }
  std::ranges::sort(cells);
  EXPECT_EQ(std::ranges::adjacent_find(cells), cells.end());
}

} // namespace
} // namespace cudaq::qec::realtime::gpu
