// SPDX-License-Identifier: Apache-2.0
// The input is a configuration of the decoding server. It is read or refused with a place; matrices that are accepted
// become a model of their sizes.
#include "lib/qec/decoding/dem.h"
#include "lib/qec/server/decoder_types.h"
#include "lib/qec/server/server_config.h"
#include "lib/qec/server/sparse_model.h"
#include "unittests/fuzz/fuzz_input.h"

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

void check_matrices(const decoder_config &c) {
  if (!c.has_checks || !c.has_observables || c.block_size > 1000)
    return; // a list of one element may name many columns
  const auto checks = read_sparse(c.checks, c.block_size), observables = read_sparse(c.observables, c.block_size);
  if (checks.failed() || observables.failed() || checks->rows() == 0 || observables->rows() == 0)
    return;
  const std::vector<double> rates(c.block_size, 0.01);
  const auto model = parse_dem(model_of_matrices(*checks, *observables, rates));
  require(model.ok(), "the text of a model is one");
  require(model->num_detectors == checks->rows() && model->num_observables == observables->rows(), "its sizes");
  std::size_t targets = 0;
  for (const dem_component &component : model->components)
    targets += component.detectors + component.observables;
  require(targets == checks->columns.size() + observables->columns.size(), "its ones");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), std::min<std::size_t>(size, 65536));
  const auto config = read_server_config(text);
  if (config.failed()) {
    require(config.text().starts_with("line ") || config.text().starts_with("this build has no YAML parser"),
            "a refusal names its place");
    return 0;
  }
  require(!config->decoders.empty(), "there is a decoder");
  for (const decoder_config &c : config->decoders) {
    require(c.limits.queue_length <= 65536 && c.limits.age_limit_ns <= 1'000'000'000'000, "limits");
    (void)decoder_type_of(c.type);
    check_matrices(c);
  }
  return 0;
}
