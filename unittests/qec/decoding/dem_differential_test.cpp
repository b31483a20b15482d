// SPDX-License-Identifier: Apache-2.0
// The parser against Stim's own: both accept a text, with the same model, or both refuse it. CUDAQ_DEM_MODELS sets the
// number of random texts, CUDAQ_DEM_SEED the seed of the first; the next text has the next seed.
#include "lib/qec/decoding/dem.h"
#include "unittests/qec/decoding/random_model_text.h"
#include "unittests/support/test_scale.h"

#include "stim/dem/detector_error_model.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

namespace cudaq::qec::realtime::test {
namespace {

// Small: random texts exceed them often, and a text within them is quick.
constexpr dem_limits kLimits{.detectors = 3000, .observables = 40, .instructions = 3000, .targets = 6000, .nesting = 6};

/// Stim reads a byte 0xFF as the end if the text is in memory, and as a byte if it is in a file. (char has a sign.)
stim::DetectorErrorModel read_by_stim(const std::string &text) {
  if (text.find('\xFF') == std::string::npos)
    return stim::DetectorErrorModel(text);
  std::string copy = text;
  const std::unique_ptr<FILE, int (*)(FILE *)> file(fmemopen(copy.data(), copy.size(), "r"), std::fclose);
  return stim::DetectorErrorModel::from_file(file.get());
}

std::optional<stim::DetectorErrorModel> accepted_by_stim(const std::string &text) {
  try {
    return read_by_stim(text);
  } catch (const std::exception &) {
    return std::nullopt;
  }
}

/// What parse_dem counts against its limits. A double: the numbers of a text may not fit into an integer.
struct model_size {
  double instructions = 0, targets = 0, shift = 0, highest_detector = -1;
  std::uint64_t nesting = 0;
};

model_size size_of(const stim::DetectorErrorModel &model) {
  model_size size;
  for (const auto &step : model.instructions) {
    size.instructions += 1;
    if (step.type == stim::DemInstructionType::DEM_SHIFT_DETECTORS) {
      size.shift += static_cast<double>(step.target_data[0].data);
      size.targets += static_cast<double>(step.arg_data.size());
    } else if (step.type == stim::DemInstructionType::DEM_REPEAT_BLOCK) {
      const model_size body = size_of(step.repeat_block_body(model));
      const auto rounds = static_cast<double>(step.repeat_block_rep_count());
      size.nesting = std::max(size.nesting, body.nesting + 1);
      size.instructions += rounds + rounds * body.instructions;
      size.targets += rounds * body.targets;
      if (rounds > 0 && body.highest_detector >= 0)
        size.highest_detector =
            std::max(size.highest_detector, size.shift + (rounds - 1) * body.shift + body.highest_detector);
      size.shift += rounds * body.shift;
    } else {
      size.targets += static_cast<double>(step.target_data.size());
      if (step.type == stim::DemInstructionType::DEM_DETECTOR)
        size.targets += static_cast<double>(step.arg_data.size());
      for (const stim::DemTarget &t : step.target_data)
        if (t.is_relative_detector_id())
          size.highest_detector = std::max(size.highest_detector, size.shift + static_cast<double>(t.raw_id()));
    }
  }
  return size;
}

bool is_over_a_limit(const stim::DetectorErrorModel &model) {
  const model_size size = size_of(model);
  const auto over = [](double value, std::uint64_t limit) { return value > static_cast<double>(limit); };
  return over(size.instructions, kLimits.instructions) || over(size.targets, kLimits.targets) ||
         over(size.highest_detector + 1, kLimits.detectors) || size.nesting > kLimits.nesting ||
         model.count_observables() > kLimits.observables;
}

/// One line for each component: the bits of its probability, its targets, its error.
struct flat_model {
  std::uint64_t detectors = 0, observables = 0;
  std::vector<std::string> components;
  bool operator==(const flat_model &) const = default;
};

std::string line_of(double p, const std::vector<std::string> &targets, std::uint64_t mechanism) {
  std::string line = std::to_string(std::bit_cast<std::uint64_t>(p)) + " #" + std::to_string(mechanism);
  for (const std::string &t : targets)
    line += " " + t;
  return line;
}

flat_model flat(const stim::DetectorErrorModel &model) {
  flat_model result{model.count_detectors(), model.count_observables(), {}};
  std::uint64_t mechanism = 0;
  model.iter_flatten_error_instructions([&](const stim::DemInstruction &error) {
    std::map<std::pair<bool, std::uint64_t>, int> flips; // detectors first, each kind ascending
    const auto end_component = [&] {
      std::vector<std::string> targets;
      for (const auto &[which, times] : flips)
        if (times % 2 != 0)
          targets.push_back((which.first ? "L" : "D") + std::to_string(which.second));
      if (error.arg_data[0] > 0 && !targets.empty())
        result.components.push_back(line_of(error.arg_data[0], targets, mechanism));
      flips.clear();
    };
    for (const stim::DemTarget &t : error.target_data)
      if (t.is_separator())
        end_component();
      else
        ++flips[{t.is_observable_id(), t.raw_id()}];
    end_component();
    ++mechanism;
  });
  return result;
}

flat_model flat(const detector_error_model &model) {
  flat_model result{model.num_detectors, model.num_observables, {}};
  for (const dem_component &c : model.components) {
    std::vector<std::string> targets;
    for (const std::uint64_t d : model.detectors_of(c))
      targets.push_back("D" + std::to_string(d));
    for (const std::uint64_t o : model.observables_of(c))
      targets.push_back("L" + std::to_string(o));
    result.components.push_back(line_of(c.probability, targets, c.mechanism));
  }
  return result;
}

struct tally {
  std::uint64_t accepted = 0, refused = 0, over_a_limit = 0;
};

/// The difference between the two parsers; empty if there is none.
std::string difference(const std::string &text, tally &count) {
  const auto by_stim = accepted_by_stim(text);
  const auto ours = parse_dem(text, kLimits);
  if (ours.failed() && !ours.text().starts_with("line "))
    return "refused without a line: " + ours.text();
  if (!by_stim) {
    ++count.refused;
    return ours.ok() ? "accepted, Stim refuses it" : "";
  }
  if (is_over_a_limit(*by_stim)) {
    ++count.over_a_limit;
    const bool names_it =
        ours.text().find(" too ") != std::string::npos || ours.text().find("nested deeper than") != std::string::npos;
    return ours.ok() ? "accepted, but above a limit" : names_it ? "" : "not the text of a limit: " + ours.text();
  }
  ++count.accepted;
  if (ours.failed())
    return "refused, Stim accepts it: " + ours.text();
  return flat(*ours) == flat(*by_stim) ? "" : "not the model that Stim reads";
}

// Known failure 43.
TEST(DemDifferential, RandomTextsMeanWhatStimSays) {
  const std::uint64_t models = cudaq::realtime::test::number_from("CUDAQ_DEM_MODELS", 20000);
  const std::uint64_t seed = cudaq::realtime::test::number_from("CUDAQ_DEM_SEED", 1);
  tally count;
  int differences = 0;
  for (std::uint64_t k = 0; k < models && differences < 10; ++k) {
    const std::string text = random_model_text(seed + k).next();
    const std::string found = difference(text, count);
    differences += !found.empty();
    EXPECT_EQ(found, "") << "CUDAQ_DEM_SEED=" << seed + k << "\n" << testing::PrintToString(text);
  }
  std::printf("seed %llu: %llu accepted, %llu refused, %llu above a limit\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(count.accepted), static_cast<unsigned long long>(count.refused),
              static_cast<unsigned long long>(count.over_a_limit));
  if (models >= 1000) { // the texts test both answers
    EXPECT_GT(count.accepted, models / 4);
    EXPECT_GT(count.refused, models / 5);
    EXPECT_GT(count.over_a_limit, models / 200);
  }
}

struct known_text {
  bool accepted;
  std::string text;
};

const std::vector<known_text> kKnownTexts{
    // texts that were read differently from Stim before
    {true, "detector() D0"},
    {true, "detector(1,) D0"},
    {true, "error(+0.1) D0"},
    {true, "error(1e-400) D0"},
    {true, "repeat 0 {\nerror(0.1) D5 L3\n}"}, // L3 counts, D5 does not
    {true, "error(5e-324) D0"},
    {false, "detector()"},
    {false, "error(0.1)D0"},
    {false, "shift_detectors"},
    {false, "shift_detectors(1)"},
    {false, "detector D0 D1"},
    {false, "logical_observable L0 L1"},
    // arguments
    {true, "error() D0"},
    {true, "error(-0) D0"},
    {true, "error(-1e-400) D0"},
    {true, "error( 0.1\t) D0"},
    {true, "shift_detectors(,,1) 2"},
    {true, "error(0." + std::string(61, '1') + ") D0"},  // 63 characters
    {false, "error(0." + std::string(62, '1') + ") D0"}, // 64 characters
    {false, "error(,) D0"},
    {false, "error(0.1\r) D0"},
    {false, "error (0.1) D0"},
    {false, "error(1e400) D0"},
    {false, "detector(1e400) D0"},
    {false, "detector(inf) D0"},
    {false, "error(0x1p-2) D0"},
    {false, "error(nan) D0"},
    {false, "error(1.0000000000000003) D0"},
    {true, "error(1.0000000000000001) D0"},
    {false, "logical_observable(1) L0"},
    {true, "logical_observable L0"},
    // targets
    {true, "error(0.1) D0 D0"},
    {true, "error(0.1) D0 D1 D0 L0 L0 ^ D1 D1"},
    {true, "error(0.1)"},
    {true, "error(0.1)#D0"},
    {true, "error(0.1) d0 l1"},
    {true, "error(0.1) D007"},
    {false, "error(0.1) D0 ^"},
    {false, "error(0.1) D0 ^ ^ D1"},
    {false, "error(0.1) D0^D1"},
    {false, "error(0.1) *"},
    {false, "error(0.1)*D0"},
    {false, "error(0.1) D1152921504606846976"},
    {false, "error(0.1) L4294967296"},
    {false, "detector ^"},
    {false, "shift_detectors 1 ^"},
    // lines, loops, tags
    {true, ""},
    {true, "\v\f error(0.1) D0\r\n"},
    {true, "error(0.1)\rD0"},
    {true, "repeat 2{ error(0.1) D0\n}error(0.1) D1"},
    {true, "repeat 2 {}"},
    {true, "repeat 2 { # a comment }\n}"},
    {true, "repeat[a tag]\t2 {\n}\n"},
    {true, "error[\\n\\r\\B\\C](0.1) D0\n"},
    {true, "error[](0.1) D0\n"},
    {false, "error[\\t](0.1) D0\n"},
    {false, "error[\r](0.1) D0\n"},
    {false, "error [a](0.1) D0\n"},
    {false, "error[a][b](0.1) D0\n"},
    {false, "repeat 2 { error(0.1) D0 }"},
    {false, "repeat 2\n{\n}"},
    {false, "repeat 2 3 {\n}"},
    {false, "repeat 2 #{\n}"},
    {false, "repeat {\n}"},
    {false, "repeat 2 {"},
    {false, "}"},
    {false, "{"},
    {false, "error(0.1) D0\v"},
    {false, "\xEF\xBB\xBF"
            "error(0.1) D0"},
    {true, "# \xFF\nerror(0.1) D0"},
    {false, "\xFF"},
    {false, std::string("error(0.1) D0\0", 14)},
    {true, std::string("#\0\nerror(0.1) D0", 16)},
};

TEST(DemDifferential, KnownTextsMeanWhatStimSays) {
  for (const known_text &known : kKnownTexts) {
    tally count;
    EXPECT_EQ(difference(known.text, count), "") << testing::PrintToString(known.text);
    EXPECT_EQ(count.over_a_limit, 0U) << testing::PrintToString(known.text);
    EXPECT_EQ(count.accepted == 1, known.accepted) << testing::PrintToString(known.text);
  }
}

} // namespace
} // namespace cudaq::qec::realtime::test
