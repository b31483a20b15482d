// SPDX-License-Identifier: Apache-2.0
#include "tools/emulate/model_question.h"

#include "lib/qec/decoding/dem.h"
#include "lib/qec/server/wire_requests.h"
#include "tools/common/api_objects.h"
#include "tools/common/clock.h"

#include <algorithm>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

/// A server that does not know the question may drop it: without an answer the run goes on after this time.
constexpr std::uint64_t kPatienceNs = 500'000'000;

std::string text_of(const qec::model_facts &m) {
  return fmt::format("{} detectors, {} observables, digest {:016x}", m.detectors, m.observables, m.digest);
}

std::optional<qec::model_facts> ask(link &to, std::uint32_t &next_id, std::span<const std::uint8_t> payload,
                                    std::uint64_t patience_ns) {
  const std::uint64_t begin = now_ns();
  const std::uint32_t id = next_id;
  bool sent = false;
  do {
    if (!sent && (sent = to.send(id, qec::kDescribeFunctionId, payload, begin)))
      ++next_id;
    if (const std::optional<link_answer> answer = to.receive(); answer && answer->header.request_id == id)
      return answer->header.status == 0 ? qec::read_model_facts(answer->result) : std::nullopt;
    if (!to.alive())
      throw api_error(to.end_text());
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  } while (now_ns() - begin < patience_ns);
  if (sent)
    to.give_up(id);
  return std::nullopt;
}

/// Asks decoder `id`, or the one of qec_decode.
std::optional<qec::model_facts> ask_decoder(link &to, const emulate_options &o, std::uint32_t &next_id,
                                            std::optional<std::uint64_t> id) {
  std::vector<std::uint8_t> payload;
  for (int byte = 0; id && byte < 8; ++byte)
    payload.push_back(static_cast<std::uint8_t>(*id >> (8 * byte)));
  to.ask_for_any_size(true);
  auto theirs = ask(to, next_id, payload, std::min(kPatienceNs, static_cast<std::uint64_t>(o.timeout_s * 1e9)));
  to.ask_for_any_size(false);
  return theirs;
}

} // namespace

model_question ask_for_stream(link &to, const emulate_options &o, const qec::model_facts &own) {
  model_question question;
  const std::uint64_t id = o.decoder_ids.front();
  const auto theirs = ask_decoder(to, o, question.sent, id);
  if (!theirs)
    return question;
  question.answered = true;
  if (theirs->bits_per_shot != 0)
    throw usage_error(fmt::format("decoder {} of the server decodes shots, not streams: its configuration needs "
                                  "`stream: true`",
                                  id));
  const std::string both = fmt::format("decoder {} of the server has another model: {} in a repetition; --dem has {}",
                                       id, text_of(*theirs), text_of(own));
  if (theirs->detectors != own.detectors || theirs->observables != own.observables)
    throw usage_error(both);
  if (theirs->digest != own.digest)
    question.note = both;
  return question;
}

model_question ask_for_model(link &to, const emulate_options &o, const qec::shot_set &shots) {
  model_question question;
  const auto model = qec::parse_dem(shots.dem_text);
  if (model.failed()) // a set without a model
    return question;
  const qec::model_facts own{shots.num_detectors, shots.num_detectors, shots.num_observables,
                             qec::model_digest(*model)};
  const bool server = o.protocol == "server";
  const std::size_t count = server ? o.decoder_ids.size() : 1;
  for (std::size_t k = 0; k < count; ++k) {
    const auto theirs = ask_decoder(to, o, question.sent, server ? std::optional(o.decoder_ids[k]) : std::nullopt);
    if (!theirs)
      break;
    question.answered = true;
    const std::string whose = server ? fmt::format("decoder {} of the server", o.decoder_ids[k]) : "the server";
    const std::string both = fmt::format("{} has another model than the shots: {}; {} has {}", whose, text_of(*theirs),
                                         shots.name, text_of(own));
    if ((server ? theirs->bits_per_shot : theirs->detectors) != own.detectors || theirs->observables != own.observables)
      throw usage_error(both);
    if (theirs->bits_per_shot == theirs->detectors && theirs->digest != own.digest)
      question.note = both;
  }
  return question;
}

} // namespace cudaq::realtime::tools
