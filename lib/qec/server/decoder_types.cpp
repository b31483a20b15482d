// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/server/decoder_types.h"

#include "lib/qec/decoders/decoder_factories.h"

#include <algorithm>

namespace cudaq::qec::realtime {
namespace {

constexpr foreign_type kForeignTypes[] = {
    {"nv_fusion_decoder", "this library does not divide one shot between threads; use pymatching"},
    {"trt_decoder", "the server does not run neural networks; use the pipeline's AI services, or pymatching"},
    {"tensor_network", "this library has no exact decoder for large codes; use lookup for small ones, else bp-osd"},
    {"tensor_network_decoder",
     "this library has no exact decoder for large codes; use lookup for small ones, else bp-osd"},
    {"chromobius", "it is a plug-in here; use the path of libcudaq-qec-chromobius.so"},
};

constexpr foreign_setting kForeignSettings[] = {
    {"merge_strategy", "pymatching|pymatching-correlated|auto",
     "independent|smallest_weight|disallow|keep_original|replace",
     "errors with the same detectors are merged as independent ones"},
    {"lut_error_depth", "lookup", "*", "the table has every syndrome; use depth"},
    {"use_osd", "bp-osd", "true|True|1", "ordered statistics always follow where belief propagation does not converge"},
    {"use_sparsity", "bp-osd", "*", "the matrix is always sparse"},
    {"n_threads", "bp-osd", "*", "one thread decodes a shot"},
    {"bp_batch_size", "bp-osd", "*", "shots are decoded one at a time"},
    {"osd_method", "bp-osd", "", "use osd_order: 0 is OSD-0, a larger one the combination sweep"},
    {"osd_init_method", "bp-osd", "",
     "ordered statistics begin with the sum of the beliefs of all iterations; posterior=last: with the last ones"},
    {"bp_method", "bp-osd", "", "use method: min_sum or product_sum"},
    {"scale_factor", "bp-osd", "", "use scaling"},
    {"clip_value", "bp-osd", "", "messages are not clipped"},
    {"straddle_start_round", "sliding-window", "false|False|0",
     "errors that reach back over the begin of a window were decided by the window before it"},
    {"straddle_end_round", "sliding-window", "true|True|1",
     "errors that reach over the end of a window are always edges to the boundary"},
    {"inner_decoder_params", "sliding-window", "", "give the settings of the inner decoder beside those of the window"},
};

} // namespace

expected<decoder_type> decoder_type_of(std::string_view type) {
  // A least-weight table gives the answer of these tables wherever they have one, if all errors are equally likely.
  if (type == "single_error_lut" || type == "multi_error_lut")
    return decoder_type{"lookup", true};
  if (type == "sliding_window")
    return decoder_type{"sliding-window"};
  if (type == "nv-qldpc-decoder")
    return decoder_type{"relay-bp", false, true};
  for (const foreign_type &foreign : kForeignTypes)
    if (type == foreign.type)
      return reason(std::string(foreign.instead));
  if (expected<> result = check_decoder_name(type); result.failed())
    return result.reason();
  return decoder_type{std::string(type)};
}

std::span<const foreign_type> foreign_types() noexcept { return kForeignTypes; }
std::span<const foreign_setting> foreign_settings() noexcept { return kForeignSettings; }

const foreign_setting *find_foreign_setting(std::string_view decoder, std::string_view setting) noexcept {
  const std::string_view name = decoder.substr(0, decoder.find(':'));
  for (const foreign_setting &foreign : kForeignSettings)
    if (foreign.name == setting && is_one_of(foreign.types, name))
      return &foreign;
  return nullptr;
}

bool is_one_of(std::string_view words, std::string_view word) {
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find('|', begin), words.size());
    if (words.substr(begin, end - begin) == word)
      return true;
    begin = end + 1;
  }
  return false;
}

} // namespace cudaq::qec::realtime
