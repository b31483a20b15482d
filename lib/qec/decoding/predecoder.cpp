// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/predecoder.h"

#include "lib/qec/decoding/detector_graph.h"
#include "lib/qec/decoding/learned/learned_predecoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

class passthrough_predecoder final : public predecoder {
public:
  explicit passthrough_predecoder(predecoder_layout layout) : predecoder(layout) {}
  const char *name() const noexcept override { return "passthrough"; }

protected:
  std::uint32_t residual_of(std::span<const std::uint64_t> fired, std::span<std::uint64_t>,
                            std::span<std::uint64_t> residual) noexcept override {
    std::copy(fired.begin(), fired.end(), residual.begin());
    return 0;
  }
};

class local_predecoder final : public predecoder {
public:
  local_predecoder(detector_graph graph, predecoder_layout layout) : predecoder(layout), graph_(std::move(graph)) {}
  const char *name() const noexcept override { return "local"; }

protected:
  std::uint32_t residual_of(std::span<const std::uint64_t> fired, std::span<std::uint64_t> frame,
                            std::span<std::uint64_t> residual) noexcept override {
    const detector_graph_view graph = graph_.view();
    std::uint32_t matched = 0;
    for (std::size_t at = 0; at < fired.size(); ++at)
      for (std::uint64_t word = fired[at]; word != 0; word &= word - 1) {
        const int bit = std::countr_zero(word);
        const local_decision decision =
            decide_locally(graph, fired.data(), static_cast<std::uint32_t>(at * 64) + static_cast<std::uint32_t>(bit));
        if (!decision.matched)
          residual[at] |= std::uint64_t{1} << bit;
        if (!decision.toggles)
          continue;
        ++matched;
        for (std::uint32_t i = graph.list_first[decision.observables]; i < graph.list_first[decision.observables + 1];
             ++i)
          frame[graph.lists[i] / 64] ^= std::uint64_t{1} << (graph.lists[i] % 64);
      }
    return matched;
  }

private:
  detector_graph graph_;
};

} // namespace

predecoder::predecoder(predecoder_layout layout) : layout_(layout), fired_(layout.dense_words()) {}

decode_status predecoder::run(std::span<const std::uint8_t> shot, std::span<std::uint64_t> output) noexcept {
  if (output.size_bytes() < layout_.bytes())
    return decode_status::buffer_too_small;
  auto *const base = reinterpret_cast<std::uint8_t *>(output.data());
  predecoder_header header{};
  const auto set_status = [&](decode_status status) {
    header.status = static_cast<std::int32_t>(status);
    std::memcpy(base, &header, sizeof(header));
    return status;
  };
  const std::size_t bytes = layout_.input_bytes();
  if (shot.size() < bytes)
    return set_status(decode_status::buffer_too_small);
  if (!fired_.empty())
    fired_.back() = 0; // the shot may fill only a part of the last word
  std::ranges::copy(shot.first(bytes), reinterpret_cast<std::uint8_t *>(fired_.data()));
  const std::uint32_t tail = layout_.num_detectors % 8;
  if ((tail != 0 && shot[bytes - 1] >> tail != 0) ||
      std::any_of(shot.begin() + static_cast<std::ptrdiff_t>(bytes), shot.end(), [](std::uint8_t b) { return b != 0; }))
    return set_status(decode_status::bad_detector_index);

  const auto frame = output.subspan(layout_.frame_offset() / 8, layout_.frame_words());
  const auto residual = output.subspan(layout_.dense_offset() / 8, layout_.dense_words());
  std::fill(frame.begin(), frame.end(), 0);
  std::fill(residual.begin(), residual.end(), 0);
  header.matched = residual_of(fired_, frame, residual);
  auto *const events = reinterpret_cast<std::uint32_t *>(base + layout_.events_offset());
  for (std::size_t at = 0; at < residual.size(); ++at) {
    header.input_events += static_cast<std::uint32_t>(std::popcount(fired_[at]));
    for (std::uint64_t word = residual[at]; word != 0; word &= word - 1)
      events[header.num_events++] =
          static_cast<std::uint32_t>(at * 64) + static_cast<std::uint32_t>(std::countr_zero(word));
  }
  return set_status(decode_status::ok);
}

expected<std::unique_ptr<predecoder>> make_predecoder(std::string_view name, const decoder_model &given) {
  if (is_learned_predecoder(name))
    return make_learned_predecoder(std::string(learned_predecoder_file(name)), given);
  if (name != "local" && name != "passthrough")
    return reason("unknown predecoder \"" + std::string(name) + "\": known are local, passthrough, model=FILE");
  const auto errors = given.errors();
  if (errors.failed())
    return reason(std::string(name) + " predecoder: " + errors.text());
  const detector_error_model &model = **errors;
  if (name == "passthrough")
    return make_passthrough_predecoder(model.num_detectors, model.num_observables);
  const predecoder_layout layout{static_cast<std::uint32_t>(model.num_detectors),
                                 static_cast<std::uint32_t>(model.num_observables)};
  expected<detector_graph> graph = detector_graph::from_dem(model);
  if (graph.failed())
    return reason("local predecoder: " + graph.text());
  return std::make_unique<local_predecoder>(std::move(*graph), layout);
}

expected<std::unique_ptr<predecoder>> make_passthrough_predecoder(std::uint64_t detectors, std::uint64_t observables) {
  if (std::max(detectors, observables) > UINT32_MAX)
    return reason("passthrough predecoder: a shot has more than 2^32 - 1 detectors or observables");
  return std::make_unique<passthrough_predecoder>(
      predecoder_layout{static_cast<std::uint32_t>(detectors), static_cast<std::uint32_t>(observables)});
}

expected<> check_predecoder_before(std::string_view name, std::string_view decoder) {
  if (name == "passthrough" || decoder == "pymatching")
    return {};
  return reason("the predecoder " + std::string(name) + " runs before the decoder pymatching only, not before " +
                std::string(decoder) +
                ": it makes more logical errors than a decoder alone; leave it out "
                "(share/doc/cudaq-realtime/docs/predecoding.md)");
}

} // namespace cudaq::qec::realtime
