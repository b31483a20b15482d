// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/qec/decoding/decoder_model.h"
#include "lib/qec/server/decoding_server.h"
#include "lib/qec/stream/thread_places.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudaq::qec::realtime {

/// The section `learn` of a decoder: its model is learned while it serves.
struct learn_settings {
  bool is_on = false;
  std::uint64_t shots = 1'000'000;  ///< of a round; those of earlier rounds weigh half as much
  std::uint64_t held_out = 500'000; ///< shots by which a learned model is judged
  double sigmas = 3;                ///< by which it must be better
  std::uint32_t shadow = 16;        ///< of so many held-out shots one is decoded with the learned model, too; 0: none
  bool swaps = true;                ///< false: it only reports
  bool is_idle = true;              ///< learns in the time that no other thread wants
  std::string ties;                 ///< file of groups of tied errors; "": none
};

/// One element of `decoders`. docs/transport/server_config.md describes the fields.
struct decoder_config {
  std::string place; ///< "line 3, column 5: decoders[0]"
  decoder_limits limits;
  std::string type;
  bool stream = false;
  std::string dem, dem_file, stim_dem_path;                          ///< "" if it is missing
  std::shared_ptr<const decoder_model> model;                        ///< instead of all other models; mostly null
  std::uint64_t block_size = 0, syndrome_size = 0, measurements = 0; ///< 0 if it is missing
  bool has_checks = false, has_observables = false, has_measurements = false;
  std::vector<std::int64_t> checks, observables, from_measurements; ///< H_sparse, O_sparse, D_sparse
  double error_rate = -1;                                           ///< negative if it is missing
  std::vector<double> error_rates;
  std::uint64_t deadline_us = 0;                         ///< of a decode; 0: none
  std::uint32_t detector_rates = std::uint32_t{1} << 16; ///< shots of their window; 0: not counted
  learn_settings learn;
  bool is_on_gpu = false;                                    ///< dispatch: device_graph
  std::uint32_t cuda_device_id = 0;                          ///< with is_on_gpu
  std::vector<std::pair<std::string, std::string>> settings; ///< the other fields of decoder_custom_args
};

/// The section `realtime`. What is not given changes nothing.
struct realtime_config {
  int loop_core = CUDAQ_CORE_ANY;  ///< of the thread that takes requests from the transport: the program's
  std::vector<int> pool_cores{};   ///< of the threads that the decoders share, in turn
  std::vector<int> stream_cores{}; ///< of stream_workers, in turn
  int priority = 0;                ///< SCHED_FIFO, of all of these; 0: the policy is not changed
  bool lock_memory = false;        ///< the program's, as the next one
  int cpu_dma_latency_us = -1;     ///< the most that a core may need to wake up; negative: not asked for
  bool required = false;           ///< all of it, or no start; the program's, as the two before it
  bool operator==(const realtime_config &) const = default;

  [[nodiscard]] thread_places pool() const { return {pool_cores, priority}; }
  [[nodiscard]] thread_places streams() const { return {stream_cores, priority}; }
};

/// The section `record`: the flight recorder.
struct record_config {
  std::string file;                ///< "": none
  std::uint64_t requests = 65'536; ///< that are kept
  bool operator==(const record_config &) const = default;
};

/// A configuration that was read and checked, but nothing was built.
struct server_config {
  std::vector<decoder_config> decoders;
  std::uint32_t stream_workers = 0; ///< threads that decode the windows of all streams; 0: those of the requests do
  std::string transport;            ///< name or path of the provider; "" if it is missing
  std::vector<std::string> transport_args;
  realtime_config realtime;
  record_config record;
};

/// Reads a YAML text. An error names place, field, value, and what is accepted.
[[nodiscard]] expected<server_config> read_server_config(std::string_view text);
/// The same for the fields of a section `realtime`: "loop_core: 2, priority: 50".
[[nodiscard]] expected<realtime_config> read_realtime_config(std::string_view fields);

/// The most memory that the decoders of a configuration may need. It is estimated, before any of them is built, from
/// the sizes of the models, of lookup tables and of queues.
inline constexpr std::uint64_t kMaxDecoderBytes = std::uint64_t{4} << 30;

/// Makes the decoders. `folder`: where a relative dem_file, and the relative path of a plug-in or of heralds, begin.
/// The error begins with the decoder's place; its status is CUDAQ_ERR_UNSUPPORTED if this machine lacks something, such
/// as a GPU.
[[nodiscard]] expected<std::vector<decoder_setup>> build_decoders(const server_config &config,
                                                                  const std::string &folder);

} // namespace cudaq::qec::realtime
