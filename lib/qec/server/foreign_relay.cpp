// SPDX-License-Identifier: Apache-2.0
// The settings of the existing server's nv-qldpc-decoder as those of relay-bp.
#include "lib/qec/server/decoder_types.h"

#include <string>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

struct relay_setting {
  std::string_view key;
  std::string_view ours;     ///< the name of relay-bp; "": it has none
  std::string_view accepted; ///< values, separated by |; "*": every value
  std::string_view reason;   ///< for other values
};
constexpr relay_setting kRelaySettings[] = {
    {"gamma0", "gamma0", "*", ""},
    {"max_iterations", "set_max_iter", "*", ""},
    {"scale_factor", "alpha", "*", ""},
    {"bp_seed", "seed", "*", ""},
    {"srelay_config.pre_iter", "pre_iter", "*", ""},
    {"srelay_config.num_sets", "num_sets", "*", ""},
    {"srelay_config.stop_nconv", "stop_nconv", "*", ""},
    {"bp_method", "", "3", "only min-sum with a memory for each column (3) is relay-bp; use bp-osd for the others"},
    {"composition", "", "1", "only the sequential relay (1) is relay-bp; use bp-osd for the others"},
    {"use_osd", "", "false|False|0", "no ordered statistics follow relay-bp; use bp-osd"},
    {"osd_method", "", "*", ""},
    {"osd_order", "", "*", ""},
    {"use_sparsity", "", "*", ""},
    {"n_threads", "", "*", ""},
    {"bp_batch_size", "", "*", ""},
    {"iter_per_check", "", "*", ""},
    {"clip_value", "", "0|0.0", "messages are not clipped; use 0"},
};

const std::string *find(const settings_list &given, std::string_view key) {
  for (const auto &[name, value] : given)
    if (name == key)
      return &value;
  return nullptr;
}

reason refused(std::string_view key, std::string_view value, std::string_view why) {
  return reason("decoder_custom_args." + std::string(key) + ": \"" + std::string(value) +
                "\" is not available for nv-qldpc-decoder: " + std::string(why));
}

/// stop_nconv of relay-bp; "": its default.
expected<std::string> stop_after(const settings_list &given) {
  const std::string *const criterion = find(given, "srelay_config.stopping_criterion");
  if (criterion == nullptr || *criterion == "NConv")
    return std::string();
  if (*criterion == "FirstConv")
    return std::string("1");
  if (*criterion == "All") // more solutions than there can be legs
    return std::string("1000000");
  return refused("srelay_config.stopping_criterion", *criterion, "use FirstConv, NConv or All");
}

bool is_relay(const settings_list &given) {
  for (const auto &[key, value] : given)
    if (key.starts_with("srelay_config."))
      return true;
  return false;
}

} // namespace

expected<settings_list> relay_of_foreign_settings(const settings_list &given) {
  if (!is_relay(given))
    return reason("decoder_custom_args.srelay_config: nv-qldpc-decoder needs it here, which makes it relay-bp; without "
                  "a relay use bp-osd");
  // Without them the existing server does not do a relay: its defaults are 0.
  for (const auto &[key, wanted] : {std::pair{"bp_method", "3"}, std::pair{"composition", "1"}})
    if (find(given, key) == nullptr)
      return reason("decoder_custom_args." + std::string(key) +
                    ": nv-qldpc-decoder with srelay_config needs it: give " + wanted + ", which makes it relay-bp");
  const auto stop = stop_after(given);
  if (stop.failed())
    return stop.reason();
  settings_list ours;
  if (!stop->empty())
    ours.emplace_back("stop_nconv", *stop);
  for (const auto &[key, value] : given) {
    if (key == "srelay_config.stopping_criterion" || (key == "srelay_config.stop_nconv" && !stop->empty()) ||
        key.starts_with("opt_results."))
      continue;
    if (key == "gamma_dist") {
      const std::size_t comma = value.find(',');
      if (comma == value.npos || value.find(',', comma + 1) != value.npos)
        return refused(key, value, "it is a list of the lowest and the highest strength");
      ours.emplace_back("gamma_lowest", value.substr(0, comma));
      ours.emplace_back("gamma_highest", value.substr(comma + 1));
      continue;
    }
    if (key == "proc_float") {
      if (value != "fp32" && value != "fp64")
        return refused(key, value, "use fp32 or fp64");
      if (value == "fp64")
        ours.emplace_back("precision", "double");
      continue;
    }
    const relay_setting *known = nullptr;
    for (const relay_setting &setting : kRelaySettings)
      if (setting.key == key)
        known = &setting;
    if (known == nullptr)
      return refused(
          key, value,
          "it has no equal in relay-bp, whose settings are in share/doc/cudaq-realtime/docs/decoders/relay_bp.md");
    if (known->accepted != "*" && !is_one_of(known->accepted, value))
      return refused(key, value, known->reason);
    if (!known->ours.empty())
      ours.emplace_back(known->ours, value);
  }
  return ours;
}

} // namespace cudaq::qec::realtime
