// SPDX-License-Identifier: Apache-2.0
// The input: a byte for the rule of rounds (0: time; N: index:N), and the text of a detector error model. A model with
// a loop that is accepted, unrolled for some lengths, is what the parser of whole models makes of the text with the
// loop written out so often: error by error.
#include "lib/qec/stream/repeating_model.h"
#include "unittests/fuzz/fuzz_input.h"

#include <charconv>
#include <optional>

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::fuzz_input;
using cudaq::realtime::test::require;

// Small, so that every input is quick.
constexpr dem_limits kLimits{.detectors = 4096, .observables = 1024, .instructions = 20000, .targets = 40000};

/// The number of a line "repeat 10 {".
std::optional<std::uint64_t> number_before_brace(std::string_view line) {
  line = line.substr(0, line.find('{'));
  line = line.substr(0, line.find_last_not_of(" \t") + 1);
  line.remove_prefix(line.find_last_not_of("0123456789") + 1);
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), number);
  return code == std::errc() && end == line.data() + line.size() ? std::optional(number) : std::nullopt;
}

std::string_view trimmed(std::string_view line) {
  line = line.substr(0, line.find_last_not_of(" \t\r\n") + 1);
  return line.substr(std::min(line.find_first_not_of(" \t\r\n"), line.size()));
}

/// The text with the outer loop that has this number written out: its lines so many times instead of the loop. Nothing
/// if the loop is not found, because its lines are unusual: an instruction may stand in one line with a brace.
std::optional<std::string> written_out(std::string_view text, std::uint64_t number, std::uint64_t repetitions) {
  std::string before, body, after;
  int depth = 0;
  enum { head, loop, tail } place = head;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string line(text.substr(0, size));
    text.remove_prefix(size);
    const std::string code = line.substr(0, line.find('#'));
    if (code.find('[') != std::string::npos) // a tag may have any text
      return std::nullopt;
    const bool opens = code.find('{') != std::string::npos, closes = code.find('}') != std::string::npos;
    depth += (opens ? 1 : 0) - (closes ? 1 : 0);
    if (place == head && opens && depth == 1 && number_before_brace(code) == number && trimmed(code).ends_with('{'))
      place = loop;
    else if (place == loop && closes && depth == 0 && trimmed(code) == "}")
      place = tail;
    else
      (place == head ? before : place == loop ? body : after) += line;
  }
  if (place != tail)
    return std::nullopt;
  for (std::uint64_t k = 0; k < repetitions; ++k)
    before += body;
  return before + after;
}

void require_equal(const detector_error_model &unrolled, const detector_error_model &whole) {
  require(unrolled.num_observables == whole.num_observables, "the observables are those of the text");
  require(unrolled.num_detectors == whole.num_detectors, "the detectors are those of the text");
  require(unrolled.num_errors == whole.num_errors, "the errors are those of the text");
  require(unrolled.targets == whole.targets && unrolled.components.size() == whole.components.size(),
          "the targets are those of the text");
  for (std::size_t k = 0; k < whole.components.size(); ++k) {
    const dem_component &a = unrolled.components[k], &b = whole.components[k];
    require(a.probability == b.probability && a.mechanism == b.mechanism && a.detectors == b.detectors &&
                a.observables == b.observables && a.first_target == b.first_target,
            "a component is that of the text");
  }
}

void check_rounds(const repeating_model &model) {
  for (std::uint64_t round = 0; round < 50; ++round) {
    const std::uint64_t first = model.first_detector(round), next = model.first_detector(round + 1);
    require(first < next, "a round has detectors");
    require(model.round_of(first) == round && model.round_of(next - 1) == round, "a detector is in its round");
  }
  require(model.rounds(3).size() == model.head_detectors() + 3 * model.body_detectors() + model.tail_detectors(),
          "each detector has a round");
  require(model.reach() <= model.rounds(4).size(), "no error reaches over more rounds than there are");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  fuzz_input input(data, size);
  const round_rule rule{.detectors = input.take<std::uint8_t>()};
  const auto rest = input.rest();
  const std::string_view text(reinterpret_cast<const char *>(rest.data()), rest.size());
  const auto model = repeating_model::of(text, rule, kLimits);
  if (model.failed()) {
    require(!model.text().empty(), "a refusal has a reason");
    return 0;
  }
  check_rounds(*model);
  for (const std::uint64_t repetitions : {1u, 2u, 3u, 7u}) {
    const auto unrolled = model->unrolled(repetitions);
    const auto other = written_out(text, model->repetitions(), repetitions);
    if (!other)
      return 0;
    const auto whole = parse_dem(*other, kLimits);
    require(unrolled.ok() == whole.ok(), "both take this length or none: " + unrolled.text() + " / " + whole.text());
    if (unrolled.ok())
      require_equal(*unrolled, *whole);
  }
  return 0;
}
