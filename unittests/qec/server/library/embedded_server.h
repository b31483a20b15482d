// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudaq/qec/realtime/decoding_server.h"
#include "lib/base/runner.h"
#include "unittests/qec/soon.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace cudaq::qec::realtime::test {

/// For what happens within milliseconds, unless the machine's cores are busy.
inline constexpr std::uint64_t kLong = 60'000'000'000;

/// Lines of a model are divided by \n, as YAML has it in quotation marks.
inline constexpr char kTwoDetectors[] = R"(error(0.1) D0 L0\nerror(0.1) D1 L1)";
inline constexpr char kExchanged[] = R"(error(0.1) D0 L1\nerror(0.1) D1 L0)";

/// One decoder of id 7.
inline std::string config_of(const std::string &type, const std::string &dem, const std::string &more = "") {
  return "decoders: [{id: 7, type: \"" + type + "\", dem: \"" + dem + "\"" + (more.empty() ? "" : ", " + more) + "}]";
}

inline std::string error() {
  const std::string whole = cudaq_qec_decoding_server_error();
  const std::size_t function = whole.find(": ");
  return function == std::string::npos ? whole : whole.substr(function + 2);
}

template <class T>
std::vector<std::uint8_t> bytes_of(const T &fields) {
  std::vector<std::uint8_t> bytes(sizeof fields);
  std::memcpy(bytes.data(), &fields, sizeof fields);
  return bytes;
}

inline std::vector<std::uint8_t> enqueued(std::uint64_t counter, std::uint64_t num_bits, std::uint8_t bits) {
  std::vector<std::uint8_t> payload = bytes_of(cudaq_qec_enqueue_syndromes_t{7, counter, 0, num_bits});
  payload.push_back(bits);
  return payload;
}

inline std::vector<std::uint8_t> wanted(std::uint64_t observables) {
  return bytes_of(cudaq_qec_get_corrections_t{7, observables, 0});
}

struct answer {
  std::int32_t status;
  std::vector<std::uint8_t> result;
  bool operator==(const answer &) const = default;
};

class embedded_server {
public:
  explicit embedded_server(const std::string &config) {
    if (cudaq_qec_decoding_server_create(&server_, config.c_str(), nullptr) != CUDAQ_OK)
      throw std::runtime_error(cudaq_qec_decoding_server_error());
  }
  ~embedded_server() { destroy(); }
  embedded_server(const embedded_server &) = delete;
  embedded_server &operator=(const embedded_server &) = delete;

  [[nodiscard]] cudaq_qec_decoding_server_t *get() const noexcept { return server_; }
  void destroy() {
    cudaq_qec_decoding_server_destroy(server_);
    server_ = nullptr;
  }
  answer call(std::uint32_t function, const std::vector<std::uint8_t> &payload) {
    std::uint8_t result[16] = {};
    const cudaq_qec_decoding_server_request_t request{function,     0, 0, payload.data(), payload.size(), result,
                                                      sizeof result};
    std::int32_t status = -1;
    std::uint64_t bytes = 0;
    EXPECT_EQ(cudaq_qec_decoding_server_call(server_, &request, &status, &bytes), CUDAQ_OK) << error();
    return {status, {result, result + bytes}};
  }
  cudaq_qec_decoding_server_counts_t counts() {
    cudaq_qec_decoding_server_counts_t counts{};
    counts.struct_size = sizeof counts;
    EXPECT_EQ(cudaq_qec_decoding_server_get_counts(server_, 7, &counts), CUDAQ_OK) << error();
    return counts;
  }

private:
  cudaq_qec_decoding_server_t *server_ = nullptr;
};

} // namespace cudaq::qec::realtime::test
