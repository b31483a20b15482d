// SPDX-License-Identifier: Apache-2.0
// The input is a request of the pipeline: bytes that choose the configuration, the schema and the length, then the
// payload. Every request is converted to detection events, or refused; a shot survives every conversion.
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/stages/input_schema.h"
#include "unittests/fuzz/fuzz_input.h"

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;
using bytes = std::vector<std::uint8_t>;

/// The configurations of the pipeline, chosen by name, or a small one.
decoding_config chosen_config(cudaq::realtime::test::fuzz_input &input) {
  const auto shape = input.take<std::uint8_t>();
  if (shape == 'n') {
    const std::string_view name = input.text_until("\n");
    const decoding_config *found = find_decoding_config(name);
    require(found == nullptr || found->name == name, "a configuration is found by its own name only");
    return found != nullptr ? *found : kDecodingConfigs[0];
  }
  return {"small", 3u + 2 * (shape % 2u), 1u + (shape >> 1) % 7u, (shape & 0x80) != 0 ? 'X' : 'Z', 4096};
}

void check_events(const input_mapping &mapping, const bytes &packed) {
  std::vector<std::uint64_t> events(mapping.config().num_detectors());
  const unpack_result unpacked = unpack_events(packed, mapping.config().num_detectors(), events);
  require(unpacked.status == decode_status::ok, "accepted requests name only detectors of the code");
  bytes again(packed.size());
  require(pack_events(std::span(events).first(unpacked.count), mapping.config().num_detectors(), again) ==
                  decode_status::ok &&
              again == packed,
          "events survive packing");
}

void check_shot(const input_mapping &mapping, const bytes &payload, const bytes &packed) {
  check_events(mapping, packed);
  bytes written(mapping.payload_bytes(), 0xEE), again(packed.size());
  require(mapping.write(packed, written) == decode_status::ok, "events can be written as a request");
  require(mapping.read(written, again) == decode_status::ok && again == packed, "events survive a request");
  require(mapping.schema() == input_schema::int32_measurements || written == payload,
          "a request of events has one form only");
}

void check_measurements(const input_mapping &mapping, const bytes &record) {
  bytes payload(mapping.payload_bytes()), packed(mapping.config().packed_input_bytes());
  const decode_status written = mapping.write_measurements(record, payload);
  if (mapping.schema() != input_schema::int32_measurements)
    return require(written == decode_status::bad_detector_index, "only one schema has measurements");
  require((written == decode_status::buffer_too_small) == (record.size() < mapping.record_bytes()),
          "a record is refused if it is too short, and only then");
  if (written == decode_status::ok) {
    require(mapping.read(payload, packed) == decode_status::ok, "measurements are a shot");
    check_events(mapping, packed);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  cudaq::realtime::test::fuzz_input input(data, size);
  const decoding_config config = chosen_config(input);
  const auto mode = input.take<std::uint8_t>();
  const input_mapping mapping(static_cast<input_schema>(mode % 3), config);
  const auto given = input.rest();
  bytes payload(given.begin(), given.end());
  check_measurements(mapping, payload);
  if ((mode & 4) == 0) // mostly requests of the right length; small values, so that many are shots
    payload.resize(mapping.payload_bytes());
  if ((mode & 8) == 0 && mapping.schema() == input_schema::int32_measurements)
    for (std::size_t k = 0; k < payload.size(); ++k)
      payload[k] = k % 4 == 0 ? payload[k] & 1 : 0;
  bytes packed(config.packed_input_bytes(), 0xEE);
  const decode_status status = mapping.read(payload, packed);
  if (payload.size() != mapping.payload_bytes())
    require(status == (payload.size() < mapping.payload_bytes() ? decode_status::buffer_too_small
                                                                : decode_status::bad_detector_index),
            "another length is refused");
  else if (status == decode_status::ok)
    check_shot(mapping, payload, packed);
  else
    require(status == decode_status::bad_detector_index, "a request that is no shot is refused");
  return 0;
}
