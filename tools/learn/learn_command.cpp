// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line/command_options.h"
#include "tools/command_line/commands.h"
#include "tools/learn/learn.h"

namespace cudaq::realtime::tools {
namespace {

constexpr const char *kLearnFooter =
    R"(Detection events without labels say how often each error of the model happens. The rates start at those of the
model, and stay there where the shots say little. No rate is learned from the held-out shots: on them the score says
whether the learned model is better. If the data must not change a model (a stuck detector, a burst, detectors in
another order, too few shots), the reason is on stderr, the exit status is 1, and --out is not written.

Examples:
  stim detect --in circuit.stim --shots 100000 --out_format b8 > shots.b8
  cudaq-realtime learn --dem model.dem --in shots.b8 --out learned.dem
  cudaq-realtime learn --dem model.dem --in shots.b8 --tied groups.txt --json rates.json)";

} // namespace

void add_learn(CLI::App &program, chosen_command &chosen) {
  const auto options = std::make_shared<learn_options>();
  learn_options &o = *options;
  CLI::App &learn = *program.add_subcommand("learn", "learn the rates of a model's errors from detection events");
  learn.footer(kLearnFooter);
  learn.add_option("--dem", o.data.dem, "detector error model (Stim's .dem)")->required()->type_name("FILE");
  add_shot_source_options(learn, o.data.in, "--in", "detection events; -: stdin")->capture_default_str();
  learn.add_flag("--in_includes_appended_observables,--in-includes-appended-observables",
                 o.data.in_includes_appended_observables,
                 "each shot of --in ends with its observables, which are not read");
  learn.add_option("--tied", o.tied, "groups of errors that share one factor")->type_name("FILE");
  learn.add_option("--out", o.out, "the model with the learned rates")->type_name("FILE");
  learn.add_option("--held-out", o.held_out, "share of the shots that only score the learned model; 0: no score")
      ->capture_default_str()
      ->check(number_between(0, 0.9));
  learn
      .add_option("--prior", o.prior,
                  "factor by which rates are expected to differ from the model's; smaller: rates that the shots say "
                  "little about are closer to it")
      ->capture_default_str()
      ->check(number_between(1.01, 1e6));
  run_when_chosen(learn, chosen, [options](const output &out) { return run_learn(*options, out); });
}

} // namespace cudaq::realtime::tools
