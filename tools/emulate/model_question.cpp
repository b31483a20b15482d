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

} // namespace

model_question ask_for_model(link &to, const emulate_options &o, const qec::shot_set &shots) {
  model_question question;
  const auto model = qec::parse_dem(shots.dem_text);
  if (model.failed()) // a set without a model
    return question;
  const qec::model_facts own{shots.num_detectors, shots.num_detectors, shots.num_observables,
                             qec::model_digest(*model)};
  const bool server = o.protocol == "server";
  const std::size_t count = server ? o.decoder_ids.size() : 1;
  to.ask_for_any_size(true);
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<std::uint8_t> payload;
    for (int byte = 0; server && byte < 8; ++byte)
      payload.push_back(static_cast<std::uint8_t>(o.decoder_ids[k] >> (8 * byte)));
    const auto patience = std::min(kPatienceNs, static_cast<std::uint64_t>(o.timeout_s * 1e9));
    const auto theirs = ask(to, question.sent, payload, patience);
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
  to.ask_for_any_size(false);
  return question;
}

} // namespace cudaq::realtime::tools
