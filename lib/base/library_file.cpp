// SPDX-License-Identifier: Apache-2.0
#include "lib/base/library_file.h"

#include "lib/base/descriptor.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

using elf_header = ElfW(Ehdr);
using segment = ElfW(Phdr);
using section = ElfW(Shdr);
using dynamic_entry = ElfW(Dyn);

/// A file that is open for reading.
class open_file {
public:
  explicit open_file(const std::string &path) : file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    is_open_ = file_ >= 0 && ::fstat(file_, &info_) == 0;
  }
  ~open_file() {
    if (file_ >= 0)
      ::close(file_);
  }
  open_file(const open_file &) = delete;
  open_file &operator=(const open_file &) = delete;

  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  [[nodiscard]] const struct stat &info() const noexcept { return info_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(info_.st_size); }

  [[nodiscard]] bool has(std::uint64_t at, std::uint64_t bytes) const noexcept {
    return at <= size() && bytes <= size() - at;
  }
  /// False: the file ends before.
  template <class T>
  [[nodiscard]] bool read(T *into, std::uint64_t count, std::uint64_t at) const noexcept {
    return read_at(file_, into, count * sizeof(T), at);
  }
  template <class T>
  [[nodiscard]] expected<std::vector<T>> read_table(std::uint64_t at, std::uint64_t count) const {
    if (!has(at, count * sizeof(T)))
      return not_whole(at + count * sizeof(T));
    std::vector<T> table(count);
    if (!read(table.data(), count, at))
      return not_whole(at + count * sizeof(T));
    return table;
  }
  [[nodiscard]] reason not_whole(std::uint64_t needed) const {
    return reason("the file is not whole: it has " + std::to_string(size()) + " bytes of at least " +
                  std::to_string(needed) + "; is it being copied?");
  }

private:
  int file_;
  bool is_open_ = false;
  struct stat info_ {};
};

constexpr const char *kEmptyPart = "the file is not whole: it has its length, but a part of it is empty; is it being "
                                   "copied?";

bool is_of_this_machine(const elf_header &head) {
  constexpr int kClass = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
  constexpr int kData = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  return std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == kClass &&
         head.e_ident[EI_DATA] == kData && head.e_type == ET_DYN && head.e_phentsize == sizeof(segment);
}

expected<> check_segments(const open_file &file, const elf_header &head) {
  const auto segments = file.read_table<segment>(head.e_phoff, head.e_phnum);
  if (segments.failed())
    return segments;
  for (const segment &one : *segments) {
    if (one.p_type != PT_LOAD && one.p_type != PT_DYNAMIC)
      continue;
    if (!file.has(one.p_offset, one.p_filesz))
      return file.not_whole(one.p_offset + one.p_filesz);
    if (one.p_type != PT_DYNAMIC)
      continue;
    const auto entries = file.read_table<dynamic_entry>(one.p_offset, one.p_filesz / sizeof(dynamic_entry));
    if (entries.failed())
      return entries;
    if (std::ranges::none_of(*entries, [](const dynamic_entry &entry) { return entry.d_tag == DT_STRTAB; }))
      return reason(kEmptyPart);
  }
  return {};
}

/// The loader does not need the sections, but they and their table are the last part of the file, so they show its end.
/// A library may have none.
expected<> check_sections(const open_file &file, const elf_header &head) {
  if (head.e_shoff == 0 || head.e_shnum == 0 || head.e_shentsize != sizeof(section))
    return {};
  const auto sections = file.read_table<section>(head.e_shoff, head.e_shnum);
  if (sections.failed())
    return sections;
  for (const section &one : *sections)
    if (one.sh_type != SHT_NOBITS && one.sh_type != SHT_NULL && !file.has(one.sh_offset, one.sh_size))
      return file.not_whole(one.sh_offset + one.sh_size);
  if (head.e_shstrndx != SHN_UNDEF && head.e_shstrndx < sections->size() &&
      (*sections)[head.e_shstrndx].sh_type != SHT_STRTAB)
    return reason(kEmptyPart);
  return {};
}

} // namespace

expected<struct stat> check_library_file(const std::string &path) {
  const auto not_found = [&] { return reason(path + ": cannot open shared object file: " + std::strerror(errno)); };
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return not_found();
  if (!S_ISREG(info.st_mode)) // to open a FIFO could take any time
    return reason("it is not a regular file");
  const open_file file(path);
  if (!file.is_open())
    return not_found();
  elf_header head{};
  if (!file.read(&head, 1, 0) || !is_of_this_machine(head))
    return file.info();
  if (expected<> result = check_segments(file, head); result.failed())
    return result.reason();
  if (expected<> result = check_sections(file, head); result.failed())
    return result.reason();
  return file.info();
}

expected<void *> load_library(const std::string &name) {
  if (void *const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))
    return handle;
  const char *const text = dlerror();
  return reason(text != nullptr ? text : "the dynamic linker gives no reason");
}

expected<void *> check_and_load_library(const std::string &name) {
  if (name.find('/') != std::string::npos && ::access(name.c_str(), F_OK) == 0)
    if (const auto file = check_library_file(name); file.failed())
      return file.reason();
  return load_library(name);
}

} // namespace cudaq::realtime::detail
