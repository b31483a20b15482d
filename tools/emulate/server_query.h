// SPDX-License-Identifier: Apache-2.0
// Queries to a server before the run: how large its slots are, and what its decoders are called.
#pragma once

#include "lib/qec/decoding/qec_expected.h"
#include "tools/emulate/emulate.h"
#include "tools/emulate/link.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cudaq::realtime::tools {

struct query_answer {
  std::int32_t status = 0;
  std::vector<std::uint8_t> result;
};

/// Sends one request with the id `next_id`, and waits for its answer. Nothing: no answer in the shorter of 2 s and
/// --timeout, or one in a slot of another size that the link does not deliver. Throws api_error if no server listens.
std::optional<query_answer> query_server(link &to, const emulate_options &options, std::uint32_t &next_id,
                                         std::uint32_t function, std::span<const std::uint8_t> payload);
/// The payload of a query about decoder `id`, or about the one of qec_decode.
std::vector<std::uint8_t> about_decoder(std::optional<std::uint64_t> id);

/// The names of the decoders that the options use, if they are all the same: with settings, as make_decoder or a stream
/// takes it. "": the server does not say it, or they differ.
std::string query_name(link &to, const emulate_options &options, std::uint32_t &next_id);

/// What a decoder that only the server names may take here, as a hostile server names one that does not end.
inline constexpr std::chrono::seconds kServedCheckLimit{30};        ///< for the whole check
inline constexpr std::uint64_t kServedDecodeUs = 5'000'000;         ///< for one shot or window
inline constexpr std::uint64_t kServedDecoderBytes = 1'000'000'000; ///< estimated memory
/// The same decoder, whose decodes end after kServedDecodeUs. `name`: one that check_served_decoder takes.
std::string with_decode_limit(const std::string &name);

/// Fails if the answers of a decoder of this name, which a server gave, depend on time, or if it is not made here: a
/// plug-in, a list of heralds, or a network is a file that the server names; it is read only if the user names it, too,
/// as that of a server `in_this_process`.
cudaq::qec::realtime::expected<> check_served_decoder(const std::string &name, bool in_this_process = false);

/// After a query was sent through `to`: true if its answer, or a sign of it, had another size than --slot-size. Then
/// options.slot_size is that of the server, and `open` has made another link; its ids go on. Throws usage_error with
/// both sizes if the user has given a size, or if a request of `payload_bytes` does not fit.
bool take_slot_size_of_server(std::unique_ptr<link> &to, emulate_options &options, bool size_is_given,
                              std::size_t payload_bytes, const std::function<std::unique_ptr<link>()> &open);

/// Advice if nothing was answered over a network.
std::string size_advice(const emulate_options &options);

} // namespace cudaq::realtime::tools
