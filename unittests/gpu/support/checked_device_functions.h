// SPDX-License-Identifier: Apache-2.0
// The device handlers that check traffic. Their records are presented as checked_function, the type that traffic.h
// uses.
#pragma once

#include "unittests/gpu/support/gpu_dispatcher.h"
#include "unittests/host_dispatcher/traffic.h"

namespace cudaq::realtime::test {

/// Number of messages of a load test: CUDAQ_SOAK_MESSAGES if it is set, else `usual`.
inline std::uint32_t messages_or(std::uint32_t usual) {
  const char *soak = std::getenv("CUDAQ_SOAK_MESSAGES");
  return soak == nullptr ? usual : static_cast<std::uint32_t>(std::strtoul(soak, nullptr, 10));
}

/// Checked functions 0 to count-1 with room for `messages` messages each. Created before a dispatcher starts, and read
/// after all dispatchers have stopped.
class checked_device_functions {
public:
  checked_device_functions(std::uint32_t count, std::uint32_t messages) : records_dev_(kCheckedFunctions) {
    std::vector<checked_record> records(kCheckedFunctions);
    for (std::uint32_t k = 0; k < count; ++k) {
      served_.push_back(std::make_unique<device_array<std::uint32_t>>(messages));
      records[k].served = served_.back()->get;
      records[k].size = messages;
      functions_.push_back(std::make_unique<checked_function>(k + 1, 1));
    }
    records_dev_.upload(records);
    const side_stream stream;
    CUDA_EXPECT_OK(use_checked_records(records_dev_.get, stream.get));
  }

  checked_function *function(std::uint32_t k) const { return functions_[k].get(); }
  checked_record *record(std::uint32_t k) const { return records_dev_.get + k; }

  /// Copies the records from the device into the checked functions.
  void collect() {
    const std::vector<checked_record> records = records_dev_.download();
    for (std::size_t k = 0; k < functions_.size(); ++k) {
      checked_function &f = *functions_[k];
      f.calls = records[k].calls;
      f.corrupt = records[k].corrupt;
      f.doubled = records[k].doubled;
      f.out_of_order = records[k].out_of_order;
      f.side_by_side = records[k].side_by_side;
    }
  }

  /// The table entries of functions first to first+count-1.
  static std::vector<cudaq_function_entry_t> table(const kernel_kind &kind, std::uint32_t first, std::uint32_t count) {
    const std::vector<cudaq_function_entry_t> all = all_handlers(kind);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(handler::checked) + first;
    return {begin, begin + count};
  }

private:
  device_array<checked_record> records_dev_;
  std::vector<std::unique_ptr<device_array<std::uint32_t>>> served_;
  std::vector<std::unique_ptr<checked_function>> functions_;
};

} // namespace cudaq::realtime::test
