// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/base/expected.h"

#include <string>
#include <sys/stat.h>

namespace cudaq::realtime::detail {

/// What the file of a shared library must be before dlopen maps it: a regular file that is whole. dlopen looks at the
/// first bytes only. Then it maps the length that these name, and to read a page after the end of the file is a SIGBUS.
///
/// Example, a library of 15736 bytes of which a copy has written 12288 so far:
///
///   program headers   at 64, 11 entries     they end at 680
///   segments          the last one          it ends at 12304: refused, "it has 12288 bytes of 12304"
///   section table     at 13880, 29 entries  it ends at 15736, the end of most libraries
///
/// A file of the full length whose last part is still empty is refused for its section table, or for its dynamic
/// section. A file that is no library of this machine passes: dlopen refuses it before it maps anything. Returns the
/// file's data. What changes the file afterwards is not seen: a library is replaced by another file (`mv`, `install`).
[[nodiscard]] expected<struct stat> check_library_file(const std::string &path);

/// dlopen(RTLD_NOW | RTLD_LOCAL), without a check.
[[nodiscard]] expected<void *> load_library(const std::string &name);

/// The same after check_library_file, if `name` has a `/` and there is such a file. Not checked: what the dynamic
/// linker searches for, that is other names and the libraries that a library needs.
[[nodiscard]] expected<void *> check_and_load_library(const std::string &name);

} // namespace cudaq::realtime::detail
