// SPDX-License-Identifier: Apache-2.0
#include "tools/decode/decode_picture.h"

#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/decoding/split_errors/component_errors.h"
#include "lib/qec/decoding/split_errors/decompose_errors.h"
#include "lib/qec/server/model_detectors.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <utility>

namespace cudaq::realtime::tools {
namespace {

using qec::number_of;

constexpr std::size_t kMaxDetectors = 20'000;

/// The decoder, with the setting edges=1 if it tells nothing without it.
std::unique_ptr<qec::decoder> telling_decoder(const std::string &name, const qec::decoder_model &model) {
  for (const std::string &one : {name, qec::with_setting(name, "edges", "1")})
    if (qec::chosen_decoder made = qec::choose_decoder(one, model);
        made && (made.instance->gives_errors() || made.instance->gives_edges()))
      return std::move(made.instance);
  throw usage_error(fmt::format("--svg: --decoder {} gives neither errors nor edges of its correction; pymatching, "
                                "bp-osd and relay-bp do",
                                name));
}

/// The targets that occur in an odd number of lists.
void add_targets(std::vector<std::uint64_t> &sum, std::span<const std::uint64_t> more) {
  std::vector<std::uint64_t> result;
  std::ranges::set_symmetric_difference(sum, more, std::back_inserter(result));
  sum = std::move(result);
}

} // namespace

decode_picture::decode_picture(const decode_options &o, const std::string &dem_text) : options_(o), model_(dem_text) {
  if (o.predecoder != "auto") {
    auto made = qec::make_predecoder(o.predecoder, model_);
    if (made.failed())
      throw usage_error("--predecoder: " + made.text());
    if (!is_passthrough(**made))
      predecoder_ = std::move(*made);
  }
  if (const auto errors = model_.errors(); errors.ok() && (*errors)->num_detectors > kMaxDetectors)
    throw usage_error(fmt::format("--svg: {} has {}, and a picture at most {}", o.data.dem,
                                  number_of((*errors)->num_detectors, "detector"), kMaxDetectors));
  const auto places = qec::detectors_of(model_, "");
  if (places.failed())
    throw usage_error("--svg: " + o.data.dem + ": " + places.text());
  for (const qec::model_detector &one : places->all) {
    if (!one.has_place())
      throw usage_error(fmt::format("--svg: detector D{} of {} has no coordinates x, y, t: its place is not known",
                                    detectors_.size(), o.data.dem));
    detectors_.push_back({one.x, one.y, one.time, false});
  }
  if (!o.heralds.empty()) {
    auto list = qec::load_heralds(o.heralds, {}, model_);
    if (list.failed())
      throw usage_error("--heralds: " + list.text());
    heralds_ = std::move(*list);
  }
  decoder_ = telling_decoder(
      o.heralds.empty() ? o.decoder : std::string(qec::with_setting(o.decoder, "heralds", o.heralds)), model_);
  if (decoder_->num_detectors() != (heralds_ ? heralds_->meaning.size() : detectors_.size()))
    throw usage_error("--svg: the heralds of the decoder's name are not known here; name the file by --heralds");
}

void decode_picture::offer(std::uint64_t shot, std::span<const std::uint8_t> events,
                           qec::shot_probabilities probabilities, bool is_failure) {
  const std::string &wanted = options_.svg_shot;
  if (shot_ || !(wanted == "event"   ? std::ranges::any_of(events, [](std::uint8_t byte) { return byte != 0; })
                 : wanted == "wrong" ? is_failure
                                     : wanted == std::to_string(shot)))
    return;
  shot_ = shot;
  is_failure_ = is_failure;
  probabilities_.assign(probabilities.begin(), probabilities.end());
  static_cast<void>(qec::for_each_event(events, decoder_->num_detectors(), [this](std::uint64_t event) {
    events_.push_back(event);
    if (const std::uint64_t meaning = in_model(event); (meaning & qec::herald_list::kHerald) != 0)
      fired_heralds_.push_back(event);
    else
      detectors_[static_cast<std::size_t>(meaning)].fired = true;
  }));
}

/// In the middle of the detectors that its errors flip, at the first of their times.
std::optional<plotted_herald> decode_picture::place_of(std::uint64_t herald) const {
  const qec::detector_error_model &model = **model_.errors();
  plotted_herald mark{0, 0, 0, fmt::format("D{}", herald)};
  std::vector<std::uint64_t> near;
  const auto number = static_cast<std::size_t>(in_model(herald) & ~qec::herald_list::kHerald);
  for (const qec::dem_component &one : model.components)
    if (std::ranges::any_of(heralds_->errors_of(number),
                            [&one](const qec::error_probability &listed) { return listed.error == one.mechanism; }))
      near.insert(near.end(), model.detectors_of(one).begin(), model.detectors_of(one).end());
  if (near.empty())
    return std::nullopt;
  for (std::size_t k = 0; k < near.size(); ++k) {
    const plotted_detector &at = detectors_[static_cast<std::size_t>(near[k])];
    mark.x += at.x / static_cast<double>(near.size());
    mark.y += at.y / static_cast<double>(near.size());
    mark.time = k == 0 ? at.time : std::min(mark.time, at.time);
  }
  return mark;
}

void decode_picture::add_edges(std::span<const qec::correction_edge> edges, correction &to) const {
  // What matching was made of: the likeliest component with these detectors.
  auto parts = qec::component_errors(**model_.errors());
  std::map<std::vector<std::uint64_t>, const qec::dem_component *> likeliest;
  if (parts.ok()) {
    parts = qec::decompose_errors(std::move(*parts));
    for (const qec::dem_component &one : parts->components) {
      const auto detectors = parts->detectors_of(one);
      const qec::dem_component *&best = likeliest[{detectors.begin(), detectors.end()}];
      if (best == nullptr || one.probability > best->probability)
        best = &one;
    }
  }
  std::vector<std::uint64_t> sum;
  for (const auto &[first, second] : edges) {
    std::vector<std::uint64_t> detectors{in_model(first)};
    if (second != qec::kBoundary)
      detectors.push_back(in_model(second));
    std::ranges::sort(detectors);
    const auto found = likeliest.find(detectors);
    const bool is_known = found != likeliest.end();
    if (is_known)
      add_targets(sum, parts->observables_of(*found->second));
    to.flips.push_back(is_known && found->second->observables != 0);
    to.errors.push_back(std::move(detectors));
  }
  // Else the probabilities of the shot, or of errors that the model has twice, have chosen another one.
  if (sum != to.observables)
    to.flips.assign(to.flips.size(), false);
}

void decode_picture::add_errors(std::span<const std::uint64_t> errors, correction &to) const {
  const qec::detector_error_model &model = **model_.errors();
  std::map<std::uint64_t, std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>>> whole;
  for (const qec::dem_component &one : model.components)
    if (std::ranges::binary_search(errors, std::uint64_t{one.mechanism})) {
      add_targets(whole[one.mechanism].first, model.detectors_of(one));
      add_targets(whole[one.mechanism].second, model.observables_of(one));
    }
  for (auto &[number, targets] : whole)
    if (!targets.first.empty()) {
      to.errors.push_back(std::move(targets.first));
      to.flips.push_back(!targets.second.empty());
    }
}

/// Leaves the residual in `events`. What the predecoder has found flipped.
std::vector<std::uint64_t> decode_picture::predecode(std::vector<std::uint64_t> &events) const {
  const qec::predecoder_layout &layout = predecoder_->layout();
  std::vector<std::uint8_t> shot(layout.input_bytes());
  std::vector<std::uint64_t> output((layout.bytes() + 7) / 8), flipped;
  static_cast<void>(qec::pack_events(events, layout.num_detectors, shot));
  if (predecoder_->run(shot, output) != qec::decode_status::ok)
    return {}; // all events are left
  const auto bytes = std::as_bytes(std::span<const std::uint64_t>(output));
  const auto bits = [bytes](std::size_t offset, std::uint64_t count, std::vector<std::uint64_t> &to) {
    to.clear();
    static_cast<void>(qec::for_each_event(
        {reinterpret_cast<const std::uint8_t *>(bytes.data()) + offset, static_cast<std::size_t>((count + 7) / 8)},
        count, [&to](std::uint64_t k) { to.push_back(k); }));
  };
  bits(layout.dense_offset(), layout.num_detectors, events);
  bits(layout.frame_offset(), layout.num_observables, flipped);
  return flipped;
}

decode_picture::correction decode_picture::decode() const {
  correction found;
  found.events = events_;
  const auto flipped = predecoder_ ? predecode(found.events) : std::vector<std::uint64_t>{};
  std::vector<std::uint8_t> bytes(decoder_->observable_bytes());
  std::vector<std::uint64_t> errors(static_cast<std::size_t>(decoder_->num_errors()));
  std::vector<qec::correction_edge> edges(errors.empty() ? static_cast<std::size_t>(decoder_->num_detectors()) : 0);
  qec::decode_details details{.edges = edges, .errors = errors};
  const qec::decode_status status = decoder_->decode(found.events, bytes, probabilities_, &details);
  if (!details.has_solution) {
    found.failure = qec::decode_status_text(status, decoder_->fault());
    return found;
  }
  static_cast<void>(qec::for_each_event(bytes, decoder_->num_observables(),
                                        [&found](std::uint64_t k) { found.observables.push_back(k); }));
  if (errors.empty())
    add_edges(std::span(edges).first(details.num_edges), found);
  else
    add_errors(std::span(errors).first(details.num_errors), found);
  add_targets(found.observables, flipped);
  return found;
}

std::string decode_picture::svg() const {
  if (!shot_)
    return "";
  const correction found = decode();
  std::vector<plotted_error> errors;
  for (std::size_t k = 0; k < found.errors.size(); ++k)
    errors.push_back({{found.errors[k].begin(), found.errors[k].end()}, found.flips[k]});
  std::vector<plotted_herald> heralds;
  for (const std::uint64_t herald : fired_heralds_)
    if (const auto mark = place_of(herald))
      heralds.push_back(*mark);
  std::string title = fmt::format("Shot {}, {}: {}, ", *shot_, decoder_->name(),
                                  number_of(events_.size() - fired_heralds_.size(), "event"));
  title += fired_heralds_.empty() ? "" : number_of(fired_heralds_.size(), "herald") + ", ";
  if (found.failure.empty()) {
    if (predecoder_)
      title += fmt::format("{} left by {}, ", found.events.size(), predecoder_->name());
    title += fmt::format("{}{}; it flips ", number_of(errors.size(), "error"), predecoder_ ? "" : " of the correction");
    for (std::size_t k = 0; k < found.observables.size(); ++k)
      title += fmt::format("{}L{}", k == 0 ? "" : ", ", found.observables[k]);
    title += found.observables.empty() ? "no observable" : "";
  } else {
    title += "without an answer: " + found.failure;
  }
  auto detectors = detectors_;
  for (std::size_t d = 0; predecoder_ && d < detectors.size(); ++d) {
    const bool is_left = std::ranges::binary_search(found.events, std::uint64_t{d});
    detectors[d].removed = detectors[d].fired && !is_left;
    detectors[d].made = !detectors[d].fired && is_left;
  }
  const std::string plot = correction_plot(detectors, errors, title + (is_failure_ ? ", which is wrong" : ""), heralds);
  return plot.empty() ? "" : svg_file(plot);
}

} // namespace cudaq::realtime::tools
