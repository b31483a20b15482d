// SPDX-License-Identifier: Apache-2.0
// The input is a file of shots in one of Stim's formats. Byte 0 chooses the format, byte 1 the number of detectors,
// byte 2 the number of observables; the file follows. Shots that are read have no bit outside, and their observables
// survive being written and read again. Without Stim only b8 is read. Without detectors and observables the file is one
// of flags, for the model "": what is read are lists of probabilities, of shots that ascend.
#include "lib/qec/shots/flags_file.h"
#include "lib/qec/shots/shot_stream.h"
#include "unittests/fuzz/fuzz_input.h"

#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace cudaq::qec::realtime;
using cudaq::realtime::test::require;

/// A file in memory that has a path.
class memory_file {
public:
  memory_file() : fd_(memfd_create("shots", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    require(fd_ >= 0, "there is memory for a file");
  }
  ~memory_file() { close(fd_); }
  memory_file(const memory_file &) = delete;
  memory_file &operator=(const memory_file &) = delete;
  const std::string &path() const { return path_; }
  void fill(std::span<const std::uint8_t> bytes) const {
    require(pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "the file is written");
  }

private:
  const int fd_;
  const std::string path_;
};

bool no_bits_past_end(std::span<const std::uint8_t> row, std::uint64_t bits) {
  return bits % 8 == 0 || row.back() >> (bits % 8) == 0;
}

using row = std::vector<std::uint8_t>;
row row_of(std::uint64_t bits) { return row((bits + 7) / 8, std::uint8_t{0xEE}); }

/// The rows of observables of all shots. An exception of another type ends the program.
std::vector<row> read_all(const memory_file &file, shot_format format, shot_bits bits, bool may_fail) {
  std::vector<row> rows;
  try {
    shot_reader reader(file.path(), format, bits);
    row detectors = row_of(bits.detectors), observables = row_of(bits.observables);
    while (reader.read(detectors, observables)) {
      require(no_bits_past_end(detectors, bits.detectors) && no_bits_past_end(observables, bits.observables),
              "unused bits are 0");
      rows.push_back(observables);
      require(reader.shots() == rows.size(), "each shot is counted");
    }
  } catch (const shot_file_error &refused) {
    const std::string text = refused.what();
    require(may_fail, "what was written is read: " + text);
    require(text.starts_with(file.path() + ": "), "a refusal names the file: " + text);
    require(text.find('\n') == std::string::npos, "a refusal is one line: " + text);
  }
  return rows;
}

void read_flags(const memory_file &file) {
  try {
    flags_reader reader(file.path(), crc32_of(""), 1000);
    constexpr std::uint64_t kShots = 64;
    for (std::uint64_t shot = 0; shot < kShots; ++shot)
      for (const error_probability &one : reader.next())
        require(one.probability >= 0 && one.probability <= 1, "a probability is one");
    reader.finish(kShots);
  } catch (const shot_file_error &refused) {
    const std::string text = refused.what();
    require(text.starts_with(file.path() + ": line "), "a refusal names the file and the line: " + text);
    require(text.find('\n') == std::string::npos, "a refusal is one line: " + text);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  cudaq::realtime::test::fuzz_input input(data, size);
  const auto format = static_cast<shot_format>(input.take<std::uint8_t>() % kShotFormatNames.size());
  shot_bits bits;
  bits.detectors = input.take<std::uint8_t>();
  bits.observables = input.take<std::uint8_t>() % 32u;
  const memory_file given;
  given.fill(input.rest());
  if (bits.all() == 0) {
    read_flags(given);
    return 0;
  }
  std::vector<row> shots = read_all(given, format, bits, true);
  if (format == shot_format::ptb64)
    shots.resize(shots.size() / kShotsPerPtb64Group * kShotsPerPtb64Group);
  if (bits.observables == 0 || shots.empty())
    return 0;
  const memory_file again;
  shot_writer writer(again.path(), format, bits.observables);
  for (const row &shot : shots)
    writer.write(shot);
  writer.finish();
  require(read_all(again, format, {0, bits.observables}, false) == shots, "observables survive a file");
  return 0;
}
