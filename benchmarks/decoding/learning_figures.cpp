// SPDX-License-Identifier: Apache-2.0
// Figures of decoders that learn while they serve: docs/decoders/learn_live.md. A program of its own, which is not
// installed.
//
//   learning_figures poison MODEL.dem [SHOTS [SEED]]
//     Twelve sets of poisoned shots, and one that is not poisoned, for a served model whose rates are wrong by up to a
//     factor of 2. If a model is swapped in, both decode the same 200,000 labelled shots of the true model.
//   learning_figures rate MODEL.dem [SECONDS]
//     Requests per second of a server whose decoder learns, beside one that does not: in turn, with the same shots.
#include "lib/qec/decoding/model_sampler.h"
#include "lib/qec/decoding/whole_file.h"
#include "lib/qec/server/hosted_server.h"

#include "lib/base/ticks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::detail::steady_ns;
using shot = std::vector<std::uint8_t>;

[[noreturn]] void fail(const std::string &text) {
  std::fprintf(stderr, "learning_figures: %s\n", text.c_str());
  std::exit(2);
}

void flip(shot &s, std::size_t d) { s[d / 8] = static_cast<std::uint8_t>(s[d / 8] ^ 1U << d % 8); }
bool has(const shot &s, std::size_t d) { return (s[d / 8] >> d % 8 & 1U) != 0; }
void put(shot &s, std::size_t d, bool value) {
  if (has(s, d) != value)
    flip(s, d);
}

/// The model with each rate multiplied by a factor between 1/2 and 2.
detector_error_model wrong_rates(detector_error_model model, std::mt19937_64 &random) {
  std::uniform_real_distribution<double> exponent(-1, 1);
  std::uint32_t last = UINT32_MAX;
  double factor = 1;
  for (dem_component &c : model.components) {
    if (c.mechanism != last)
      factor = std::exp2(exponent(random));
    last = c.mechanism;
    c.probability = std::min(c.probability * factor, 0.4);
  }
  return model;
}

std::unique_ptr<decoder> pymatching_of(const std::string &text) {
  decoder_result made = make_decoder("pymatching", text);
  if (!made)
    fail(made.error);
  return std::move(made.instance);
}

struct poison {
  const char *name;
  std::function<void(shot &s, std::uint64_t number, std::mt19937_64 &random)> change;
};

std::vector<poison> poisons(std::size_t detectors, std::uint64_t round) {
  const auto chance = [](std::mt19937_64 &random, double p) {
    return static_cast<double>(random() >> 11) * 0x1p-53 < p;
  };
  const auto kept = std::make_shared<std::vector<shot>>();
  std::vector<std::size_t> order(detectors);
  for (std::size_t d = 0; d < detectors; ++d)
    order[d] = (d * 7 + 3) % detectors;
  return {
      {"none", [](shot &, std::uint64_t, std::mt19937_64 &) {}},
      {"stuck detector", [=](shot &s, std::uint64_t, std::mt19937_64 &) { put(s, detectors / 2, true); }},
      {"dead detector", [=](shot &s, std::uint64_t, std::mt19937_64 &) { put(s, detectors / 2, false); }},
      {"random detectors of a lost qubit",
       [=](shot &s, std::uint64_t, std::mt19937_64 &random) {
         for (std::size_t d = detectors / 3; d < detectors / 3 + 4; ++d)
           put(s, d, chance(random, 0.5));
       }},
      {"short bursts: 1 % of the shots, a third of the detectors",
       [=](shot &s, std::uint64_t, std::mt19937_64 &random) {
         if (chance(random, 0.01))
           for (std::size_t d = 0; d < detectors; ++d)
             if (chance(random, 0.33))
               put(s, d, true);
       }},
      {"one long burst: 2 % of the shots, one after the other",
       [=](shot &s, std::uint64_t number, std::mt19937_64 &random) {
         if (number % round > round / 2 && number % round < round / 2 + round / 50)
           for (std::size_t d = 0; d < detectors; ++d)
             if (chance(random, 0.2))
               flip(s, d);
       }},
      {"two detectors exchanged",
       [=](shot &s, std::uint64_t, std::mt19937_64 &) {
         const bool a = has(s, detectors / 4), b = has(s, 3 * detectors / 4);
         put(s, detectors / 4, b);
         put(s, 3 * detectors / 4, a);
       }},
      {"all detectors in another order",
       [=](shot &s, std::uint64_t, std::mt19937_64 &) {
         const shot old = s;
         for (std::size_t d = 0; d < detectors; ++d)
           put(s, d, has(old, order[d]));
       }},
      {"1000 shots again and again",
       [=](shot &s, std::uint64_t number, std::mt19937_64 &) {
         if (number % (10 * round) < 1000 && kept->size() < 1000)
           kept->push_back(s);
         else
           s = (*kept)[number % kept->size()];
       }},
      {"no events", [](shot &s, std::uint64_t, std::mt19937_64 &) { std::ranges::fill(s, std::uint8_t{0}); }},
      {"each bit by a coin",
       [=](shot &s, std::uint64_t, std::mt19937_64 &random) {
         for (std::size_t d = 0; d < detectors; ++d)
           put(s, d, chance(random, 0.5));
       }},
      {"held-out shots of five times the rate",
       [=](shot &s, std::uint64_t number, std::mt19937_64 &random) {
         if (number >= round)
           for (std::size_t d = 0; d < detectors; ++d)
             if (chance(random, 0.1))
               flip(s, d);
       }},
      {"far detectors together: 3 % of the shots",
       [=](shot &s, std::uint64_t, std::mt19937_64 &random) {
         if (chance(random, 0.03)) {
           flip(s, 1);
           flip(s, detectors - 2);
         }
       }},
  };
}

/// Labelled shots of the true model that each of two decoders gets wrong.
struct replay {
  std::uint64_t shots = 0, served_wrong = 0, learned_wrong = 0, only_served = 0, only_learned = 0;
};

replay replay_of(const detector_error_model &truth, const std::string &served, const std::string &learned) {
  constexpr std::uint64_t kReplays = 200'000;
  const model_sampler sampler(truth);
  std::mt19937_64 random(99);
  const auto a = pymatching_of(served), b = pymatching_of(learned);
  shot s(sampler.shot_bytes()), label(sampler.observable_bytes()), of_a(label.size()), of_b(label.size());
  replay result;
  for (; result.shots < kReplays; ++result.shots) {
    std::ranges::fill(s, std::uint8_t{0});
    std::ranges::fill(label, std::uint8_t{0});
    sampler.sample(random, s, label);
    (void)a->decode_bits(s, of_a);
    (void)b->decode_bits(s, of_b);
    const bool a_wrong = of_a != label, b_wrong = of_b != label;
    result.served_wrong += a_wrong;
    result.learned_wrong += b_wrong;
    result.only_served += a_wrong && !b_wrong;
    result.only_learned += b_wrong && !a_wrong;
  }
  return result;
}

int run_poison(const detector_error_model &truth, std::uint64_t shots, std::uint64_t seed) {
  std::mt19937_64 draw(seed);
  const detector_error_model wrong = wrong_rates(truth, draw);
  const std::string served = text_of(wrong);
  const auto make = [](const decoder_learner::shared_model &model) -> expected<std::unique_ptr<decoding_unit>> {
    auto with = pymatching_of(std::string(model->text()));
    const std::uint64_t detectors = with->num_detectors();
    return std::make_unique<decoding_unit>(std::move(with), sparse_rows{}, detectors);
  };
  learn_settings settings;
  settings.shots = shots;
  settings.held_out = shots / 2;
  const auto model = decoder_model::of_text(served);
  const auto sets = parity_sets::of(**model->errors());
  if (sets.failed())
    fail(sets.text());
  int worse = 0;
  std::printf("| shots | verdict | first reason, or score | labelled: wrong of 200000, served, learned | worse |\n"
              "|---|---|---|---|---|\n");
  for (const poison &p : poisons(static_cast<std::size_t>(truth.num_detectors), shots)) {
    decoder_learner learner({model, *sets}, settings, make);
    const model_sampler sampler(truth);
    std::mt19937_64 random(seed + 1), of_poison(seed + 2);
    const auto decoder = pymatching_of(served);
    shot s(sampler.shot_bytes()), label(sampler.observable_bytes()), answer(label.size());
    bool ended = false;
    for (std::uint64_t number = 0; !ended; ++number) {
      std::ranges::fill(s, std::uint8_t{0});
      sampler.sample(random, s, label);
      p.change(s, number, of_poison);
      if (number >= shots && number % settings.shadow == settings.shadow - 1)
        (void)decoder->decode_bits(s, answer);
      ended = learner.add(s, answer, true);
    }
    const learn_verdict &verdict = learner.verdict();
    if (verdict.what == learn_verdict::kind::refused) {
      std::printf("| %s | refused | %s | - | no |\n", p.name, verdict.reasons.at(0).c_str());
    } else {
      const bool swaps = verdict.what == learn_verdict::kind::better;
      std::printf("| %s | %s | %+.1f sigma; shadow: %.2g %% differ |", p.name, swaps ? "swapped in" : "not better",
                  verdict.score.better_by_sigmas,
                  100.0 * static_cast<double>(verdict.shadow_differ) /
                      static_cast<double>(std::max<std::uint64_t>(verdict.shadow_shots, 1)));
      if (!swaps) {
        std::printf(" - | no |\n");
      } else {
        const replay r = replay_of(truth, served, std::string(learner.candidate()->text()));
        const double by = static_cast<double>(r.only_learned) - static_cast<double>(r.only_served);
        const double sigma = std::sqrt(static_cast<double>(r.only_learned + r.only_served));
        const bool is_worse = by > 1.96 * sigma;
        worse += is_worse ? 1 : 0;
        std::printf(" %llu, %llu; %+.0f +- %.0f | %s |\n", static_cast<unsigned long long>(r.served_wrong),
                    static_cast<unsigned long long>(r.learned_wrong), by, 1.96 * sigma, is_worse ? "**yes**" : "no");
      }
    }
    std::fflush(stdout);
  }
  return worse == 0 ? 0 : 1;
}

/// Requests for `ns` to a server's only decoder.
std::uint64_t requests_in(hosted_server &host, const std::vector<shot> &shots, std::size_t &next, std::uint64_t ns) {
  std::uint64_t done = 0;
  std::uint8_t result[64];
  for (const std::uint64_t begin = steady_ns(); steady_ns() - begin < ns; done += 100)
    for (int k = 0; k < 100; ++k) {
      server_answer now;
      (void)host.server().submit(kOneShotFunctionId, shots[next++ % shots.size()], result, {}, now);
    }
  return done;
}

int run_rate(const detector_error_model &truth, double seconds) {
  constexpr std::uint64_t kBlockNs = 200'000'000;
  std::mt19937_64 random(1);
  std::string text = text_of(wrong_rates(truth, random));
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\n");
  const auto host_with = [&](const std::string &more) {
    auto loaded =
        load_config("decoders: [{id: 0, type: pymatching, queue_length: 0, dem: \"" + text + "\"" + more + "}]", ".");
    if (loaded.failed())
      fail(loaded.text());
    return std::make_unique<hosted_server>(std::move(*loaded));
  };
  const auto off = host_with(""), on = host_with(", learn: {shots: 50000, held_out: 25000}");
  if (off->start(CUDAQ_WAIT_BLOCK, 0).failed() || on->start(CUDAQ_WAIT_BLOCK, 0).failed())
    fail("a thread was refused");
  const model_sampler sampler(truth);
  std::vector<shot> shots(2'000'000, shot(sampler.shot_bytes()));
  shot observables(sampler.observable_bytes());
  for (shot &s : shots)
    sampler.sample(random, s, observables);
  std::vector<double> ratios;
  std::uint64_t all_off = 0, all_on = 0;
  std::size_t next_off = 0, next_on = 0;
  for (const std::uint64_t begin = steady_ns(); static_cast<double>(steady_ns() - begin) < seconds * 1e9;) {
    const std::uint64_t without = requests_in(*off, shots, next_off, kBlockNs);
    const std::uint64_t with = requests_in(*on, shots, next_on, kBlockNs);
    all_off += without;
    all_on += with;
    ratios.push_back(static_cast<double>(with) / static_cast<double>(std::max<std::uint64_t>(without, 1)));
  }
  std::ranges::sort(ratios);
  const learning_report report = on->learning().reports().at(0);
  const double blocks = static_cast<double>(ratios.size()) * 0.2;
  std::printf("%zu pairs of blocks of 0.2 s: %.0f requests/s without, %.0f with; ratio of all %.3f, median %.3f, "
              "quartiles %.3f and %.3f\nlearning: %llu rounds ended, %llu swaps, %.1f %% of the shots lost\n",
              ratios.size(), static_cast<double>(all_off) / blocks, static_cast<double>(all_on) / blocks,
              static_cast<double>(all_on) / static_cast<double>(all_off), ratios[ratios.size() / 2],
              ratios[ratios.size() / 4], ratios[ratios.size() * 3 / 4],
              static_cast<unsigned long long>(report.refused + report.not_better + report.better),
              static_cast<unsigned long long>(report.swaps),
              100 * static_cast<double>(report.lost) / static_cast<double>(std::max<std::uint64_t>(all_on, 1)));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  if (what != "poison" && what != "rate")
    fail("give poison MODEL.dem [SHOTS [SEED]], or rate MODEL.dem [SECONDS]");
  const auto text = read_whole_file(argv[2]);
  const auto model = text.ok() ? parse_dem(*text) : expected<detector_error_model>(text.reason());
  if (model.failed())
    fail(model.text());
  if (what == "rate")
    return run_rate(*model, argc > 3 ? std::stod(argv[3]) : 10);
  return run_poison(*model, argc > 3 ? std::stoull(argv[3]) : 200'000, argc > 4 ? std::stoull(argv[4]) : 1);
}
