// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoders/offline_decoder.h"
#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/detector_graph.h"
#include "lib/qec/decoding/predecoder.h"
#include "lib/qec/stages/decoding_worker.h"
#include "unittests/qec/qec_test_support.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace cudaq::qec::realtime::test {
namespace {

using events = std::vector<std::uint64_t>;
using index_set = std::set<std::uint64_t>;

struct residual {
  index_set events;
  index_set frame;
  std::uint32_t matched = 0;
  bool operator==(const residual &) const = default;
};

void PrintTo(const residual &r, std::ostream *out) {
  *out << testing::PrintToString(r.events) << ", frame " << testing::PrintToString(r.frame) << ", " << r.matched
       << " matched";
}

/// A second implementation of the rule, written from its description, on sets.
class reference {
public:
  explicit reference(const std::string &dem_text) {
    const auto model = parse_dem(dem_text);
    std::map<index_set, std::map<index_set, double>> merged;
    for (const dem_component &c : model->components) {
      const auto d = model->detectors_of(c);
      const auto o = model->observables_of(c);
      double &p = merged[{d.begin(), d.end()}][{o.begin(), o.end()}];
      p = p + c.probability - 2 * p * c.probability;
    }
    for (const auto &[ends, variants] : merged) {
      double max_probability = -1;
      for (const auto &[observables, p] : variants)
        if (p > max_probability) {
          max_probability = p;
          edges[ends] = observables;
        }
      for (const std::uint64_t a : ends)
        for (const std::uint64_t b : ends)
          if (a != b)
            next_to_[a].insert(b);
    }
  }

  residual of(const index_set &fired) const {
    residual r;
    r.events = fired;
    const auto take = [&](const index_set &ends) {
      ++r.matched;
      for (const std::uint64_t d : ends)
        r.events.erase(d);
      for (const std::uint64_t o : edges.at(ends))
        if (!r.frame.insert(o).second)
          r.frame.erase(o);
    };
    for (const std::uint64_t a : fired) {
      const index_set near = neighbours(a, fired);
      if (edges.count({a}) != 0 && near.empty() && within_two_steps(a, fired).empty())
        take({a});
      if (near.size() == 1 && *near.begin() > a && neighbours(*near.begin(), fired) == index_set{a})
        take({a, *near.begin()});
    }
    return r;
  }

  std::map<index_set, index_set> edges; ///< detectors to observables

private:
  index_set within_two_steps(std::uint64_t of, const index_set &fired) const {
    index_set reached;
    for (const std::uint64_t between : next_to(of)) {
      reached.insert(between);
      for (const std::uint64_t other : next_to(between))
        reached.insert(other);
    }
    index_set found;
    for (const std::uint64_t other : fired)
      if (other != of && reached.count(other) != 0)
        found.insert(other);
    return found;
  }
  index_set next_to(std::uint64_t of) const {
    const auto known = next_to_.find(of);
    return known == next_to_.end() ? index_set{} : known->second;
  }
  index_set neighbours(std::uint64_t of, const index_set &fired) const {
    index_set found;
    for (const std::uint64_t other : fired)
      if (other != of && edges.count({of, other}) != 0)
        found.insert(other);
    return found;
  }

  std::map<std::uint64_t, index_set> next_to_;
};

std::unique_ptr<predecoder> make(std::string_view name, const std::string &dem) {
  auto made = make_predecoder(name, dem);
  if (made.failed())
    throw std::runtime_error(made.text());
  return std::move(*made);
}

/// The result of a predecoder. Also compares its sparse and dense forms.
residual run(predecoder &with, const std::vector<std::uint8_t> &shot) {
  const predecoder_layout layout = with.layout();
  std::vector<std::uint64_t> output((layout.bytes() + 7) / 8, 0xEEEEEEEEEEEEEEEEu);
  EXPECT_EQ(with.run(shot, output), decode_status::ok);
  const auto *base = reinterpret_cast<const std::uint8_t *>(output.data());
  predecoder_header header;
  std::memcpy(&header, base, sizeof(header));
  EXPECT_EQ(header.status, 0);
  residual r;
  r.matched = header.matched;
  std::uint32_t fired = 0;
  for (const std::uint8_t byte : shot)
    fired += static_cast<std::uint32_t>(std::popcount(byte));
  EXPECT_EQ(header.input_events, fired);
  const auto bit = [&](std::size_t offset, std::uint64_t k) {
    std::uint64_t word;
    std::memcpy(&word, base + offset + k / 64 * 8, sizeof(word));
    return (word >> (k % 64) & 1) != 0;
  };
  events sparse, dense;
  for (std::uint32_t i = 0; i < header.num_events; ++i) {
    std::uint32_t event;
    std::memcpy(&event, base + layout.events_offset() + i * sizeof(event), sizeof(event));
    sparse.push_back(event);
  }
  for (std::uint64_t d = 0; d < layout.dense_words() * 64; ++d)
    if (bit(layout.dense_offset(), d))
      dense.push_back(d);
  EXPECT_EQ(sparse, dense);
  r.events = {sparse.begin(), sparse.end()};
  for (std::uint64_t o = 0; o < layout.frame_words() * 64; ++o)
    if (bit(layout.frame_offset(), o))
      r.frame.insert(o);
  return r;
}

std::vector<std::uint8_t> packed(const index_set &fired, std::uint64_t num_detectors) {
  std::vector<std::uint8_t> shot((num_detectors + 7) / 8);
  EXPECT_EQ(pack_events(events(fired.begin(), fired.end()), num_detectors, shot), decode_status::ok);
  return shot;
}

/// Small models with every feature: chains, a cycle, parallel edges, a component without a boundary, an isolated
/// detector.
const std::vector<std::string> kSmallModels = {
    "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1 D2 L1\nerror(0.1) D2 D3\nerror(0.1) D3 D4\nerror(0.1) D4 L2\n",
    "error(0.1) D0 D1 L0\nerror(0.1) D1 D2\nerror(0.1) D2 D3\nerror(0.1) D3 D0\nerror(0.1) D0 D2 L1\ndetector D4\n",
    "error(0.1) D0 D1\nerror(0.2) D0 D1 L0\nerror(0.1) D0 D1\nerror(0.01) D1 L0\nerror(0.2) D1 L0 L70\nerror(0.1) D1 "
    "D5\n"
    "error(0.1) D5 D3 ^ D3 L1\n",
    "repeat 4 {\n error(0.1) D0 D1 L0\n error(0.1) D0 D2\n error(0.1) D1 D3\n error(0.05) D1 D2\n error(0.1) D0\n"
    " shift_detectors 2\n}\n",
};

TEST(LocalPredecoder, FollowsTheRuleOnEverySyndromeOfSmallModels) {
  for (const std::string &dem : kSmallModels) {
    const reference expected(dem);
    const auto with = make("local", dem);
    const std::uint64_t n = with->layout().num_detectors;
    ASSERT_LE(n, 12u);
    for (std::uint64_t syndrome = 0; syndrome < std::uint64_t{1} << n; ++syndrome) {
      index_set fired;
      for (std::uint64_t d = 0; d < n; ++d)
        if ((syndrome >> d & 1) != 0)
          fired.insert(d);
      ASSERT_EQ(run(*with, packed(fired, n)), expected.of(fired)) << dem << testing::PrintToString(fired);
    }
  }
}

class LocalPredecoderSets : public testing::TestWithParam<std::string> {};

TEST_P(LocalPredecoderSets, FollowsTheRuleOnRecordedShots) {
  const shot_set set = load_committed(GetParam());
  const reference expected(set.dem_text);
  const auto with = make("local", set.dem_text);
  std::vector<std::uint64_t> found(set.num_detectors);
  std::uint64_t before = 0, after = 0;
  for (std::uint64_t shot = 0; shot < std::min<std::uint64_t>(set.shots, set.distance > 7 ? 20 : 100); ++shot) {
    const auto row = set.detection_row(shot);
    const std::size_t count = unpack_events(row, set.num_detectors, found).count;
    const index_set fired(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
    const residual result = run(*with, {row.begin(), row.end()});
    ASSERT_EQ(result, expected.of(fired)) << "shot " << shot;
    before += fired.size();
    after += result.events.size();
  }
  EXPECT_LT(after * 3, before * 2) << "it removes more than a third of the events";
}

TEST_P(LocalPredecoderSets, ASingleErrorIsFoundWithItsObservables) {
  const shot_set set = load_committed(GetParam());
  const reference known(set.dem_text);
  const auto with = make("local", set.dem_text);
  for (const auto &[ends, observables] : known.edges) {
    const residual result = run(*with, packed(ends, set.num_detectors));
    ASSERT_TRUE(result.events.empty()) << testing::PrintToString(ends);
    ASSERT_EQ(result.frame, observables) << testing::PrintToString(ends);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, LocalPredecoderSets, testing::ValuesIn(committed_sets()), kind_name);

TEST(LocalPredecoder, ObservablesBeyond64HaveTheirOwnBits) {
  for (const std::uint64_t o : {0u, 1u, 31u, 32u, 33u, 63u, 64u, 65u, 127u, 128u}) {
    const auto with = make("local", "error(0.1) D0 D1 L" + std::to_string(o) + "\n");
    EXPECT_EQ(run(*with, packed({0, 1}, 2)), (residual{{}, {o}, 1}));
  }
}

TEST(LocalPredecoder, PassthroughLeavesEverything) {
  const shot_set set = load_committed("surface_z_d5_p0.005");
  const auto with = make("passthrough", set.dem_text);
  std::vector<std::uint64_t> found(set.num_detectors);
  for (std::uint64_t shot = 0; shot < 50; ++shot) {
    const auto row = set.detection_row(shot);
    const std::size_t count = unpack_events(row, set.num_detectors, found).count;
    const residual result = run(*with, {row.begin(), row.end()});
    EXPECT_EQ(result, (residual{{found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count)}, {}, 0}));
  }
}

TEST(LocalPredecoder, ShotsThatCannotBeAreRefusedAndDoNotSpoilTheNext) {
  const std::string dem = "error(0.1) D0 D1 L0\nerror(0.1) D9\n"; // 10 detectors, 2 bytes
  for (const char *name : {"local", "passthrough"}) {
    const auto with = make(name, dem);
    std::vector<std::uint64_t> output((with->layout().bytes() + 7) / 8);
    const std::vector<std::uint8_t> good{0x03, 0x00}, shorter{0x03}, beyond{0x03, 0x04}, longer{0x03, 0x00, 0x01},
        padded{0x03, 0x00, 0x00};
    EXPECT_EQ(with->run(good, std::span(output).first(1)), decode_status::buffer_too_small);
    for (const auto &[shot, status] : {std::pair{shorter, decode_status::buffer_too_small},
                                       {beyond, decode_status::bad_detector_index},
                                       {longer, decode_status::bad_detector_index},
                                       {padded, decode_status::ok}}) {
      EXPECT_EQ(with->run(shot, output), status);
      predecoder_header header;
      std::memcpy(&header, output.data(), sizeof(header));
      EXPECT_EQ(header.status, static_cast<std::int32_t>(status)) << "for a caller that has only the output";
      EXPECT_EQ(run(*with, good).matched, name == std::string_view("local") ? 1u : 0u);
    }
  }
}

TEST(LocalPredecoder, ModelsThatAreNoGraphAreRefusedWithTheLine) {
  const auto made = make_predecoder("local", "error(0.1) D0 D1\nerror(0.1) D0 D1 D2\n");
  EXPECT_FALSE(made.ok());
  EXPECT_NE(made.text().find("line 2"), std::string::npos) << made.text();
  const auto loose = make_predecoder("local", "error(0.1) D0 D1 ^ D2 ^ L4\n");
  EXPECT_NE(loose.text().find("line 1: L4 is in a component without detectors"), std::string::npos) << loose.text();
  EXPECT_FALSE(make_predecoder("local", "rubbish").ok());
  EXPECT_NE(make_predecoder("neural", "").text().find("unknown predecoder \"neural\""), std::string::npos);
}

TEST(OfflineDecoder, AShotReplacesProbabilitiesUnlessThePredecoderUsesThoseOfTheModel) {
  const std::string dem = "error(0.1) D0 L0\nerror(0.1) D0 D1\n";
  const std::vector<error_probability> list{{0, 0.4}};
  const std::uint8_t shot = 1;
  for (const char *name : {"", "passthrough", "local"}) {
    const bool is_local = std::string_view(name) == "local";
    const decode_status expected = is_local ? decode_status::not_supported : decode_status::ok;
    offline_decoder with(*name == '\0' ? nullptr : std::move(*make_predecoder(name, dem)),
                         make_or_throw("bp-osd", dem));
    EXPECT_EQ(with.decode({&shot, 1}, nullptr, list), expected) << name;
    EXPECT_EQ(with.has_solution(), !is_local) << name;
    if (*name == '\0')
      continue;
    decoding_worker worker(std::move(*make_predecoder(name, dem)), make_or_throw("bp-osd", dem));
    std::vector<std::uint8_t> response(worker.stage().response_bytes());
    decode_status status = decode_status::ok;
    const std::size_t size = worker.decode({&shot, 1}, response, status, nullptr, list);
    EXPECT_EQ(status, expected) << name;
    EXPECT_EQ(size == 0, is_local) << name;
  }
}

TEST(OfflineDecoder, WithAndWithoutAPredecoderItAnswersAsTheDecoder) {
  const std::string dem = "error(0.1) D0 D1 L0\nerror(0.1) D1 D2 L70\nerror(0.1) D2 L1\n";
  for (const char *name : {"", "passthrough", "local"}) {
    offline_decoder with(*name == '\0' ? nullptr : std::move(*make_predecoder(name, dem)),
                         make_or_throw("lookup", dem));
    const auto expected = make_or_throw("lookup", dem);
    for (std::uint8_t shot = 0; shot < 8; ++shot) {
      events fired;
      for (std::uint64_t d = 0; d < 3; ++d)
        if ((shot >> d & 1) != 0)
          fired.push_back(d);
      ASSERT_EQ(with.decode({&shot, 1}), decode_status::ok) << name;
      const answer right = decode(*expected, fired);
      EXPECT_TRUE(std::ranges::equal(with.observables(), right.observables)) << name << " " << int{shot};
    }
  }
}

// The local predecoder is a heuristic. On models for which a local rule is wrong, the decoder alone is right. `auto`
// takes no predecoder, and `local` is refused before every decoder but pymatching.

std::string read_case(const std::string &name) {
  std::ifstream file(std::string(CUDAQ_TEST_CASES) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The events of the one shot of a file in Stim's format dets.
events events_of_case(const std::string &name) {
  events fired;
  const std::string text = read_case(name);
  for (std::size_t at = text.find('D'); at != std::string::npos; at = text.find('D', at + 1))
    fired.push_back(std::stoull(text.substr(at + 1)));
  return fired;
}

// Known failure 41.
TEST(MatchingAlone, IsRightWhereALocalRuleIsWrong) {
  CUDAQ_SKIP_WITHOUT_PYMATCHING();
  const auto toric = make_or_throw("pymatching", read_case("toric_L5_p0.005.dem"));
  EXPECT_EQ(decode(*toric, events_of_case("toric_L5_four_errors.dets")), (answer{decode_status::ok, bits(2, {1})}));
  const auto lines = make_or_throw("pymatching", read_case("nonuniform_7_lines.dem"));
  EXPECT_EQ(decode(*lines, events_of_case("nonuniform_7_lines.dets")), (answer{decode_status::ok, bits(1, {})}));
}

// Known failure 40.
TEST(LocalPredecoder, IsRefusedBeforeEveryDecoderButPlainMatching) {
  const std::string dem = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.1) D1\n";
  for (const std::string &name : decoder_names()) {
    const decoder_result made = make_decoder(name + ":predecoder=local", dem);
    EXPECT_EQ(static_cast<bool>(made), name == "pymatching") << name;
    if (!made) {
      EXPECT_NE(made.error.find("local runs before the decoder pymatching only, not before " + name), std::string::npos)
          << made.error;
    }
    EXPECT_TRUE(make_decoder(name + ":predecoder=passthrough", dem)) << name;
  }
  EXPECT_STREQ(kAutoPredecoder, "passthrough");
}

} // namespace
} // namespace cudaq::qec::realtime::test
