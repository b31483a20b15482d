// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: cudaq_header_fuzz -max_total_time=60
// The first byte of the input chooses the ring. Then follow requests of 33 bytes: one byte that chooses which fields
// are random, 24 bytes of header, 8 bytes of flag.
#include "unittests/fuzz/header_fuzz.h"

#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace cudaq::realtime::test;
  if (size == 0)
    return 0;
  const std::uint8_t shape = data[0];
  header_fuzz fuzz(1 + shape % 3, 24 + (shape >> 3) * 5u, 24 + (shape >> 3) * 8u + 16, (shape & 1) != 0,
                   (shape & 2) != 0, (shape & 4) != 0);
  for (std::size_t at = 1; at + 33 <= size; at += 33) {
    const std::uint8_t keep = data[at];
    fuzzed_request r;
    std::memcpy(&r, data + at + 1, sizeof(r));
    if ((keep & 1) == 0)
      r.magic = CUDAQ_RPC_MAGIC_REQUEST;
    if ((keep & 2) == 0)
      r.function_id %= 5;
    if ((keep & 4) == 0)
      r.arg_len %= 256;
    if ((keep & 8) == 0)
      r.flag = 0;
    const std::string problem = fuzz.step(r);
    if (!problem.empty()) {
      std::fprintf(stderr, "%s\n", problem.c_str());
      std::abort();
    }
  }
  return 0;
}
