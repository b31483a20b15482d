// SPDX-License-Identifier: Apache-2.0
// A minimal provider of the shape `ring`. Each message of a local socket is one frame; there is one peer.
//   --socket=PATH   --num-slots=N (8)   --slot-size=BYTES (256)
#include <cudaq/realtime/daemon/bridge/bridge_interface.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#ifndef PROVIDER_VERSION
#define PROVIDER_VERSION 2 // that of the last entry which it has: older loaders refuse a higher number
#endif

namespace {

thread_local std::string last_error; // read by the loader after an entry has failed on this thread
cudaq_status_t fail(cudaq_status_t status, const std::string &text) {
  last_error = text;
  return status;
}
cudaq_status_t system_failed(const char *call) {
  return fail(CUDAQ_ERR_INTERNAL, std::string(call) + ": " + std::strerror(errno));
}

struct provider {
  std::string path;
  std::uint32_t num_slots = 8, slot_size = 256;
  cudaq_ringbuffer_memory_t *memory = nullptr;
  cudaq_ringbuffer_t ring{};
  int listener = -1, peer = -1, wake = -1;
  std::atomic<std::uint64_t> too_long{0}; // messages
  std::atomic<bool> stopping{false};      // never cleared: disconnect may come before connect has begun
  std::thread pump;

  ~provider() {
    for (const int fd : {listener, peer, wake})
      if (fd >= 0)
        close(fd);
    if (listener >= 0)
      unlink(path.c_str());
    cudaq_ringbuffer_destroy(memory);
  }
};
provider &of(void *handle) { return *static_cast<provider *>(handle); }

bool read_option(const char *arg, const char *name, std::uint32_t least, std::uint32_t &out) {
  const std::size_t n = std::strlen(name);
  if (std::strncmp(arg, name, n) != 0)
    return false;
  char *end = nullptr;
  const unsigned long value = std::strtoul(arg + n, &end, 10);
  if (end == arg + n || *end != 0 || value < least || value > 1u << 20)
    return false;
  out = static_cast<std::uint32_t>(value);
  return true;
}

cudaq_status_t create(void **handle, int argc, char **argv) {
  auto p = std::make_unique<provider>();
  for (int i = 0; i < argc; ++i) {
    if (std::strncmp(argv[i], "--socket=", 9) == 0)
      p->path = argv[i] + 9;
    else if (!read_option(argv[i], "--num-slots=", 1, p->num_slots) &&
             !read_option(argv[i], "--slot-size=", CUDAQ_RPC_HEADER_SIZE, p->slot_size))
      return fail(CUDAQ_ERR_INVALID_ARG,
                  std::string("option ") + argv[i] + ": allowed: --socket=PATH, --num-slots=1.., --slot-size=24..");
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (p->path.empty() || p->path.size() >= sizeof(address.sun_path))
    return fail(CUDAQ_ERR_INVALID_ARG, "--socket=PATH is required, with a path of at most 107 characters");
  p->path.copy(address.sun_path, p->path.size());

  cudaq_ringbuffer_options_t options;
  cudaq_ringbuffer_options_init(&options, sizeof(options));
  options.num_slots = p->num_slots;
  options.slot_size = p->slot_size;
  if (const cudaq_status_t failed = cudaq_ringbuffer_create(&options, &p->memory, &p->ring))
    return fail(failed, cudaq_last_error_message());
  p->wake = eventfd(0, EFD_CLOEXEC);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (p->wake < 0 || listener < 0)
    return system_failed("eventfd, socket");
  if (bind(listener, reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0) {
    close(listener);
    return system_failed("bind");
  }
  p->listener = listener;
  if (listen(p->listener, 1) != 0)
    return system_failed("listen");
  *handle = p.release();
  return CUDAQ_OK;
}

cudaq_status_t destroy(void *handle) {
  delete &of(handle);
  return CUDAQ_OK;
}

cudaq_status_t get_transport_context(void *handle, cudaq_realtime_transport_context_t type, void *out) {
  if (type != RING_BUFFER)
    return fail(CUDAQ_ERR_UNSUPPORTED, "this provider has the shape ring");
  *static_cast<cudaq_ringbuffer_t *>(out) = of(handle).ring;
  return CUDAQ_OK;
}

cudaq_status_t connect_peer(void *handle) {
  provider &p = of(handle);
  pollfd fds[] = {{p.listener, POLLIN, 0}, {p.wake, POLLIN, 0}};
  while (poll(fds, 2, -1) < 0)
    if (errno != EINTR)
      return system_failed("poll");
  if (p.stopping)
    return fail(CUDAQ_ERR_STATE, "disconnect was called");
  p.peer = accept4(p.listener, nullptr, nullptr, SOCK_CLOEXEC);
  return p.peer >= 0 ? CUDAQ_OK : system_failed("accept");
}

/// A request that does not fit into a slot is counted and answered: its sender would wait in vain.
void refuse_long(provider &p, const cudaq_rpc_header_t &request) {
  ++p.too_long;
  cudaq_rpc_response_t answer{};
  answer.magic = CUDAQ_RPC_MAGIC_RESPONSE;
  answer.status = CUDAQ_RPC_ERR_BAD_ARG_LEN;
  answer.request_id = request.request_id;
  answer.ptp_timestamp = request.ptp_timestamp;
  (void)send(p.peer, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// Moves one message into the free slot `slot`. False: there is none, or it is no frame and is dropped.
bool receive(provider &p, std::uint32_t slot) {
  std::uint8_t *const to = p.ring.rx_data_host + slot * p.ring.rx_stride_sz;
  const ssize_t n = recv(p.peer, to, p.slot_size, MSG_DONTWAIT | MSG_TRUNC);
  cudaq_rpc_header_t header;
  if (n < static_cast<ssize_t>(sizeof(header)))
    return false;
  std::memcpy(&header, to, sizeof(header));
  if (n > static_cast<ssize_t>(p.slot_size)) {
    if (header.magic == CUDAQ_RPC_MAGIC_REQUEST)
      refuse_long(p, header);
    return false;
  }
  if (header.arg_len > static_cast<std::size_t>(n) - sizeof(header)) // the rest of the slot is of an older request
    return false;
  cudaq_host_ringbuffer_signal_slot(&p.ring, slot);
  return true;
}

/// True: the slot is done. It is answered, or the dispatcher has dropped the request.
bool answer(provider &p, std::uint32_t slot) {
  switch (cudaq_host_ringbuffer_poll_tx_flag(&p.ring, slot, nullptr)) {
  case CUDAQ_TX_READY: {
    cudaq_rpc_response_t header;
    const void *result = nullptr;
    const void *const frame = p.ring.tx_data_host + slot * p.ring.tx_stride_sz;
    if (cudaq_host_ringbuffer_read_rpc_response(&p.ring, slot, &header, &result) == CUDAQ_OK &&
        send(p.peer, frame, sizeof(header) + header.result_len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EAGAIN)
      return false; // the peer does not read: the answer stays in its slot
    cudaq_host_ringbuffer_clear_slot(&p.ring, slot);
    return true;
  }
  case CUDAQ_TX_ERROR:
    cudaq_host_ringbuffer_clear_slot(&p.ring, slot);
    return true;
  default:
    return cudaq_host_ringbuffer_slot_available(&p.ring, slot) != 0;
  }
}

void run_pump(provider &p) {
  std::uint32_t fill = 0, take = 0, filled = 0; // `filled` slots from `take` on hold a request
  while (!p.stopping) {
    bool work = false;
    if (filled < p.num_slots && cudaq_host_ringbuffer_slot_available(&p.ring, fill) && receive(p, fill)) {
      fill = (fill + 1) % p.num_slots;
      ++filled;
      work = true;
    }
    if (filled > 0 && answer(p, take)) {
      take = (take + 1) % p.num_slots;
      --filled;
      work = true;
    }
    pollfd fds[] = {{p.wake, POLLIN, 0}, {p.peer, POLLIN, 0}};
    if (!work && filled == 0 && poll(fds, 2, 100) > 0 && (fds[1].revents & POLLHUP) != 0)
      poll(fds, 1, 100); // the peer has gone
    else if (!work)
      std::this_thread::yield();
  }
}

cudaq_status_t launch(void *handle) {
  provider &p = of(handle);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); // the program's signal handlers do not run on the new thread
  p.pump = std::thread([&p] { run_pump(p); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return CUDAQ_OK;
}

cudaq_status_t disconnect(void *handle) {
  provider &p = of(handle);
  p.stopping = true;
  const std::uint64_t one = 1;
  if (write(p.wake, &one, sizeof(one)) != static_cast<ssize_t>(sizeof(one)))
    return system_failed("write");
  if (p.pump.joinable())
    p.pump.join();
  return CUDAQ_OK;
}

cudaq_status_t get_endpoint_info(void *handle, char *buffer, std::size_t length) {
  provider &p = of(handle);
  const std::string counts = p.too_long != 0 ? " too_long=" + std::to_string(p.too_long) : "";
  const int n = std::snprintf(buffer, length, "transport=socket path=%s%s", p.path.c_str(), counts.c_str());
  return n >= 0 && static_cast<std::size_t>(n) < length ? CUDAQ_OK
                                                        : fail(CUDAQ_ERR_INVALID_ARG, "the buffer is too small");
}

cudaq_status_t get_ring_geometry(void *handle, std::uint32_t *num_slots, std::uint32_t *slot_size) {
  *num_slots = of(handle).num_slots;
  *slot_size = of(handle).slot_size;
  return CUDAQ_OK;
}

/// An entry of C linkage lets no exception out.
template <auto Entry, class... Arguments>
cudaq_status_t guarded(Arguments... arguments) {
  try {
    return Entry(arguments...);
  } catch (const std::exception &e) {
    return fail(CUDAQ_ERR_INTERNAL, e.what());
  }
}

} // namespace

extern "C" CUDAQ_REALTIME_API cudaq_realtime_bridge_interface_t *cudaq_realtime_get_bridge_interface() {
  static cudaq_realtime_bridge_interface_t table = {
      PROVIDER_VERSION,  guarded<create>,     destroy, get_transport_context, guarded<connect_peer>,
      guarded<launch>,   guarded<disconnect>,
      nullptr, // get_cpu_dataplane: of the shape unified
      get_endpoint_info, get_ring_geometry,
      nullptr, // set_function_table: a dispatcher serves the ring
  };
  return &table;
}

extern "C" CUDAQ_REALTIME_API const char *cudaq_realtime_get_bridge_error() { return last_error.c_str(); }
