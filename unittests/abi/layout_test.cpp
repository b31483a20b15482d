// SPDX-License-Identifier: Apache-2.0
// The layout of a C++ compiler, and that it is the same in C. The static assertions are checked during compilation.
#include "unittests/abi/layout.h"

#include "cudaq/qec/decoding/decoder_c.h"
#include "cudaq/qec/decoding/decoder_plugin.h"
#include "cudaq/qec/decoding/stream_c.h"
#include "cudaq/qec/realtime/decode_response.h"
#include "cudaq/qec/realtime/decoding_client.h"
#include "cudaq/qec/realtime/decoding_server.h"
#include "cudaq/qec/realtime/decoding_server_wire.h"
#include "cudaq/realtime/daemon/bridge/bridge_interface.h"
#include "cudaq/realtime/daemon/bridge/cpu_roce_provider.h"
#include "cudaq/realtime/daemon/bridge/roce_provider.h"
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/daemon/bridge/udp_provider.h"
#include "cudaq/realtime/daemon/dispatcher/cudaq_realtime.h"
#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher.h"
#include "cudaq/realtime/daemon/dispatcher/host_dispatcher_thread.h"
#include "cudaq/realtime/version.h"
#include <cstddef>
#include <gtest/gtest.h>
#include <type_traits>

namespace {

using cudaq::qec::realtime::DecodeResponse;
using cudaq::realtime::GraphIOContext;
using cudaq::realtime::GraphIOContextV2;
using cudaq::realtime::RPCHeader;
using cudaq::realtime::RPCResponse;

#define CUDAQ_SIZE(type, size)                                                                                         \
  static_assert(sizeof(type) == (size), "size of " #type);                                                             \
  static_assert(std::is_standard_layout_v<type> && std::is_trivially_copyable_v<type>, #type " crosses the C ABI");
#define CUDAQ_OFFSET(type, field, offset) static_assert(offsetof(type, field) == (offset), #type "." #field);
#define CUDAQ_VALUE(name, value) static_assert((name) == (value), #name);
#include "unittests/abi/layout_c.inc"
#include "unittests/abi/layout_cxx.inc"
#undef CUDAQ_SIZE
#undef CUDAQ_OFFSET
#undef CUDAQ_VALUE

#define CUDAQ_SIZE(type, size) {"sizeof " #type, static_cast<long long>(sizeof(type)), static_cast<long long>(size)},
#define CUDAQ_OFFSET(type, field, offset)                                                                              \
  {#type "." #field, static_cast<long long>(offsetof(type, field)), static_cast<long long>(offset)},
#define CUDAQ_VALUE(name, value) {#name, static_cast<long long>(name), static_cast<long long>(value)},
constexpr layout_row kSeenByCxx[] = {
#include "unittests/abi/layout_c.inc"
};

// Known failure 25.
TEST(Layout, EveryStructAndValueIsAsReleased) {
  for (const layout_row &row : kSeenByCxx)
    EXPECT_EQ(row.is, row.should_be) << row.what;
}

TEST(Layout, CSeesWhatCxxSees) {
  std::size_t i = 0;
  for (; layout_seen_by_c[i].what != nullptr; ++i) {
    ASSERT_LT(i, std::size(kSeenByCxx));
    EXPECT_STREQ(layout_seen_by_c[i].what, kSeenByCxx[i].what);
    EXPECT_EQ(layout_seen_by_c[i].is, kSeenByCxx[i].is) << kSeenByCxx[i].what;
  }
  EXPECT_EQ(i, std::size(kSeenByCxx));
}

// Known failure 25.
TEST(Version, LibraryThatRunsIsTheOneOfTheHeaders) {
  EXPECT_EQ(cudaq_realtime_version(), static_cast<std::uint32_t>(CUDAQ_REALTIME_VERSION));
}

} // namespace
