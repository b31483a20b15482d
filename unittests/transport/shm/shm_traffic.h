// SPDX-License-Identifier: Apache-2.0
// A client that sends checked messages and verifies each answer.
#pragma once

#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"
#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "unittests/support/checked_payload.h"
#include "unittests/transport/datagram/datagram_service.h"

#include <cstdint>
#include <string>

namespace cudaq::realtime::test {

inline constexpr std::uint32_t kChecked = fnv1a_hash("checked");
inline constexpr std::uint64_t kPatience = 60'000'000'000;

class shm_client {
public:
  explicit shm_client(const std::string &name, std::uint32_t wait_policy = CUDAQ_WAIT_SPIN_YIELD,
                      std::uint64_t timeout_ns = kPatience) {
    cudaq_shm_client_options_t options{sizeof(options), wait_policy, 0, 0};
    status = cudaq_shm_client_attach(&get, name.c_str(), timeout_ns, &options);
    if (status != CUDAQ_OK) {
      text = cudaq_shm_client_error();
      return;
    }
    cudaq_shm_client_ring(get, &ring, &num_slots, &slot_size);
    const std::uint32_t kind = cudaq_shm_client_memory_kind(get);
    if (kind == CUDAQ_MEMORY_DEVICE_RX)
      status = cudaq_ringbuffer_producer_open_ring(&ring, num_slots, kind, &producer);
    if (status != CUDAQ_OK)
      text = cudaq_last_error_message();
  }
  ~shm_client() { detach(); }
  shm_client(const shm_client &) = delete;
  shm_client &operator=(const shm_client &) = delete;
  void detach() {
    if (producer != nullptr)
      cudaq_ringbuffer_producer_close(producer);
    producer = nullptr;
    if (get != nullptr)
      cudaq_shm_client_detach(get);
    get = nullptr;
  }

  /// Sends a request in `slot`, the next one of the ring, if it is free: through the handle where the requests are in
  /// the memory of a GPU.
  bool try_send(std::uint32_t slot, std::uint32_t function_id, const void *payload, std::uint32_t length,
                std::uint32_t request_id) {
    if (producer == nullptr)
      return cudaq_host_ringbuffer_slot_available(&ring, slot) == 1 &&
             send(slot, function_id, payload, length, request_id) == CUDAQ_OK;
    std::uint32_t claimed = 0, count = 0;
    if (cudaq_ringbuffer_producer_claim(producer, 1, &claimed, &count) != CUDAQ_OK || count == 0 || claimed != slot)
      return false;
    return cudaq_ringbuffer_producer_write(producer, slot, function_id, payload, length, request_id, request_id + 7) ==
               CUDAQ_OK &&
           cudaq_ringbuffer_producer_commit(producer, slot, 1) == CUDAQ_OK;
  }

  /// Writes and signals a request in `slot`, which must be free, by the slot helpers.
  cudaq_status_t send(std::uint32_t slot, std::uint32_t function_id, const void *payload, std::uint32_t length,
                      std::uint32_t request_id) {
    const cudaq_status_t written =
        cudaq_host_ringbuffer_write_rpc_request(&ring, slot, function_id, payload, length, request_id, request_id + 7);
    cudaq_shm_client_signal(get, slot);
    return written;
  }

  cudaq_shm_client_t *get = nullptr;
  cudaq_ringbuffer_producer_t *producer = nullptr; ///< with requests in the memory of a GPU
  cudaq_ringbuffer_t ring{};
  std::uint32_t num_slots = 0, slot_size = 0;
  cudaq_status_t status = CUDAQ_OK;
  std::string text; ///< why attach failed
};

/// Keeps up to `window` checked requests in the ring. Each answer must be that of its request.
class checked_traffic {
public:
  /// `function_id`: a function of the server that answers as check_traffic and its host counterpart do.
  checked_traffic(shm_client &client, std::uint32_t window, std::uint32_t function_id = kChecked)
      : client_(client), window_(window), function_id_(function_id) {}

  /// Sends `count` more messages and collects their answers. CUDAQ_ERR_STATE: the server has ended. CUDAQ_ERR_INTERNAL:
  /// `wrong` says what was wrong.
  cudaq_status_t exchange(std::uint64_t count) {
    const std::uint64_t end = sent_ + count;
    while (answered < end) {
      while (sent_ < end && sent_ - answered < window_ && send_next()) {
      }
      if (sent_ == answered)
        continue;
      if (const cudaq_status_t status = cudaq_shm_client_wait(client_.get, slot_of(answered), kPatience)) {
        wrong = cudaq_shm_client_error();
        return status;
      }
      if (!collect())
        return CUDAQ_ERR_INTERNAL;
      ++answered;
    }
    return CUDAQ_OK;
  }

  std::uint64_t answered = 0;
  std::string wrong;

private:
  std::uint32_t slot_of(std::uint64_t n) const { return static_cast<std::uint32_t>(n % client_.num_slots); }
  bool send_next() {
    const auto sequence = static_cast<std::uint32_t>(sent_);
    std::uint8_t payload[4096];
    const std::uint32_t max_size = std::min<std::uint32_t>(client_.slot_size - CUDAQ_RPC_HEADER_SIZE, sizeof(payload));
    const std::uint32_t length = checked_result_size(sequence + 1, max_size);
    fill_frame(payload, length, sequence, kRequestSalt);
    const bool sent = client_.try_send(slot_of(sent_), function_id_, payload, length, sequence);
    sent_ += sent;
    return sent;
  }
  bool collect() {
    const auto expected = static_cast<std::uint32_t>(answered);
    const std::uint32_t slot = slot_of(answered);
    cudaq_rpc_response_t header{};
    const void *result = nullptr;
    const cudaq_status_t read = cudaq_host_ringbuffer_read_rpc_response(&client_.ring, slot, &header, &result);
    std::uint32_t sequence = 0;
    const bool right = read == CUDAQ_OK && header.status == 0 && header.request_id == expected &&
                       header.ptp_timestamp == std::uint64_t{expected} + 7 &&
                       intact_frame(result, header.result_len, result_salt(function_id_), sequence) &&
                       sequence == expected;
    if (!right)
      wrong = "answer " + std::to_string(answered) + " in slot " + std::to_string(slot) + ": read " +
              std::to_string(read) + ", status " + std::to_string(header.status) + ", request_id " +
              std::to_string(header.request_id) + ", sequence " + std::to_string(sequence);
    cudaq_host_ringbuffer_clear_slot(&client_.ring, slot);
    return right;
  }

  shm_client &client_;
  std::uint32_t window_, function_id_;
  std::uint64_t sent_ = 0;
};

} // namespace cudaq::realtime::test
