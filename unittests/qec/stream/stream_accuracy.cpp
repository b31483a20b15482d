// SPDX-License-Identifier: Apache-2.0
// Whether windows cost accuracy: logical errors of a stream and of whole shots on the same shots. Ends with status 1 if
// the stream has clearly more. Built again with faults in the sources of windows, each of which it must notice.
#include "unittests/qec/stream/stream_test_support.h"

#include <cstdio>

namespace {

using namespace cudaq::qec::realtime;
using namespace cudaq::qec::realtime::test;

/// True: the stream is as good as whole shots.
bool is_as_good(const std::string &name, const std::string &text, stream_options options, int shots, double max_ratio) {
  options.decoder = "pymatching";
  const auto stream = stream_or_throw(text, options);
  const auto whole = make_or_throw("pymatching", text);
  const auto model = *parse_dem(text);
  component_sampler errors(model, 2463534242U);
  int wrong_stream = 0, wrong_whole = 0, failed = 0;
  for (int k = 0; k < shots; ++k) {
    const auto shot = errors.next();
    std::vector<std::uint8_t> out(whole->observable_bytes());
    wrong_whole += whole->decode_bits(shot.events, out) != decode_status::ok || out != shot.observables;
    stream->reset();
    const bool ok = run(*stream, shot.events, model.num_detectors) == decode_status::ok;
    failed += !ok;
    wrong_stream += !ok || flips_of(*stream) != shot.observables;
  }
  std::printf("%s: wrong of %d shots: windows %d (%d without an answer), whole shots %d\n", name.c_str(), shots,
              wrong_stream, failed, wrong_whole);
  return wrong_whole >= 30 && failed == 0 && wrong_stream <= max_ratio * wrong_whole;
}

} // namespace

int main(int argc, char **argv) {
  const stream_mode mode =
      argc > 1 && std::string_view(argv[1]) == "parallel" ? stream_mode::parallel : stream_mode::sequential;
  std::string surface = surface_dem();
  const std::size_t at = surface.find("repeat ") + 7;
  surface.replace(at, surface.find(' ', at) - at, "14");
  const bool first = is_as_good("surface code, d = 3", surface, {.commit = 3, .buffer = 3, .mode = mode}, 1200, 1.12);
  const bool second = is_as_good("repetition code, d = 5", repetition_dem(5, 0.04, 1, 40),
                                 {.commit = 5, .buffer = 5, .mode = mode}, 1500, 1.12);
  // A short buffer costs accuracy, and a closed far side of it much more.
  const bool third = is_as_good("short buffer, d = 7", repetition_dem(7, 0.05, 1, 40),
                                {.commit = 2, .buffer = 2, .mode = mode}, 1500, 1.7);
  return first && second && third ? 0 : 1;
}
