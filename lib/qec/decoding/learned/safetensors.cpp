// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/learned/safetensors.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace cudaq::qec::realtime {
namespace {

constexpr std::uint64_t kMaxHeader = std::uint64_t{1} << 20;

/// Thrown inside the parser only.
struct header_error : std::runtime_error {
  using runtime_error::runtime_error;
};

/// Reads the part of JSON that a header has: objects, texts, and lists of numbers that are not negative.
class header_reader {
public:
  explicit header_reader(std::string_view text) : rest_(text) {}

  /// Calls member(name) before the value of each member.
  template <class Member>
  void object(const Member &member) {
    expect('{');
    if (accept('}'))
      return;
    do {
      std::string name = text();
      expect(':');
      member(std::move(name));
    } while (accept(','));
    expect('}');
  }

  std::string text() {
    expect('"');
    std::string read;
    while (true) {
      if (rest_.empty())
        throw header_error("a text without an end");
      const char next = rest_.front();
      rest_.remove_prefix(1);
      if (next == '"')
        return read;
      if (static_cast<unsigned char>(next) < 0x20)
        throw header_error("a control character in a text");
      read += next == '\\' ? escaped() : next;
    }
  }

  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> read;
    expect('[');
    if (accept(']'))
      return read;
    do {
      skip_space();
      std::uint64_t value = 0;
      const auto [stopped, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (fault != std::errc{})
        throw header_error("a list has something else than numbers of 64 bits");
      rest_.remove_prefix(static_cast<std::size_t>(stopped - rest_.data()));
      read.push_back(value);
    } while (accept(','));
    expect(']');
    return read;
  }

  void finish() {
    skip_space();
    if (!rest_.empty())
      throw header_error("something after its last brace");
  }

private:
  void skip_space() {
    const std::size_t begin = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(begin == std::string_view::npos ? rest_.size() : begin);
  }
  bool accept(char wanted) {
    skip_space();
    if (rest_.empty() || rest_.front() != wanted)
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted))
      throw header_error(std::string("there is no '") + wanted + "' where one must be");
  }
  /// A control character and one outside ASCII become '?': only the card can have one, and no name that matters.
  char escaped() {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/?????";
    const char letter = rest_.empty() ? '\0' : rest_.front();
    if (letter == 'u') {
      unsigned code = 0;
      const char *const digits = rest_.data() + 1;
      if (rest_.size() < 5 || std::from_chars(digits, digits + 4, code, 16).ptr != digits + 4)
        throw header_error("\\u without four digits");
      rest_.remove_prefix(5);
      return code >= 0x20 && code < 0x7F ? static_cast<char>(code) : '?';
    }
    const std::size_t known = kLetters.find(letter);
    if (rest_.empty() || known == std::string_view::npos)
      throw header_error("an unknown character after \\");
    rest_.remove_prefix(1);
    return kMeanings[known];
  }

  std::string_view rest_;
};

safetensors::tensor read_tensor(header_reader &header, const std::string &name, std::span<const std::uint8_t> data) {
  safetensors::tensor tensor;
  std::vector<std::uint64_t> offsets;
  header.object([&](const std::string &key) {
    if (key == "dtype")
      tensor.type = header.text();
    else if (key == "shape")
      tensor.shape = header.numbers();
    else if (key == "data_offsets")
      offsets = header.numbers();
    else
      throw header_error("tensor " + name + " has an unknown member");
  });
  if (tensor.type.empty() || offsets.size() != 2)
    throw header_error("tensor " + name + " has no type, or not two offsets");
  if (offsets[0] > offsets[1] || offsets[1] > data.size())
    throw header_error("tensor " + name + " is not inside the file");
  tensor.data = data.subspan(static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(offsets[1] - offsets[0]));
  return tensor;
}

/// Tensors that share bytes would let a small file ask for much memory.
void check_no_byte_is_shared(const safetensors &read) {
  std::vector<std::span<const std::uint8_t>> parts;
  for (const auto &[name, tensor] : read.tensors)
    if (!tensor.data.empty())
      parts.push_back(tensor.data);
  std::ranges::sort(parts, {}, [](const auto &part) { return part.data(); });
  for (std::size_t k = 1; k < parts.size(); ++k)
    if (parts[k - 1].data() + parts[k - 1].size() > parts[k].data())
      throw header_error("two tensors have the same bytes of the file");
}

} // namespace

expected<safetensors> parse_safetensors(std::span<const std::uint8_t> file) {
  std::uint64_t size = 0;
  for (std::size_t k = 0; k < 8 && k < file.size(); ++k)
    size |= std::uint64_t{file[k]} << (8 * k);
  if (file.size() < 8 || size > kMaxHeader || size > file.size() - 8)
    return reason("not a file of safetensors: its header does not fit into it, or has more than 1 MiB");
  const auto header_bytes = file.subspan(8, static_cast<std::size_t>(size));
  const auto data = file.subspan(8 + header_bytes.size());
  try {
    header_reader header({reinterpret_cast<const char *>(header_bytes.data()), header_bytes.size()});
    safetensors read;
    bool card = false;
    header.object([&](std::string name) {
      if (name == "__metadata__") {
        if (std::exchange(card, true))
          throw header_error("two cards");
        header.object([&](std::string key) { read.metadata[std::move(key)] = header.text(); });
      } else if (!read.tensors.emplace(name, read_tensor(header, name, data)).second) {
        throw header_error("two tensors have the name " + name);
      }
    });
    header.finish();
    check_no_byte_is_shared(read);
    return read;
  } catch (const header_error &failure) {
    return reason(std::string("header of safetensors: ") + failure.what());
  }
}

} // namespace cudaq::qec::realtime
