// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/shots/format_codec.h"
#include "lib/qec/shots/shot_stream.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {
namespace {

void put(std::FILE *file, std::uint64_t word, int bytes) {
  for (int k = 0; k < bytes; ++k)
    std::putc(static_cast<int>(word >> (8 * k) & 0xff), file);
}

class b8_encoder final : public format_encoder {
public:
  explicit b8_encoder(std::FILE *file) : file_(file) {}
  void write(std::span<const std::uint8_t> row) override {
    for (const std::uint8_t byte : row)
      put(file_, byte, 1);
  }

private:
  std::FILE *file_;
};

/// 64 shots make a group: for each bit one word, with shot k of the group in bit k.
class ptb64_encoder final : public format_encoder {
public:
  ptb64_encoder(std::FILE *file, std::uint64_t bits) : file_(file), words_(static_cast<std::size_t>(bits)) {}
  void write(std::span<const std::uint8_t> row) override {
    for (std::size_t bit = 0; bit < words_.size(); ++bit)
      words_[bit] |= std::uint64_t{static_cast<unsigned>(row[bit / 8]) >> (bit % 8) & 1U} << shot_;
    if (++shot_ != kShotsPerPtb64Group)
      return;
    for (std::uint64_t &word : words_) {
      put(file_, word, 8);
      word = 0;
    }
    shot_ = 0;
  }

private:
  std::FILE *file_;
  std::vector<std::uint64_t> words_;
  std::uint64_t shot_ = 0;
};

} // namespace

struct shot_writer::output {
  std::string name;
  shot_format format;
  std::FILE *file = nullptr;
  std::unique_ptr<format_encoder> encoder;
  const char *unit;
  std::uint64_t shots = 0;

  output(const std::string &path, shot_format format_, const char *unit_)
      : name(path == "-" ? "stdout" : path), format(format_), unit(unit_) {}
  ~output() {
    if (file != nullptr)
      std::fclose(file);
  }
  output(const output &) = delete;
  output &operator=(const output &) = delete;

  [[noreturn]] void fail() const {
    const std::string why = errno == 0 ? "unknown error" : std::strerror(errno);
    throw shot_file_error(name + ": cannot be written, at most " + std::to_string(shots) + " " + unit +
                          " are in it: " + why);
  }
};

/// Closing it shows errors that come late, and other users of stdout keep theirs.
static std::FILE *copy_of_stdout() {
  const int copy = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  std::FILE *const file = copy < 0 ? nullptr : fdopen(copy, "wb");
  if (file == nullptr && copy >= 0)
    close(copy);
  return file;
}

shot_writer::shot_writer(const std::string &path, shot_format format, std::uint64_t observables, const char *unit)
    : output_(std::make_unique<output>(path, format, unit)) {
  output &out = *output_;
  out.file = path == "-" ? copy_of_stdout() : std::fopen(path.c_str(), "wbe");
  if (out.file == nullptr)
    throw shot_file_error(out.name + ": cannot be opened: " + std::strerror(errno));
  std::setvbuf(out.file, nullptr, _IOFBF, std::size_t{1} << 16);
  __fsetlocking(out.file, FSETLOCKING_BYCALLER); // one thread writes: no lock for each character
  if (format == shot_format::b8)
    out.encoder = std::make_unique<b8_encoder>(out.file);
  else if (format == shot_format::ptb64)
    out.encoder = std::make_unique<ptb64_encoder>(out.file, observables);
  else
    out.encoder = make_stim_encoder(out.file, format, observables);
  if (out.encoder == nullptr)
    throw shot_file_error(out.name + ": format " + std::string(name_of(format)) +
                          ": this build has no Stim, so it writes only b8 and ptb64");
}

shot_writer::~shot_writer() = default;

const std::string &shot_writer::name() const noexcept { return output_->name; }

void shot_writer::write(std::span<const std::uint8_t> row) {
  output_->encoder->write(row);
  ++output_->shots;
}

void shot_writer::flush() {
  errno = 0;
  if (std::fflush(output_->file) != 0 || std::ferror(output_->file) != 0)
    output_->fail();
}

void shot_writer::finish() {
  output &out = *output_;
  flush();
  errno = 0;
  if (std::fclose(std::exchange(out.file, nullptr)) != 0)
    out.fail();
  if (const std::uint64_t rest = out.shots % kShotsPerPtb64Group; out.format == shot_format::ptb64 && rest != 0)
    throw shot_file_error(out.name + ": ptb64 holds groups of 64 shots, and " + std::to_string(out.shots) +
                          " is not a multiple: the last " + std::to_string(rest) +
                          " shots are not written; choose another format");
}

} // namespace cudaq::qec::realtime
