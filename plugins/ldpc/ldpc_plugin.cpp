// SPDX-License-Identifier: Apache-2.0
// The decoders BP+LSD and BP+OSD of ldpc (J. Roffe et al.) as a decoder plug-in. Settings: docs/decoder_plugin.md.
// CI does not build it; that page says with which commit it was built and tested last.
#include "plugins/support/columns_decoder.h"

#include <chrono>
#include <sstream>
#include <string>
#include <unordered_map>

// The headers of ldpc use these standard headers without including them.
#include <bp.hpp>
#include <lsd.hpp>
#include <osd.hpp>

namespace {

using namespace cudaq::qec::plugins;

class ldpc_solver {
public:
  struct options {
    bool osd = false;
    int max_iterations = 30;
    int order = 0;
    double scaling = 0.625; ///< of min-sum messages; the default of ldpc

    explicit options(const cudaq_qec_decoder_model_t &model) {
      for (std::size_t i = 0; i < model.num_settings; ++i) {
        const cudaq_qec_decoder_setting_t &setting = model.settings[i];
        const std::string key = setting.key, value = setting.value;
        if (key == "method" && (value == "lsd" || value == "osd"))
          osd = value == "osd";
        else if (key == "method")
          throw std::invalid_argument("method=" + value + ": it must be lsd or osd");
        else if (key == "max_iterations")
          max_iterations = whole_number(setting, 1, 10000);
        else if (key == "order")
          order = whole_number(setting, 0, 60);
        else if (key == "scaling_percent")
          scaling = whole_number(setting, 1, 100) / 100.0;
        else
          throw std::invalid_argument("the setting " + key +
                                      " is not one of method, max_iterations, order, scaling_percent");
      }
      // For greater orders, LSD of ldpc writes outside the memory of clusters that have fewer free columns.
      if (order > 0 && !osd)
        throw std::invalid_argument("order=" + std::to_string(order) + " needs method=osd");
    }
  };

  ldpc_solver(const error_columns &model, std::size_t rank, const options &with)
      : matrix_(static_cast<int>(model.num_detectors), static_cast<int>(model.columns.size())) {
    for (std::size_t column = 0; column < model.columns.size(); ++column) {
      probabilities_.push_back(model.columns[column].p);
      for (const std::uint32_t d : model.columns[column].detectors)
        matrix_.insert_entry(static_cast<int>(d), static_cast<int>(column));
    }
    bp_ = std::make_unique<ldpc::bp::BpDecoder>(matrix_, probabilities_, with.max_iterations, ldpc::bp::MINIMUM_SUM,
                                                ldpc::bp::PARALLEL, with.scaling, 1, ldpc::bp::NULL_INT_VECTOR, 0,
                                                false, ldpc::bp::SYNDROME);
    if (!with.osd) {
      lsd_ = std::make_unique<ldpc::lsd::LsdDecoder>(matrix_, ldpc::osd::OSD_0, 0);
      return;
    }
    // ldpc indexes the free columns with numbers below the order.
    const int order = static_cast<int>(std::min(static_cast<std::size_t>(with.order), model.columns.size() - rank));
    osd_ = std::make_unique<ldpc::osd::OsdDecoder>(
        matrix_, order == 0 ? ldpc::osd::OSD_0 : ldpc::osd::COMBINATION_SWEEP, order, probabilities_);
  }

  void solve(const std::vector<std::uint8_t> &syndrome, std::vector<std::size_t> &columns) {
    syndrome_ = syndrome;
    bp_->decode(syndrome_);
    const std::vector<std::uint8_t> *answer = &bp_->decoding;
    if (!bp_->converge) {
      for (std::size_t i = 0; i < bp_->log_prob_ratios.size(); ++i)
        if (std::isnan(bp_->log_prob_ratios[i])) // it must not reach the sorts
          bp_->log_prob_ratios[i] = bp_->initial_log_prob_ratios[i];
      answer = osd_ != nullptr ? &osd_->decode(syndrome_, bp_->log_prob_ratios)
                               : &lsd_->lsd_decode(syndrome_, bp_->log_prob_ratios);
    }
    for (std::size_t column = 0; column < answer->size(); ++column)
      if ((*answer)[column] != 0)
        columns.push_back(column);
  }

private:
  ldpc::bp::BpSparse matrix_;
  std::vector<double> probabilities_;
  std::vector<std::uint8_t> syndrome_;
  std::unique_ptr<ldpc::bp::BpDecoder> bp_;
  std::unique_ptr<ldpc::lsd::LsdDecoder> lsd_;
  std::unique_ptr<ldpc::osd::OsdDecoder> osd_;
};

} // namespace

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(std::uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   sizeof(table),
                                                   "ldpc",
                                                   create<ldpc_solver>,
                                                   decode<ldpc_solver>,
                                                   destroy<ldpc_solver>,
                                                   nullptr,
                                                   nullptr,
                                                   nullptr,
                                                   CUDAQ_QEC_ERRORS_WHOLE,
                                                   0,
                                                   nullptr};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : nullptr;
}
