// SPDX-License-Identifier: Apache-2.0
#include "cudaq/realtime/detail/ring/function_index_builder.h"
#include "unittests/support/host_fixture.h"

#include <numeric>
#include <random>
#include <set>

namespace cudaq::realtime::test {
namespace {

using detail::function_index;
using detail::function_index_view;
using detail::request;

cudaq_function_entry_t host(std::uint32_t id) {
  cudaq_function_entry_t e{};
  e.function_id = id;
  e.dispatch_mode = CUDAQ_DISPATCH_HOST_CALL;
  e.handler.host_fn = reverse_handler;
  return e;
}

cudaq_function_entry_t graph(std::uint32_t id, std::uint64_t key) {
  cudaq_function_entry_t e{};
  e.function_id = id;
  e.dispatch_mode = CUDAQ_DISPATCH_GRAPH_LAUNCH;
  e.routing_key = key;
  return e;
}

/// The table position of the entry that serves the request, or kNone.
std::uint32_t entry_for(const function_index &index, std::uint32_t id, const std::vector<std::uint8_t> &payload = {}) {
  const function_index_view view = index.view();
  const request r{CUDAQ_RPC_MAGIC_REQUEST, id, static_cast<std::uint32_t>(payload.size()), 0, 0};
  const std::uint32_t route = view.find(r, payload.data());
  return route == function_index_view::kNone ? route : view.routes[route].entry;
}

std::vector<std::uint8_t> key_bytes(std::uint64_t key) {
  std::vector<std::uint8_t> key_in_slot(8);
  for (int i = 0; i < 8; ++i)
    key_in_slot[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(key >> (8 * i));
  return key_in_slot;
}

void expect_finds_all(const std::vector<std::uint32_t> &ids) {
  std::vector<cudaq_function_entry_t> entries;
  for (const std::uint32_t id : ids)
    entries.push_back(host(id));
  function_index index;
  ASSERT_EQ(index.build(entries.data(), static_cast<std::uint32_t>(entries.size())).what,
            function_index::problem::none);
  for (std::uint32_t e = 0; e < ids.size(); ++e)
    ASSERT_EQ(entry_for(index, ids[e]), e) << "id " << ids[e] << " of " << ids.size();
  const std::set<std::uint32_t> known(ids.begin(), ids.end());
  std::mt19937 random(7);
  for (int n = 0; n < 2000; ++n)
    if (const std::uint32_t id = n < 1000 ? static_cast<std::uint32_t>(n) : static_cast<std::uint32_t>(random());
        known.count(id) == 0) {
      ASSERT_EQ(entry_for(index, id), function_index_view::kNone) << id;
      ASSERT_FALSE(index.view().contains(id));
    }
}

TEST(FunctionIndex, EmptyTableKnowsNothing) {
  function_index index;
  EXPECT_EQ(entry_for(index, 0), function_index_view::kNone);
  EXPECT_EQ(index.build(nullptr, 0).what, function_index::problem::none);
  for (const std::uint32_t id : {0u, 1u, 0xFFFFFFFFu})
    EXPECT_EQ(entry_for(index, id), function_index_view::kNone);
}

TEST(FunctionIndex, FindsEachOfOneToAThousandFunctions) {
  std::mt19937 random(1);
  for (const std::uint32_t count :
       {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 16u, 17u, 63u, 64u, 65u, 255u, 256u, 257u, 511u, 512u, 513u, 999u, 1000u}) {
    std::set<std::uint32_t> ids{0u};
    if (count > 1)
      ids.insert(0xFFFFFFFFu);
    while (ids.size() < count)
      ids.insert(static_cast<std::uint32_t>(random()));
    std::vector<std::uint32_t> shuffled(ids.begin(), ids.end());
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    expect_finds_all(shuffled);
  }
}

TEST(FunctionIndex, FindsSmallConsecutiveIds) {
  std::vector<std::uint32_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 0u);
  expect_finds_all(ids);
}

TEST(FunctionIndex, FindsIdsThatAllFallIntoOneBucket) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 0; ids.size() < 300; ++id)
    if ((function_index_view::hash(id) & 1023u) == 1023u) // the last bucket, so that probing wraps around
      ids.push_back(id);
  expect_finds_all(ids);
}

// Known failure 15.
TEST(FunctionIndex, ExactKeyWinsAndKeyZeroServesTheRest) {
  const std::vector<cudaq_function_entry_t> entries{graph(9, 0), graph(9, 1), graph(9, ~0ull), graph(9, 2), host(8)};
  function_index index;
  ASSERT_EQ(index.build(entries.data(), 5).what, function_index::problem::none);
  EXPECT_EQ(entry_for(index, 9, key_bytes(0)), 0u);
  EXPECT_EQ(entry_for(index, 9, key_bytes(1)), 1u);
  EXPECT_EQ(entry_for(index, 9, key_bytes(2)), 3u);
  EXPECT_EQ(entry_for(index, 9, key_bytes(~0ull)), 2u);
  EXPECT_EQ(entry_for(index, 9, key_bytes(3)), 0u);
  EXPECT_EQ(entry_for(index, 9, key_bytes(1ull << 32)), 0u) << "all 64 bits of a key count";
  EXPECT_EQ(entry_for(index, 9, {1, 0, 0, 0, 0, 0, 0}), 0u) << "7 bytes are not a key";
  EXPECT_EQ(entry_for(index, 9), 0u);
  EXPECT_EQ(entry_for(index, 8, key_bytes(77)), 4u) << "host calls have no key";
}

TEST(FunctionIndex, WithoutKeyZeroOnlyExactKeysAreServed) {
  const std::vector<cudaq_function_entry_t> entries{graph(9, 5), graph(9, 7)};
  function_index index;
  ASSERT_EQ(index.build(entries.data(), 2).what, function_index::problem::none);
  EXPECT_EQ(entry_for(index, 9, key_bytes(5)), 0u);
  EXPECT_EQ(entry_for(index, 9, key_bytes(7)), 1u);
  for (const std::uint64_t key : {0ull, 4ull, 6ull, 8ull, ~0ull})
    EXPECT_EQ(entry_for(index, 9, key_bytes(key)), function_index_view::kNone) << key;
  EXPECT_EQ(entry_for(index, 9), function_index_view::kNone);
  EXPECT_TRUE(index.view().contains(9));
}

TEST(FunctionIndex, FindsEachOfManyKeys) {
  std::vector<cudaq_function_entry_t> entries;
  for (std::uint64_t key = 1000; key > 0; --key)
    entries.push_back(graph(3, key * 0x100000001ull));
  function_index index;
  ASSERT_EQ(index.build(entries.data(), 1000).what, function_index::problem::none);
  for (std::uint32_t e = 0; e < 1000; ++e)
    ASSERT_EQ(entry_for(index, 3, key_bytes(entries[e].routing_key)), e);
}

TEST(FunctionIndex, RefusesDuplicatesAndMixedModesAndNamesBoth) {
  const auto problem = [](const std::vector<cudaq_function_entry_t> &entries) {
    function_index index;
    return index.build(entries.data(), static_cast<std::uint32_t>(entries.size()));
  };
  using what = function_index::problem;
  EXPECT_EQ(problem({host(1), host(2), host(1)}).what, what::duplicate);
  EXPECT_EQ(problem({host(1), host(2), host(1)}).first + problem({host(1), host(2), host(1)}).second, 2u);
  EXPECT_EQ(problem({host(0), host(0)}).what, what::duplicate);
  EXPECT_EQ(problem({graph(1, 0), graph(1, 0)}).what, what::duplicate);
  EXPECT_EQ(problem({graph(1, 4), graph(1, 5), graph(1, 4)}).what, what::duplicate);
  EXPECT_EQ(problem({graph(1, 4), host(1)}).what, what::mixed_modes);
  EXPECT_EQ(problem({graph(1, 0), host(1)}).what, what::mixed_modes);
  EXPECT_EQ(problem({host(1), graph(1, 5), graph(1, 6)}).what, what::mixed_modes);
  EXPECT_EQ(problem({graph(1, 4), graph(2, 4), host(3)}).what, what::none);
}

// A sum of 4 GiB or more wraps around in 32 bits. No request length may then match the small number.
TEST(FunctionIndex, SumOfArgumentSizesDoesNotWrap) {
  cudaq_function_entry_t entry = host(1);
  entry.schema.num_args = 2;
  entry.schema.args[0].size_bytes = entry.schema.args[1].size_bytes = 0x80000000u;
  function_index index;
  index.build(&entry, 1);
  EXPECT_NE(index.view().routes[0].args_bytes, 0u);
}

TEST(FunctionIndex, CanBeBuiltAgain) {
  function_index index;
  const std::vector<cudaq_function_entry_t> first{host(1), host(2), host(3)}, second{host(4)};
  ASSERT_EQ(index.build(first.data(), 3).what, function_index::problem::none);
  ASSERT_EQ(index.build(second.data(), 1).what, function_index::problem::none);
  EXPECT_EQ(entry_for(index, 4), 0u);
  for (const std::uint32_t id : {1u, 2u, 3u})
    EXPECT_EQ(entry_for(index, id), function_index_view::kNone);
}

} // namespace
} // namespace cudaq::realtime::test
