/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library. This file is its only source: the build reads it for the package, the shared object
 * and the command-line tool. */
#ifndef CUDAQ_REALTIME_VERSION_H
#define CUDAQ_REALTIME_VERSION_H

#define CUDAQ_REALTIME_VERSION_MAJOR 1
#define CUDAQ_REALTIME_VERSION_MINOR 0
#define CUDAQ_REALTIME_VERSION_PATCH 0
/* Before the release of these numbers: "rc1" for 1.0.0-rc1. Empty for the release. */
#define CUDAQ_REALTIME_VERSION_PRERELEASE "rc1"

/* One number that orders versions: 0x00MMmmpp. */
#define CUDAQ_REALTIME_VERSION                                                                                         \
  ((CUDAQ_REALTIME_VERSION_MAJOR << 16) | (CUDAQ_REALTIME_VERSION_MINOR << 8) | CUDAQ_REALTIME_VERSION_PATCH)

#endif
