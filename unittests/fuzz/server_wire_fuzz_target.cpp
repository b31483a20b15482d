// SPDX-License-Identifier: Apache-2.0
// The input is a list of requests to the decoding server: a byte that chooses the function, then its fields, or any
// payload. A small model of a decoder's stream says what each answer must be.
#include "lib/qec/server/decoding_server.h"
#include "unittests/fuzz/fuzz_input.h"
#include "unittests/qec/model_text.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;
using bytes = std::vector<std::uint8_t>;

constexpr unsigned kBits = 10; // detector k and observable k are flipped by one error: the answer is the shot
constexpr std::uint64_t kId = 3, kReadoutId = 4, kStreamId = 5;

std::unique_ptr<decoding_unit> transparent_unit() {
  std::string text;
  for (unsigned k = 0; k < kBits; ++k)
    text += "error(0.1) D" + std::to_string(k) + " L" + std::to_string(k) + "\n";
  return std::make_unique<decoding_unit>(make_decoder("lookup", text).instance, sparse_rows{}, kBits);
}

constexpr std::size_t kReadoutBits = 2, kValues = 3, kFlags = 5; ///< of a shot of kReadoutId

/// Measurements 1 and 2 are used, and flag 4.
std::unique_ptr<decoding_unit> readout_unit() {
  const std::string model = "error(0.1) D0 D1\nerror(0.05) D0 L0\nerror(0.1) D1\n";
  const std::string table = test::head_of_text("cudaq-realtime-readout 1", model) +
                            "measurements 3\nflags 5\ngaussian 0 12 3 2 0.5\nmisread 0 0.01 1 0\n"
                            "misread 2 0.01 2 0\nflag 4 2 2 0.5\n";
  auto unit = std::make_unique<decoding_unit>(make_decoder("bp-osd", model).instance, sparse_rows{}, kReadoutBits);
  unit->need_readout(std::make_unique<unit_readout>(std::move(read_readout_table(table, model).instance)));
  return unit;
}

/// The rules of docs/transport/server_wire.md, written once more.
struct stream_model {
  std::vector<bool> shot;
  unsigned sum = 0;
  int latched = 0;
  std::optional<std::uint64_t> expected;
  bool was_reset = false;
  std::uint32_t requests = 0;

  bool untouched() const { return !was_reset && !expected; }
  int enqueue(std::uint64_t counter, const std::vector<bool> &bits) {
    if (latched != 0)
      return latched;
    if (untouched() && counter > 1)
      return latched = 6;
    if (expected && counter != *expected)
      return latched = counter - *expected < (std::uint64_t{1} << 63) ? 6 : 2;
    if (shot.size() + bits.size() > kBits)
      return latched = 2;
    expected = counter + 1;
    shot.insert(shot.end(), bits.begin(), bits.end());
    for (std::size_t k = 0; shot.size() == kBits && k < kBits; ++k)
      sum ^= (shot[k] ? 1u : 0u) << k;
    if (shot.size() == kBits)
      shot.clear();
    return 0;
  }
};

struct exchange {
  std::int32_t status;
  bytes result;
};

exchange call(decoding_server &server, std::uint32_t function, const bytes &payload, std::size_t room,
              std::uint32_t number = 0) {
  bytes result(room + 8, 0xEE);
  server_answer now{-9999, 9999};
  const bytes exact(payload); // its end is the end of the allocation
  require(server.submit(function, exact, std::span(result).first(room),
                        {.generation = 0, .slot = 0, .request_id = number}, now, number),
          "without a queue it answers at once");
  require(now.bytes <= room && (now.status == 0 || now.bytes == 0), "a status comes without a result");
  for (std::size_t k = room; k < result.size(); ++k)
    require(result[k] == 0xEE, "nothing is written after the room for the answer");
  result.resize(now.bytes);
  return {now.status, result};
}

/// A request with an id and a time of its own. Some are sent twice: the answer is the same, and nothing else changes.
exchange call_counted(decoding_server &server, stream_model &model, std::uint32_t function, const bytes &payload,
                      std::size_t room) {
  const std::uint32_t number = ++model.requests;
  const exchange first = call(server, function, payload, room, number);
  if (number % 3 == 0) {
    const exchange again = call(server, function, payload, room, number);
    require(again.status == first.status && again.result == first.result, "a repeated request has the same answer");
  }
  return first;
}

void append(bytes &to, std::uint64_t value) {
  for (unsigned k = 0; k < 8; ++k)
    to.push_back(static_cast<std::uint8_t>(value >> (8 * k)));
}

void send_enqueue(decoding_server &server, stream_model &model, fuzz_input &input) {
  const std::uint64_t base = model.expected.value_or(0);
  const std::uint64_t counter = base + static_cast<std::uint64_t>(static_cast<std::int64_t>(input.take<std::int8_t>()));
  const std::size_t count = input.take<std::uint8_t>() % 24;
  bytes payload;
  for (const std::uint64_t number : {kId, counter, std::uint64_t{0}, std::uint64_t{count}})
    append(payload, number);
  std::vector<bool> bits;
  for (std::size_t at = 0; at < (count + 7) / 8; ++at) {
    payload.push_back(input.take<std::uint8_t>());
    for (unsigned k = 0; k < 8 && bits.size() < count; ++k)
      bits.push_back((payload.back() >> k & 1) != 0);
  }
  require(call_counted(server, model, kEnqueueFunctionId, payload, 64).status == model.enqueue(counter, bits),
          "enqueue");
}

void send_get(decoding_server &server, stream_model &model, fuzz_input &input) {
  const std::uint64_t wanted = input.take<std::uint8_t>();
  const std::size_t room = input.take<std::uint8_t>() % 4;
  const bool clear = input.take<std::uint8_t>() % 2 != 0;
  bytes payload;
  append(payload, kId);
  append(payload, wanted);
  payload.push_back(clear ? 1 : 0);
  const exchange got = call_counted(server, model, kGetCorrectionsFunctionId, payload, room);
  const std::size_t size = (wanted + 7) / 8;
  const int status = model.latched != 0                             ? model.latched
                     : wanted == 0 || wanted > kBits || size > room ? 2
                     : model.untouched()                            ? 6
                                                                    : 0;
  require(got.status == status, "get_corrections");
  if (status != 0)
    return;
  unsigned bits = 0;
  for (std::size_t k = 0; k < got.result.size(); ++k)
    bits |= static_cast<unsigned>(got.result[k]) << (8 * k);
  require(got.result.size() == size && bits == (model.sum & ((1u << wanted) - 1)), "the corrections");
  if (clear)
    model.sum = 0;
}

/// A request of enqueue_readout with arrays of any sizes.
struct readout_part {
  std::size_t bits, values, flags;
  unsigned kind;
  bytes payload;
  std::size_t first_value, first_flag;

  readout_part(fuzz_input &input, std::uint64_t id, std::uint64_t counter) {
    const auto sizes = input.take<std::uint8_t>(), more = input.take<std::uint8_t>();
    bits = sizes % 4;
    values = sizes / 4 % 8;
    flags = more % 8;
    kind = more / 8 % 4;
    for (const std::uint64_t number :
         {id, counter, std::uint64_t{bits}, std::uint64_t{values}, std::uint64_t{flags}, std::uint64_t{kind}})
      append(payload, number);
    first_value = payload.size() + (bits + 7) / 8;
    first_flag = first_value + (values * (kind == 0 ? 32 : kind == 1 ? 8 : 4) + 7) / 8;
    while (payload.size() < first_flag + (2 * flags + 7) / 8)
      payload.push_back(input.take<std::uint8_t>());
  }
};

/// Shots with a readout, in parts of any sizes, until a part is refused.
void send_readout(decoding_server &server, fuzz_input &input) {
  bytes reset;
  append(reset, kReadoutId);
  require(call(server, kResetFunctionId, reset, 0).status == 0, "a reset succeeds");
  std::size_t bits = 0, values = 0, flags = 0;
  unsigned kind_of_shot = 0;
  bool good = true; // each value and flag so far
  for (std::uint64_t counter = 1; !input.empty(); ++counter) {
    const readout_part part(input, kReadoutId, counter);
    bool accepted = part.kind < 3 && bits + part.bits <= kReadoutBits && values + part.values <= kValues &&
                    flags + part.flags <= kFlags && (part.values == 0 || values == 0 || part.kind == kind_of_shot);
    for (std::size_t k = 0; accepted && part.kind == 0 && k < part.values; ++k) {
      float value = 0;
      std::memcpy(&value, part.payload.data() + part.first_value + 4 * k, sizeof value);
      good = good && (values + k == 0 || std::isfinite(value));
    }
    for (std::size_t k = 0; accepted && k < part.flags; ++k)
      good = good && (part.payload[part.first_flag + k / 4] >> 2 * (k % 4) & 3) != 3;
    bits += part.bits;
    values += part.values;
    flags += part.flags;
    kind_of_shot = part.values != 0 ? part.kind : kind_of_shot;
    if (accepted && bits == kReadoutBits && part.bits != 0)
      accepted = good && values == kValues && flags == kFlags;
    const exchange got = call(server, kEnqueueReadoutFunctionId, part.payload, 8);
    require(got.status == (accepted ? 0 : 2), "enqueue_readout");
    if (!accepted)
      return;
    if (bits == kReadoutBits)
      bits = values = flags = 0;
  }
}

/// A stream of one detector, one value and one flag a round, commit and buffer 2.
std::unique_ptr<stream_decoder> chain_stream() {
  const std::string part = "detector(0) D0\nerror(0.01) D0 L0\nerror(0.01) D0\n",
                    round = part + "error(0.02) D0 D1 L0\nerror(1e-9) D0 D1\nshift_detectors(1) 1\n",
                    model = round + "repeat 3 {\n" + round + "}\n" + part;
  std::string table =
      test::head_of_text("cudaq-realtime-readout 1", model) + "measurements 4\nflags 4\ngaussian 0 12 3 2 0.5\n";
  for (const char *const line : {"misread 3 0 0 0\n", "misread 7 0 1 0\n", "misread 11 0 2 0\n", "misread 15 0 3 0\n",
                                 "flag 0 2 3 0.4\n", "flag 1 2 7 0.4\n", "flag 2 2 11 0.4\n", "flag 3 2 15 0.4\n"})
    table += line;
  return make_stream_decoder(model, {.decoder = "bp-osd", .commit = 2, .buffer = 2, .readout = table}).instance;
}

std::int32_t server_status_of(decode_status status) {
  return status == decode_status::ok ? 0 : status == decode_status::stream_misaligned ? 7 : 2;
}

/// The windows are built once.
struct stream_under_test {
  decoding_server server;
  std::unique_ptr<stream_decoder> oracle = chain_stream();

  stream_under_test() : server(setups()) {}
  static std::vector<decoder_setup> setups() {
    std::vector<decoder_setup> one;
    one.push_back({{.id = kStreamId}, std::make_unique<decoding_unit>(chain_stream(), 1)});
    return one;
  }
};

/// Rounds with values and flags, in parts of any sizes, until a part is refused or the stream has its tail.
void send_stream_readout(fuzz_input &input) {
  static stream_under_test stream;
  bytes reset, question;
  append(reset, kStreamId);
  require(call(stream.server, kResetFunctionId, reset, 0).status == 0, "a reset succeeds");
  stream.oracle->reset();
  for (const std::uint64_t number : {kStreamId, std::uint64_t{1}, std::uint64_t{0}, std::uint64_t{0}})
    append(question, number);
  bytes tail;
  append(tail, kStreamId);
  std::int32_t expected = 0;
  for (std::uint64_t counter = 1; !input.empty() && expected == 0; ++counter) {
    const bool is_last = input.take<std::uint8_t>() % 8 == 0;
    if (is_last) {
      append(tail, counter++);
      const bool has_head = stream.oracle->pushed_bits() != 0;
      require(call(stream.server, kBeginTailFunctionId, tail, 0).status == (has_head ? 0 : 7), "begin_tail");
      if (!has_head)
        return;
    }
    const readout_part part(input, kStreamId, counter);
    const std::span<const std::uint8_t> arrays = std::span(part.payload).subspan(48);
    const stream_values known{arrays.subspan(part.first_value - 48, part.first_flag - part.first_value), part.values,
                              static_cast<soft_kind>(part.kind), arrays.subspan(part.first_flag - 48), part.flags};
    decode_status status = decode_status::not_supported; // of an unknown kind
    if (part.kind < 3 && is_last && part.bits > 1)
      status = decode_status::stream_misaligned;
    else if (part.kind < 3)
      status = stream.oracle->push(arrays, is_last ? 0 : part.bits, known);
    if (status == decode_status::ok && is_last && part.bits == 1)
      status = stream.oracle->finish(arrays, 1);
    expected = server_status_of(status);
    require(call(stream.server, kEnqueueReadoutFunctionId, part.payload, 8).status == expected, "rounds with values");
    const exchange got = call(stream.server, kGetCommittedFunctionId, question, 24);
    require(got.status == expected, "get_committed");
    if (expected == 0)
      require(got.result.size() == 17 && got.result[0] == stream.oracle->committed_rounds() % 256 &&
                  got.result[16] == stream.oracle->observables()[0],
              "the frame of a stream with values");
    if (is_last)
      return;
  }
}

void send_any(decoding_server &server, stream_model &model, fuzz_input &input) {
  constexpr std::uint32_t kFunctions[] = {kEnqueueFunctionId, kGetCorrectionsFunctionId, kResetFunctionId,
                                          kOneShotFunctionId, kBeginTailFunctionId,      kGetCommittedFunctionId,
                                          kNameFunctionId,    kEnqueueReadoutFunctionId, kOneShotReadoutFunctionId};
  const auto choice = input.take<std::uint8_t>();
  const std::uint32_t function = choice < std::size(kFunctions) ? kFunctions[choice] : input.take<std::uint32_t>();
  const unsigned way = function == kEnqueueReadoutFunctionId ? input.take<std::uint8_t>() % 4 : 0;
  if (way != 0)
    return way == 1 ? send_stream_readout(input) : send_readout(server, input);
  const auto taken = input.bytes(input.take<std::uint8_t>());
  const bytes payload(taken.begin(), taken.end());
  const exchange got = call(server, function, payload, 64);
  if (function == kOneShotFunctionId)
    require(got.status >= 0 && got.status <= 6 && (got.status != 0 || got.result == payload), "qec_decode");
  else if (function == kOneShotReadoutFunctionId) // other decoders than that with a table refuse it
    require((got.status <= 12 && got.status >= 0) || got.status == -1 || got.status == -2, "qec_decode_readout");
  else
    require(got.status >= 0 && got.status < static_cast<std::int32_t>(kServerStatuses), "a status of the table");
  // What it did to the stream is not followed: a reset makes server and model equal again.
  bytes reset;
  append(reset, kId);
  require(call(server, kResetFunctionId, reset, 0).status == 0, "a reset succeeds");
  const std::uint32_t requests = model.requests;
  model = {};
  model.was_reset = true;
  model.requests = requests;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, std::min<std::size_t>(size, 4096));
  std::vector<decoder_setup> setups;
  setups.push_back({{.id = kId}, transparent_unit()});
  setups.push_back({{.id = kReadoutId}, readout_unit()});
  decoding_server server(std::move(setups));
  stream_model model;
  while (!input.empty()) {
    const auto kind = input.take<std::uint8_t>() % 4;
    if (kind == 3)
      send_any(server, model, input);
    else if (kind == 2)
      send_get(server, model, input);
    else
      send_enqueue(server, model, input);
  }
  return 0;
}
