// SPDX-License-Identifier: Apache-2.0
// The input is the text of a file of heralds, with its head or without, for a model of seven errors. It is refused with
// a line, or a decoder that is made of it decodes a shot in which all detectors have fired.
#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/heralds/heralded_decoder.h"
#include "unittests/fuzz/fuzz_input.h"

#include <numeric>

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

namespace {

constexpr const char *kModel = "error(0.1) D0 L0\nerror(0.01) D0 D1\nerror(0.1) D1\nerror(1e-9) D0 D1 L0\n"
                               "error(1e-9) D1 D2\nerror(0) D2\nerror(0.02) D2\n";

void check(const herald_list &list) {
  std::size_t heralds = 0, others = 0;
  for (const std::uint64_t meaning : list.meaning) {
    const bool is_herald = (meaning & herald_list::kHerald) != 0;
    require((meaning & ~herald_list::kHerald) == (is_herald ? heralds : others), "both are counted from 0");
    ++(is_herald ? heralds : others);
  }
  require(others == 3 && heralds == list.end.size(), "each detector has a meaning");
  for (std::size_t k = 0; k < heralds; ++k)
    for (const error_probability &one : list.errors_of(k))
      require(one.error < 7 && one.error != 5 && one.probability >= 0 && one.probability <= 1, "an error of the model");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const decoder_model model(kModel);
  const std::string text(reinterpret_cast<const char *>(data), size);
  auto list = parse_heralds(text, model);
  if (list.failed())
    require(list.text().starts_with("line "), "a refusal names the line: " + list.text());
  list = parse_heralds("cudaq-realtime-heralds 1\nmodel 00000000\n" + text, model); // of another model
  require(list.failed(), "a list of another model is refused");
  list = parse_heralds("cudaq-realtime-heralds 1\nmodel 3740a469\n" + text, model);
  if (list.failed()) {
    require(list.text().starts_with("line "), "a refusal names the line: " + list.text());
    return 0;
  }
  check(*list);
  const std::size_t detectors = list->meaning.size();
  const decoder_result made = make_heralded_decoder(std::move(*list), make_decoder("bp-osd", kModel).instance, model);
  require(static_cast<bool>(made), "bp-osd takes each list that was read: " + made.error);
  std::vector<std::uint64_t> events(detectors);
  std::iota(events.begin(), events.end(), std::uint64_t{0});
  std::vector<std::uint8_t> observables(1);
  require(made.instance->decode(events, observables) == decode_status::ok, "the shot is decoded");
  return 0;
}
