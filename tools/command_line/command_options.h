// SPDX-License-Identifier: Apache-2.0
// Options that several subcommands have. Each has one name, one check and one text. For *_command.cpp only: this header
// includes the command line library, which is slow to compile.
#pragma once

#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoding/decoding_config.h"
#include "tools/command_line/command.h"
#include "tools/common/machine.h"
#include "tools/common/measured_case.h"
#include "tools/shots/own_data.h"
#include "tools/shots/recorded_readout.h"
#include "tools/trace/run_trace.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cudaq::realtime::tools {

inline constexpr int kMaxCores = 4095; ///< highest number of a core

/// Like CLI::Range, but refuses NaN too. CLI::Range accepts NaN, because every comparison with NaN is false.
inline CLI::Validator number_between(double low, double high) {
  return CLI::Validator(
      [low, high](std::string &text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= low && value <= high)
          return "";
        return fmt::format("{} is not a number from {} to {}", text, low, high);
      },
      fmt::format("FLOAT in [{} - {}]", low, high));
}

/// An option whose value is one of `words`; --help shows the default.
/// `others`: what else than the words is taken, and `form`, for the text of a wrong one. The help lists the words.
inline CLI::Option *add_choice(CLI::App &command, const char *name, std::string &value, const char *text,
                               const std::vector<std::string> &words, bool (*others)(const std::string &) = nullptr,
                               const char *form = "") {
  CLI::Validator known = CLI::IsMember(words);
  if (others != nullptr)
    known.operation([others, form, test = known](std::string &word) {
      std::string wrong = others(word) ? std::string() : test(word);
      return wrong.empty() ? wrong : fmt::format("{}; or {}", wrong, form);
    });
  return command.add_option(name, value, text)->capture_default_str()->check(known);
}

/// An option that has a new name, or new ones. The old one works for one minor version, is not in the help, and prints
/// a line that names the new one. It cannot be given together with a new one, or with an option that a new one
/// excludes. `take` uses the value, and returns the new form of the same words.
template <typename Value>
CLI::Option *add_old_name(CLI::App &command, chosen_command &chosen, const std::string &old,
                          const std::vector<CLI::Option *> &now, std::function<std::string(const Value &)> take) {
  const auto use = [&chosen, old, now, take = std::move(take)](const Value &value) {
    for (const CLI::Option *option : now) {
      if (option->count() != 0)
        throw CLI::ExcludesError(old, option->get_name());
      for (const CLI::Option *other : option->get_excludes())
        if (other->count() != 0)
          throw CLI::ExcludesError(old, other->get_name());
    }
    chosen.notes.push_back(fmt::format("{} is an old name; write {}", old, take(value)));
  };
  return command.add_option_function<Value>(old, use)->group("");
}

/// The same if only the name has changed. `value` is the variable of the option `now`.
template <typename Value>
CLI::Option *add_renamed(CLI::App &command, chosen_command &chosen, const std::string &old, CLI::Option *now,
                         Value &value) {
  return add_old_name<Value>(command, chosen, old, {now}, [&value, name = now->get_name()](const Value &given) {
    value = given;
    return fmt::format("{} {}", name, given);
  });
}

/// Adds --json, and stores `body` in `chosen` when the command line names `command`. The last call of every add_<name>.
inline void run_when_chosen(CLI::App &command, chosen_command &chosen, command_body body) {
  const CLI::Option *const json_option =
      command
          .add_option("--json", chosen.output.json_file,
                      "report as JSON, into FILE; without FILE or with - to stdout, instead of the text")
          ->expected(0, 1)
          ->type_name("[FILE]");
  std::string name = command.get_name();
  for (const CLI::App *above = command.get_parent(); above->get_parent() != nullptr; above = above->get_parent())
    name = above->get_name() + " " + name;
  command.callback([json_option, name, &chosen, body = std::move(body)] {
    chosen.output.json = json_option->count() > 0;
    chosen.output.command = name;
    chosen.run = body;
  });
}

inline void add_hgrm_option(CLI::App &command, output_options &o) {
  command.add_option("--hgrm", o.hgrm_prefix, "write each histogram to PREFIX.<name>.hgrm (values in ns)")
      ->type_name("PREFIX");
}

inline void add_html_option(CLI::App &command, output_options &o) {
  command.add_option("--html", o.html_file, "report as one HTML page with plots, into FILE")->type_name("FILE");
}

inline void add_trace_option(CLI::App &command, output_options &o) {
  command
      .add_option("--trace", o.trace_file,
                  fmt::format("timeline of the first {} requests, for Perfetto, into FILE", run_trace::kMaxRequests))
      ->type_name("FILE");
}

/// `until`: the event that must happen within that time.
inline void add_timeout_option(CLI::App &command, double &timeout_s, const char *until) {
  command.add_option("--timeout", timeout_s, fmt::format("seconds without {} after which the run fails", until))
      ->capture_default_str()
      ->check(number_between(0.01, 1e5));
}

/// --wait with the names of the wait policies; `text` names the threads.
inline void add_wait_option(CLI::App &command, std::string &wait, const char *text) {
  add_choice(command, "--wait", wait, text, {"auto", "spin", "yield", "block"});
}

inline std::string refuse_decoder_name(std::string &name) { return qec::check_decoder_name(name).text(); }

inline void add_decoder_option(CLI::App &command, std::string &decoder, const char *text) {
  command
      .add_option("--decoder", decoder,
                  fmt::format("{}: {}, auto, or a plug-in's path; settings follow: NAME:key=value,...", text,
                              CLI::detail::join(qec::decoder_names(), ", ")))
      ->capture_default_str()
      ->check(CLI::Validator(&refuse_decoder_name, "NAME"));
}

inline CLI::Option *add_device_option(CLI::App &command, std::string &device, const char *text) {
  return add_choice(command, "--device", device, text, {"cpu", "gpu"});
}

inline CLI::Option *add_gpu_option(CLI::App &command, int &gpu) {
  return command.add_option("--gpu", gpu, "number of the GPU")->capture_default_str()->check(CLI::Range(0, 255));
}

/// The same for a subcommand that also runs without a GPU. `device` is the value of its --device.
inline void add_gpu_option_of_device(CLI::App &command, int &gpu, const std::string &device) {
  const CLI::Option *const option = add_gpu_option(command, gpu)->description("number of the GPU, with --device gpu");
  command.parse_complete_callback([option, &device] {
    if (option->count() != 0 && device != "gpu")
      throw CLI::ValidationError("--gpu", "it has no effect without --device gpu");
  });
}

inline void add_noise_option(CLI::App &command, std::string &noise) {
  command.add_option("--noise", noise, "physical error rate of the recorded shots")->capture_default_str();
}

inline CLI::Option *add_shots_option(CLI::App &command, std::uint64_t &shots, const char *text) {
  return command.add_option("--shots", shots, text)
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 48));
}

inline void add_threads_option(CLI::App &command, unsigned &threads) {
  command.add_option("--threads", threads, "threads that decode, each with its own decoders; 0: one for each core")
      ->capture_default_str()
      ->check(CLI::Range(0u, 1024u));
}

/// The names of a run's threads in the help of a subcommand.
struct thread_names {
  const char *producer, *consumer, *dispatcher, *workers;
};

inline void add_core_options(CLI::App &command, thread_cores &cores, const thread_names &names) {
  const auto add = [&command](const char *option, int &core, const char *thread, const char *more) {
    command.add_option(option, core, fmt::format("core of the {}{}", thread, more))->check(CLI::Range(0, kMaxCores));
  };
  add("--core-producer", cores.producer, names.producer, "");
  add("--core-consumer", cores.consumer, names.consumer, "");
  add("--core-dispatcher", cores.dispatcher, names.dispatcher, "");
  add("--core-workers", cores.workers, names.workers, "; the others follow");
}

/// --workers: a number, or `auto`, which is stored as kAutoWorkers.
inline CLI::Option *add_workers_option(CLI::App &command, int &workers, const char *text) {
  static constexpr int kMaxWorkers = 64;
  const auto read = [](std::string &given) -> std::string {
    int number = 0;
    if (given == "auto")
      given = std::to_string(kAutoWorkers);
    else if (!CLI::detail::lexical_cast(given, number) || number < 0 || number > kMaxWorkers)
      return fmt::format("{} is neither auto nor a number from 0 to {}", given, kMaxWorkers);
    return "";
  };
  return command.add_option("--workers", workers, text)
      ->type_name("N")
      ->default_str(workers == kAutoWorkers ? "auto" : std::to_string(workers))
      ->transform(CLI::Validator(read, fmt::format("auto or 0 to {}", kMaxWorkers)));
}

inline void add_slots_option(CLI::App &command, std::uint32_t &slots, const char *text = "slots of the ring") {
  command.add_option("--slots", slots, text)->capture_default_str()->check(CLI::Range(1u, 1u << 20));
}

/// --duration, of a subcommand with --shots.
inline void add_duration_option(CLI::App &command, double &duration_s, const char *text) {
  command.add_option("--duration", duration_s, text)
      ->excludes(command.get_option("--shots"))
      ->check(number_between(0.001, 1e6));
}

/// --rate, and --cadence-us, its old name with the inverse value.
template <typename Rate>
CLI::Option *add_rate_option(CLI::App &command, chosen_command &chosen, Rate &rate) {
  static constexpr double kMaxRate = 1e9;
  CLI::Option *const now =
      command.add_option("--rate", rate, "shots per second, evenly spaced; 0: as fast as possible")
          ->check(number_between(0, kMaxRate));
  add_old_name<double>(command, chosen, "--cadence-us", {now}, [&rate](const double &cadence_us) {
    const double per_second = cadence_us == 0 ? 0 : std::min(1e6 / cadence_us, kMaxRate);
    rate = per_second;
    return fmt::format("--rate {:.10g}", per_second);
  })->check(number_between(0, 1e7));
  return now;
}

/// --distance, the old name of --config d<distance>.
inline CLI::Option *add_distance_as_config(CLI::App &command, chosen_command &chosen, std::string &config,
                                           CLI::Option *now) {
  return add_old_name<unsigned>(command, chosen, "--distance", {now}, [&config](const unsigned &distance) {
    config = fmt::format("d{}", distance);
    return "--config " + config;
  });
}

/// Refuses a name that is neither d<distance> nor a configuration of `pipeline`.
inline std::string refuse_config_name(std::string &name) {
  constexpr unsigned kMaxDistance = 999;
  const char *const end = name.data() + name.size();
  unsigned distance = 0;
  if (qec::find_decoding_config(name) != nullptr)
    return "";
  if (name.size() > 1 && name[0] == 'd' && std::from_chars(name.data() + 1, end, distance).ptr == end &&
      distance >= 1 && distance <= kMaxDistance)
    return "";
  return fmt::format("{} is not a configuration; there are d3, d5, ..., and d13_T104", name);
}

/// --config of a subcommand that takes each distance, and --distance, its old name.
inline void add_distance_options(CLI::App &command, chosen_command &chosen, std::string &config, const char *text) {
  CLI::Option *const now = command.add_option("--config", config, text)
                               ->type_name("NAME")
                               ->check(CLI::Validator(&refuse_config_name, "d3, d5, ... or d13_T104"));
  add_distance_as_config(command, chosen, config, now)->check(CLI::Range(1u, 999u));
}

/// `option` and `option`_format: a file of shots. Names have underscores as in Stim; dashes work, too.
inline CLI::Option *add_shot_source_options(CLI::App &command, shot_source &source, const char *option,
                                            const char *text) {
  const auto spellings = [](const std::string &name) {
    std::string dashes = name;
    std::replace(dashes.begin(), dashes.end(), '_', '-');
    return dashes == name ? name : name + "," + dashes;
  };
  CLI::Option *const path = command.add_option(spellings(option), source.path, text)->type_name("FILE");
  const std::vector<std::string> formats(qec::kShotFormatNames.begin(), qec::kShotFormatNames.end());
  command.add_option(spellings(fmt::format("{}_format", option)), source.format, "its format")
      ->check(CLI::IsMember(formats));
  return path;
}

/// What the readout of a shot says beside its events. `or_stdin`: the end of the texts of --soft and --leakage.
inline void add_readout_options(CLI::App &command, readout_files &files, const std::string &or_stdin = "") {
  CLI::Option *const table =
      command.add_option("--readout", files.readout, "which errors the values of --soft and --leakage mean")
          ->type_name("FILE");
  command.add_option("--soft", files.soft, "for each shot a value of each measurement, as bytes" + or_stdin)
      ->type_name("FILE")
      ->needs(table);
  add_choice(command, "--soft_kind", files.soft_kind,
             "f32: 4 bytes a value, u8: one byte, u4: two values in a byte, the first in its low half",
             {"f32", "u8", "u4"})
      ->needs(table);
  command.add_option("--leakage", files.leakage, "for each shot 2 bits of each flag of leakage: 0, 1 or 2" + or_stdin)
      ->type_name("FILE")
      ->needs(table);
}

/// --dem, --in, --obs_in and --predictions: own data.
inline void add_own_data_options(CLI::App &command, own_data &data) {
  command.add_option("--dem", data.dem, "own detector error model, in Stim's format")->type_name("FILE");
  add_shot_source_options(command, data.in, "--in", "own detection events, with --dem");
  command.add_flag("--in_includes_appended_observables,--in-includes-appended-observables",
                   data.in_includes_appended_observables, "each shot of --in ends with its true observables");
  add_shot_source_options(command, data.obs_in, "--obs_in", "their true observables: logical errors are counted");
  add_shot_source_options(command, data.predictions, "--predictions", "the answers must equal these");
}

/// The same for a subcommand that also has named sets. `named`: its options that choose one of these. `sample`: an
/// option that makes the shots, so that --dem needs no --in; or NULL.
inline void add_own_data_instead_of(CLI::App &command, own_data &data, const std::vector<std::string> &named,
                                    CLI::Option *sample = nullptr) {
  add_own_data_options(command, data);
  CLI::Option *const dem = command.get_option("--dem"), *const in = command.get_option("--in");
  if (sample == nullptr)
    dem->needs(in);
  for (const char *option : {"--in", "--in_format", "--in_includes_appended_observables", "--obs_in", "--obs_in_format",
                             "--predictions", "--predictions_format"}) {
    command.get_option(option)->needs(dem);
    if (sample != nullptr)
      sample->excludes(command.get_option(option));
  }
  for (const std::string &option : named)
    dem->excludes(command.get_option(option));
}

inline void add_data_option(CLI::App &command, std::string &data_folder) {
  command.add_option("--data", data_folder, "folder of the recorded shots (default: $CUDAQ_REALTIME_DATA, else found)")
      ->type_name("FOLDER");
}

/// --ila: the file of an exchange_record.
inline void add_ila_option(CLI::App &command, std::string &file) {
  command
      .add_option("--ila", file, "write the time of each request and of its answer as lines: request_id,send_ns,...")
      ->type_name("FILE");
}

/// --data and --seed: the folder of the recorded shots, and their order.
inline void add_recorded_shots_options(CLI::App &command, std::string &data_folder, std::uint64_t &seed) {
  add_data_option(command, data_folder);
  command.add_option("--seed", seed, "seed of the random order of the shots; 0: as recorded")->capture_default_str();
}

inline void add_exchanges_option(CLI::App &command, measuring_options &o, std::uint64_t max_count) {
  command.add_option("--exchanges", o.exchanges, "exchanges of each case, after warm-up")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, max_count));
}

/// --repeats, and --rounds, its old name.
inline void add_repeats_option(CLI::App &command, chosen_command &chosen, measuring_options &o, const char *text) {
  CLI::Option *const now =
      command.add_option("--repeats", o.rounds, text)->capture_default_str()->check(CLI::Range(1u, 10000u));
  add_renamed(command, chosen, "--rounds", now, o.rounds)->check(CLI::Range(1u, 10000u));
}

inline void add_quick_flag(CLI::App &command, measuring_options &o,
                           const char *text = "4000 exchanges in 2 "
                                              "repetitions") {
  command.add_flag("--quick", o.quick, text);
}

inline void add_random_payload_options(CLI::App &command, measuring_options &o) {
  command.add_option("--seed", o.seed, "seed of the random payloads")->capture_default_str();
  add_timeout_option(command, o.timeout_s, "an answer");
}

} // namespace cudaq::realtime::tools
