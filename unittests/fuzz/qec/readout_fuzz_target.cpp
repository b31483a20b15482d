// SPDX-License-Identifier: Apache-2.0
// The input is the values of a shot, their kind in byte 0 and their number in byte 1, and then the text of a table of a
// readout, with its head or without, for a model of seven errors. The table is refused with a line; or the values are
// refused with a reason; or they give a list that a decoder takes.
#include "cudaq/qec/decoding/readout.h"
#include "lib/qec/decoders/decoder_factories.h"
#include "unittests/fuzz/fuzz_input.h"

#include <algorithm>

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

namespace {

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.01) D0 D1\nerror(0.1) D1\nerror(1e-9) D0 D1 L0\n"
                               "error(1e-9) D1 D2\nerror(0) D2\nerror(0.02) D2\n";

void decode(const readout_table &table, std::span<const std::uint8_t> values, soft_kind kind) {
  const std::size_t of_soft = std::min(values.size(), table.soft_bytes(kind));
  std::vector<error_probability> list;
  std::string fault;
  const decode_status status =
      table.list_of({.soft = values.first(of_soft), .kind = kind, .leakage = values.subspan(of_soft)}, list, fault);
  require((status == decode_status::ok) == fault.empty(), "a refusal has a reason");
  require(list.size() <= table.max_errors(), "a list has at most as many errors as it may");
  for (const error_probability &one : list)
    require(one.error < 7 && one.error != 5 && one.probability >= 0 && one.probability <= 1, "an error of the model");
  if (status != decode_status::ok)
    return;
  std::vector<std::uint8_t> observables(1);
  const std::uint64_t events[] = {0, 2};
  require(make_decoder("bp-osd", kModel).instance->decode(events, observables, list) == decode_status::ok,
          "the shot is decoded");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  cudaq::realtime::test::fuzz_input input(data, size);
  const auto kind = static_cast<soft_kind>(input.take<std::uint8_t>() % 4u);
  const std::size_t count = input.take<std::uint8_t>();
  const std::span<const std::uint8_t> rest = input.rest();
  const std::span<const std::uint8_t> values = rest.first(std::min(count, rest.size()));
  const std::string text(reinterpret_cast<const char *>(rest.data()) + values.size(), rest.size() - values.size());
  readout_table_result table = read_readout_table(text, kModel);
  if (!table)
    require(table.error.starts_with("line "), "a refusal names the line: " + table.error);
  table = read_readout_table("cudaq-realtime-readout 1\nmodel 00000000\n" + text, kModel); // of another model
  require(!table, "a table of another model is refused");
  table = read_readout_table("cudaq-realtime-readout 1\nmodel 3740a469\n" + text, kModel);
  if (!table)
    require(table.error.starts_with("line "), "a refusal names the line: " + table.error);
  else
    decode(*table.instance, values, kind);
  return 0;
}
