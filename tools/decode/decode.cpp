// SPDX-License-Identifier: Apache-2.0
#include "tools/decode/decode.h"

#include "lib/qec/decoders/decoder_factories.h"
#include "lib/qec/decoders/decoder_name.h"
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/shots/flags_file.h"
#include "lib/qec/shots/shot_stream.h"
#include "tools/common/clock.h"
#include "tools/common/interrupt.h"
#include "tools/common/machine.h"
#include "tools/common/output_file.h"
#include "tools/common/standard_streams.h"
#include "tools/common/terminal.h"
#include "tools/decode/decode_batch.h"
#include "tools/decode/decode_picture.h"
#include "tools/decode/gap_output.h"
#include "tools/decode/readout_input.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

namespace cudaq::realtime::tools {
namespace {

using qec::number_of;

constexpr std::size_t kMaxShotsInABatch = 1024;
constexpr std::size_t kBytesOfABatch = std::size_t{1} << 20;    ///< about; at least one shot
constexpr std::size_t kFlagBytesOfABatch = 16 * kBytesOfABatch; ///< about: with the list that goes beyond, it ends
constexpr std::size_t kMaxLateShots = 1000;                     ///< whose numbers are in the report

/// Why the names "auto" stand for this predecoder and this decoder; "" if the user named them.
struct choices {
  std::string predecoder, decoder;
  std::string predecoder_name, decoder_name; ///< of the two, without settings
  std::uint64_t num_errors = UINT64_MAX;     ///< of the model; only with --flags
};

decoder_threads::worker_list make_workers(const decode_options &o, const std::string &dem_text, choices &why) {
  const std::size_t count = o.threads != 0 ? o.threads : allowed_cores().size();
  decoder_threads::worker_list workers;
  std::string predecoder = o.predecoder;
  if (predecoder == "auto") {
    predecoder = qec::kAutoPredecoder;
    why.predecoder = qec::kAutoPredecoderReason;
  }
  const qec::decoder_model model(dem_text);
  std::string name = o.heralds.empty() ? o.decoder : qec::with_setting(o.decoder, "heralds", o.heralds);
  if (!o.confidence.empty() && o.decoder.find("confidence=") == std::string::npos) // not in the path of heralds
    name = qec::with_setting(name, "confidence", "1");
  const bool has_deadline = o.decoder.find("deadline_us=") != std::string::npos;
  while (workers.size() != count) {
    qec::chosen_decoder chosen = qec::choose_decoder(name, model);
    if (!chosen)
      refuse(chosen.machine_lacks, fmt::format("--decoder {}: {}: {}", o.decoder, o.data.dem, chosen.error));
    if (chosen.instance->num_detectors() == 0)
      throw usage_error(no_detectors_text(o.data));
    for (const auto &[option, file] :
         {std::pair{"--flags", o.flags}, std::pair{"--heralds", o.heralds}, std::pair{"--readout", o.readout}})
      if (!file.empty() && predecoder != "passthrough")
        throw usage_error(fmt::format("{}, --predecoder {}: a predecoder knows the probabilities of the model only; "
                                      "leave it out",
                                      option, predecoder));
    // A decoder of windows takes models that are too long for a predecoder.
    auto predecoding =
        predecoder == "passthrough"
            ? qec::make_passthrough_predecoder(chosen.instance->num_detectors(), chosen.instance->num_observables())
            : qec::make_predecoder(predecoder, model);
    if (predecoding.failed())
      throw usage_error(fmt::format("--predecoder {}: {}: {}", o.predecoder, o.data.dem, predecoding.text()));
    if (const auto allowed = qec::check_predecoder_before(predecoder, chosen.instance->name()); allowed.failed())
      throw usage_error(fmt::format("--predecoder {}: {}", o.predecoder, allowed.text()));
    if (o.errors_out.given() && (!chosen.instance->gives_errors() || predecoder != "passthrough"))
      throw usage_error(
          fmt::format("--errors_out: {} gives no errors of its correction; bp-osd and relay-bp do, without "
                      "a predecoder",
                      predecoder == "passthrough" ? chosen.instance->name() : predecoder));
    if (!o.confidence.empty() && predecoder != "passthrough")
      throw usage_error(
          fmt::format("--confidence, --predecoder {}: the gaps are those of a decoder alone", predecoder));
    if (const char *const refusal = chosen.instance->refuses_gaps(); !o.confidence.empty() && refusal != nullptr)
      throw usage_error(fmt::format("--confidence: --decoder {}: {}", o.decoder, refusal));
    for (const auto &[option, file] : {std::pair{"--flags", o.flags}, std::pair{"--readout", o.readout}})
      if (const char *const refusal = chosen.instance->refuses_probabilities(); !file.empty() && refusal != nullptr)
        throw usage_error(fmt::format("{}: {}", option, refusal));
    if (workers.empty()) {
      why.decoder = chosen.auto_reason;
      why.predecoder_name = (*predecoding)->name();
      why.decoder_name = chosen.instance->name();
    }
    if (!o.flags.empty()) // without flags it may be too long to be read
      if (const auto errors = model.errors(); errors.ok())
        why.num_errors = (*errors)->num_errors;
    if (predecoder != "passthrough" && has_deadline) { // as one decoder, whose deadline counts the time of both
      chosen = qec::choose_decoder(qec::with_setting(name, "predecoder", predecoder), model);
      if (!chosen)
        refuse(chosen.machine_lacks, fmt::format("--predecoder {}: {}: {}", o.predecoder, o.data.dem, chosen.error));
      predecoding =
          qec::make_passthrough_predecoder(chosen.instance->num_detectors(), chosen.instance->num_observables());
    }
    workers.push_back(std::make_unique<qec::decoding_worker>(std::move(*predecoding), std::move(chosen.instance)));
  }
  return workers;
}

/// True if both names are of one file that is there.
bool is_same_file(const std::string &a, const std::string &b) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(a, ignored) && std::filesystem::equivalent(a, b, ignored);
}

class decode_run {
public:
  /// `picture`: null, or gets each shot.
  decode_run(const decode_options &o, const std::string &dem_text, decoder_threads::worker_list workers, choices why,
             decode_picture *picture)
      : options_(o), picture_(picture), choices_(std::move(why)), decoder_(choices_.decoder_name),
        predecoder_(choices_.predecoder_name), layout_(workers.front()->stage().layout()), num_threads_(workers.size()),
        truth_appended_(o.data.in_includes_appended_observables),
        in_(o.data.in.path, o.data.in.shot_format(),
            {layout_.num_detectors, truth_appended_ ? layout_.num_observables : 0}, "--in_format"),
        gaps_(o.confidence) {
    const qec::shot_bits observables{0, layout_.num_observables};
    if (o.data.obs_in.given())
      truth_.emplace(o.data.obs_in.path, o.data.obs_in.shot_format(), observables, "--obs_in_format");
    if (o.data.predictions.given())
      golden_.emplace(o.data.predictions.path, o.data.predictions.shot_format(), observables, "--predictions_format");
    if (!o.flags.empty()) {
      flags_.emplace(o.flags, qec::crc32_of(dem_text), choices_.num_errors);
      flags_->stop_when(&interrupt_guard::interrupted);
    }
    if (!o.readout.empty()) {
      readout_.emplace(o, dem_text);
      readout_->stop_when(&interrupt_guard::interrupted);
    }
    in_.stop_when(&interrupt_guard::interrupted);
    for (std::optional<qec::shot_reader> *const other : {&truth_, &golden_})
      if (*other)
        (*other)->stop_when(&interrupt_guard::interrupted);
    out_.emplace(o.out.path, o.out.shot_format(), layout_.num_observables);
    const std::uint64_t num_errors = o.errors_out.given() ? workers.front()->stage().num_errors() : 0;
    if (num_errors != 0) {
      errors_.emplace(o.errors_out.path, o.errors_out.shot_format(), num_errors);
      if (is_same_file(o.out.path, o.errors_out.path)) // by another name; now both are there
        throw usage_error(fmt::format("--errors_out {}: this is the file of --out", o.errors_out.path));
    }
    if (!o.confidence.empty())
      for (const auto &[option, path] : {std::pair{"--out", o.out.path}, std::pair{"--errors_out", o.errors_out.path}})
        if (is_same_file(path, o.confidence))
          throw usage_error(fmt::format("--confidence {}: this is the file of {}", o.confidence, option));
    const std::size_t num_gaps = o.confidence.empty() ? 0 : layout_.num_observables;
    const std::size_t bytes =
        layout_.input_bytes() + 3 * observable_bytes() + num_errors / 8 + num_gaps * sizeof(double);
    const std::size_t capacity = std::clamp(kBytesOfABatch / bytes, std::size_t{1}, kMaxShotsInABatch);
    for (std::size_t k = 0; k < (num_threads_ == 1 ? 1 : 2 * num_threads_); ++k)
      batches_.emplace_back(capacity, layout_.input_bytes(), observable_bytes(), num_errors, num_gaps);
    threads_.emplace(std::move(workers), num_errors);
  }

  /// Decodes all shots. An error leaves the answers of the shots before it in the output.
  void go() {
    const std::uint64_t begin = now_ns();
    progress display({"decode"});
    std::string error;                    // of the reading
    std::string bad_shot;                 // or of the output; it comes before the one of the reading
    std::size_t reading = 0, writing = 0; // numbers of batches
    const auto batch = [this](std::size_t number) -> decode_batch & { return batches_[number % batches_.size()]; };
    for (bool more = true; more && error.empty(); ++reading) {
      if (reading - writing == batches_.size())
        bad_shot = write(batch(writing++));
      if (!bad_shot.empty())
        break;
      more = read(batch(reading), error);
      threads_->submit(batch(reading));
      display.show(shots_, now_ns(), in_.expected_shots());
    }
    while (writing != reading && bad_shot.empty())
      bad_shot = write(batch(writing++));
    if (!bad_shot.empty())
      error = bad_shot;
    wall_ns_ = now_ns() - begin;
    if (bad_shot.empty())
      totals_ = threads_->totals();
    try {
      out_->finish();
      if (errors_)
        errors_->finish();
    } catch (const qec::shot_file_error &failure) {
      if (!output_failed_)
        error += (error.empty() ? "" : "; ") + std::string(failure.what());
    }
    if (!error.empty())
      throw usage_error(fmt::format("{}\nshots decoded before that: {}", error, shots_));
    if (shots_ == 0 && all_decoded())
      throw usage_error(fmt::format("{}: there are no shots", in_.name()));
  }

  [[nodiscard]] bool ok() const noexcept { return differences_ == 0; }
  [[nodiscard]] std::uint64_t shots() const noexcept { return shots_; }
  [[nodiscard]] bool has_truth() const noexcept { return truth_appended_ || truth_; }
  [[nodiscard]] error_rate logical_errors() const noexcept { return {logical_errors_, shots_}; }

  /// What `auto` took, for the time before the first shot: a slow decoder should not be a surprise. "" if nothing.
  [[nodiscard]] std::string choice_text() const {
    std::string text;
    if (!choices_.predecoder.empty())
      text += fmt::format("predecoder      {}\n", choices_.predecoder);
    if (!choices_.decoder.empty())
      text += fmt::format("decoder         {}\n", choices_.decoder);
    return text;
  }

  [[nodiscard]] std::string text() const {
    const double seconds = static_cast<double>(wall_ns_) * 1e-9;
    std::string text = fmt::format(
        "decoded         {}{} in {}, {} shots/s; {}, {}\n", number_of(shots_, "shot"),
        all_decoded() ? "" : " of an input with more", format_ns(static_cast<double>(wall_ns_)),
        format_rate(wall_ns_ == 0 ? 0 : static_cast<double>(shots_) / seconds),
        predecoder_ == "passthrough" ? decoder_ : predecoder_ + "+" + decoder_, number_of(num_threads_, "thread"));
    text += fmt::format("each shot       {}\n", in_.shot_text());
    if (flags_)
      text += fmt::format("flags           of {} by {}\n", number_of(flagged_shots_, "shot"), options_.flags);
    if (readout_)
      text += fmt::format("readout         of {} by {}\n", number_of(flagged_shots_, "shot"), options_.readout);
    text += fmt::format("time of a shot  {}\n", latency_line(totals_.shot_ns));
    const qec::deadline_counts &deadlines = totals_.deadlines;
    if (has_deadlines())
      text += fmt::format("deadlines       {} met, {} missed; of these {} late, {} without a solution\n", deadlines.met,
                          deadlines.missed, deadlines.late, unanswered_.at_deadline);
    if (unanswered_.total() != 0)
      text += fmt::format("no answer       {}\n", unanswered_.text(shots_));
    for (const auto &[member, wins] : totals_.wins)
      text += fmt::format("answers         {} of {}\n", wins, member);
    if (totals_.member_faults != 0)
      text += fmt::format("member faults   {}; one of the last: {}\n", totals_.member_faults, totals_.member_fault);
    if (has_truth())
      text += fmt::format("logical errors  {}{}\n", logical_errors().text(), failures_text());
    if (!options_.confidence.empty())
      text += curve_.text(has_truth());
    if (golden_)
      text += fmt::format("differences     {} of {} from {}\n", differences_, shots_, golden_->name());
    return text;
  }

  [[nodiscard]] run_end end(bool signalled) const {
    run_end end = ended(signalled, shots_, all_decoded() ? shots_ : kNotKnown, "shots");
    end.answers_on_stdout = options_.out.path == "-";
    return end;
  }

  [[nodiscard]] json report() const {
    json j = {{"model", options_.data.dem},
              {"decoder", decoder_},
              {"decoder_name", options_.decoder},
              {"predecoder", predecoder_},
              {"threads", num_threads_},
              {"detectors", layout_.num_detectors},
              {"observables", layout_.num_observables},
              {"shots", shots_},
              {"wall_ns", wall_ns_}};
    if (!choices_.predecoder.empty())
      j["predecoder_choice"] = choices_.predecoder;
    if (!choices_.decoder.empty())
      j["decoder_choice"] = choices_.decoder;
    if (flags_ || readout_)
      j["flagged_shots"] = flagged_shots_;
    if (has_deadlines()) {
      j["deadline_met"] = totals_.deadlines.met;
      j["deadline_missed"] = totals_.deadlines.missed;
      j["deadline_late"] = totals_.deadlines.late;
      j["deadline_without_solution"] = unanswered_.at_deadline;
    }
    j["not_converged"] = unanswered_.not_converged;
    j["unanswered"] = unanswered_.total();
    j["late"] = late_;
    if (has_deadlines())
      j["late_shots"] = late_shots_;
    j["shot_ns"] = latency_json(totals_.shot_ns);
    if (!totals_.wins.empty()) { // of their kinds before the first value: a null one is not whole if memory is refused
      j["race_members"] = json::array();
      j["race_wins"] = json::object();
    }
    for (const auto &[member, wins] : totals_.wins) {
      j["race_members"].push_back({{"name", member}, {"answers", wins}});
      json &of_name = j["race_wins"][member]; // members may have the same name
      of_name = of_name.is_null() ? wins : of_name.get<std::uint64_t>() + wins;
    }
    if (totals_.member_faults != 0)
      j["race_member_faults"] = {{"count", totals_.member_faults}, {"last", totals_.member_fault}};
    if (has_truth()) {
      const auto [low, high] = logical_errors().interval_95();
      j["logical_errors"] = logical_errors_;
      j["logical_error_rate"] = logical_errors().rate();
      j["logical_error_rate_95_percent"] = {low, high};
    }
    if (!options_.confidence.empty())
      j["confidence"] = curve_.report(has_truth());
    if (golden_)
      j["differences_from_predictions"] = differences_;
    return j;
  }

private:
  [[nodiscard]] bool all_decoded() const noexcept { return all_read_ && !is_cut_; }
  /// Which failures are no wrong answers.
  [[nodiscard]] std::string failures_text() const {
    std::string text = without_answer_text(unanswered_.total());
    if (late_ != 0)
      text += fmt::format("; {} late answers {}", late_, options_.late == "failure" ? "are failures" : "are answers");
    return text;
  }
  [[nodiscard]] bool has_deadlines() const noexcept { return totals_.deadlines.met + totals_.deadlines.missed != 0; }
  [[nodiscard]] std::size_t observable_bytes() const noexcept { return (layout_.num_observables + std::size_t{7}) / 8; }

  /// Fills a batch. Returns false at the end of the input, or with an error; the shots before it are in the batch.
  bool read(decode_batch &b, std::string &error) {
    b.shots = 0;
    b.flags.clear();
    b.end_of_flags.clear();
    try {
      for (; b.shots != b.capacity; ++b.shots) {
        if (interrupt_guard::interrupted())
          return stop_reading();
        const auto truth = decode_batch::row(b.observables, b.shots, observable_bytes());
        const bool more = in_.read(decode_batch::row(b.detections, b.shots, b.detection_bytes),
                                   truth_appended_ ? truth : std::span<std::uint8_t>{});
        if (!more && interrupt_guard::interrupted())
          return stop_reading();
        if (truth_)
          follow(*truth_, truth, more);
        if (golden_)
          follow(*golden_, decode_batch::row(b.predictions, b.shots, observable_bytes()), more);
        if (readout_)
          readout_->read([this, more](qec::shot_reader &of, std::span<std::uint8_t> row) { follow(of, row, more); });
        if (!more && flags_)
          flags_->finish(in_.shots());
        if (!more)
          return false;
        if (flags_ || readout_) {
          const qec::shot_probabilities list = flags_ ? flags_->next() : qec::shot_probabilities{};
          if (interrupt_guard::interrupted()) // a file may have ended early
            return stop_reading();
          b.flags.insert(b.flags.end(), list.begin(), list.end());
          if (readout_) {
            const qec::shot_probabilities of_readout = readout_->list(in_.shots() - 1);
            b.flags.insert(b.flags.end(), of_readout.begin(), of_readout.end());
          }
          b.end_of_flags.push_back(b.flags.size());
          if (b.flags.size() * sizeof(b.flags[0]) > kFlagBytesOfABatch) {
            ++b.shots;
            return true;
          }
        }
      }
    } catch (const std::exception &failure) {
      if (interrupt_guard::interrupted()) // a file has ended early
        return stop_reading();
      error = failure.what();
      return false;
    }
    return true;
  }
  /// After a signal. False.
  bool stop_reading() {
    all_read_ = false;
    return false;
  }
  /// Reads the observables of the shot that the input had; both files must end together.
  void follow(qec::shot_reader &reader, std::span<std::uint8_t> row, bool more) const {
    if (reader.read({}, row) != more)
      throw usage_error(
          fmt::format("{}: {} than {}, which has {} of {} (is the model that of the shots?)", reader.name(),
                      more ? fmt::format("{}, fewer", number_of(reader.shots(), "shot")) : "more shots", in_.name(),
                      (more ? "at least " : "") + number_of(in_.shots(), "shot"), in_.shot_text()));
  }

  /// Writes and counts the answers of a batch. Returns the error text of a shot that cannot be decoded, or of the
  /// output.
  std::string write(decode_batch &b) {
    threads_->wait_for(b);
    if (is_cut_) // an earlier batch was not decoded whole
      return "";
    try {
      for (std::size_t shot = 0; shot < b.decoded; ++shot) {
        const auto answer = decode_batch::row(b.answers, shot, observable_bytes());
        const bool is_solved = b.results[shot] == decode_batch::result::solution;
        if (!is_solved)
          unanswered_.add(b.results[shot] == decode_batch::result::unconverged ? qec::decode_status::not_converged
                                                                               : qec::decode_status::deadline);
        const bool is_late = b.late[shot] != 0;
        if (is_late && late_++ < kMaxLateShots)
          late_shots_.push_back(shots_);
        out_->write(answer);
        if (errors_)
          errors_->write(decode_batch::row(b.errors, shot, b.error_bytes));
        const auto is_wrong = [&](std::vector<std::uint8_t> &rows) {
          return !is_solved || !std::ranges::equal(answer, decode_batch::row(rows, shot, observable_bytes()));
        };
        const bool is_failure = has_truth() && ((is_late && options_.late == "failure") || is_wrong(b.observables));
        logical_errors_ += is_failure;
        if (!options_.confidence.empty()) {
          gaps_.write(b.gaps_of(shot));
          curve_.add(b.gaps_of(shot), is_failure);
        }
        if (picture_ != nullptr)
          picture_->offer(shots_, decode_batch::row(b.detections, shot, b.detection_bytes), b.flags_of(shot),
                          is_failure);
        differences_ += golden_ && is_wrong(b.predictions);
        flagged_shots_ += b.flags_of(shot).empty() ? 0 : 1;
        ++shots_;
      }
      out_->flush();
      if (errors_)
        errors_->flush();
      gaps_.flush();
    } catch (const qec::shot_file_error &failure) {
      output_failed_ = true;
      return failure.what();
    }
    if (b.status == qec::decode_status::ok) {
      is_cut_ = b.decoded != b.shots;
      return "";
    }
    return fmt::format("{}: shot {}: {}", in_.name(), shots_, qec::decode_status_text(b.status, b.fault.c_str()));
  }

  const decode_options &options_;
  decode_picture *const picture_;
  const choices choices_;
  const std::string decoder_;
  const std::string predecoder_;
  const qec::predecoder_layout layout_;
  const std::size_t num_threads_;
  const bool truth_appended_;
  qec::shot_reader in_;
  std::optional<qec::shot_reader> truth_, golden_;
  std::optional<qec::flags_reader> flags_;
  std::optional<readout_input> readout_;
  std::optional<qec::shot_writer> out_, errors_;
  gap_file gaps_;
  gap_curve curve_;
  bool output_failed_ = false, all_read_ = true;
  bool is_cut_ = false; ///< after a signal there was no time for all shots that were read
  std::deque<decode_batch> batches_;
  std::optional<decoder_threads> threads_; ///< destroyed first: its threads use the batches
  std::uint64_t shots_ = 0, flagged_shots_ = 0, logical_errors_ = 0, differences_ = 0, wall_ns_ = 0;
  unanswered_shots unanswered_;           ///< those without a solution
  std::uint64_t late_ = 0;                ///< shots with an answer after their deadline
  std::vector<std::uint64_t> late_shots_; ///< the numbers of the first of them
  decoder_totals totals_;
};

void check(const decode_options &o, const output &out) {
  if (!o.data.given())
    throw usage_error("--dem is missing: name the file of the detector error model");
  const auto is_pipe = [](const shot_source &source) { return source.path == "-" ? 1 : 0; };
  for (const auto &[option, source] :
       {std::pair{"--in", o.data.in}, std::pair{"--obs_in", o.data.obs_in},
        std::pair{"--predictions", o.data.predictions}, std::pair{"--flags", shot_source{o.flags, ""}},
        std::pair{"--soft", shot_source{o.soft, ""}}, std::pair{"--leakage", shot_source{o.leakage, ""}}})
    if (is_pipe(source) != 0 && standard_streams::was_closed(STDIN_FILENO))
      throw usage_error(fmt::format("{} is stdin, which is closed; name a file", option));
  if (is_pipe(o.out) != 0 && standard_streams::was_closed(STDOUT_FILENO))
    throw usage_error("--out is stdout, which is closed; name a file");
  const auto is_stdin = [](const std::string &path) { return path == "-" ? 1 : 0; };
  if (is_pipe(o.data.in) + is_pipe(o.data.obs_in) + is_pipe(o.data.predictions) + is_stdin(o.flags) + is_stdin(o.soft) +
          is_stdin(o.leakage) >
      1)
    throw usage_error("--in, --obs_in, --predictions, --flags, --soft, --leakage: only one of them can be stdin (-, "
                      "the default of --in)");
  if (o.svg_shot == "wrong" && !o.data.obs_in.given() && !o.data.in_includes_appended_observables)
    throw usage_error("--svg-shot wrong: without true observables (--obs_in) no shot is known to be wrong");
  if (o.data.obs_in.given() && o.data.in_includes_appended_observables)
    throw usage_error("--obs_in, --in_includes_appended_observables: the observables can be in one place only");
  if (is_pipe(o.out) != 0 && out.uses_stdout_for_json())
    throw usage_error("--json without FILE writes to stdout, where the predictions go; name a file for one of them: "
                      "--json FILE or --out FILE");
  for (const auto &[option, path] :
       {std::pair{"--dem", o.data.dem}, std::pair{"--in", o.data.in.path}, std::pair{"--obs_in", o.data.obs_in.path},
        std::pair{"--predictions", o.data.predictions.path}, std::pair{"--flags", o.flags},
        std::pair{"--heralds", o.heralds}, std::pair{"--readout", o.readout}, std::pair{"--soft", o.soft},
        std::pair{"--leakage", o.leakage},
        std::pair{"--predecoder", std::string(qec::learned_predecoder_file(o.predecoder))}}) {
    refuse_output_file(option, path);
    for (const auto &[writer, written] : {std::pair{"--out", o.out.path}, std::pair{"--errors_out", o.errors_out.path},
                                          std::pair{"--confidence", o.confidence}})
      if (is_same_file(written, path))
        throw usage_error(fmt::format("{} {}: this is the file of {}", writer, written, option));
  }
  refuse_output_file("--out", o.out.path);
  refuse_output_file("--errors_out", o.errors_out.path);
  refuse_output_file("--confidence", o.confidence);
  if (o.confidence == "-")
    throw usage_error("--confidence: name a file of its own");
  if (o.errors_out.path == "-" || (o.errors_out.given() && o.errors_out.path == o.out.path))
    throw usage_error("--errors_out: name a file of its own");
  if (o.heralds.find(',') != std::string::npos)
    throw usage_error(fmt::format("--heralds {}: the path has a comma; settings of a decoder end there", o.heralds));
  if (o.predecoder.find(',') != std::string::npos && o.decoder.find("deadline_us=") != std::string::npos)
    throw usage_error(fmt::format("--predecoder {}: the path has a comma, and the decoder a deadline; settings of a "
                                  "decoder end there",
                                  o.predecoder));
  if (o.predecoder != "passthrough" && o.decoder.find("predecoder=") != std::string::npos)
    throw usage_error("--predecoder, --decoder: the decoder has a predecoder already");
}

} // namespace

void print_note(const decode_options &o, const output &out, const std::string &text) {
  if (o.out.path == "-") {
    print_error("{}", text);
  } else {
    out.raw(text);
    std::fflush(stdout);
  }
}

int run_decode(const decode_options &o, const output &out) {
  std::optional<output_file> svg; // before the check, which compares other files with it
  if (o.svg == "-")
    throw usage_error("--svg: name a file; stdout has the observables");
  if (!o.svg.empty())
    svg.emplace("--svg", o.svg);
  check(o, out);
  const std::string dem_text = read_dem_file(o.data.dem);
  if (o.stream)
    return run_decode_stream(o, dem_text, out);
  choices why;
  std::optional<decode_picture> picture;
  std::optional<decode_run> run;
  try {
    auto workers = make_workers(o, dem_text, why);
    if (svg)
      picture.emplace(o, dem_text);
    run.emplace(o, dem_text, std::move(workers), std::move(why), picture ? &*picture : nullptr);
  } catch (const qec::shot_file_error &error) {
    throw usage_error(error.what());
  }
  const interrupt_guard guard; // until here there is nothing to report
  print_note(o, out, run->choice_text());
  run->go();
  print_note(o, out, run->text());
  if (picture) {
    const std::string drawn = picture->svg();
    if (drawn.empty())
      print_note(o, out,
                 fmt::format("picture         none, {} is unchanged: {}\n", o.svg,
                             picture->has_shot() ? "places of detectors are too far apart"
                                                 : fmt::format("of {} none is that of --svg-shot {}",
                                                               number_of(run->shots(), "shot"), o.svg_shot)));
    else
      svg->write([&drawn](std::ostream &file) { file << drawn; });
  }
  return out.finish(run->report(), run->ok() ? "" : "answers differ from those of --predictions", kExitCheckFailed,
                    run->end(guard.interrupted()), &decode_html);
}

} // namespace cudaq::realtime::tools
