// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/shots/format_codec.h"

#include "stim/io/measure_record_reader.h"
#include "stim/io/measure_record_writer.h"

namespace cudaq::qec::realtime {
namespace {

constexpr std::size_t kWidth = 64; ///< of Stim's words: the sparse readers do not use wider ones

stim::SampleFormat stim_format(shot_format format) {
  switch (format) {
  case shot_format::text01:
    return stim::SampleFormat::SAMPLE_FORMAT_01;
  case shot_format::b8:
    return stim::SampleFormat::SAMPLE_FORMAT_B8;
  case shot_format::r8:
    return stim::SampleFormat::SAMPLE_FORMAT_R8;
  case shot_format::hits:
    return stim::SampleFormat::SAMPLE_FORMAT_HITS;
  case shot_format::dets:
    return stim::SampleFormat::SAMPLE_FORMAT_DETS;
  case shot_format::ptb64:
    return stim::SampleFormat::SAMPLE_FORMAT_PTB64;
  }
  throw std::invalid_argument("unknown shot format");
}

class stim_decoder final : public format_decoder {
public:
  // Only dets has names for detectors and observables. In the other formats an observable is a further bit: as a
  // detector of Stim's reader it stays in `hits`.
  stim_decoder(std::FILE *file, shot_format format, shot_bits bits)
      : detectors_(bits.detectors), observables_(format == shot_format::dets ? bits.observables : 0),
        reader_(stim::MeasureRecordReader<kWidth>::make(file, stim_format(format), 0, bits.all() - observables_,
                                                        observables_)) {}

  bool next(std::vector<std::uint64_t> &hits) override {
    shot_.clear();
    if (!reader_->start_and_read_entire_record(shot_))
      return false;
    hits.insert(hits.end(), shot_.hits.begin(), shot_.hits.end());
    for (std::uint64_t k = 0; k < observables_; ++k)
      if (shot_.obs_mask[k])
        hits.push_back(detectors_ + k);
    return true;
  }

private:
  std::uint64_t detectors_, observables_;
  std::unique_ptr<stim::MeasureRecordReader<kWidth>> reader_;
  stim::SparseShot shot_;
};

class stim_encoder final : public format_encoder {
public:
  stim_encoder(std::FILE *file, shot_format format, std::uint64_t observables)
      : observables_(observables), writer_(stim::MeasureRecordWriter::make(file, stim_format(format))) {
    writer_->begin_result_type('L');
  }
  void write(std::span<const std::uint8_t> row) override {
    row_.assign(row.begin(), row.end()); // Stim's function takes memory that it may write
    writer_->write_bits(row_.data(), static_cast<std::size_t>(observables_));
    writer_->write_end();
  }

private:
  std::uint64_t observables_;
  std::vector<std::uint8_t> row_;
  std::unique_ptr<stim::MeasureRecordWriter> writer_;
};

} // namespace

std::unique_ptr<format_decoder> make_stim_decoder(std::FILE *file, shot_format format, shot_bits bits) {
  return std::make_unique<stim_decoder>(file, format, bits);
}

std::unique_ptr<format_encoder> make_stim_encoder(std::FILE *file, shot_format format, std::uint64_t observables) {
  return std::make_unique<stim_encoder>(file, format, observables);
}

} // namespace cudaq::qec::realtime
