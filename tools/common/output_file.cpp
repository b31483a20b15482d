// SPDX-License-Identifier: Apache-2.0
#include "tools/common/output_file.h"

#include "tools/common/report.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace cudaq::realtime::tools {
namespace {

constexpr off_t kReservedBytes = off_t{1} << 20;

bool write_all(int fd, const std::string &text) {
  for (std::size_t done = 0; done != text.size();) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

/// Where a chain of symbolic links to a missing file ends; `path` itself if it is no link.
std::filesystem::path end_of_links(std::filesystem::path path) {
  constexpr int kMaxLinks = 40; // as the kernel
  std::error_code error;
  for (int n = 0; n < kMaxLinks && std::filesystem::is_symlink(path, error); ++n)
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  return path;
}

std::filesystem::path folder_of(const std::filesystem::path &path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

/// The file or folder at `path` is the open one.
bool is_open_at(int fd, const std::filesystem::path &path) {
  struct stat own {
  }, other{};
  return fstat(fd, &own) == 0 && stat(path.c_str(), &other) == 0 && own.st_dev == other.st_dev &&
         own.st_ino == other.st_ino;
}

/// All that exist.
std::vector<output_file *> &output_files() {
  static std::vector<output_file *> files;
  return files;
}

} // namespace

output_file::output_file(std::string option, std::string path) : option_(std::move(option)), path_(std::move(path)) {
  refuse_output_file(option_, path_);
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path_, error);
  if (std::filesystem::is_directory(status))
    refuse("it is a folder");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    check_other();
  else
    open_regular(std::filesystem::exists(status));
  output_files().push_back(this);
}

output_file::~output_file() {
  std::erase(output_files(), this);
  discard();
}

void output_file::discard() const {
  if (fd_ >= 0)
    close(fd_);
  if (state_ == name::made)
    unlinkat(folder_, file_name_.c_str(), 0);
  if (folder_ >= 0)
    close(folder_);
}

bool output_file::is_at(const std::string &path) const {
  if (state_ != name::none)
    return fd_ >= 0 && is_open_at(fd_, path);
  const std::filesystem::path end = end_of_links(path);
  return end.filename() == file_name_ && is_open_at(folder_, folder_of(end));
}

void output_file::refuse(const std::string &reason) const {
  throw usage_error(fmt::format("{}: cannot write {}: {}", option_, path_, reason));
}

void output_file::open_new() {
  const std::filesystem::path end = end_of_links(path_);
  file_name_ = end.filename();
  folder_ = open(folder_of(end).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct stat there {};
  if (folder_ < 0)
    return;
  if (fstatat(folder_, file_name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) { // made since the last look
    errno = EEXIST;
    return;
  }
  if (errno != ENOENT)
    return;
  // A file without a name gets it from its entry in /proc.
  if (access("/proc/self/fd", F_OK) == 0)
    fd_ = openat(folder_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  else
    errno = EOPNOTSUPP;
  state_ = name::none;
  if (fd_ >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
    return;
  fd_ = openat(folder_, file_name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  state_ = fd_ >= 0 ? name::made : name::kept;
}

void output_file::open_regular(bool exists) {
  if (exists)
    fd_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  else
    open_new();
  // Beyond the end of the file, whose size stays. Not every file system can do that.
  if (fd_ >= 0 &&
      (fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, kReservedBytes) == 0 || errno == EOPNOTSUPP || errno == ENOSYS))
    return;
  const std::string reason = std::strerror(errno);
  discard(); // a constructor that throws has no destructor
  refuse(reason);
}

/// Gives a file without a name its name. Another file that has got this name during the run is replaced.
bool output_file::give_name() const {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  if (linkat(AT_FDCWD, self.c_str(), folder_, file_name_.c_str(), AT_SYMLINK_FOLLOW) == 0)
    return true;
  const std::string temporary = fmt::format(".cudaq-realtime-{}-{}", getpid(), fd_);
  if (errno != EEXIST || linkat(AT_FDCWD, self.c_str(), folder_, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return false;
  if (renameat(folder_, temporary.c_str(), folder_, file_name_.c_str()) == 0)
    return true;
  const int reason = errno;
  unlinkat(folder_, temporary.c_str(), 0);
  errno = reason;
  return false;
}

/// A device, a pipe or a socket.
void output_file::check_other() const {
  if (access(path_.c_str(), W_OK) != 0)
    refuse(std::strerror(errno));
  if (!std::filesystem::is_character_file(path_))
    return;
  const int fd = open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0)
    refuse(std::strerror(errno));
  const bool full = ::write(fd, "", 0) < 0 && errno == ENOSPC; // as /dev/full says even if there is nothing to write
  close(fd);
  if (full)
    refuse(std::strerror(ENOSPC));
}

void output_file::write(const std::function<void(std::ostream &)> &content) {
  if (kept_)
    return;
  std::ostringstream text;
  content(text);
  const bool regular = fd_ >= 0;
  const int fd = regular ? fd_ : open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  bool good = fd >= 0 && (!regular || ftruncate(fd, 0) == 0) && write_all(fd, text.str());
  // The reserved space that was not used is given back.
  good = good && (!regular || ftruncate(fd, static_cast<off_t>(text.str().size())) == 0);
  good = good && (state_ != name::none || give_name());
  state_ = name::kept;
  const std::string reason = good ? "" : std::strerror(errno);
  if (fd >= 0)
    good = close(fd) == 0 && good;
  fd_ = -1;
  if (!good)
    refuse(reason.empty() ? std::strerror(errno) : reason);
}

void refuse_output_file(const std::string &option, const std::string &path) {
  for (output_file *const file : output_files()) {
    if (!file->is_at(path))
      continue;
    file->keep();
    throw usage_error(fmt::format("{} {}: this is the file of {}", option, path, file->option()));
  }
}

} // namespace cudaq::realtime::tools
