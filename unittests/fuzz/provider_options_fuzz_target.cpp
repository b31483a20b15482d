// SPDX-License-Identifier: Apache-2.0
// The options of the providers of lib. Byte 0 chooses the provider, each further line is one argument. Options are
// accepted and inside their limits, or refused with a text.
#include "lib/transport/cpu_roce/cpu_roce_options.h"
#include "lib/transport/roce/roce_options.h"
#include "lib/transport/shm/shm_options.h"
#include "lib/transport/ucx/ucx_options.h"
#include "unittests/fuzz/fuzz_input.h"

#include <vector>

namespace {

using namespace cudaq::realtime::detail;
using cudaq::realtime::test::require;

bool accepted(const expected<> &result) {
  require(result.ok() || (result.status() != CUDAQ_OK && result.text()[0] != '\0'),
          "a refusal has a status and a text");
  return result.ok();
}

void check_datagram(const datagram_options &o) {
  require(o.port <= 65535 && o.num_slots >= 1 && o.num_slots <= 65536, "port and slots");
  require(o.slot_size >= CUDAQ_RPC_HEADER_SIZE && o.slot_size <= kLargestDatagram, "a slot fits into a datagram");
  require((o.replay_window & (o.replay_window - 1)) == 0, "a window is a power of two");
}

void parse(unsigned provider, int argc, char **argv) {
  switch (provider % 6) {
  case 0:
    if (shm_options o; accepted(parse_shm_options(argc, argv, o)))
      require(!o.name.empty() && o.num_slots != 0 && o.max_clients != 0, "a segment has slots");
    return;
  case 1:
    if (datagram_options o; accepted(option_reader(o, false).read(argc, argv)))
      check_datagram(o);
    return;
  case 2:
    if (roce_options o; accepted(parse_roce_options(argc, argv, o)))
      check_datagram(o.common);
    return;
  case 3:
    if (cpu_roce_options o; accepted(parse_cpu_roce_options(argc, argv, o)))
      require(o.frame_size <= o.slot_size && o.num_slots >= 1, "a frame fits into a slot");
    return;
  case 4: // a provider that is in contrib now: the corpus keeps its numbers
    return;
  default:
    if (ucx_options o; accepted(read_ucx_options(argc, argv, o)))
      require(o.port <= 65535 && o.num_slots >= 1 && o.max_routers >= 1, "port and slots");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  cudaq::realtime::test::fuzz_input input(data, size);
  const auto provider = input.take<std::uint8_t>();
  std::vector<std::string> words;
  while (!input.empty())
    words.emplace_back(input.text_until("\n"));
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  parse(provider, static_cast<int>(words.size()), argv.data());
  return 0;
}
