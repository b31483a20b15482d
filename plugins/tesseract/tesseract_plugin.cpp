// SPDX-License-Identifier: Apache-2.0
// Tesseract (L. Aghababaie Beni, O. Higgott, N. Shutty, 2025), a search for the likeliest errors, as a decoder plug-in.
// Settings: docs/decoder_plugin.md.
// CI does not build it; that page says with which commit it was built and tested last.
#include "plugins/support/columns_decoder.h"

#include <string>

#include <tesseract.h>

namespace {

using namespace cudaq::qec::plugins;

class tesseract_solver {
public:
  struct options {
    int beam = tesseract_decoder::DEFAULT_DET_BEAM;
    int orders = 1;
    int queue = static_cast<int>(tesseract_decoder::DEFAULT_PQLIMIT);
    bool climb = false;

    explicit options(const cudaq_qec_decoder_model_t &model) {
      for (std::size_t i = 0; i < model.num_settings; ++i) {
        const cudaq_qec_decoder_setting_t &setting = model.settings[i];
        const std::string key = setting.key;
        if (key == "beam")
          beam = whole_number(setting, 0, 1000);
        else if (key == "orders")
          orders = whole_number(setting, 1, 1000);
        else if (key == "queue")
          queue = whole_number(setting, 1, 100000000);
        else if (key == "climb")
          climb = whole_number(setting, 0, 1) == 1;
        else
          throw std::invalid_argument("the setting " + key + " is not one of beam, orders, queue, climb");
      }
    }
  };

  tesseract_solver(const error_columns &model, std::size_t, const options &with) {
    tesseract_decoder::TesseractConfig config;
    std::vector<stim::DemTarget> targets;
    for (const error_column &column : model.columns) {
      targets.clear();
      for (const std::uint32_t d : column.detectors)
        targets.push_back(stim::DemTarget::relative_detector_id(d));
      for (const std::uint32_t k : column.observables)
        targets.push_back(stim::DemTarget::observable_id(k));
      config.dem.append_error_instruction(column.p, targets, "");
    }
    config.det_beam = with.beam;
    config.beam_climbing = with.climb;
    config.pqlimit = static_cast<std::size_t>(with.queue);
    if (with.orders > 1)
      config.det_orders = tesseract_decoder::build_det_orders(config.dem, static_cast<std::size_t>(with.orders),
                                                              tesseract_decoder::DetOrder::DetBFS, 0);
    with_ = std::make_unique<tesseract_decoder::TesseractDecoder>(std::move(config));
  }

  /// Adds nothing if the search ended without an answer.
  void solve(const std::vector<std::uint8_t> &syndrome, std::vector<std::size_t> &columns) {
    events_.clear();
    for (std::size_t d = 0; d < syndrome.size(); ++d)
      if (syndrome[d] != 0)
        events_.push_back(d);
    with_->decode_to_errors(events_);
    columns = with_->predicted_errors_buffer; // the model's errors are all different, so they keep their numbers
  }

private:
  std::unique_ptr<tesseract_decoder::TesseractDecoder> with_;
  std::vector<std::uint64_t> events_;
};

} // namespace

const cudaq_qec_decoder_plugin_t *cudaq_qec_decoder_plugin_get(std::uint32_t host_version) {
  static const cudaq_qec_decoder_plugin_t table = {CUDAQ_QEC_DECODER_PLUGIN_VERSION,
                                                   sizeof(table),
                                                   "tesseract",
                                                   create<tesseract_solver>,
                                                   decode<tesseract_solver>,
                                                   destroy<tesseract_solver>,
                                                   nullptr,
                                                   nullptr,
                                                   nullptr,
                                                   CUDAQ_QEC_ERRORS_WHOLE,
                                                   0,
                                                   nullptr};
  return host_version == CUDAQ_QEC_DECODER_PLUGIN_VERSION ? &table : nullptr;
}
