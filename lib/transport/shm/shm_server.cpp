// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/shm/shm_server.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace cudaq::realtime::detail {
expected<> shm_server::take_name() {
  const std::string path = shm_path(options_.name, "lock");
  for (int tries = 0; tries < 100; ++tries) {
    file_handle file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file)
      return system_refused("--name: open of " + path, errno);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK)
        return system_refused("--name: flock of " + path, errno);
      return make_reason(CUDAQ_ERR_STATE, "--name is '%s': a server of this name runs (it holds the lock on %s)",
                         options_.name.c_str(), path.c_str());
    }
    // The server that had the file may have removed it after it was opened here.
    struct stat opened {
    }, present{};
    if (::fstat(file.get(), &opened) == 0 && ::stat(path.c_str(), &present) == 0 && opened.st_ino == present.st_ino &&
        opened.st_dev == present.st_dev) {
      lock_ = std::move(file);
      return {};
    }
  }
  return make_reason(CUDAQ_ERR_INTERNAL, "--name is '%s': %s is removed again and again", options_.name.c_str(),
                     path.c_str());
}

expected<> shm_server::listen() {
  const std::string path = shm_path(options_.name, "sock");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) // of a server that died
    return system_refused("--name: removal of " + path, errno);
  file_handle file(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!file)
    return system_refused("socket", errno);
  const sockaddr_un address = shm_address(options_.name);
  if (::bind(file.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0)
    return system_refused("--name: bind of " + path, errno);
  // Before listen: until then no client can connect.
  if (::chmod(path.c_str(), options_.mode) != 0 || ::listen(file.get(), 128) != 0)
    return system_refused("chmod or listen of " + path, errno);
  listener_ = std::move(file);
  return {};
}

expected<> shm_server::start() {
  if (expected<> result = memory_.reserve(options_); result.failed())
    return result;
  // Now, so that a lack of memory is an error of create. Without --pinned in the unified shape, it is a trial only.
  for (std::uint32_t k = 0; k < (keeps_segments() ? options_.max_clients : 1); ++k)
    if (expected<> result = memory_.map(k); result.failed())
      return result;
  event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_)
    return system_refused("eventfd", errno);
  connections_.resize(options_.max_clients);
  new_connections_.reserve(kMaxNewConnections);
  shm_dataplane::setup s;
  s.layout = memory_.layout(), s.span = memory_.span(), s.clients = options_.max_clients;
  s.base = memory_.requests(0), s.window = memory_.window();
  s.wait_ns = std::uint64_t{options_.wait_us} * 1000, s.bell = &memory_.bell();
  s.settled = [this] { wake(); };
  dataplane_.emplace(std::move(s));
  if (expected<> result = take_name(); result.failed())
    return result;
  if (expected<> result = listen(); result.failed())
    return result;
  return thread_.start("cudaq-shm", {}, [this] { run(); });
}

void shm_server::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof(one));
}

void shm_server::disconnect() {
  if (!lock_)
    return;
  ends_.store(1);
  wake();
  thread_.join_until(steady_clock::time_point::max()); // it reads ends_ after each of its steps, and none of them waits
  for (std::uint32_t k = 0; k < options_.max_clients; ++k)
    if (connections_[k]) {
      dataplane_->leave(k);
      connections_[k].reset();
    }
  new_connections_.clear();
  if (listener_)
    ::unlink(shm_path(options_.name, "sock").c_str());
  listener_.reset();
  ::unlink(shm_path(options_.name, "lock").c_str());
  lock_.reset();
}

std::uint32_t shm_server::slot_numbers() const {
  return options_.unified ? memory_.span() * options_.max_clients : options_.num_slots;
}

std::string shm_server::endpoint() const {
  char line[256];
  std::snprintf(line, sizeof(line), "transport=shm name=%s clients=%u slots=%u frame_size=%u", options_.name.c_str(),
                options_.max_clients, options_.num_slots, options_.slot_size);
  return line + options_.ignored_words;
}

cudaq_ringbuffer_t shm_server::ring() const {
  const shm_layout &at = memory_.layout();
  cudaq_ringbuffer_t r{};
  r.rx_flags_host = memory_.rx_flags(0), r.tx_flags_host = memory_.tx_flags(0);
  r.rx_data_host = memory_.rx_data(0), r.tx_data_host = memory_.answers(0);
  r.rx_stride_sz = r.tx_stride_sz = at.stride;
  if (options_.pinned) { // shm_memory has checked that the addresses are equal
    r.rx_flags = r.rx_flags_host, r.tx_flags = r.tx_flags_host;
    r.rx_data = r.rx_data_host, r.tx_data = r.tx_data_host;
  }
  if (const shm_device_memory *gpu = memory_.gpu()) {
    r.rx_flags = reinterpret_cast<volatile std::uint64_t *>(gpu->device() + at.rx_flags);
    r.rx_data = gpu->device() + at.rx_data;
  }
  return r;
}

cudaq_cpu_dataplane_t shm_server::dataplane() {
  cudaq_cpu_dataplane_t plane{};
  plane.ctx = &*dataplane_;
  plane.ring = ring();
  plane.ring.rx_flags = plane.ring.tx_flags = plane.ring.tx_flags_host = nullptr;
  plane.ring.rx_flags_host = dataplane_->private_flags();
  plane.rx_poll = [](void *ctx, std::uint32_t *slot) { return static_cast<shm_dataplane *>(ctx)->rx_poll(slot); };
  plane.tx_publish = [](void *ctx, std::uint32_t slot) { return static_cast<shm_dataplane *>(ctx)->tx_publish(slot); };
  return plane;
}

} // namespace cudaq::realtime::detail
