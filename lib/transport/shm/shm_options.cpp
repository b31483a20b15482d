// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/shm/shm_options.h"

#include "lib/transport/provider/option_parser.h"
#include "lib/transport/shm/shm_attach.h"

#include <charconv>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint64_t kMaxSegmentBytes = 1ull << 30;
constexpr std::uint64_t kMaxSlotNumbers = 1ull << 24; // the dispatcher's limit

expected<> read_mode(const std::string &text, std::uint32_t &mode) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc{} || end != text.data() + text.size() || mode < 0600 || mode > 0777)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--mode '%s': an octal number from 600 to 777 is accepted", text.c_str());
  return {};
}

/// Rules that need more than one option.
expected<> check_together(shm_options &o) {
  if (o.max_clients == 0)
    o.max_clients = o.unified ? 8 : 1;
  if (expected<> result = check_shm_name(o.name); result.failed())
    return {result.status(), "--" + result.text()};
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
  if (o.requests_on_gpu && o.unified)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--requests is gpu: in the unified shape a loop on the CPU takes the "
                                              "requests, across the bus; leave --unified out, and serve with a kernel");
  if (o.requests_on_gpu && !o.pinned)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--requests is gpu: the answers are in host memory that the GPU writes; "
                                              "give --pinned, too");
  const std::uint64_t page = shm_page(o.huge_pages);
  const shm_layout layout = o.requests_on_gpu ? make_gpu_layout(o.num_slots, o.slot_size, page)
                                              : make_shm_layout(o.num_slots, o.slot_size, page);
  const std::uint64_t bytes = layout.bytes + (o.requests_on_gpu ? gpu_bytes(layout) : 0);
  if (bytes > kMaxSegmentBytes)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--num-slots is %u and --slot-size %u: the memory of one client has %llu bytes, at most %llu",
                       o.num_slots, o.slot_size, static_cast<unsigned long long>(bytes),
                       static_cast<unsigned long long>(kMaxSegmentBytes));
  if (std::uint64_t{shm_span(layout, page)} * o.max_clients > kMaxSlotNumbers)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--max-clients is %u with --num-slots %u, --slot-size %u: a client takes %u slot numbers, and "
                       "there are %llu",
                       o.max_clients, o.num_slots, o.slot_size, shm_span(layout, page),
                       static_cast<unsigned long long>(kMaxSlotNumbers));
  return {};
}

} // namespace

expected<> parse_shm_options(int argc, char **argv, shm_options &out) {
  std::string mode, requests;
  option_parser parser("shm", true);
  parser.add_choice("--name", {}, out.name);
  parser.add_number("--num-slots", 1, 65536, out.num_slots);
  parser.add_number("--slot-size", 32, 16777216, out.slot_size);
  parser.add_number("--max-clients", 1, 64, out.max_clients);
  parser.add_choice("--mode", {}, mode);
  parser.add_number("--wait-us", 0, 10000, out.wait_us);
  parser.add_flag("--unified", out.unified);
  parser.add_flag("--pinned", out.pinned);
  parser.add_flag("--huge-pages", out.huge_pages);
  parser.add_choice("--requests", {"host", "gpu"}, requests);
  parser.add_number("--gpu", 0, 1023, out.gpu);
  if (expected<> result = parser.parse(argc, argv); result.failed())
    return result;
  out.ignored_words = parser.ignored_words();
  if (parser.given("--mode"))
    if (expected<> result = read_mode(mode, out.mode); result.failed())
      return result;
  out.requests_on_gpu = requests == "gpu";
  out.gpu_given = parser.given("--gpu");
  if (out.gpu_given && !out.pinned && !out.requests_on_gpu)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--gpu is %d: it names the device of --pinned and --requests gpu, which "
                       "are not given",
                       out.gpu);
  return check_together(out);
}

} // namespace cudaq::realtime::detail
