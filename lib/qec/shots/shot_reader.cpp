// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/number_of.h"
#include "lib/qec/shots/byte_input.h"
#include "lib/qec/shots/format_codec.h"
#include "lib/qec/shots/shot_stream.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdio_ext.h>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {
namespace {

/// A shot of any format is shorter than this. Without a limit, a file without a newline would use up the memory.
std::uint64_t longest_shot(shot_bits bits, shot_format format) {
  constexpr std::uint64_t kLongestIndex = 24; // characters, with prefix and separator
  const std::uint64_t shots = format == shot_format::ptb64 ? kShotsPerPtb64Group : 1;
  return (std::uint64_t{1} << 16) + bits.all() * kLongestIndex * shots;
}

/// Reads a shot of b8, a row of bytes. Returns false at the end of the file.
bool read_b8_row(std::FILE *file, std::span<std::uint8_t> row) {
  const std::size_t got = std::fread(row.data(), 1, row.size(), file);
  if (got != 0 && got != row.size())
    throw std::invalid_argument("b8 data ends in the middle of a shot: " + std::to_string(got) + " of its " +
                                std::to_string(row.size()) + " bytes are there");
  return got != 0;
}

class b8_decoder final : public format_decoder {
public:
  b8_decoder(std::FILE *file, std::uint64_t bits) : file_(file), row_(static_cast<std::size_t>((bits + 7) / 8)) {}

  bool next(std::vector<std::uint64_t> &hits) override {
    if (!read_b8_row(file_, row_))
      return false;
    for (std::size_t at = 0; at < row_.size(); ++at)
      for (unsigned byte = row_[at]; byte != 0; byte &= byte - 1)
        hits.push_back(8 * at + static_cast<std::uint64_t>(__builtin_ctz(byte)));
    return true;
  }

private:
  std::FILE *file_;
  std::vector<std::uint8_t> row_;
};

/// Stim's texts have several lines, and some end with a period.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && (text.back() == '.' || text.back() == ' '))
    text.pop_back();
  return text;
}

/// Sets bit k; returns false if it was set before.
bool set_bit(std::span<std::uint8_t> row, std::uint64_t k) {
  std::uint8_t &byte = row[static_cast<std::size_t>(k / 8)];
  const auto bit = static_cast<std::uint8_t>(1U << (k % 8));
  const bool fresh = (byte & bit) == 0;
  byte = static_cast<std::uint8_t>(byte | bit);
  return fresh;
}

} // namespace

/// The file of a reader. stdio reads it through next_bytes(), which counts: so positions are known in a pipe, too.
struct shot_reader::input {
  byte_input source;
  shot_format format;
  shot_bits bits;
  std::FILE *file = nullptr;
  std::unique_ptr<format_decoder> decoder;
  std::vector<std::uint64_t> hits;
  std::uint64_t shot_begin = 0; ///< bytes that stdio got before the present shot
  bool too_long = false;
  char last = '\n';
  const std::string format_option;
  std::vector<char> stdio_buffer = std::vector<char>(std::size_t{1} << 16);
  std::size_t buffered = 0; ///< bytes of the last call of next_bytes

  input(const std::string &path, shot_format format_, shot_bits bits_, std::string format_option_)
      : source(path), format(format_), bits(bits_), format_option(std::move(format_option_)) {}
  ~input() {
    decoder.reset();
    if (file != nullptr)
      std::fclose(file);
  }
  input(const input &) = delete;
  input &operator=(const input &) = delete;

  static ssize_t next_bytes(void *self, char *buffer, size_t size) {
    auto &in = *static_cast<input *>(self);
    in.too_long = in.source.bytes() - in.shot_begin > longest_shot(in.bits, in.format);
    if (in.too_long)
      return 0;
    const ssize_t got = in.source.read({buffer, size});
    in.buffered = got > 0 && buffer == in.stdio_buffer.data() ? static_cast<std::size_t>(got) : 0;
    if (got > 0)
      in.last = buffer[got - 1];
    return got;
  }
  /// Only the question for the position is answered.
  static int seek(void *self, off64_t *offset, int whence) {
    if (whence != SEEK_CUR || *offset != 0)
      return -1;
    *offset = static_cast<off64_t>(static_cast<input *>(self)->source.bytes());
    return 0;
  }

  [[noreturn]] void fail(std::uint64_t shot, const std::string &why) {
    // A read error comes first: the fault that the format's reader has found is only its consequence.
    if (source.error() != 0)
      source.fail();
    const off_t at = ftello(file);
    throw shot_file_error(
        source.name() + ": shot " + std::to_string(shot) + (at < 0 ? std::string() : ", byte " + std::to_string(at)) +
        ": " + (too_long ? "the shot has more than " + std::to_string(longest_shot(bits, format)) + " bytes" : why));
  }
  /// A shot of b8 with one part is read to its place, without a list of its bits. Lists only bits past the last one,
  /// which read() refuses. Returns false at the end of the file.
  bool read_in_place(std::span<std::uint8_t> row) {
    const unsigned used = bits.all() % 8; // bits of the last byte; 0: all
    if (!read_b8_row(file, row))
      return false;
    if (used != 0 && row.back() >> used != 0)
      hits.push_back(bits.all() +
                     static_cast<std::uint64_t>(std::countr_zero(static_cast<unsigned>(row.back() >> used))));
    return true;
  }
  [[nodiscard]] std::string bit_name(std::uint64_t k) const {
    return k < bits.detectors || bits.all() == bits.detectors ? "detector " + std::to_string(k)
                                                              : "observable " + std::to_string(k - bits.detectors);
  }
  [[nodiscard]] std::string shot_text() const {
    std::string text;
    if (bits.detectors != 0)
      text += number_of(bits.detectors, "detector");
    if (bits.detectors != 0 && bits.observables != 0)
      text += " and ";
    if (bits.observables != 0)
      text += number_of(bits.observables, "observable");
    return format == shot_format::b8 ? text + " = " + number_of((bits.all() + 7) / 8, "byte") : text;
  }
  /// The byte that was read last, if the format is a text and the byte is none: in hexadecimal, else "".
  [[nodiscard]] std::string byte_that_is_no_text() const {
    const bool is_text = format == shot_format::text01 || format == shot_format::hits || format == shot_format::dets;
    const auto at = static_cast<std::uint64_t>(std::max<off_t>(ftello(file), 0));
    const std::uint64_t begin = source.bytes() - buffered;
    if (!is_text || at <= begin || at > source.bytes())
      return "";
    const auto byte = static_cast<unsigned char>(stdio_buffer[static_cast<std::size_t>(at - 1 - begin)]);
    if ((byte >= ' ' && byte < 0x7f) || (byte >= '\t' && byte <= '\r'))
      return "";
    constexpr const char *kDigits = "0123456789abcdef";
    return std::string("0x") + kDigits[byte / 16] + kDigits[byte % 16];
  }
  [[nodiscard]] std::string expected() const {
    std::string text = "; a shot has " + shot_text();
    if (!format_option.empty() && !byte_that_is_no_text().empty())
      return text + " (is the file b8? try " + format_option + " b8)";
    if (format == shot_format::ptb64)
      text += ", and a ptb64 file has groups of 64 shots";
    return text + " (is " + std::string(name_of(format)) + " the right format, and the model that of the shots?)";
  }
};

shot_reader::shot_reader(const std::string &path, shot_format format, shot_bits bits, std::string format_option) {
  if (bits.all() == 0)
    throw shot_file_error((path == "-" ? "stdin" : path) +
                          ": by its model a shot has no bits, so the file can hold no shots");
  input_ = std::make_unique<input>(path, format, bits, std::move(format_option));
  input &in = *input_;
  cookie_io_functions_t functions{};
  functions.read = &input::next_bytes;
  functions.seek = &input::seek;
  in.file = fopencookie(&in, "rb", functions);
  if (in.file == nullptr)
    throw shot_file_error(in.source.name() + ": cannot be opened: " + std::strerror(errno));
  std::setvbuf(in.file, in.stdio_buffer.data(), _IOFBF, in.stdio_buffer.size());
  __fsetlocking(in.file, FSETLOCKING_BYCALLER); // one thread reads: no lock for each character
  if (format == shot_format::b8)
    in.decoder = std::make_unique<b8_decoder>(in.file, bits.all());
  else
    in.decoder = make_stim_decoder(in.file, format, bits);
  if (in.decoder == nullptr)
    throw shot_file_error(in.source.name() + ": format " + std::string(name_of(format)) +
                          ": this build has no Stim, so it reads only b8 (share/doc/cudaq-realtime/docs/decoding.md, "
                          "\"Getting PyMatching\")");
}

shot_reader::~shot_reader() = default;

const std::string &shot_reader::name() const noexcept { return input_->source.name(); }

std::string shot_reader::shot_text() const { return input_->shot_text(); }

std::uint64_t shot_reader::expected_shots() const noexcept {
  const off_t read = ftello(input_->file);
  const std::uint64_t size = input_->source.size();
  if (read <= 0 || size == 0)
    return 0;
  return static_cast<std::uint64_t>(
      std::llround(static_cast<double>(shots_) * static_cast<double>(size) / static_cast<double>(read)));
}

void shot_reader::stop_when(std::function<bool()> stop_requested) noexcept {
  input_->source.stop_when(std::move(stop_requested));
}

bool shot_reader::read(std::span<std::uint8_t> detectors, std::span<std::uint8_t> observables) {
  input &in = *input_;
  in.shot_begin = in.source.bytes();
  in.hits.clear();
  bool more = false;
  const bool one_part = in.bits.detectors == 0 || in.bits.observables == 0;
  std::fill(detectors.begin(), detectors.end(), std::uint8_t{0});
  std::fill(observables.begin(), observables.end(), std::uint8_t{0});
  try {
    if (in.format == shot_format::b8 && one_part)
      more = in.read_in_place((in.bits.observables == 0 ? detectors : observables).first((in.bits.all() + 7) / 8));
    else
      more = in.decoder->next(in.hits);
  } catch (const std::exception &failure) {
    if (in.source.stopped())
      return false;
    const std::string byte = in.byte_that_is_no_text();
    in.fail(shots_, (byte.empty() ? one_line(failure.what()) : "the byte " + byte + " is no text") + in.expected());
  }
  if (in.source.error() != 0 || in.too_long)
    in.fail(shots_, "");
  if (!more || in.source.stopped())
    return false;
  // Stim's reader of dets takes the end of the file for the end of a line: the last index may be cut.
  if (in.format == shot_format::dets && std::feof(in.file) != 0 && in.last != '\n')
    in.fail(shots_, "dets data ends without a newline, so the last shot may be cut");
  for (const std::uint64_t k : in.hits) {
    if (k >= in.bits.all())
      in.fail(shots_, "bit " + std::to_string(k) + " is set" + in.expected());
    if (!(k < in.bits.detectors ? set_bit(detectors, k) : set_bit(observables, k - in.bits.detectors)))
      in.fail(shots_, in.bit_name(k) + " is listed twice");
  }
  ++shots_;
  return true;
}

} // namespace cudaq::qec::realtime
