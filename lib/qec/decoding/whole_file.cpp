// SPDX-License-Identifier: Apache-2.0
#include "lib/qec/decoding/whole_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace cudaq::qec::realtime {

expected<std::string> read_whole_file(const std::string &path, std::size_t largest) {
  const auto failure = [&path](const std::string &what, cudaq_status_t status = CUDAQ_ERR_INVALID_ARG) {
    return reason(status, path + ": " + what);
  };
  // A FIFO without a writer is opened at once, and refused.
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(fd < 0 ? nullptr : fdopen(fd, "rb"), &std::fclose);
  struct stat info {};
  if (file == nullptr || fstat(fd, &info) != 0) {
    const int why = errno;
    if (file == nullptr && fd >= 0)
      close(fd);
    const bool machine_lacks = why == EMFILE || why == ENFILE || why == ENOMEM;
    return failure(std::strerror(why), machine_lacks ? CUDAQ_ERR_UNSUPPORTED : CUDAQ_ERR_INVALID_ARG);
  }
  if (S_ISDIR(info.st_mode))
    return failure(std::strerror(EISDIR));
  if (!S_ISREG(info.st_mode))
    return failure("it is not a regular file; a pipe or a device may never end: copy its contents into a file");
  std::string text;
  char part[65536];
  while (const std::size_t n = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, n);
    if (text.size() > largest)
      return failure("the file has more than " + std::to_string(largest) + " bytes");
  }
  if (std::ferror(file.get()) != 0)
    return failure(std::strerror(errno));
  return text;
}

} // namespace cudaq::qec::realtime
