// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/model_query.h"

#include "lib/qec/decoding/dem.h"
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/server/session/wire_requests.h"
#include "tools/common/api_objects.h"
#include "tools/emulate/server_query.h"

#include <fmt/ranges.h>

#include <initializer_list>

namespace cudaq::realtime::tools {
namespace {

std::string text_of(const qec::model_facts &m) {
  return fmt::format("{}, {}, digest {:016x}", qec::number_of(m.detectors, "detector"),
                     qec::number_of(m.observables, "observable"), m.digest);
}

constexpr std::uint64_t kNamedIds = 32;

bool is_unknown(const std::optional<query_answer> &answer) {
  return answer && answer->status == static_cast<std::int32_t>(qec::server_status::invalid_decoder);
}

/// The server does not list its ids, so the first ones are asked one after the other.
std::string unknown_decoder_text(link &to, const emulate_options &o, std::uint32_t &next_id, std::uint64_t id) {
  std::vector<std::uint64_t> known;
  for (std::uint64_t other = 0; other < kNamedIds; ++other) {
    const auto answer = query_server(to, o, next_id, qec::kDescribeFunctionId, about_decoder(other));
    if (answer && answer->status == 0)
      known.push_back(other);
  }
  return fmt::format("the server has no decoder {}; of the ids 0 to {} it has {}: give --decoder-ids as in its "
                     "configuration",
                     id, kNamedIds - 1, known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

/// Asks decoder `id`, or the one of qec_decode. Throws usage_error if the server has no decoder `id`.
std::optional<server_description> query_decoder(link &to, const emulate_options &o, std::uint32_t &next_id,
                                                std::optional<std::uint64_t> id) {
  std::optional<query_answer> answer;
  // With the readout; only with the server's facts; as an older server knows it.
  for (const std::uint8_t form : std::initializer_list<std::uint8_t>{3, 1, 0}) {
    std::vector<std::uint8_t> payload = about_decoder(id);
    if (id && form != 0)
      payload.insert(payload.end(), {form, 0, 0, 0, 0, 0, 0, 0});
    answer = query_server(to, o, next_id, qec::kDescribeFunctionId, payload);
    if (!id || !answer || answer->status != static_cast<std::int32_t>(qec::server_status::bad_request))
      break;
  }
  if (id && is_unknown(answer))
    throw usage_error(unknown_decoder_text(to, o, next_id, *id));
  const auto model = answer && answer->status == 0 ? qec::read_model_facts(answer->result) : std::nullopt;
  if (!model)
    return std::nullopt;
  return server_description{*model, qec::read_server_facts(answer->result), qec::read_readout_facts(answer->result)};
}

/// A decoder takes what its shots, or repetitions, have. `theirs`: nothing: an older server, which takes none, or one
/// whose slots are too small for the answer.
void check_readout(std::uint64_t id, const std::optional<qec::readout_facts> &theirs, const qec::readout_facts &own,
                   qec::soft_kind kind, bool is_stream) {
  const qec::readout_facts takes = theirs.value_or(qec::readout_facts{});
  const std::string decoder = fmt::format("decoder {} of the server", id);
  if (!own.any() && takes.any())
    throw usage_error(
        fmt::format("{} needs {} with each {}", decoder, takes.text(),
                    is_stream ? "repetition: give --readout" : "shot: give --readout, and --soft or --leakage"));
  if (!own.any())
    return;
  if (!theirs)
    throw usage_error(
        fmt::format("{} does not tell which soft values it takes: the server is of an earlier version, or its slots "
                    "have less than {} bytes",
                    decoder, CUDAQ_RPC_HEADER_SIZE + qec::kReadoutDescriptionBytes));
  if (!takes.any())
    throw usage_error(
        fmt::format("{} takes no soft values and no flags: its configuration needs the setting readout", decoder));
  const bool has_kind = takes.measurements == 0 || takes.takes(kind);
  if (takes.measurements != own.measurements || takes.flags != own.flags || !has_kind)
    throw usage_error(fmt::format("{} takes {}, the table of --readout {}{}", decoder, takes.text(), own.text(),
                                  has_kind ? "" : "; give another --soft_kind"));
}

} // namespace

std::optional<server_description> query_facts(link &to, const emulate_options &o, std::uint32_t &next_id) {
  auto theirs = query_decoder(to, o, next_id, o.decoder_ids.front());
  if (theirs && theirs->model.bits_per_shot != 0)
    throw usage_error(fmt::format("decoder {} of the server decodes shots, not streams: its configuration needs "
                                  "`stream: true`; without --rounds emulate plays shots",
                                  o.decoder_ids.front()));
  return theirs;
}

model_query compare_stream(const emulate_options &o, const std::optional<server_description> &theirs,
                           const qec::model_facts &own, const qec::readout_facts &readout) {
  model_query query;
  const std::uint64_t id = o.decoder_ids.front();
  if (!theirs)
    return query;
  query.answered = true;
  query.boot_id = theirs->server ? theirs->server->boot_id : 0;
  const qec::model_facts &model = theirs->model;
  const std::string both = fmt::format("decoder {} of the server has another model: {} in a repetition; --dem has {}",
                                       id, text_of(model), text_of(own));
  if (model.detectors != own.detectors || model.observables != own.observables)
    throw usage_error(both);
  check_readout(id, theirs->readout, readout, o.kind(), true);
  if (model.digest != own.digest)
    query.note = both;
  return query;
}

model_query query_model(link &to, const emulate_options &o, const qec::shot_set &shots, const recorded_readout *readout,
                        std::uint32_t first_id) {
  model_query query;
  query.sent = first_id;
  const auto parsed = qec::parse_dem(shots.dem_text);
  if (parsed.failed()) // a set without a model
    return query;
  const qec::model_facts own{shots.num_detectors, shots.num_detectors, shots.num_observables,
                             readout != nullptr ? readout->digest_with(qec::model_digest(*parsed))
                                                : qec::model_digest(*parsed)};
  const bool server = o.protocol == "server";
  const std::size_t count = server ? o.decoder_ids.size() : 1;
  for (std::size_t k = 0; k < count; ++k) {
    const auto theirs = query_decoder(to, o, query.sent, server ? std::optional(o.decoder_ids[k]) : std::nullopt);
    if (!theirs)
      break;
    query.answered = true;
    if (k == 0 && theirs->server)
      query.boot_id = theirs->server->boot_id;
    const qec::model_facts &model = theirs->model;
    if (server && model.bits_per_shot == 0)
      throw usage_error(fmt::format("decoder {} of the server decodes a stream, not shots: play to it with --rounds",
                                    o.decoder_ids[k]));
    const std::string whose = server ? fmt::format("decoder {} of the server", o.decoder_ids[k]) : "the server";
    const std::string both = fmt::format("{} has another model than the shots: {}; {} has {}", whose, text_of(model),
                                         shots.name, text_of(own));
    if ((server ? model.bits_per_shot : model.detectors) != own.detectors || model.observables != own.observables)
      throw usage_error(both);
    if (server)
      check_readout(o.decoder_ids[k], theirs->readout, readout != nullptr ? readout->facts() : qec::readout_facts{},
                    o.kind(), false);
    if (model.bits_per_shot == model.detectors && model.digest != own.digest)
      query.note = both;
  }
  return query;
}

std::string restart_note(link &to, const emulate_options &o, const model_query &before, std::uint32_t next_id) {
  if (before.boot_id == 0 || !to.alive())
    return "";
  try {
    const auto now = query_decoder(to, o, next_id, o.decoder_ids.front());
    if (now && now->server && now->server->boot_id != before.boot_id)
      return "the server was restarted during the run: what it had of shots and corrections is gone";
    return now && now->server && now->server->ends ? "the server ends" : "";
  } catch (const api_error &) { // it has ended
    return "";
  } catch (const usage_error &) { // it was restarted without this decoder
    return "the server was restarted during the run, and has not the same decoders any more";
  }
}

} // namespace cudaq::realtime::tools
