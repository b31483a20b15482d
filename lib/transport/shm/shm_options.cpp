// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/shm/shm_options.h"

#include "lib/transport/shm/shm_attach.h"

#include <charconv>
#include <string_view>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kMostSegmentBytes = 1ull << 30;
constexpr std::uint64_t kMostSlotNumbers = 1ull << 24; // the dispatcher's limit

struct number_option {
  std::string_view key;
  std::uint32_t shm_options::*value;
  std::uint32_t least, most;
  int base;
};
constexpr number_option kNumbers[] = {
    {"num-slots", &shm_options::num_slots, 1, 65536, 10},  {"slot-size", &shm_options::slot_size, 32, 16777216, 10},
    {"max-clients", &shm_options::max_clients, 1, 64, 10}, {"mode", &shm_options::mode, 0600, 0777, 8},
    {"wait-us", &shm_options::wait_us, 0, 10000, 10},
};

struct switch_option {
  std::string_view key;
  bool shm_options::*value;
};
constexpr switch_option kSwitches[] = {{"unified", &shm_options::unified},
                                       {"pinned", &shm_options::pinned},
                                       {"huge-pages", &shm_options::huge_pages},
                                       {"lenient", &shm_options::lenient}};

template <class Options>
const auto *find_key(const Options &options, std::string_view key) {
  for (const auto &o : options)
    if (o.key == key)
      return &o;
  return static_cast<decltype(&options[0])>(nullptr);
}

status_or_reason set_number(const number_option &o, std::string_view text, shm_options &out) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, o.base);
  if (error != std::errc{} || end != text.data() + text.size() || value < o.least || value > o.most)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       o.base == 8 ? "--%.*s is '%.40s': accepted are %o to %o, octal"
                                   : "--%.*s is '%.40s': accepted are %u to %u",
                       static_cast<int>(o.key.size()), o.key.data(), std::string(text).c_str(), o.least, o.most);
  out.*o.value = value;
  return {};
}

status_or_reason unknown(const char *argument) {
  return make_reason(CUDAQ_ERR_INVALID_ARG,
                     "'%.80s' is not an option of the provider shm: accepted are --name, --num-slots, --slot-size, "
                     "--max-clients, --mode, --wait-us, --unified, --pinned, --huge-pages, --lenient",
                     argument);
}

/// Rules that need more than one option.
status_or_reason check_together(shm_options &o) {
  if (o.max_clients == 0)
    o.max_clients = o.unified ? 8 : 1;
  if (status_or_reason found = check_shm_name(o.name)) {
    found.text = "--" + found.text;
    return found;
  }
  if (o.slot_size % 8 != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--slot-size is %u: it must be a multiple of 8", o.slot_size);
  if (!o.unified && o.max_clients != 1)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--max-clients is %u: a dispatcher reads a ring in the order of its slots, so the ring shape "
                       "has exactly one client; use --unified for more",
                       o.max_clients);
  if (!o.unified && o.wait_us != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--wait-us is %u: in the ring shape the dispatcher's wait policy decides; use --unified",
                       o.wait_us);
  const std::uint64_t page = shm_page(o.huge_pages);
  const shm_layout layout = make_shm_layout(o.num_slots, o.slot_size, page);
  if (layout.bytes > kMostSegmentBytes)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--num-slots is %u and --slot-size %u: the memory of one client has %llu bytes, at most %llu",
                       o.num_slots, o.slot_size, static_cast<unsigned long long>(layout.bytes),
                       static_cast<unsigned long long>(kMostSegmentBytes));
  if (std::uint64_t{shm_span(layout, page)} * o.max_clients > kMostSlotNumbers)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--max-clients is %u with --num-slots %u, --slot-size %u: a client takes %u slot numbers, and "
                       "there are %llu",
                       o.max_clients, o.num_slots, o.slot_size, shm_span(layout, page),
                       static_cast<unsigned long long>(kMostSlotNumbers));
  return {};
}

} // namespace

status_or_reason parse_shm_options(int argc, char **argv, shm_options &out) {
  if (argc < 0 || (argc > 0 && argv == nullptr))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "argc is %d and argv is %s", argc, argv == nullptr ? "NULL" : "set");
  for (int i = 0; i < argc; ++i)
    if (argv[i] == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "argv[%d] is NULL", i);
  for (int i = argc > 0 && argv[0][0] != '-' ? 1 : 0; i < argc; ++i) {
    std::string_view key = argv[i];
    if (!key.starts_with("--")) {
      if (out.lenient)
        continue;
      return unknown(argv[i]);
    }
    key.remove_prefix(2);
    const std::size_t equals = key.find('=');
    const bool has_value = equals != std::string_view::npos;
    std::string_view value = has_value ? key.substr(equals + 1) : std::string_view{};
    key = key.substr(0, equals);
    if (const switch_option *o = find_key(kSwitches, key)) {
      if (has_value)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "'%.80s': --%s takes no value", argv[i], std::string(key).c_str());
      out.*o->value = true;
      continue;
    }
    const number_option *number = find_key(kNumbers, key);
    if (number == nullptr && key != "name") {
      if (out.lenient)
        continue;
      return unknown(argv[i]);
    }
    if (!has_value) {
      if (i + 1 == argc)
        return make_reason(CUDAQ_ERR_INVALID_ARG, "%s needs a value", argv[i]);
      value = argv[++i];
    }
    if (number == nullptr)
      out.name = value;
    else if (status_or_reason found = set_number(*number, value, out))
      return found;
  }
  return check_together(out);
}

} // namespace cudaq::realtime::detail
