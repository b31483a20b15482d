// SPDX-License-Identifier: Apache-2.0
// Makes stream decoders: checks the options and the model.
#include "cudaq/qec/decoding/stream.h"

#include "lib/qec/decoders/stream_settings.h"
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/stream/code_distance.h"
#include "lib/qec/stream/repeating_model.h"
#include "lib/qec/stream/stream_engine.h"
#include "lib/qec/stream/stream_factory.h"
#include "lib/qec/stream/window_set.h"
#include "lib/qec/stream/worker_pool.h"

#include <algorithm>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

/// The repetitions of the model that is searched for the distance of the code, and for what no window can take.
constexpr std::uint64_t kFewRepetitions = 3;

constexpr std::uint64_t kMaxRounds = std::uint64_t{1} << 20; ///< of a window
constexpr std::uint64_t kQueueRounds = 4096, kMaxQueueRounds = std::uint64_t{1} << 30;

struct window_sizes {
  std::uint64_t commit, buffer;
  std::string where_from; ///< for the description
};

window_sizes sizes_or_throw(const repeating_model &model, const stream_options &options) {
  const auto short_model = model.unrolled(kFewRepetitions);
  if (short_model.failed())
    throw stream_error(short_model.text());
  for (const dem_component &c : short_model->components)
    if (c.detectors == 0 && c.probability > 0.5)
      throw stream_error("line " + std::to_string(c.line) +
                         ": a component without detectors and a probability above 1/2 flips observables in every "
                         "repetition; no window can take it");
  std::uint64_t distance = 0;
  if (options.commit == 0 || options.buffer == 0) {
    distance = code_distance(*short_model);
    if (distance == 0)
      throw stream_error("the distance of the code is not known (no error chain of at most two detectors an error "
                         "flips an observable): give commit and buffer in rounds");
  }
  window_sizes sizes{options.commit != 0 ? options.commit : distance,
                     options.buffer != 0 ? options.buffer : std::max(distance, model.reach()),
                     distance != 0 ? " (distance " + std::to_string(distance) + ")" : ""};
  if (sizes.commit > kMaxRounds || sizes.buffer > kMaxRounds)
    throw stream_error("commit and buffer are at most " + std::to_string(kMaxRounds) + " rounds");
  if (sizes.buffer < model.reach())
    throw stream_error("buffer " + std::to_string(sizes.buffer) + " is less than the " + std::to_string(model.reach()) +
                       " rounds that one error reaches over");
  return sizes;
}

std::uint64_t queue_or_throw(const repeating_model &model, const window_layout &layout, bool has_workers,
                             std::uint64_t wanted, std::uint64_t push_bits) {
  const std::uint64_t least = stream_engine::least_rounds(layout) + model.body().size();
  if (!has_workers)
    return least;
  if (wanted != 0 && (wanted < least || wanted > kMaxQueueRounds))
    throw stream_error("queue_rounds " + std::to_string(wanted) + ": expected " + std::to_string(least) + " to " +
                       std::to_string(kMaxQueueRounds) + " with these windows");
  const std::uint64_t repetitions = (push_bits + model.body_detectors() - 1) / model.body_detectors();
  return wanted != 0 ? wanted : std::max({kQueueRounds, 4 * least, least + repetitions * model.body().size()});
}

stream_result made_or_throw(const stream_source &source, std::uint64_t push_bits) {
  const stream_options &options = source.options;
  const repeating_model &model = source.model;
  const window_sizes sizes = sizes_or_throw(model, options);
  std::shared_ptr<worker_pool> pool = std::static_pointer_cast<worker_pool>(options.pool);
  if (pool == nullptr && options.workers != 0) {
    auto own = worker_pool::make(options.workers);
    if (own.failed())
      throw stream_error(own.text());
    pool = std::move(*own);
  }
  const std::size_t threads = pool == nullptr        ? 1
                              : options.workers != 0 ? std::min(options.workers, pool->count())
                                                     : pool->count();
  window_layout layout{sizes.commit, sizes.buffer, false};
  const auto windows = [&](bool parallel) {
    layout.parallel = parallel;
    if (parallel && sizes.commit < model.reach())
      throw no_parallel_windows("commit " + std::to_string(sizes.commit) + " is less than the " +
                                std::to_string(model.reach()) +
                                " rounds that one error reaches over, so windows cannot be parallel");
    return window_set(model, source.heralds, source.readout, options.decoder, layout, threads);
  };
  const auto chosen = [&] {
    if (options.mode != stream_mode::automatic)
      return windows(options.mode == stream_mode::parallel);
    try {
      return windows(threads > 1);
    } catch (const no_parallel_windows &) {
      return windows(false);
    }
  };
  window_set made = chosen();
  const std::uint64_t queue = queue_or_throw(model, layout, pool != nullptr, options.queue_rounds, push_bits);
  const std::string &reason = made.choice().reason;
  const std::string description =
      "commit " + std::to_string(sizes.commit) + " and buffer " + std::to_string(sizes.buffer) + " rounds" +
      sizes.where_from + "; a repetition has " + number_of(model.body_detectors(), "detector") + " in " +
      number_of(model.body().size(), "round") + "; " + made.choice().name +
      (layout.parallel ? "; parallel" : "; sequential") +
      (pool != nullptr ? ", " + std::to_string(threads) + " workers" : "") + (reason.empty() ? "" : "; " + reason);
  return {std::make_unique<stream_engine>(std::move(made), std::move(pool), threads, queue, description), {}};
}

stream_result failed(const std::exception &failure, bool is_whole_form) {
  const bool machine_lacks = dynamic_cast<const stream_machine_error *>(&failure) != nullptr ||
                             dynamic_cast<const std::bad_alloc *>(&failure) != nullptr;
  return {nullptr, "stream decoder: " + with_settings_of_stream(failure.what(), is_whole_form), machine_lacks};
}

} // namespace

stream_decoder::~stream_decoder() = default;

expected<stream_source> read_stream(const decoder_model &errors, const stream_options &options,
                                    std::optional<std::string_view> given) {
  auto full = with_settings_of_name(options);
  if (full.failed())
    return full.reason();
  const bool is_whole_form = full->decoder != options.decoder;
  const auto rule = round_rule::parse(full->rounds);
  if (rule.failed())
    return rule.reason();
  auto model = repeating_model::of(errors, *rule);
  if (model.failed())
    return model.reason();
  stream_heralds heralds;
  if (!full->heralds.empty()) {
    const auto list = load_heralds(full->heralds, given, errors);
    if (list.failed())
      return reason("heralds: " + list.text());
    auto of_stream = stream_heralds::make(*list, *model);
    if (of_stream.failed())
      return reason("heralds: " + full->heralds + ": " + of_stream.text());
    heralds = std::move(*of_stream);
  }
  stream_readout readout;
  if (full->readout) {
    const auto table = parse_readout_table(*full->readout, errors);
    if (table.failed())
      return reason("readout: " + table.text());
    auto of_stream = stream_readout::make((*table)->contents(), *model);
    if (of_stream.failed())
      return reason("readout: " + of_stream.text());
    readout = std::move(*of_stream);
    full->readout.reset(); // not kept
  }
  return stream_source{std::move(*full), std::move(*model), std::move(heralds), std::move(readout), is_whole_form};
}

stream_result make_stream_decoder(const stream_source &source, std::uint64_t push_bits) {
  try {
    return made_or_throw(source, push_bits);
  } catch (const std::exception &failure) {
    return failed(failure, source.is_whole_form);
  }
}

stream_result make_stream_decoder(std::string_view dem_text, const stream_options &options) {
  try {
    const auto source = read_stream(dem_text, options);
    if (source.failed())
      throw stream_error(source.text());
    return make_stream_decoder(*source);
  } catch (const std::exception &failure) {
    return failed(failure, false);
  }
}

// There is no other stream decoder than the engine.
void listen(stream_decoder &stream, const stream_listener &listener) noexcept {
  static_cast<stream_engine &>(stream).listen(listener);
}

decode_status push_when_free(stream_decoder &stream, std::span<const std::uint8_t> bits, std::uint64_t count,
                             const stream_values &known) noexcept {
  for (;;) {
    // Read before push: the workers may make all rounds final after it, and then nothing more would come.
    const std::uint64_t committed = stream.committed_rounds();
    if (const decode_status status = stream.push(bits, count, known); status != decode_status::busy)
      return status;
    static_cast<void>(stream.wait_committed(committed + 1, std::chrono::steady_clock::time_point::max()));
  }
}

const decoder_choice &choice_of(const stream_decoder &stream) noexcept {
  return static_cast<const stream_engine &>(stream).choice();
}

readout_place needed_values(stream_decoder &stream, std::uint64_t bits) noexcept {
  return static_cast<stream_engine &>(stream).least_values(bits);
}

std::uint64_t complete_rounds(const stream_decoder &stream) noexcept {
  return static_cast<const stream_engine &>(stream).complete_rounds();
}

} // namespace cudaq::qec::realtime
