// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/decoding/error_curve.h"

#include "benchmarks/decoding/sampled_decoding.h"
#include "benchmarks/decoding/sinter_csv.h"
#include "lib/base/content_hash.h"
#include "lib/base/descriptor.h"
#include "tools/common/interrupt.h"
#include "tools/common/output_file.h"
#include "tools/html/html_page.h"
#include "tools/html/html_plots.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace cudaq::realtime::tools {
namespace {

template <typename Number>
bool read_all(std::string_view text, Number &value) {
  Number read{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  if (error != std::errc{} || end != text.data() + text.size())
    return false;
  value = read;
  return true;
}

/// A row of the file or of this run.
struct rate_point {
  sinter_row counts;
  std::string dem; ///< name of the model's file
  model_labels labels;
  std::optional<case_counts> run; ///< of this run; none: it had nothing to add
  std::size_t task = SIZE_MAX;

  [[nodiscard]] std::uint64_t added() const noexcept { return run ? run->errors.shots : 0; }

  [[nodiscard]] error_rate errors() const noexcept { return {counts.errors, counts.shots - counts.discards}; }
  /// Complete: nothing of this is missing.
  [[nodiscard]] bool has(const bench_decoding_options &o) const noexcept {
    return counts.shots >= o.shots || (o.failures != 0 && counts.errors >= o.failures);
  }
};

/// FNV-1a of what a row measures: model, decoder, and the number of errors of a shot.
std::string strong_id_of(const std::string &dem, const std::string &decoder, std::uint32_t errors) {
  return fmt::format("cudaq-{:016x}", detail::fnv1a_64(fmt::format("{}\n{}\n{}", decoder, errors, dem)));
}

std::string metadata_of(const std::string &name, const model_labels &labels) {
  nlohmann::json metadata = {{"dem", name}}; // in the order of names, as sinter has it
  if (labels.distance != 0)
    metadata["d"] = labels.distance;
  if (labels.noise != 0)
    metadata["p"] = labels.noise;
  if (labels.rounds != 0)
    metadata["r"] = labels.rounds;
  return metadata.dump();
}

/// Of a row that another program or another run has written.
void read_metadata(rate_point &point) {
  const auto metadata = nlohmann::json::parse(point.counts.json_metadata, nullptr, false);
  if (!metadata.is_object())
    return;
  const auto number = [&metadata](const char *name) {
    const auto found = metadata.find(name);
    return found != metadata.end() && found->is_number() && found->get<double>() > 0 ? found->get<double>() : 0;
  };
  point.labels = {static_cast<std::uint32_t>(number("d")),
                  static_cast<std::uint32_t>(number("r") != 0 ? number("r") : number("rounds")), number("p")};
  if (const auto dem = metadata.find("dem"); dem != metadata.end() && dem->is_string())
    point.dem = dem->get<std::string>();
}

/// The file of --csv: read once, then rows are added. A run that adds rows holds an advisory lock of the file (flock)
/// from before it reads to its end, so that no other run adds the same shots; to read needs none.
class counts_file {
public:
  counts_file(std::string path, bool adds_rows) : path_(std::move(path)) {
    if (path_.empty())
      return;
    refuse_output_file("--csv", path_);
    std::error_code ignored;
    if (std::filesystem::exists(path_, ignored) && !std::filesystem::is_regular_file(path_, ignored))
      throw usage_error(fmt::format("--csv {}: is not a regular file", path_)); // a device may have no end
    if (adds_rows && std::filesystem::exists(path_, ignored))
      lock();
    std::ifstream file(path_);
    if (!file && std::filesystem::exists(path_))
      throw usage_error(fmt::format("--csv: cannot read {}", path_));
    rows_ = read_sinter_csv(file, path_);
    file.clear();
    file.seekg(0);
    std::getline(file, header_);
  }
  ~counts_file() {
    if (locked_ >= 0)
      ::close(locked_);
  }
  counts_file(const counts_file &) = delete;
  counts_file &operator=(const counts_file &) = delete;

  /// Makes the file if there was none. Throws if another run has made it since.
  void make() {
    if (path_.empty() || locked_ >= 0)
      return;
    lock();
    if (struct stat now{}; ::fstat(locked_, &now) == 0 && now.st_size != 0)
      throw usage_error(fmt::format("--csv {}: another run has just made this file; start again", path_));
    append("");
  }
  [[nodiscard]] const std::vector<sinter_row> &rows() const noexcept { return rows_; }

  void add(const sinter_row &row) {
    if (!path_.empty())
      append(sinter_line(row, header_.empty() ? kSinterHeader : header_));
  }

private:
  void lock() {
    locked_ = detail::above_standard_streams(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (locked_ < 0)
      throw usage_error(fmt::format("--csv: cannot write {}", path_));
    if (::flock(locked_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) // some file systems have no locks
      throw usage_error(fmt::format("--csv {}: another run adds its counts to this file; wait for its end, or name "
                                    "another file",
                                    path_));
  }

  /// An empty text only makes the file.
  void append(const std::string &line) const {
    std::ifstream last(path_, std::ios::ate | std::ios::binary);
    const bool is_empty = !last || last.tellg() <= 0;
    // A program that was stopped, or an editor, may have left a line without its end.
    const bool has_open_line = !is_empty && last.seekg(-1, std::ios::end).get() != '\n';
    std::ofstream file(path_, std::ios::app);
    if (is_empty)
      file << kSinterHeader;
    if (has_open_line)
      file << '\n';
    file << line << std::flush;
    if (!file)
      throw usage_error(fmt::format("--csv: cannot write {}", path_));
  }

  const std::string path_;
  std::vector<sinter_row> rows_;
  std::string header_; ///< of the file; "": of a new one
  int locked_ = -1;    ///< descriptor that has the lock
};

/// The curve of a run.
class error_curve {
public:
  explicit error_curve(const bench_decoding_options &o) : options_(o), file_(o.csv_file, !o.dem_files.empty()) {
    for (const sinter_row &row : file_.rows()) {
      points_.push_back({row, "", {}, {}});
      read_metadata(points_.back());
    }
    for (const std::string &path : o.dem_files)
      add_model(path);
    if (points_.empty())
      throw usage_error(fmt::format("--csv {}: has no counts; --dem names the models to decode", o.csv_file));
    std::ranges::stable_sort(points_, {}, [](const rate_point &p) {
      return std::tuple(p.counts.decoder, p.labels.distance, p.labels.noise);
    });
  }

  void go(const output &out) {
    if (!options_.dem_files.empty()) // else the file is only read
      file_.make();
    std::size_t widest = 5;
    for (const rate_point &point : points_)
      widest = std::max(widest, point.dem.size());
    out.text("{:<{}} {:>4} {:>8} {:>6}  {:<26} {:>10} {:>10} {:>9}  {:<30} {:>10}\n", "model", widest, "d", "p",
             "rounds", "decoder", "shots", "new", "failures", "per shot, 95 % interval", "CPU a shot");
    for (rate_point &point : points_) {
      if (point.task != SIZE_MAX && !point.has(options_) && !interrupt_guard::interrupted())
        decode(point);
      const auto [low, high] = point.errors().interval_95();
      out.text("{:<{}} {:>4} {:>8} {:>6}  {:<26} {:>10} {:>10} {:>9}  {:<30} {:>10}\n", point.dem, widest,
               known(point.labels.distance), known(point.labels.noise), known(point.labels.rounds),
               point.counts.decoder, point.counts.shots, point.added(), point.counts.errors,
               fmt::format("{:.3g} ({:.3g}-{:.3g})", point.errors().rate(), low, high),
               point.counts.shots == 0 ? "" : format_ns(cpu_ns(point)));
      if (point.run)
        out.raw(case_text(*point.run));
    }
  }

  [[nodiscard]] std::uint64_t added() const {
    std::uint64_t shots = 0;
    for (const rate_point &p : points_)
      shots += p.added();
    return shots;
  }
  /// "": some points can be drawn, once they have a shot.
  [[nodiscard]] std::string why_not_drawn() const {
    if (std::ranges::any_of(points_, [](const rate_point &p) { return p.labels.distance != 0 && p.labels.noise != 0; }))
      return "";
    return fmt::format("no model has its distance d and its error rate p in the name of its file, as "
                       "surface_d5_p0.003_r5.dem or d=5,p=0.003,r=5.dem ({}{}); rename the files",
                       points_.front().dem.empty() ? "a row of --csv without a model" : points_.front().dem,
                       points_.size() == 1 ? "" : ", ...");
  }
  [[nodiscard]] bool complete() const {
    return std::ranges::all_of(points_, [&](const rate_point &p) { return p.task == SIZE_MAX || p.has(options_); });
  }

  [[nodiscard]] json report() const {
    json list = json::array();
    for (const rate_point &p : points_) {
      if (p.errors().trials == 0)
        continue;
      const auto [low, high] = p.errors().interval_95();
      json one{{"dem", p.dem},
               {"decoder", p.counts.decoder},
               {"shots", p.counts.shots},
               {"added_shots", p.added()},
               {"failures", p.counts.errors},
               {"logical_error_rate", p.errors().rate()},
               {"interval_95", {low, high}},
               {"cpu_ns_per_shot", cpu_ns(p)}};
      if (p.run) // of the shots before it only the failures are known
        one.update(case_fields(*p.run));
      if (p.labels.distance != 0)
        one["distance"] = p.labels.distance;
      if (p.labels.noise != 0)
        one["p"] = p.labels.noise;
      if (const std::uint32_t rounds = p.labels.rounds; rounds != 0) {
        one["rounds"] = rounds;
        one["logical_error_rate_per_round"] = rate_of_a_round(p.errors().rate(), rounds);
        one["interval_95_per_round"] = {rate_of_a_round(low, rounds), rate_of_a_round(high, rounds)};
      }
      list.push_back(std::move(one));
    }
    return {{"schema_version", kDecodingSchemaVersion},
            {"method",
             "shots sampled from the errors of each model until so many shots are decoded, or so many have failed; a "
             "shot fails if any observable is wrong; Wilson's 95 % intervals; CPU time of the thread without sampling"},
            {"csv", options_.csv_file},
            {"shots_limit", options_.shots},
            {"failures_limit", options_.failures},
            {"errors", options_.errors},
            {"seed", options_.seed},
            {"added_shots", added()},
            {"points", list}};
  }

private:
  template <typename Number>
  static std::string known(Number value) {
    return value == Number{} ? "-" : fmt::format("{}", value);
  }
  static double cpu_ns(const rate_point &p) { return 1e9 * p.counts.seconds / static_cast<double>(p.counts.shots); }

  void add_model(const std::string &path) {
    const std::string dem = read_dem_file(path), name = std::filesystem::path(path).filename().string();
    const model_labels labels = labels_of(path);
    for (const decoding_case &one : cases_of(options_)) {
      const std::string id = strong_id_of(dem, one.name, options_.errors);
      auto point = std::ranges::find(points_, id, [](const rate_point &p) { return p.counts.strong_id; });
      if (point == points_.end())
        point =
            points_.insert(points_.end(), {{0, 0, 0, 0, one.name, id, metadata_of(name, labels)}, name, labels, {}});
      else if (point->task != SIZE_MAX)
        throw usage_error(fmt::format("--dem {}: this model and decoder {} are named twice", path, one.name));
      if (point->counts.discards != 0)
        throw usage_error(fmt::format("--csv: the counts of {} have discards", name));
      point->task = tasks_.size();
      tasks_.push_back({path, dem, {one}, point->counts.shots, point->counts.errors});
      if (!point->has(options_))
        sampled_decoding check(options_, tasks_.back()); // refuses before the work of all models begins
    }
  }

  /// Adds what is missing, to the file too.
  void decode(rate_point &point) {
    sampled_decoding decoding(options_, tasks_[point.task]);
    case_counts written{};
    const auto save = [&](const sampled_decoding::sums_of_cases &sums) {
      const case_counts &now = sums.front();
      if (now.errors.shots == written.errors.shots)
        return;
      sinter_row row = point.counts;
      row.shots = now.errors.shots - written.errors.shots;
      row.errors = now.errors.with - written.errors.with;
      row.seconds = 1e-9 * (now.ns - written.ns);
      file_.add(row);
      point.counts.shots += row.shots;
      point.counts.errors += row.errors;
      point.counts.seconds += row.seconds;
      written = now;
    };
    const sampled_decoding::sums_of_cases sums = decoding.run(save);
    save(sums);
    if (sums.front().errors.shots != 0) // a signal came before the first ones
      point.run = sums.front();
  }

  const bench_decoding_options &options_;
  counts_file file_;
  std::vector<rate_point> points_;
  std::vector<sampled_task> tasks_; ///< one for each model and decoder that is named
};

/// A line for each decoder and distance. `per_round`: "" if the rounds of a point are not known.
std::string plot_of(const json &report, bool per_round) {
  const char *const rate = per_round ? "logical_error_rate_per_round" : "logical_error_rate";
  const char *const interval = per_round ? "interval_95_per_round" : "interval_95";
  std::set<std::string> decoders;
  std::set<std::uint32_t> distances;
  for (const json &p : report["points"]) {
    if (per_round && !p.contains(rate))
      return "";
    if (!p.contains("distance") || !p.contains("p"))
      continue;
    decoders.insert(p["decoder"].get<std::string>());
    distances.insert(p["distance"].get<std::uint32_t>());
  }
  std::vector<plotted_curve> curves;
  for (const std::string &decoder : decoders)
    for (const std::uint32_t distance : distances) {
      const auto place = static_cast<std::size_t>(std::distance(distances.begin(), distances.find(distance)));
      const auto dashes = static_cast<std::size_t>(std::distance(decoders.begin(), decoders.find(decoder)));
      plotted_curve curve{
          fmt::format("{}, d = {}", decoder, distance), place, decoders.size() > 1 ? dashes : place, {}};
      for (const json &p : report["points"]) // sorted by p
        if (p["decoder"] == decoder && p.value("distance", 0U) == distance && p.contains("p"))
          curve.points.push_back({p["p"].get<double>(), p[rate].get<double>(), p[interval][0].get<double>(),
                                  p[interval][1].get<double>()});
      if (!curve.points.empty())
        curves.push_back(std::move(curve));
    }
  return curve_plot(curves, "physical error rate p", per_round ? "logical errors per round" : "logical errors per shot",
                    [](double p) { return fmt::format("{:g}", p); });
}

/// Names of the models that are in no plot, with commas.
std::string unlabelled(const json &report) {
  std::string names;
  for (const json &p : report["points"])
    if (!p.contains("distance") || !p.contains("p"))
      names += (names.empty() ? "" : ", ") + p["dem"].get<std::string>();
  return names;
}

std::string curve_html(const json &report) {
  html_page page("Logical error rates");
  page.add("Per shot", plot_of(report, false));
  page.add("Per round", plot_of(report, true));
  std::vector<std::vector<std::string>> rows{
      {"", "model", "d", "p", "rounds", "shots", "failures", "per shot", "95 % interval", "CPU a shot"}};
  for (const json &p : report["points"]) {
    const auto text = [&p](const char *name) { return p.contains(name) ? p[name].dump() : "-"; };
    rows.push_back(
        {p["decoder"].get<std::string>(), p["dem"].get<std::string>(), text("distance"), text("p"), text("rounds"),
         text("shots"), text("failures"), fmt::format("{:.3g}", p["logical_error_rate"].get<double>()),
         fmt::format("{:.3g} to {:.3g}", p["interval_95"][0].get<double>(), p["interval_95"][1].get<double>()),
         format_ns(p["cpu_ns_per_shot"].get<double>())});
  }
  page.add("Points", html_table(rows));
  page.add("Times of shots, and shots without an answer, of this run", case_tables(report["points"], [](const json &p) {
             return p["decoder"].get<std::string>() + " on " + p["dem"].get<std::string>();
           }));
  if (const std::string names = unlabelled(report); !names.empty())
    page.add("Not in the plots", html_paragraph("Distance or p is not in the name of the file: " + names));
  return page.text(report);
}

} // namespace

model_labels labels_of(const std::string &path) {
  model_labels labels;
  std::string name = std::filesystem::path(path).filename().string();
  if (name.ends_with(".dem"))
    name.resize(name.size() - 4);
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("_,", begin), name.size());
    const std::string_view word = std::string_view(name).substr(begin, end - begin);
    begin = end + 1;
    if (word.size() < 2)
      continue;
    const std::string_view value = word.substr(word[1] == '=' ? 2 : 1);
    double noise = 0;
    if (word[0] == 'd')
      read_all(value, labels.distance);
    else if (word[0] == 'r')
      read_all(value, labels.rounds);
    else if (word[0] == 'p' && read_all(value, noise) && noise > 0 && noise < 1)
      labels.noise = noise;
  }
  return labels;
}

double rate_of_a_round(double rate, std::uint32_t rounds) {
  if (rate > 0.5)
    return 1 - rate_of_a_round(1 - rate, rounds);
  return (1 - std::pow(1 - 2 * rate, 1.0 / rounds)) / 2;
}

int run_error_curve(const bench_decoding_options &o, const output &out) {
  if (o.dem_files.empty() && o.csv_file.empty())
    throw usage_error("--dem is missing: name the files of detector error models, or with --csv the counts to draw");
  if (o.duration_s != 0)
    throw usage_error("--duration: with several models, or --csv, only --shots and --failures end the work");
  error_curve curve(o);
  std::optional<output_file> svg;
  if (!o.svg_file.empty()) {
    if (const std::string refusal = curve.why_not_drawn(); !refusal.empty())
      throw usage_error("--svg: " + refusal);
    svg.emplace("--svg", o.svg_file);
  }
  const interrupt_guard guard; // until here there is nothing to report
  curve.go(out);
  const json report = curve.report();
  if (svg) {
    const std::string picture = svg_file(plot_of(report, false)), names = unlabelled(report);
    if (picture.empty()) // the run was ended before its first shots
      print_error("--svg {}: there is no point to draw; no picture is written\n", o.svg_file);
    else
      svg->write([&](std::ostream &file) { file << picture; });
    if (!names.empty())
      out.text("not in the picture, for want of d or p in the name: {}\n", names);
  }
  const std::uint64_t added = curve.added();
  return out.finish(report, "", kExitCheckFailed,
                    ended(guard.interrupted(), added, curve.complete() ? added : kNotKnown, "new shots"), &curve_html);
}

} // namespace cudaq::realtime::tools
