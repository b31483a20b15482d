// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder_types.h"

#include "lib/qec/decoders/decoder_factories.h"

namespace cudaq::qec::realtime {
namespace {

struct foreign_type {
  std::string_view type, instead;
};
constexpr foreign_type kForeign[] = {
    {"nv-qldpc-decoder", "this library has no GPU decoder for qLDPC codes; use bp-osd, which runs on the CPU"},
    {"trt_decoder", "the server does not run neural networks; use the pipeline's AI services, or pymatching"},
    {"sliding_window", "the server decodes whole shots; use pymatching or bp-osd for the whole model"},
    {"tensor_network", "this library has no exact decoder for large codes; use lookup for small ones, else bp-osd"},
};

} // namespace

expected<decoder_type> decoder_type_of(std::string_view type) {
  // A least-weight table gives the answer of these tables wherever they have one, if all errors are equally likely.
  if (type == "single_error_lut" || type == "multi_error_lut")
    return decoder_type{"lookup", true};
  for (const foreign_type &foreign : kForeign)
    if (type == foreign.type)
      return reason(std::string(foreign.instead));
  if (expected<> result = check_decoder_name(type); result.failed())
    return result.reason();
  return decoder_type{std::string(type), false};
}

} // namespace cudaq::qec::realtime
