// SPDX-License-Identifier: Apache-2.0
// Not a test: prints how often bp-osd needs ordered statistics on recorded shots, and its processor time with and
// without them, for the tables of docs/decoders/bp_osd.md. No public interface says so: `cudaq-realtime decode` has the
// logical error rate only.
//
//   qec_bp_osd_measure PREFIX min_sum|product_sum MAX_ITERATIONS SCALING OSD_ORDER SHOTS sum|last
//
// PREFIX.dem is the model; PREFIX.dets.b8 and PREFIX.obs.b8 hold the shots, of which the first SHOTS are decoded.
#include "lib/qec/decoders/bp_osd/bp_osd_decoder.h"
#include "lib/qec/decoding/event_bits.h"
#include "lib/qec/decoding/thread_clock.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace cudaq::qec::realtime {
namespace {

std::vector<std::uint8_t> read_all(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct counts {
  std::uint64_t shots = 0;
  std::uint64_t wrong = 0;
  std::uint64_t statistics = 0; ///< shots that used ordered statistics
  std::uint64_t iterations = 0;
  double us = 0;
  double us_statistics = 0; ///< of the shots that used ordered statistics
};

counts measure(bp_osd &solver, const std::vector<std::uint8_t> &detections, const std::vector<std::uint8_t> &truth,
               std::uint64_t shots) {
  const tanner_graph &graph = solver.graph();
  const std::size_t row = (graph.num_detectors + 7) / 8;
  const std::size_t answer_row = (graph.num_observables + 7) / 8;
  std::vector<std::uint64_t> events(graph.num_detectors);
  counts sum;
  for (std::size_t at = 0; at < shots && (at + 1) * row <= detections.size(); ++at, ++sum.shots) {
    const std::size_t count =
        unpack_events(std::span(detections).subspan(at * row, row), graph.num_detectors, events).count;
    const double begin = thread_seconds();
    const decode_status status = solver.solve(std::span(events).first(count));
    const double us = 1e6 * (thread_seconds() - begin);
    std::vector<std::uint8_t> answer(answer_row);
    for (const std::uint32_t column : solver.correction())
      for (const std::uint64_t k : graph.observables_of(column))
        answer[k / 8] = static_cast<std::uint8_t>(answer[k / 8] ^ (1U << (k % 8)));
    sum.wrong +=
        status != decode_status::ok ||
        !std::equal(answer.begin(), answer.end(), truth.begin() + static_cast<std::ptrdiff_t>(at * answer_row));
    sum.us += us;
    sum.iterations += solver.iterations();
    if (!solver.used_ordered_statistics())
      continue;
    ++sum.statistics;
    sum.us_statistics += us;
  }
  return sum;
}

int run(const std::string &prefix, const bp_osd_options &options, std::uint64_t shots) {
  const auto text = read_all(prefix + ".dem");
  const auto model = parse_dem(std::string(text.begin(), text.end()));
  if (model.failed()) {
    std::fprintf(stderr, "%s\n", model.text().c_str());
    return 1;
  }
  auto graph = tanner_graph::from_dem(*model);
  if (graph.failed()) {
    std::fprintf(stderr, "%s\n", graph.text().c_str());
    return 1;
  }
  bp_osd solver(std::move(*graph), options);
  const counts sum = measure(solver, read_all(prefix + ".dets.b8"), read_all(prefix + ".obs.b8"), shots);
  const auto n = static_cast<double>(sum.shots);
  std::printf("%u checks, %u columns, %llu of %llu wrong; OSD %.2f %%, %.1f iterations, %.1f us a shot, %.0f us a shot "
              "with OSD\n",
              solver.graph().num_checks, solver.graph().num_columns(), static_cast<unsigned long long>(sum.wrong),
              static_cast<unsigned long long>(sum.shots), 100 * static_cast<double>(sum.statistics) / n,
              static_cast<double>(sum.iterations) / n, sum.us / n,
              sum.us_statistics / static_cast<double>(std::max<std::uint64_t>(1, sum.statistics)));
  return 0;
}

} // namespace
} // namespace cudaq::qec::realtime

int main(int count, char **arguments) {
  using namespace cudaq::qec::realtime;
  if (count != 8) {
    std::fprintf(stderr, "usage: %s PREFIX min_sum|product_sum MAX_ITERATIONS SCALING OSD_ORDER SHOTS sum|last\n",
                 arguments[0]);
    return 2;
  }
  bp_osd_options options;
  options.method = std::string_view(arguments[2]) == "product_sum" ? bp_method::product_sum : bp_method::min_sum;
  options.max_iterations = static_cast<std::uint32_t>(std::strtoul(arguments[3], nullptr, 10));
  options.scaling = std::strtod(arguments[4], nullptr);
  options.osd_order = static_cast<std::uint32_t>(std::strtoul(arguments[5], nullptr, 10));
  options.sums_posteriors = std::string_view(arguments[7]) == "sum";
  return run(arguments[1], options, std::strtoull(arguments[6], nullptr, 10));
}
