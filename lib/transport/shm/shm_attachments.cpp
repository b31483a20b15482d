// SPDX-License-Identifier: Apache-2.0
// The thread of shm_server. It sleeps in poll until a client comes or goes.
#include "lib/transport/shm/shm_server.h"

#include "cudaq/realtime/detail/base/slot_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <poll.h>
#include <sys/socket.h>

namespace cudaq::realtime::detail {
namespace {

/// A connection that has sent no request after this time is closed.
constexpr std::chrono::seconds kNewConnectionTimeout{1};
/// A posted store arrives within microseconds. A device that another process uses may stop between two stores.
constexpr std::chrono::seconds kLapPatience{1};
constexpr int kPauseMs = 10; ///< after the system has refused memory or a descriptor

} // namespace

void shm_server::run() {
  std::vector<pollfd> watched;
  while (ends_.load() == 0) {
    try {
      serve_events(watched);
    } catch (const std::bad_alloc &) {
      ::poll(nullptr, 0, kPauseMs); // the other requests of attach are served when memory is free again
    }
  }
}

void shm_server::serve_events(std::vector<pollfd> &watched) {
  watched.clear();
  watched.push_back({event_.get(), POLLIN, 0});
  watched.push_back({new_connections_.size() < kMaxNewConnections ? listener_.get() : -1, POLLIN, 0});
  for (const new_connection &c : new_connections_)
    watched.push_back({c.socket.get(), POLLIN, 0});
  for (const file_handle &c : connections_)
    watched.push_back({c.get(), POLLIN, 0}); // -1 is ignored
  if (::poll(watched.data(), watched.size(), poll_timeout_ms()) < 0)
    return; // EINTR, or the system lacks memory: try again
  if (watched[0].revents != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(event_.get(), &count, sizeof(count));
  }
  // Clients first: a ring that becomes idle may serve a new connection of the same pass.
  const std::size_t first_client = 2 + new_connections_.size();
  for (std::uint32_t k = 0; k < connections_.size(); ++k)
    if (connections_[k] && watched[first_client + k].revents != 0) { // the end, or a message that none may send
      connections_[k].reset();
      dataplane_->leave(k);
    }
  reclaim();
  const auto now = steady_clock::now();
  for (std::size_t n = 0; n + 2 < first_client; ++n) {
    if (watched[2 + n].revents != 0)
      serve_new_connection(new_connections_[n]);
    else if (now >= new_connections_[n].deadline)
      new_connections_[n].socket.reset();
  }
  new_connections_.erase(std::remove_if(new_connections_.begin(), new_connections_.end(),
                                        [](const new_connection &c) { return !c.socket; }),
                         new_connections_.end());
  if (watched[1].revents != 0)
    accept_new_connections();
}

int shm_server::poll_timeout_ms() const {
  for (std::uint32_t k = 0; k < options_.max_clients; ++k)
    if (!options_.unified && dataplane_->phase(k) == ring_phase::leaving)
      return 1; // no loop reports that the dispatcher has finished
  return new_connections_.empty() ? -1 : 100;
}

void shm_server::accept_new_connections() {
  while (new_connections_.size() < kMaxNewConnections) {
    file_handle socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
        ::poll(nullptr, 0, kPauseMs); // no descriptors: the listener stays readable
      return;
    }
    new_connections_.push_back({std::move(socket), steady_clock::now() + kNewConnectionTimeout});
  }
}

void shm_server::serve_new_connection(new_connection &c) {
  shm_attach_request request;
  file_handle files[2]; // a client that sends files gets them closed
  if (!receive_message(c.socket.get(), &request, sizeof(request), files) || request.magic != kShmMagic) {
    c.socket.reset();
    return;
  }
  char text[sizeof(shm_attach_reply::text)];
  if (request.version == kShmVersion)
    return attach(c, request);
  std::snprintf(text, sizeof(text), "the server has version %u of the attach protocol, the client %u", kShmVersion,
                request.version);
  refuse(c, CUDAQ_ERR_UNSUPPORTED, text);
}

void shm_server::refuse(new_connection &c, cudaq_status_t status, const char *text) {
  shm_attach_reply reply;
  reply.status = status;
  std::snprintf(reply.text, sizeof(reply.text), "%s", text);
  send_message(c.socket.get(), &reply, sizeof(reply));
  c.socket.reset();
}

expected<> shm_server::prepare_segment(std::uint32_t k) { return memory_.is_mapped(k) ? expected<>{} : memory_.map(k); }

void shm_server::attach(new_connection &c, const shm_attach_request &request) {
  if (options_.requests_on_gpu && request.accepts < kShmGpuVersion)
    return refuse(c, CUDAQ_ERR_UNSUPPORTED,
                  "its requests are in the memory of a GPU (--requests gpu), and the client's "
                  "library is older than that; use a newer one, or --requests host");
  std::uint32_t k = 0;
  while (k < options_.max_clients && dataplane_->phase(k) != ring_phase::idle)
    ++k;
  if (k == options_.max_clients) {
    char text[sizeof(shm_attach_reply::text)];
    std::snprintf(text, sizeof(text), "all %u rings of the server are in use (%s)", options_.max_clients,
                  options_.unified ? "--max-clients" : "the ring shape has one; the server's --unified has more");
    return refuse(c, CUDAQ_ERR_STATE, text);
  }
  if (const expected<> result = prepare_segment(k); result.failed())
    return refuse(c, result.status(), result.text().c_str());
  shm_gpu_reply whole;
  shm_attach_reply &reply = whole.reply;
  reply.server_waits = options_.wait_us != 0 ? 1 : 0;
  reply.layout = memory_.layout();
  int files[kShmMaxFiles] = {memory_.file(k), memory_.bell_file()};
  std::size_t bytes = sizeof(reply), count = 2;
  if (const shm_device_memory *gpu = memory_.gpu()) {
    reply.version = kShmGpuVersion;
    whole.requests = gpu->exported();
    files[count++] = gpu->file();
    bytes = sizeof(whole);
  }
  // Open before the reply: the client may signal at once.
  dataplane_->open(k, request.rings_me != 0 && options_.unified);
  if (send_message(c.socket.get(), &whole, bytes, files, count)) {
    connections_[k] = std::move(c.socket);
    return;
  }
  const int error = errno;
  dataplane_->leave(k);
  // ETOOMANYREFS: too many descriptors of this user are on their way. The client tries again, and knows why it waits.
  refuse(c, CUDAQ_ERR_STATE, system_refused("the descriptors of its memory cannot be sent", error).text().c_str());
}

/// Makes the rings idle whose dispatcher has finished with them.
void shm_server::reclaim() {
  for (std::uint32_t k = 0; k < options_.max_clients; ++k) {
    const ring_phase phase = dataplane_->phase(k);
    if (phase != ring_phase::settled && (options_.unified || phase != ring_phase::leaving || !collect_all(k)))
      continue;
    if (!options_.unified && rewind(k))
      continue;
    if (keeps_segments())
      memory_.clear(k);
    else
      memory_.unmap(k);
    dataplane_->set_idle(k);
  }
}

/// Ring shape, for a ring whose slots are all free: moves the dispatcher's cursor back to slot 0, where the next client
/// begins. Only the dispatcher knows its cursor. So the server puts one frame without a magic number into the last
/// slot. The dispatcher finds it by looking over the ring, drops it, and goes on at slot 0. True: not done yet; to be
/// called again when all slots are free.
bool shm_server::rewind(std::uint32_t k) {
  if (is_rewinding_) {
    is_rewinding_ = false;
    return false;
  }
  if (!memory_.has_frames(k)) // the cursor is still at slot 0: no wait for a dispatcher that may not run
    return false;
  memory_.clear(k);
  const shm_layout &at = memory_.layout();
  const std::uint32_t last = at.num_slots - 1;
  is_rewinding_ = true;
  store_release(memory_.rx_flags(k)[last],
                std::uint64_t{reinterpret_cast<std::uintptr_t>(memory_.rx_data(k) + last * at.stride)});
  if (memory_.gpu() != nullptr)
    fence_posted_stores(); // the flag leaves now
  return true;
}

/// Ring shape: collects the answers in place of the client that has ended. True if all slots are free, and nothing of
/// the dispatcher is on its way to them.
bool shm_server::collect_all(std::uint32_t k) {
  volatile std::uint64_t *rx = memory_.rx_flags(k), *tx = memory_.tx_flags(k);
  const bool across_the_bus = memory_.gpu() != nullptr; // a read of rx takes about 1 us
  bool all_free = true;
  for (std::uint32_t i = 0; i < memory_.layout().num_slots; ++i) {
    const bool reads_rx = all_free || !across_the_bus;
    const std::uint64_t request = reads_rx ? load_acquire(rx[i]) : 0; // before tx, as the free test
    const std::uint64_t answer = load_acquire(tx[i]);
    if (request == 0 && answer == 0)
      continue;
    all_free = false; // looked at again: a dispatcher may be between its two stores
    if (answer != 0 && answer != CUDAQ_TX_FLAG_IN_FLIGHT)
      store_release<std::uint64_t>(tx[i], 0);
  }
  if (!all_free)
    free_since_ = {};
  return all_free && laps_have_come(k);
}

/// For a ring whose flags are all 0: no lap of the device is on its way. Laps that do not come are those of a client
/// that has written into the counts.
bool shm_server::laps_have_come(std::uint32_t k) {
  if (memory_.laps_agree(k)) {
    free_since_ = {};
    return true;
  }
  const auto now = steady_clock::now();
  if (free_since_ == steady_clock::time_point{})
    free_since_ = now;
  if (now - free_since_ < kLapPatience)
    return false;
  free_since_ = {};
  return true;
}

} // namespace cudaq::realtime::detail
