// SPDX-License-Identifier: Apache-2.0
// A file that the command line names for a result.
#pragma once

#include <functional>
#include <ostream>
#include <string>

namespace cudaq::realtime::tools {

/// Opened before the work and written after it, so that a path that cannot be written wastes no run. On a file system
/// it also reserves 1 MiB: a disk that is full, or that becomes full during the run, is noticed before the run. What
/// the file had before stays in it until write(). A new file has no name until it is written, so that a program that a
/// signal ends leaves no empty file; where the file system has only files with names (NFS), it leaves one. Not noticed
/// before the run: that its folder becomes read-only, or is removed, during it.
class output_file {
public:
  /// `option` named it. Throws usage_error with both names if the file cannot be written, or is another output_file.
  output_file(std::string option, std::string path);
  ~output_file();
  output_file(const output_file &) = delete;
  output_file &operator=(const output_file &) = delete;

  /// Replaces the content. Throws usage_error if that fails. Call it once.
  void write(const std::function<void(std::ostream &)> &content);
  [[nodiscard]] const std::string &path() const noexcept { return path_; }

  /// This file is the one at `path`, or will be, by whatever name.
  [[nodiscard]] bool is_at(const std::string &path) const;
  [[nodiscard]] const std::string &option() const noexcept { return option_; }
  /// write() does nothing from now on.
  void keep() noexcept { kept_ = true; }

private:
  [[noreturn]] void refuse(const std::string &reason) const;
  void open_regular(bool exists);
  void open_new();
  bool give_name() const;
  void discard() const;
  void check_other() const;

  const std::string option_, path_;
  int fd_ = -1;     ///< -1: no regular file, opened by write(): opening others may wait or act
  int folder_ = -1; ///< of a file that did not exist before
  std::string file_name_;
  enum class name {
    none, ///< a new file, which gets file_name_ when it is written
    made, ///< a new file that is removed if it is not written
    kept
  } state_ = name::kept;
  bool kept_ = false;
};

/// Throws usage_error if an output_file is the file at `path`, which `option` names for reading or for another result.
/// Then nothing is written to it, not even the report of the refusal. Called by the main thread.
void refuse_output_file(const std::string &option, const std::string &path);

} // namespace cudaq::realtime::tools
