// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/ucx/ucx_worker.h"

#include "lib/base/runner.h"
#include "lib/transport/ucx/tcp_listening.h"
#include "lib/transport/ucx/ucx_printed.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <thread>
#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <ucs/config/global_opts.h>
#include <vector>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kMessageId = 0x52;    // of the active messages
constexpr std::size_t kMaxRequests = 64; // connections that wait to be accepted
constexpr std::size_t kMaxConnections = 128;
constexpr auto kCloseLimit = 1s;
constexpr auto kEndLimit = 10s; // of work for UCX's thread alone

expected<> ucx_reason(const char *what, ucs_status_t status) {
  return make_reason(CUDAQ_ERR_INTERNAL, "%s: UCX: %s", what, ucs_status_string(status));
}

bool to_sockaddr(const std::string &address, std::uint32_t port, sockaddr_in &out) {
  out = {};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  return inet_pton(AF_INET, address.c_str(), &out.sin_addr) == 1;
}

} // namespace

struct ucx_worker::state {
  struct connection {
    std::uint64_t id = 0;
    ucp_ep_h endpoint = nullptr;
    bool failed = false;
  };
  struct send_buffer {
    state *owner = nullptr;
    std::vector<std::uint8_t> bytes;
  };

  ucx_settings settings;
  events receiver;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_listener_h listener = nullptr;
  sockaddr_in listens_at{};
  tcp_listening sockets; ///< of the listener
  std::uint64_t next_id = 1;
  std::vector<std::unique_ptr<connection>> connections; ///< their addresses are arguments of UCX's callbacks
  std::deque<ucp_conn_request_h> requests;
  /// The request that closes a connection, and the connection, which UCX may use until then.
  std::vector<std::pair<void *, std::unique_ptr<connection>>> closing;
  std::vector<std::unique_ptr<send_buffer>> buffers; ///< all
  std::vector<send_buffer *> free_buffers;
  std::uint32_t work = 0; ///< events since the last progress

  connection *find(std::uint64_t id) {
    const auto found =
        std::find_if(connections.begin(), connections.end(), [id](const auto &c) { return c->id == id; });
    return found == connections.end() ? nullptr : found->get();
  }
  connection *find(ucp_ep_h endpoint) {
    const auto found = std::find_if(connections.begin(), connections.end(),
                                    [endpoint](const auto &c) { return c->endpoint == endpoint; });
    return found == connections.end() ? nullptr : found->get();
  }
  std::uint64_t create(ucp_ep_params_t &params);
  void close(std::unique_ptr<connection> which);
  void accept_waiting();
  void report_failed();
  void reap();
  template <class Waits>
  void work_while(steady_clock::duration limit, Waits &&waits);
  bool end_listener();
  bool fill_buffer(std::span<const std::uint8_t> header, std::span<const std::uint8_t> payload);

  static ucs_status_t on_message(void *self, const void *, std::size_t, void *data, std::size_t length,
                                 const ucp_am_recv_param_t *param);
  static void on_request(ucp_conn_request_h request, void *self);
  static void on_failure(void *which, ucp_ep_h, ucs_status_t);
  static void on_sent(void *request, ucs_status_t, void *buffer);
};

ucx_worker::ucx_worker() : state_(std::make_unique<state>()) {}

ucs_status_t ucx_worker::state::on_message(void *self, const void *, std::size_t, void *data, std::size_t length,
                                           const ucp_am_recv_param_t *param) {
  state &s = *static_cast<state *>(self);
  ++s.work;
  // A rendezvous: no party of this protocol begins one. UCX drops a message that is not fetched.
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || length > s.settings.max_bytes)
    return UCS_OK;
  const connection *from = nullptr;
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0)
    from = s.find(param->reply_ep);
  try {
    s.receiver.message(from != nullptr ? from->id : 0, {static_cast<const std::uint8_t *>(data), length});
  } catch (...) {
    // Out of memory. No exception may pass through UCX; for the other side the message is lost.
  }
  return UCS_OK;
}

void ucx_worker::state::on_request(ucp_conn_request_h request, void *self) {
  state &s = *static_cast<state *>(self);
  ++s.work;
  try {
    if (s.requests.size() < kMaxRequests && s.connections.size() < kMaxConnections)
      return s.requests.push_back(request);
  } catch (const std::bad_alloc &) { // it is refused, too
  }
  ucp_listener_reject(s.listener, request);
}

// Closing here is not allowed by every transport: the next progress does it.
void ucx_worker::state::on_failure(void *which, ucp_ep_h, ucs_status_t) {
  static_cast<connection *>(which)->failed = true;
}

void ucx_worker::state::on_sent(void *request, ucs_status_t, void *buffer) {
  send_buffer &sent = *static_cast<send_buffer *>(buffer);
  sent.owner->free_buffers.push_back(&sent);
  ucp_request_free(request);
}

expected<> ucx_worker::open(const ucx_settings &settings, events receiver) {
  state &s = *state_;
  s.settings = settings;
  s.receiver = std::move(receiver);
  if (std::getenv("UCX_LOG_LEVEL") == nullptr)
    ucs_global_opts_set_value("LOG_LEVEL", "fatal"); // UCX prints to stdout, which belongs to the program
  // Only with these settings UCX takes shared memory for connections whose other side may die, and a port that was used
  // lately. Version 1.13 reads these from the environment only.
  for (const char *const name : {"UCX_POSIX_ERROR_HANDLING", "UCX_SYSV_ERROR_HANDLING", "UCX_TCP_CM_REUSEADDR"})
    setenv(name, "y", 0);
  ucp_config_t *config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK)
    return ucx_reason("ucp_config_read", status);
  if (!settings.tls.empty())
    status = ucp_config_modify(config, "TLS", settings.tls.c_str());
  if (settings.loopback && std::getenv("UCX_NET_DEVICES") == nullptr) // else UCX also listens on all other interfaces
    (void)ucp_config_modify(config, "NET_DEVICES", "lo");
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM;
  if (status == UCS_OK)
    status = ucp_init(&params, config, &s.context);
  ucp_config_release(config);
  if (status != UCS_OK)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "the transports '%s' of UCX (--tls, UCX_TLS): %s", settings.tls.c_str(),
                       ucs_status_string(status));
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (status = ucp_worker_create(s.context, &worker, &s.worker); status != UCS_OK)
    return ucx_reason("ucp_worker_create", status);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = state::on_message;
  handler.arg = &s;
  if (status = ucp_worker_set_am_recv_handler(s.worker, &handler); status != UCS_OK)
    return ucx_reason("ucp_worker_set_am_recv_handler", status);
  return {};
}

expected<> ucx_worker::listen(const std::string &address, std::uint32_t port) {
  state &s = *state_;
  sockaddr_in where{};
  if (!to_sockaddr(address, port, where))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "--bind '%s': an IPv4 address is accepted", address.c_str());
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr = {reinterpret_cast<const sockaddr *>(&where), sizeof where};
  params.conn_handler = {state::on_request, &s};
  if (expected<> result = s.sockets.reserve(); result.failed())
    return result;
  if (const ucs_status_t status = ucp_listener_create(s.worker, &params, &s.listener); status != UCS_OK)
    return make_reason(CUDAQ_ERR_INTERNAL, "--bind %s --port %u: UCX cannot listen there: %s", address.c_str(), port,
                       ucs_status_string(status));
  ucp_listener_attr_t found{};
  found.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  if (const ucs_status_t status = ucp_listener_query(s.listener, &found); status != UCS_OK)
    return ucx_reason("ucp_listener_query", status);
  std::memcpy(&s.listens_at, &found.sockaddr, sizeof s.listens_at);
  return s.sockets.find(s.listens_at);
}

std::uint32_t ucx_worker::port() const noexcept { return ntohs(state_->listens_at.sin_port); }

std::uint64_t ucx_worker::state::create(ucp_ep_params_t &params) {
  auto made = std::make_unique<connection>();
  // Before UCX knows the connection, also for its end: from then on its address must stay.
  connections.reserve(connections.size() + 1);
  closing.reserve(closing.size() + connections.size() + 1);
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_failure, made.get()};
  if (ucp_ep_create(worker, &params, &made->endpoint) != UCS_OK)
    return 0;
  made->id = next_id++;
  connections.push_back(std::move(made));
  return connections.back()->id;
}

std::uint64_t ucx_worker::connect(const std::string &address, std::uint32_t port) {
  sockaddr_in where{};
  if (!to_sockaddr(address, port, where))
    return 0;
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr = {reinterpret_cast<const sockaddr *>(&where), sizeof where};
  return state_->create(params);
}

void ucx_worker::state::accept_waiting() {
  while (!requests.empty()) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = requests.front();
    ++work;
    const std::uint64_t id = create(params); // without memory for it, the request stays for the next progress
    requests.pop_front();
    if (id != 0)
      receiver.connected(id);
  }
}

/// Writes a message to the last of the free buffers. False: there is no memory for it.
bool ucx_worker::state::fill_buffer(std::span<const std::uint8_t> header, std::span<const std::uint8_t> payload) {
  try {
    if (free_buffers.empty()) {
      free_buffers.reserve(buffers.size() + 1); // on_sent needs no memory
      buffers.push_back(std::make_unique<send_buffer>());
      buffers.back()->owner = this;
      free_buffers.push_back(buffers.back().get());
    }
    std::vector<std::uint8_t> &bytes = free_buffers.back()->bytes;
    bytes.assign(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return true;
  } catch (const std::bad_alloc &) {
    return false;
  }
}

void ucx_worker::send(std::uint64_t id, std::span<const std::uint8_t> header, std::span<const std::uint8_t> payload,
                      bool introduces) {
  state &s = *state_;
  state::connection *const to = s.find(id);
  if (to == nullptr || to->failed)
    return;
  if (!s.fill_buffer(header, payload)) {
    to->failed = true; // the other side would wait for the message
    return;
  }
  state::send_buffer &buffer = *s.free_buffers.back();
  s.free_buffers.pop_back();
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  if (introduces)
    params.flags |= UCP_AM_SEND_FLAG_REPLY;
  params.cb.send = state::on_sent;
  params.user_data = &buffer;
  const ucs_status_ptr_t sent =
      ucp_am_send_nbx(to->endpoint, kMessageId, nullptr, 0, buffer.bytes.data(), buffer.bytes.size(), &params);
  if (UCS_PTR_IS_PTR(sent))
    return; // on_sent gives the buffer back
  s.free_buffers.push_back(&buffer);
  if (UCS_PTR_IS_ERR(sent))
    to->failed = true;
}

void ucx_worker::state::close(std::unique_ptr<connection> which) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t ends = ucp_ep_close_nbx(which->endpoint, &params);
  if (UCS_PTR_IS_PTR(ends))
    closing.emplace_back(ends, std::move(which));
}

void ucx_worker::close(std::uint64_t id) {
  state &s = *state_;
  const auto found =
      std::find_if(s.connections.begin(), s.connections.end(), [id](const auto &c) { return c->id == id; });
  if (found == s.connections.end())
    return;
  std::unique_ptr<state::connection> last = std::move(*found);
  s.connections.erase(found);
  s.close(std::move(last));
}

void ucx_worker::state::reap() {
  std::erase_if(closing, [](const auto &ending) {
    if (ucp_request_check_status(ending.first) == UCS_INPROGRESS)
      return false;
    ucp_request_free(ending.first);
    return true;
  });
}

void ucx_worker::state::report_failed() {
  for (std::size_t i = 0; i < connections.size();) {
    if (!connections[i]->failed) {
      ++i;
      continue;
    }
    std::unique_ptr<connection> last = std::move(connections[i]);
    connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i));
    const std::uint64_t id = last->id;
    close(std::move(last));
    ++work;
    receiver.failed(id); // may close others: begin again
    i = 0;
  }
}

std::uint32_t ucx_worker::progress() {
  state &s = *state_;
  if (s.worker == nullptr)
    return 0;
  s.work = 0;
  for (int round = 0; round < 16 && ucp_worker_progress(s.worker) != 0; ++round) {
  }
  s.accept_waiting();
  s.report_failed();
  if (!s.closing.empty())
    s.reap();
  return s.work;
}

bool ucx_worker::flush(std::uint64_t limit_ns) {
  state &s = *state_;
  if (s.worker == nullptr)
    return true;
  ucp_request_param_t params{};
  const ucs_status_ptr_t ends = ucp_worker_flush_nbx(s.worker, &params);
  if (!UCS_PTR_IS_PTR(ends))
    return !UCS_PTR_IS_ERR(ends);
  const steady_clock::time_point deadline = deadline_after(limit_ns);
  while (ucp_request_check_status(ends) == UCS_INPROGRESS && steady_clock::now() < deadline)
    progress();
  const bool done = ucp_request_check_status(ends) != UCS_INPROGRESS;
  ucp_request_free(ends); // UCX frees one in progress at its end
  return done;
}

std::string ucx_worker::carrier(std::uint64_t id) {
  state::connection *const which = state_->find(id);
  if (which == nullptr || which->failed)
    return "";
  return message_transport(which->endpoint);
}

std::vector<std::string> ucx_worker::resources() const { return context_resources(state_->context); }

std::string ucx_worker::version() { return ucp_get_version_string(); }

/// Works, and refuses all requests, while `waits` says so, within the limit.
template <class Waits>
void ucx_worker::state::work_while(steady_clock::duration limit, Waits &&waits) {
  for (const auto deadline = steady_clock::now() + limit; waits() && steady_clock::now() < deadline;) {
    ucp_worker_progress(worker);
    for (; !requests.empty(); requests.pop_front())
      ucp_listener_reject(listener, requests.front());
    reap();
    std::this_thread::sleep_for(20us); // UCX's thread may need this processor
  }
}

/// UCX (1.13, and 1.20 still) uses a listener also after its end, when a connection that it has accepted sends its
/// request: then the process crashes. A router that connects just then is enough, and so is any program that connects
/// and waits. So what was accepted ends before the listener. False: it has not ended, and the listener must stay.
bool ucx_worker::state::end_listener() {
  const int listening = sockets.listener();
  // After this UCX's thread is not in the listener's handler and never enters it, so nothing more is accepted. Other
  // ways would be worse: after a shutdown of the socket that thread calls accept in an endless loop; with a socket in
  // its place UCX cannot remove it from the thread's epoll, and the thread stays.
  if (listening >= 0)
    ucs_async_remove_handler(listening, 1);
  bool ended = false;
  if (sockets.known())
    work_while(kEndLimit, [&] { return !(ended = sockets.end_accepted()); });
  if (!ended)
    return false;
  // UCX removes its listener's handler, and prints a warning if there is none. No thread calls this one.
  if (listening >= 0)
    ucs_async_set_event_handler(
        UCS_ASYNC_MODE_POLL, listening, ucs_event_set_types_t{}, [](int, ucs_event_set_types_t, void *) {}, nullptr,
        nullptr);
  ucp_listener_destroy(listener);
  return true;
}

ucx_worker::~ucx_worker() {
  state &s = *state_;
  if (s.worker != nullptr) {
    s.receiver = {[](std::uint64_t, std::span<const std::uint8_t>) {}, [](std::uint64_t) {}, [](std::uint64_t) {}};
    while (!s.connections.empty())
      close(s.connections.back()->id);
    s.work_while(kCloseLimit, [&s] { return !s.closing.empty(); }); // first: their last messages are on their way
    if (s.listener != nullptr && !s.end_listener())
      return; // What UCX has allocated, and its thread, stay: the alternative is a crash.
    ucp_worker_destroy(s.worker);
  }
  if (s.context != nullptr)
    ucp_cleanup(s.context);
}

} // namespace cudaq::realtime::detail
