// SPDX-License-Identifier: Apache-2.0
#include "cudaq/realtime/daemon/bridge/shm_client.h"
#include "cudaq/realtime/detail/ring/free_by_count.h"

#include "lib/base/cpu_relax.h"
#include "lib/base/process_mark.h"
#include "lib/transport/shm/shm_attach.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <linux/memfd.h>
#include <memory>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <vector>

using namespace cudaq::realtime::detail;

namespace {

using clock_type = std::chrono::steady_clock;
using owned_file = cudaq::realtime::detail::file_handle; // the system also has a file_handle
constexpr std::uint64_t kMillisecond = 1000000;
constexpr std::uint64_t kLongestSleep = 100 * kMillisecond;
constexpr std::uint64_t kAliveInterval = 10 * kMillisecond; // between looks at the connection while it polls
constexpr std::uint64_t kFarRxInterval = kMillisecond / 10; // between reads of an rx flag in the memory of a GPU
constexpr std::uint64_t kReplyPatience = 1000 * kMillisecond;
void *const kRefused = MAP_FAILED; // NOLINT: the system's name for it is a cast

/// What the client has done with a slot, as far as this library sees it.
enum class slot_use : std::uint8_t { none, signalled, too_early, answered };

struct mapping {
  void *at = kRefused;
  std::size_t bytes = 0;
  ~mapping() {
    if (at != kRefused)
      ::munmap(at, bytes);
  }
  bool map(int file, std::size_t length) {
    bytes = length;
    at = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at != kRefused;
  }
};

std::uint64_t nanoseconds(clock_type::duration d) { return static_cast<std::uint64_t>(d.count()); }

} // namespace

struct cudaq_shm_client_t {
  process_mark mark;
  owned_file socket;
  mapping segment, bell;
  std::unique_ptr<imported_mapping> requests; ///< in the memory of a GPU; NULL: they are in the segment
  shm_layout layout;
  cudaq_ringbuffer_t ring{};
  cudaq_shm_client_options_t options{};
  bool server_waits = false;
  std::vector<slot_use> uses; ///< by slot
};

namespace {

expected<> check_options(const cudaq_shm_client_options_t *given, cudaq_shm_client_options_t &out) {
  out = {sizeof(out), CUDAQ_WAIT_SPIN, 0, 0};
  if (given != nullptr) {
    if (given->struct_size != sizeof(out))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "options->struct_size is %u: accepted is %zu", given->struct_size,
                         sizeof(out));
    out = *given;
  }
  if (out.wait_policy > CUDAQ_WAIT_BLOCK)
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "options->wait_policy is %u: accepted are SPIN (0), SPIN_YIELD (1) and BLOCK (2)",
                       out.wait_policy);
  if (out.sleep_ns > kLongestSleep)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "options->sleep_ns is %llu: at most 100000000 (100 ms)",
                       static_cast<unsigned long long>(out.sleep_ns));
  if (out.spin_ns == 0)
    out.spin_ns = 50000;
  if (out.sleep_ns == 0)
    out.sleep_ns = kMillisecond;
  return {};
}

/// It has this size and cannot be shrunk: an access beyond its end would end the process.
bool stays_as_large(int file, std::uint64_t bytes) {
  struct stat found {};
  const int seals = ::fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(file, &found) == 0 && found.st_size >= 0 &&
         static_cast<std::uint64_t>(found.st_size) == bytes;
}

/// A server of another build might lay out its ring in another way, and a wrong layout would end in a crash here.
bool is_plausible(const shm_layout &at, int file, bool on_gpu) {
  if (at.num_slots == 0 || at.num_slots > 65536 || at.slot_size < CUDAQ_RPC_HEADER_SIZE || at.slot_size > 1u << 24 ||
      !stays_as_large(file, at.bytes))
    return false;
  const auto make = on_gpu ? make_gpu_layout : make_shm_layout;
  return at == make(at.num_slots, at.slot_size, shm_page(false)) ||
         at == make(at.num_slots, at.slot_size, shm_page(true));
}

/// The requests of a ring with --requests gpu.
expected<> map_requests(cudaq_shm_client_t &c, const std::string &name, const shm_gpu_reply &reply, owned_file &file) {
  if (!file || reply.requests.bytes < gpu_bytes(reply.reply.layout))
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "the server '%s' sends no memory of a GPU that has the size of its ring",
                       name.c_str());
  int descriptor = file.get();
  const expected<> result = map_exported_memory(reply.requests, descriptor, c.requests);
  if (descriptor < 0)
    file.release(); // it belongs to Vulkan now
  if (result.failed())
    return make_reason(result.status(),
                       "the requests of the server '%s' are in the memory of a GPU (--requests gpu), and this process "
                       "cannot map it: %s",
                       name.c_str(), result.text().c_str());
  return {};
}

/// CUDAQ_ERR_TIMEOUT: worth another attempt.
expected<> try_attach(cudaq_shm_client_t &c, const std::string &name, clock_type::time_point deadline) {
  owned_file socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket)
    return system_refused("socket", errno);
  const sockaddr_un address = shm_address(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0) {
    const int error = errno;
    if (error == EAGAIN || error == EINTR)
      return make_reason(CUDAQ_ERR_TIMEOUT, "too many connections wait for the server '%s'", name.c_str());
    if (error == ENOENT || error == ECONNREFUSED)
      return make_reason(CUDAQ_ERR_TIMEOUT, "no server has the name '%s'", name.c_str());
    return system_refused("connect to " + shm_path(name, "sock"), error);
  }
  shm_attach_request request;
  request.rings_me = c.options.wait_policy == CUDAQ_WAIT_BLOCK ? 1 : 0;
  const auto patience = std::max(deadline, clock_type::now() + std::chrono::nanoseconds(kReplyPatience));
  pollfd reply_ready{socket.get(), POLLIN, 0};
  shm_gpu_reply whole;
  shm_attach_reply &reply = whole.reply;
  owned_file files[kShmMaxFiles];
  bool received = send_message(socket.get(), &request, sizeof(request));
  while (received && ::poll(&reply_ready, 1, 100) == 0)
    if (clock_type::now() >= patience)
      return make_reason(CUDAQ_ERR_TIMEOUT, "the server '%s' does not reply", name.c_str());
  const std::size_t bytes = received ? receive_some(socket.get(), &whole, sizeof(whole), files) : 0;
  if (bytes < sizeof(reply))
    return make_reason(CUDAQ_ERR_TIMEOUT, "the server '%s' closed the connection", name.c_str());
  const bool on_gpu = reply.version == kShmGpuVersion;
  if (reply.magic == kShmMagic && (on_gpu || reply.version == kShmVersion) &&
      bytes != (on_gpu ? sizeof(whole) : sizeof(reply)))
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "the server '%s' replies with %zu bytes, which is not the attach protocol", name.c_str(), bytes);
  if (reply.magic != kShmMagic || (!on_gpu && reply.version != kShmVersion))
    return make_reason(CUDAQ_ERR_UNSUPPORTED,
                       "the server '%s' has version %u of the attach protocol, this library up to %u", name.c_str(),
                       reply.version, kShmGpuVersion);
  if (reply.status != CUDAQ_OK) {
    reply.text[sizeof(reply.text) - 1] = 0;
    const bool again = reply.status == CUDAQ_ERR_STATE;
    const bool is_known = reply.status > CUDAQ_OK && reply.status <= CUDAQ_ERR_STATE;
    return make_reason(again      ? CUDAQ_ERR_TIMEOUT
                       : is_known ? static_cast<cudaq_status_t>(reply.status)
                                  : CUDAQ_ERR_UNSUPPORTED,
                       "server '%s': %s", name.c_str(), reply.text);
  }
  if (!files[0] || !files[1] || !is_plausible(reply.layout, files[0].get(), on_gpu) ||
      !stays_as_large(files[1].get(), shm_page(false)))
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "the server '%s' lays out its memory in an unknown way", name.c_str());
  if (!c.segment.map(files[0].get(), reply.layout.bytes) || !c.bell.map(files[1].get(), shm_page(false)))
    return system_refused("mmap of the segment", errno);
  if (on_gpu)
    if (expected<> result = map_requests(c, name, whole, files[2]); result.failed())
      return result;
  c.layout = reply.layout, c.server_waits = reply.server_waits != 0;
  c.socket = std::move(socket);
  return {};
}

void make_ring(cudaq_shm_client_t &c) {
  auto *at = static_cast<std::uint8_t *>(c.segment.at);
  auto *requests = c.requests != nullptr ? c.requests->host() : at;
  c.ring.rx_flags_host = reinterpret_cast<volatile std::uint64_t *>(requests + c.layout.rx_flags);
  c.ring.tx_flags_host = reinterpret_cast<volatile std::uint64_t *>(at + c.layout.tx_flags);
  c.ring.rx_data_host = requests + c.layout.rx_data, c.ring.tx_data_host = at + c.layout.tx_data;
  c.ring.rx_stride_sz = c.ring.tx_stride_sz = c.layout.stride;
}

clock_type::time_point after(std::uint64_t duration_ns) {
  const auto now = clock_type::now();
  const std::uint64_t room = nanoseconds(clock_type::time_point::max() - now);
  return duration_ns < room ? now + std::chrono::nanoseconds(duration_ns) : clock_type::time_point::max();
}

expected<> check_process(const cudaq_shm_client_t &c) {
  if (c.mark.is_of_this_process())
    return {};
  return make_reason(CUDAQ_ERR_STATE,
                     "process %ld attached, and only that one may use the ring: a child would fill the same slots. "
                     "Attach again after fork",
                     static_cast<long>(c.mark.process()));
}

bool is_answered(const cudaq_shm_client_t &c, std::uint32_t slot) {
  const std::uint64_t flag = load_acquire(c.ring.tx_flags_host[slot]);
  return flag != 0 && flag != CUDAQ_TX_FLAG_IN_FLIGHT;
}

bool is_free(const cudaq_shm_client_t &c, std::uint32_t slot) {
  slot_ring ring;
  ring.rx_flags = c.ring.rx_flags_host, ring.tx_flags = c.ring.tx_flags_host;
  if (c.requests == nullptr)
    return ring.free_for_producer(slot);
  ring.lap_offset = lap_distance(c.layout.num_slots);
  return is_free_by_count(ring, slot);
}

/// Why a slot is free whose answer is waited for.
const char *why_free(slot_use use) {
  switch (use) {
  case slot_use::none:
    return "no request was signalled in it";
  case slot_use::too_early:
    return "its request was signalled before the slot was free, so the server did not see it; test the slot with "
           "cudaq_host_ringbuffer_slot_available before you write to it";
  case slot_use::answered:
    return "its answer was collected, and no request was signalled since";
  case slot_use::signalled:
    break;
  }
  return "the server dropped its request (wrong magic, or an unknown function id)";
}

/// One wait between looks at the slot, by the policy.
void pause_once(cudaq_shm_client_t &c, std::uint32_t slot, clock_type::time_point spin_end,
                clock_type::time_point deadline) {
  const auto now = clock_type::now();
  if (c.options.wait_policy == CUDAQ_WAIT_SPIN || now < spin_end)
    return cpu_relax();
  if (c.options.wait_policy == CUDAQ_WAIT_SPIN_YIELD) {
    ::sched_yield();
    return;
  }
  const std::uint64_t left = deadline > now ? nanoseconds(deadline - now) : 0;
  static_cast<shm_head *>(c.segment.at)->answers.sleep(std::min(left, c.options.sleep_ns), [&] {
    return is_answered(c, slot) || is_free(c, slot);
  });
}

expected<> wait_for_answer(cudaq_shm_client_t &c, std::uint32_t slot, std::uint64_t timeout_ns) {
  constexpr int kTxPolls = 200; // of the tx flag only: a read of rx delays a server that stores to it
  const auto begin = clock_type::now();
  const auto deadline = after(timeout_ns), spin_end = after(c.options.spin_ns);
  auto next_alive = begin + std::chrono::nanoseconds(kAliveInterval), next_rx_read = begin;
  for (;;) {
    for (int i = 0; i < kTxPolls; ++i) {
      if (is_answered(c, slot))
        return {};
      cpu_relax();
    }
    const bool reads_rx = c.requests == nullptr || clock_type::now() >= next_rx_read; // else across the bus, about 1 us
    if (reads_rx)
      next_rx_read = clock_type::now() + std::chrono::nanoseconds(kFarRxInterval);
    if (reads_rx && is_free(c, slot))
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "slot %u is free: %s", slot, why_free(c.uses[slot]));
    pause_once(c, slot, spin_end, deadline);
    const auto now = clock_type::now();
    if (now >= next_alive) {
      if (cudaq_shm_client_alive(&c) == 0 && !is_answered(c, slot))
        return {CUDAQ_ERR_STATE, "the server has ended, or has closed the connection; attach again"};
      next_alive = now + std::chrono::nanoseconds(kAliveInterval);
    }
    if (now >= deadline && !is_answered(c, slot))
      return make_reason(CUDAQ_ERR_TIMEOUT, "slot %u has no answer after %llu ns", slot,
                         static_cast<unsigned long long>(timeout_ns));
  }
}

} // namespace

extern "C" {

cudaq_status_t cudaq_shm_client_attach(cudaq_shm_client_t **out_client, const char *name, uint64_t timeout_ns,
                                       const cudaq_shm_client_options_t *options) {
  return guarded(__func__, [&]() -> expected<> {
    if (out_client == nullptr || name == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", out_client == nullptr ? "out_client" : "name");
    auto c = std::make_unique<cudaq_shm_client_t>();
    if (expected<> result = check_shm_name(name); result.failed())
      return result;
    if (expected<> result = check_options(options, c->options); result.failed())
      return result;
    const auto deadline = after(timeout_ns);
    for (;;) {
      expected<> result = try_attach(*c, name, deadline);
      if (result.ok())
        break;
      if (result.status() != CUDAQ_ERR_TIMEOUT || clock_type::now() >= deadline)
        return result;
      ::poll(nullptr, 0, 2);
    }
    make_ring(*c);
    c->uses.resize(c->layout.num_slots);
    *out_client = c.release();
    return {};
  });
}

cudaq_status_t cudaq_shm_client_ring(const cudaq_shm_client_t *client, cudaq_ringbuffer_t *out_ring,
                                     uint32_t *out_num_slots, uint32_t *out_slot_size) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (client == nullptr || out_ring == nullptr)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", client == nullptr ? "client" : "out_ring");
    if (expected<> result = check_process(*client); result.failed())
      return result;
    *out_ring = client->ring;
    if (out_num_slots != nullptr)
      *out_num_slots = client->layout.num_slots;
    if (out_slot_size != nullptr)
      *out_slot_size = client->layout.slot_size;
    return {};
  });
}

uint32_t cudaq_shm_client_memory_kind(const cudaq_shm_client_t *client) {
  return client != nullptr && client->requests != nullptr ? CUDAQ_MEMORY_DEVICE_RX : CUDAQ_MEMORY_HOST;
}

int cudaq_shm_client_alive(const cudaq_shm_client_t *client) {
  if (client == nullptr || !client->mark.is_of_this_process())
    return 0;
  char byte = 0;
  const ssize_t got = ::recv(client->socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EINTR) ? 1 : 0;
}

void cudaq_shm_client_signal(cudaq_shm_client_t *client, uint32_t slot) {
  if (client == nullptr || slot >= client->layout.num_slots || !client->mark.is_of_this_process())
    return;
  const cudaq_ringbuffer_t &ring = client->ring;
  // A producer that has tested the slot has both flags in its cache. Across the bus the rx flag is not read.
  const bool is_early = load_relaxed(ring.tx_flags_host[slot]) != 0 ||
                        (client->requests == nullptr && load_relaxed(ring.rx_flags_host[slot]) != 0);
  client->uses[slot] = is_early ? slot_use::too_early : slot_use::signalled;
  if (client->requests != nullptr)
    fence_posted_stores(); // the frame before the flag
  store_release<std::uint64_t>(ring.rx_flags_host[slot],
                               reinterpret_cast<std::uint64_t>(ring.rx_data_host + slot * ring.rx_stride_sz));
  if (client->requests != nullptr)
    fence_posted_stores(); // the flag leaves now
  if (client->server_waits)
    static_cast<shm_bell *>(client->bell.at)->ring();
}

cudaq_status_t cudaq_shm_client_wait(cudaq_shm_client_t *client, uint32_t slot, uint64_t timeout_ns) {
  return guarded(__func__, [&]() -> expected<> {
    if (client == nullptr)
      return {CUDAQ_ERR_INVALID_ARG, "client is NULL"};
    if (expected<> result = check_process(*client); result.failed())
      return result;
    if (slot >= client->layout.num_slots)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "slot is %u: the ring has %u slots", slot, client->layout.num_slots);
    expected<> result = is_answered(*client, slot) ? expected<>{} : wait_for_answer(*client, slot, timeout_ns);
    if (result.ok() && client->uses[slot] == slot_use::signalled)
      client->uses[slot] = slot_use::answered;
    return result;
  });
}

cudaq_status_t cudaq_shm_client_detach(cudaq_shm_client_t *client) {
  return guarded(__func__, [&]() -> expected<> {
    if (client == nullptr)
      return {CUDAQ_ERR_INVALID_ARG, "client is NULL"};
    if (client->mark.is_of_this_process())         // a child only frees what it has; its parent goes on
      ::shutdown(client->socket.get(), SHUT_RDWR); // also if a forked child has the connection open
    delete client;
    return {};
  });
}

const char *cudaq_shm_client_error(void) { return last_error_text(); }

} // extern "C"
