// SPDX-License-Identifier: Apache-2.0
// The input is the name of a decoder with its settings: "bp-osd:osd_order=7". It is refused with a text, or its parts
// are the text; a decoder that is made of it decodes a shot. Plug-ins are not loaded.
#include "cudaq/qec/decoding/decoder.h"

#include "lib/qec/decoders/decoder_name.h"
#include "unittests/fuzz/fuzz_input.h"

#include <array>

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

namespace {

constexpr std::string_view kModel = "error(0.1) D0 L0\nerror(0.1) D0 D1\nerror(0.2) D1 D2\nerror(0.1) D2\n";

void decode(std::string_view text) {
  const decoder_result made = make_decoder(text, kModel);
  if (!made) {
    require(!made.error.empty(), "a refusal has a text");
    return;
  }
  const std::array<std::uint64_t, 2> events{0, 2};
  std::array<std::uint8_t, 1> observables{};
  const decode_status status = made.instance->decode(events, observables);
  require(status == decode_status::ok || status == decode_status::deadline || status == decode_status::not_converged,
          "a shot is decoded, as far as the settings allow");
  require(observables[0] <= 1, "only bits of observables are set");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  auto read = decoder_name::parse(text);
  if (read.failed()) {
    require(read.text().starts_with("decoder \"" + text + "\": "), "a refusal names the decoder");
    return 0;
  }
  const bool is_race = text.starts_with("race:"); // its members stand without a key
  std::string again = read->name;
  char separator = ':';
  for (const auto &[key, value] : read->settings.rest()) {
    again += separator + (is_race && separator == ':' ? value : key + "=" + value);
    separator = ',';
    require(read->settings.text(key, "another") == value, "each setting is found by its key");
  }
  require(again == text, "the parts are the text");
  require(read->settings.rest().empty() && read->settings.check().ok(), "all settings were asked for");
  if (!read->is_plugin() &&
      !(is_race && (text.find('/') != std::string::npos || text.find(".so") != std::string::npos)))
    decode(text);
  return 0;
}
