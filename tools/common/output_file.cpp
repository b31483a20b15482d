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
  if (fd_ >= 0)
    close(fd_);
}

bool output_file::is_at(const std::string &path) const {
  std::error_code error;
  if (!new_name_.empty())
    return std::filesystem::weakly_canonical(path, error) == new_name_ && !error;
  struct stat own {
  }, other{};
  return fd_ >= 0 && fstat(fd_, &own) == 0 && stat(path.c_str(), &other) == 0 && own.st_dev == other.st_dev &&
         own.st_ino == other.st_ino;
}

void output_file::refuse(const std::string &reason) const {
  throw usage_error(fmt::format("{}: cannot write {}: {}", option_, path_, reason));
}

void output_file::open_regular(bool exists) {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0)
    refuse(std::strerror(errno));
  int problem = 0;
  // Beyond the end of the file, whose size stays. Not every file system can do that.
  if (fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, kReservedBytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
    problem = errno;
  if (!exists) { // the space stays reserved without the name; canonical: path_ may be a link to a file that is missing
    std::error_code error;
    new_name_ = std::filesystem::canonical(path_, error);
    if (error || unlink(new_name_.c_str()) != 0)
      new_name_.clear();
  }
  if (problem != 0)
    refuse(std::strerror(problem));
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
  int fd = fd_;
  if (!new_name_.empty() || !regular)
    fd = open(path_.c_str(), O_WRONLY | O_CLOEXEC | (regular ? O_CREAT : 0), 0666);
  if (regular && fd != fd_)
    close(fd_); // what it reserved is free for the new file
  new_name_.clear();
  bool good = fd >= 0 && (!regular || ftruncate(fd, 0) == 0) && write_all(fd, text.str());
  // The rest of what was reserved is given back.
  good = good && (!regular || ftruncate(fd, static_cast<off_t>(text.str().size())) == 0);
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
