// SPDX-License-Identifier: Apache-2.0
// `decode --stream`: one experiment of any length, round by round. One thread reads and writes; it decodes, too, if
// there are no workers.
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/shots/shot_stream.h"
#include "lib/qec/stream/stream_factory.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/terminal.h"
#include "tools/decode/decode.h"
#include "tools/shots/round_reader.h"
#include "tools/shots/several_shots.h"
#include "tools/shots/value_input.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

namespace cudaq::realtime::tools {
namespace {

using qec::number_of;

constexpr auto kNoDeadline = std::chrono::steady_clock::time_point::max();

/// The parts of an experiment, for people.
std::string parts_of(const qec::repeating_model &model) {
  const auto part = [](std::uint64_t detectors, std::size_t rounds) {
    return number_of(detectors, "detector") + " in " + number_of(rounds, "round");
  };
  return fmt::format("head {}, body {}, tail {}", part(model.head_detectors(), model.head().size()),
                     part(model.body_detectors(), model.body().size()),
                     part(model.tail_detectors(), model.tail().size()));
}

class stream_run {
public:
  stream_run(const decode_options &o, std::unique_ptr<qec::stream_decoder> stream, const qec::repeating_model &model)
      : options_(o), model_(model), stream_(std::move(stream)),
        in_(o.data.in.path, stream_format("--in", o.data.in), model), out_format_(stream_format("--out", o.out)),
        // The writer of b8 writes rows of any bytes.
        out_(o.out.path, qec::shot_format::b8, stream_->num_observables(), "frames"),
        observables_((stream_->num_observables() + 7) / 8) {
    qec::listen(*stream_, {.user = this, .released = [](void *self, std::uint64_t rounds, auto observables) {
                             static_cast<stream_run *>(self)->keep_frame(rounds, observables);
                           }});
    in_.stop_when(&interrupt_guard::interrupted);
    if (!o.readout.empty()) {
      values_.emplace(o, stream_->values_info());
      values_->stop_when(&interrupt_guard::interrupted);
    }
    if (o.data.obs_in.given())
      truth_.emplace(o.data.obs_in.path, o.data.obs_in.shot_format(), qec::shot_bits{0, stream_->num_observables()},
                     "--obs_in_format");
  }

  /// Decodes until the end of the input. An error leaves the frames before it in the output.
  void go() {
    const std::uint64_t begin = now_ns();
    std::string error;
    try {
      decode();
      if (truth_ && has_ended_)
        compare();
    } catch (const qec::shot_file_error &failure) {
      error = failure.what();
    } catch (const usage_error &failure) {
      error = failure.what();
    }
    try {
      wait_for_windows();
      wall_ns_ = now_ns() - begin;
      out_.finish();
    } catch (const qec::shot_file_error &failure) {
      if (!error.starts_with(out_.name() + ": cannot be written"))
        error += (error.empty() ? "" : "; ") + std::string(failure.what());
    }
    if (!error.empty())
      throw usage_error(fmt::format("{}\nrounds final before that: {}", error, committed_));
  }

  /// Why `auto` did not take its first choice, for the time before the first round; else "".
  [[nodiscard]] std::string choice_text() const {
    const std::string &reason = qec::choice_of(*stream_).reason;
    return reason.empty() ? "" : fmt::format("decoder         {}\n", reason);
  }

  [[nodiscard]] std::string text() const {
    const auto rounds = static_cast<double>(stream_->pushed_rounds());
    std::string text = fmt::format(
        "decoded         {}{} in {}, {} rounds/s; {}\n", number_of(stream_->pushed_rounds(), "round"),
        has_ended_ ? "" : " of an input with more", format_ns(static_cast<double>(wall_ns_)),
        format_rate(wall_ns_ == 0 ? 0 : rounds / static_cast<double>(wall_ns_) * 1e9), stream_->description());
    text += fmt::format("parts           {}\n", parts_of(model_));
    if (values_)
      text += fmt::format("readout         {} by {}\n", values_->text(), options_.readout);
    text += fmt::format("windows         {}, {} a round{}", stream_->windows(), format_ns(round_mean_ns()),
                        options_.workers == 0 ? "" : " for the reading thread");
    text += window_ns_.count() == 0 ? "\n" : fmt::format("; each: {}\n", latency_line(window_ns_));
    if (const qec::deadline_counts deadlines = stream_->statistics().deadlines; deadlines.met + deadlines.missed != 0)
      text += fmt::format("deadlines       {} windows met, {} missed; of these {} late\n", deadlines.met,
                          deadlines.missed, deadlines.late);
    if (is_right_)
      text +=
          fmt::format("observables     {}\n",
                      *is_right_ ? "as in --obs_in" : "differ from --obs_in: a logical error (counted, no failure)");
    return text;
  }

  [[nodiscard]] run_end end(bool signalled) const {
    run_end end =
        ended(signalled, stream_->pushed_rounds(), has_ended_ ? stream_->pushed_rounds() : kNotKnown, "rounds");
    end.answers_on_stdout = options_.out.path == "-";
    return end;
  }

  [[nodiscard]] json report() const {
    json j = {{"model", options_.data.dem},
              {"decoder", qec::choice_of(*stream_).name},
              {"predecoder", options_.predecoder},
              {"threads", std::max<std::size_t>(options_.workers, 1)},
              {"workers", options_.workers},
              {"detectors", stream_->pushed_bits()},
              {"observables", stream_->num_observables()},
              {"shots", has_ended_ ? 1 : 0},
              {"wall_ns", wall_ns_},
              {"stream", stream_->description()},
              {"rounds", stream_->pushed_rounds()},
              {"head_detectors", model_.head_detectors()},
              {"body_detectors", model_.body_detectors()},
              {"tail_detectors", model_.tail_detectors()},
              {"head_rounds", model_.head().size()},
              {"body_rounds", model_.body().size()},
              {"tail_rounds", model_.tail().size()},
              {"committed_rounds", committed_},
              {"committed_observables", observables_text()},
              {"windows", stream_->windows()},
              {"frames", frames_},
              {"round_mean_ns", round_mean_ns()},
              {"window_ns", latency_json(window_ns_)}};
    if (!qec::choice_of(*stream_).reason.empty())
      j["decoder_choice"] = qec::choice_of(*stream_).reason;
    if (const qec::deadline_counts deadlines = stream_->statistics().deadlines; deadlines.met + deadlines.missed != 0) {
      j["deadline_met"] = deadlines.met;
      j["deadline_missed"] = deadlines.missed;
      j["deadline_late"] = deadlines.late;
    }
    if (is_right_)
      j["logical_errors"] = *is_right_ ? 0 : 1;
    return j;
  }

  [[nodiscard]] const latency_histogram &window_ns() const noexcept { return window_ns_; }

private:
  [[nodiscard]] double round_mean_ns() const {
    return static_cast<double>(busy_ns_) / static_cast<double>(std::max<std::uint64_t>(1, stream_->pushed_rounds()));
  }
  [[nodiscard]] std::string observables_text() const {
    std::string text;
    for (std::uint64_t k = 0; k < stream_->num_observables(); ++k)
      text += (observables_[k / 8] >> (k % 8) & 1) != 0 ? '1' : '0';
    return text;
  }

  void decode() {
    progress display({"decode", "rounds"});
    for (;;) {
      if (!in_.has_next()) // next() may wait
        write_final();
      const round_reader::found found = in_.next();
      const bool is_tail = found == round_reader::found::tail;
      if (found == round_reader::found::stop || !read_values(is_tail))
        return;
      const qec::stream_values known = values_ ? values_->next() : qec::stream_values{};
      const std::uint64_t begin = now_ns(), windows = stream_->windows();
      has_ended_ = is_tail;
      const qec::decode_status status = has_ended_ ? stream_->finish(in_.bits(), in_.count(), known)
                                                   : qec::push_when_free(*stream_, in_.bits(), in_.count(), known);
      const std::uint64_t now = now_ns();
      busy_ns_ += now - begin;
      check(status);
      if (options_.workers == 0 && stream_->windows() != windows)
        window_ns_.record(now - begin);
      write_frames();
      if (has_ended_) {
        write_final();
        if (values_)
          values_->check_end(); // may wait
        return;
      }
      display.show(stream_->pushed_rounds(), now);
    }
  }

  /// Before a wait for the input: its writer may wait for these frames.
  void write_final() {
    const qec::decode_status status = wait_for_windows();
    out_.flush();
    check(status);
  }

  /// False: stopped.
  bool read_values(bool is_tail) {
    if (!values_)
      return true;
    const qec::readout_place wanted = wanted_values(is_tail);
    if (!values_->has(wanted))
      write_final();
    return values_->read_to(wanted);
  }

  /// With the bits of in_: those that a window needs now. A device may write the others later.
  [[nodiscard]] qec::readout_place wanted_values(bool is_tail) const {
    const std::uint64_t bits = stream_->pushed_bits();
    if (!is_tail)
      return qec::needed_values(*stream_, bits + in_.count());
    const qec::stream_values_info of = stream_->values_info();
    const std::uint64_t repetitions = (bits - model_.head_detectors()) / model_.body_detectors();
    return {static_cast<std::int64_t>(of.other_soft + repetitions * of.body_soft),
            static_cast<std::int64_t>(of.other_leakage + repetitions * of.body_leakage)};
  }

  void check(qec::decode_status status) const {
    if (status == qec::decode_status::ok)
      return;
    const std::string fault = stream_->fault(); // what is wrong with a value is the whole text
    throw usage_error(fmt::format("{}: window {}, from round {}: {}", in_.name(), stream_->windows(),
                                  stream_->committed_rounds(),
                                  status == qec::decode_status::bad_probability && !fault.empty()
                                      ? fault
                                      : qec::decode_status_text(status, fault.c_str())));
  }

  /// Until all windows whose rounds have come are decoded; then their frames are written.
  qec::decode_status wait_for_windows() {
    const qec::stream_progress now = stream_->wait_committed(qec::complete_rounds(*stream_), kNoDeadline);
    write_frames();
    return now.status;
  }

  /// Called by the thread that decodes.
  void keep_frame(std::uint64_t rounds, std::span<const std::uint8_t> observables) {
    const std::lock_guard<std::mutex> lock(kept_mutex_);
    kept_rounds_.push_back(rounds);
    kept_bits_.insert(kept_bits_.end(), observables.begin(), observables.end());
  }

  /// Writes the frames that were kept.
  void write_frames() {
    {
      const std::lock_guard<std::mutex> lock(kept_mutex_);
      std::swap(written_rounds_, kept_rounds_);
      std::swap(written_bits_, kept_bits_);
    }
    for (std::size_t k = 0; k < written_rounds_.size(); ++k) {
      committed_ = written_rounds_[k];
      std::ranges::copy(std::span(written_bits_).subspan(k * observables_.size(), observables_.size()),
                        observables_.begin());
      write_frame();
    }
    written_rounds_.clear();
    written_bits_.clear();
  }

  /// "ROUNDS OBSERVABLES", or 8 bytes and the bytes of the observables.
  void write_frame() {
    ++frames_;
    if (out_format_ == qec::shot_format::text01) {
      const std::string line = fmt::format("{} {}\n", committed_, observables_text());
      frame_.assign(line.begin(), line.end());
    } else {
      static_assert(std::endian::native == std::endian::little);
      frame_.resize(sizeof committed_ + observables_.size());
      std::memcpy(frame_.data(), &committed_, sizeof committed_);
      std::ranges::copy(observables_, frame_.begin() + sizeof committed_);
    }
    out_.write(frame_);
  }

  void compare() {
    std::vector<std::uint8_t> row(observables_.size());
    read_one_row(*truth_, row);
    is_right_ = row == observables_;
  }

  const decode_options &options_;
  const qec::repeating_model &model_;
  // Frames in the order of rounds, since the last write: those of the workers, and those that are being written.
  std::mutex kept_mutex_; ///< protects the kept ones
  std::vector<std::uint64_t> kept_rounds_, written_rounds_;
  std::vector<std::uint8_t> kept_bits_, written_bits_;
  const std::unique_ptr<qec::stream_decoder> stream_; ///< after what its workers use
  round_reader in_;
  std::optional<stream_value_input> values_;
  const qec::shot_format out_format_;
  qec::shot_writer out_;
  std::optional<qec::shot_reader> truth_;
  std::optional<bool> is_right_;
  std::vector<std::uint8_t> frame_, observables_; ///< of committed_ rounds, as written, and as bits
  latency_histogram window_ns_;                   ///< calls that completed a window
  std::uint64_t committed_ = 0, frames_ = 0, busy_ns_ = 0, wall_ns_ = 0;
  bool has_ended_ = false; ///< the tail was found
};

} // namespace

int run_decode_stream(const decode_options &o, const std::string &dem_text, const output &out) {
  qec::stream_options options{.decoder = o.decoder,
                              .commit = o.commit,
                              .buffer = o.buffer,
                              .rounds = o.rounds,
                              .workers = o.workers,
                              .heralds = o.heralds};
  if (!o.readout.empty())
    options.readout = read_readout_file(o);
  const auto source = qec::read_stream(dem_text, options);
  qec::stream_result made =
      source.ok() ? qec::make_stream_decoder(*source) : qec::stream_result{nullptr, "stream decoder: " + source.text()};
  if (!made)
    refuse(made.machine_lacks, fmt::format("--stream: {}: {}", o.data.dem, made.error));
  if (const auto result = check_one_experiment(o.data.in, source->model); result.failed())
    throw usage_error(result.text());
  std::optional<stream_run> run;
  try {
    run.emplace(o, std::move(made.instance), source->model);
  } catch (const qec::shot_file_error &error) {
    throw usage_error(error.what());
  }
  const interrupt_guard guard; // until here there is nothing to report
  print_note(o, out, run->choice_text());
  run->go();
  print_note(o, out, run->text());
  return out.finish(run->report(), "", kExitCheckFailed, run->end(guard.interrupted()),
                    [&](const json &report) { return decode_stream_html(report, run->window_ns()); });
}

} // namespace cudaq::realtime::tools
