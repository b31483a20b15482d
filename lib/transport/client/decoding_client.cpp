// SPDX-License-Identifier: Apache-2.0
#include "cudaq/qec/realtime/decoding_client.h"

#include "lib/base/process_mark.h"
#include "lib/transport/client/request_driver.h"

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>

using namespace cudaq::realtime::detail;

struct cudaq_qec_client_t {
  explicit cudaq_qec_client_t(request_driver made) : driver(std::move(made)) {}

  request_driver driver;
  process_mark mark;
  std::map<std::uint64_t, std::uint64_t> boot_ids; ///< of the server of each decoder: a router has several
};

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
constexpr std::uint32_t kLargestFrame = 65507; ///< of a UDP datagram over IPv4
constexpr std::uint32_t kMaxOpen = 64;
static_assert(kMaxOpen <= CUDAQ_QEC_REPEAT_REQUESTS, "else the server may have forgotten a request that is repeated");
static_assert(std::endian::native == std::endian::little,
              "the structs of decoding_server_wire.h are those of the wire");
/// Older: without server_state and boot_id.
constexpr std::size_t kShortDescription = offsetof(cudaq_qec_decoder_description_t, boot_id);

expected<> check_options(const cudaq_qec_client_options_t *given, cudaq_qec_client_options_t &out) {
  out = {};
  if (given != nullptr) {
    if (given->struct_size != sizeof(out))
      return make_reason(CUDAQ_ERR_INVALID_ARG, "struct_size is %u, accepted: %zu", given->struct_size, sizeof(out));
    out = *given;
  }
  if (out.reserved != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "reserved is %u, accepted: 0", out.reserved);
  if (out.max_open > kMaxOpen || (out.max_open & (out.max_open - 1)) != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "max_open is %u, accepted: a power of two up to %u", out.max_open,
                       kMaxOpen);
  constexpr std::uint32_t kSmallest = sizeof(cudaq_rpc_header_t) + sizeof(cudaq_qec_get_committed_t);
  if (out.slot_size != 0 && out.slot_size < kSmallest)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "slot_size is %u, accepted: %u or more, or 0", out.slot_size, kSmallest);
  out.max_open = out.max_open == 0 ? 1 : out.max_open;
  out.repeat_after_ns = out.repeat_after_ns == 0 ? 20 * kMillisecond : out.repeat_after_ns;
  out.start_patience_ns = out.start_patience_ns == 0 ? kSecond : out.start_patience_ns;
  return {};
}

expected<> check_process(const cudaq_qec_client_t &client) {
  if (client.mark.is_of_this_process())
    return {};
  return make_reason(CUDAQ_ERR_STATE,
                     "process %ld opened this client, and only that one may use it: its answers and those of a child "
                     "would be mixed. Open another client after fork",
                     static_cast<long>(client.mark.process()));
}

/// `what` names the argument that may be NULL.
expected<> check_client(const cudaq_qec_client_t *client, const void *argument, const char *what) {
  if (client == nullptr || argument == nullptr)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL", client == nullptr ? "client" : what);
  return check_process(*client);
}

std::span<const std::uint8_t> bytes_of(const void *at, std::uint64_t size) {
  return {static_cast<const std::uint8_t *>(at), static_cast<std::size_t>(size)};
}

expected<std::uint32_t> send(cudaq_qec_client_t &client, const cudaq_qec_client_request_t &r) {
  if ((r.flags & ~static_cast<std::uint32_t>(CUDAQ_QEC_CLIENT_BUSY_IS_AN_ANSWER)) != 0)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "flags is %#x, accepted: 0, CUDAQ_QEC_CLIENT_BUSY_IS_AN_ANSWER", r.flags);
  if ((r.head == nullptr && r.head_bytes != 0) || (r.body == nullptr && r.body_bytes != 0))
    return make_reason(CUDAQ_ERR_INVALID_ARG, "%s is NULL, and has bytes", r.head == nullptr ? "head" : "body");
  if (r.head_bytes > UINT32_MAX || r.body_bytes > UINT32_MAX)
    return make_reason(CUDAQ_ERR_INVALID_ARG, "the request is longer than a slot");
  return client.driver.send(r.function_id, bytes_of(r.head, r.head_bytes), bytes_of(r.body, r.body_bytes),
                            (r.flags & CUDAQ_QEC_CLIENT_BUSY_IS_AN_ANSWER) == 0, r.timeout_ns);
}

cudaq_qec_client_answer_t answer_of(const request_news &news) {
  const auto event = news.what == request_news::event::answered    ? CUDAQ_QEC_CLIENT_ANSWERED
                     : news.what == request_news::event::no_answer ? CUDAQ_QEC_CLIENT_NO_ANSWER
                                                                   : CUDAQ_QEC_CLIENT_DROPPED;
  return {news.request,      static_cast<std::uint32_t>(event), news.status, news.attempts, news.result.data(),
          news.result.size()};
}

expected<request_news> call(cudaq_qec_client_t &client, const cudaq_qec_client_request_t &request) {
  if (client.driver.requests().size() != 0)
    return make_reason(CUDAQ_ERR_STATE,
                       "another request is open: collect its answer by cudaq_qec_client_wait, or give it up");
  const expected<std::uint32_t> id = send(client, request);
  if (id.failed())
    return id.reason();
  expected<request_news> news = client.driver.wait(kNever); // the request has a limit of its own
  if (news.failed()) {
    client.driver.give_up(*id);
    return news;
  }
  if (news->what == request_news::event::no_answer)
    return make_reason(CUDAQ_ERR_TIMEOUT, "no answer to %u frames of the request in its time", news->attempts);
  if (news->what == request_news::event::dropped)
    return make_reason(CUDAQ_ERR_UNSUPPORTED, "the server has dropped the request: it has no function of this id");
  return news;
}

cudaq_qec_client_request_t query(const cudaq_qec_describe_decoder_t &payload, std::uint64_t bytes,
                                 std::uint64_t timeout_ns) {
  return {CUDAQ_QEC_DESCRIBE_DECODER, 0, &payload, bytes, nullptr, 0, timeout_ns};
}

expected<std::int32_t> describe(cudaq_qec_client_t &client, std::uint64_t decoder_id, std::uint64_t timeout_ns,
                                cudaq_qec_decoder_description_t &out) {
  const cudaq_qec_describe_decoder_t payload{decoder_id, 1};
  expected<request_news> news = call(client, query(payload, sizeof(payload), timeout_ns));
  std::size_t length = sizeof(out);
  if (news.ok() && news->status == CUDAQ_QEC_SERVER_BAD_REQUEST) { // an earlier version
    news = call(client, query(payload, sizeof(payload.decoder_id), timeout_ns));
    length = kShortDescription;
  }
  if (news.failed())
    return news.reason();
  if (news->status != CUDAQ_QEC_SERVER_OK)
    return news->status;
  if (news->result.size() != length)
    return make_reason(CUDAQ_ERR_INTERNAL, "the answer to describe_decoder has %zu bytes; right are %zu",
                       news->result.size(), length);
  out = {};
  std::memcpy(&out, news->result.data(), length);
  return news->status;
}

/// By the wall clock, in units of 10 us: the ids of a client that is opened later are later ones. To a replay window of
/// the server all clients that had one port, one after the other, are one peer, whose ids count up.
std::uint32_t ids_after() {
  constexpr int kUnit = 10;
  return static_cast<std::uint32_t>(std::chrono::system_clock::now().time_since_epoch() /
                                    std::chrono::microseconds(kUnit));
}

cudaq_status_t open_client(const char *function, cudaq_qec_client_t **out_client,
                           const cudaq_qec_client_options_t *options, bool checks_time, auto &&make_link) {
  return guarded(function, [&]() -> expected<> {
    if (out_client == nullptr)
      return {CUDAQ_ERR_INVALID_ARG, "out_client is NULL"};
    cudaq_qec_client_options_t o;
    if (expected<> result = check_options(options, o); result.failed())
      return result;
    expected<std::unique_ptr<frame_link>> link = make_link(o);
    if (link.failed())
      return link;
    const auto known = static_cast<std::uint32_t>((*link)->slot_size());
    const std::uint32_t frame = known != 0 ? known : o.slot_size != 0 ? o.slot_size : kLargestFrame;
    const repeat_rules rules{
        o.repeat_after_ns, CUDAQ_QEC_REPEAT_SECONDS * kSecond, true, CUDAQ_QEC_REPEAT_REQUESTS - 1, checks_time,
        ids_after()};
    *out_client = new cudaq_qec_client_t(request_driver(std::move(*link), o.max_open, frame, rules));
    return {};
  });
}

} // namespace

extern "C" {

cudaq_status_t cudaq_qec_client_open_udp(cudaq_qec_client_t **out_client, const char *host, uint16_t port,
                                         const cudaq_qec_client_options_t *options) {
  return open_client(__func__, out_client, options, /*checks_time=*/true,
                     [&](const cudaq_qec_client_options_t &o) -> expected<std::unique_ptr<frame_link>> {
                       if (host == nullptr || port == 0)
                         return reason(CUDAQ_ERR_INVALID_ARG, host == nullptr ? "host is NULL" : "port is 0");
                       if (o.slot_size > kLargestFrame)
                         return make_reason(CUDAQ_ERR_INVALID_ARG, "slot_size is %u, accepted: up to %u over UDP",
                                            o.slot_size, kLargestFrame);
                       const bool once = o.repeat_after_ns == CUDAQ_QEC_CLIENT_NEVER;
                       return make_udp_link(host, port, o.repeat_after_ns, once ? 0 : o.start_patience_ns);
                     });
}

cudaq_status_t cudaq_qec_client_open_shm(cudaq_qec_client_t **out_client, const char *name, uint64_t timeout_ns,
                                         const cudaq_qec_client_options_t *options) {
  return open_client(__func__, out_client, options, /*checks_time=*/false, // the link makes some answers itself
                     [&](cudaq_qec_client_options_t &o) -> expected<std::unique_ptr<frame_link>> {
                       if (name == nullptr)
                         return reason(CUDAQ_ERR_INVALID_ARG, "name is NULL");
                       o.repeat_after_ns = CUDAQ_QEC_CLIENT_NEVER; // nothing is lost
                       return make_shm_link(name, timeout_ns);
                     });
}

cudaq_status_t cudaq_qec_client_call(cudaq_qec_client_t *client, const cudaq_qec_client_request_t *request,
                                     cudaq_qec_client_answer_t *out_answer) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_client(client, request, "request"); result.failed())
      return result;
    if (out_answer == nullptr)
      return {CUDAQ_ERR_INVALID_ARG, "out_answer is NULL"};
    const expected<request_news> news = call(*client, *request);
    if (news.failed())
      return news;
    *out_answer = answer_of(*news);
    return {};
  });
}

cudaq_status_t cudaq_qec_client_send(cudaq_qec_client_t *client, const cudaq_qec_client_request_t *request,
                                     uint32_t *out_request) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_client(client, request, "request"); result.failed())
      return result;
    if (out_request == nullptr)
      return {CUDAQ_ERR_INVALID_ARG, "out_request is NULL"};
    const expected<std::uint32_t> id = send(*client, *request);
    if (id.failed())
      return id;
    *out_request = *id;
    return {};
  });
}

cudaq_status_t cudaq_qec_client_wait(cudaq_qec_client_t *client, uint64_t timeout_ns,
                                     cudaq_qec_client_answer_t *out_answer) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_client(client, out_answer, "out_answer"); result.failed())
      return result;
    const expected<request_news> news = client->driver.wait(timeout_ns);
    if (news.failed())
      return news;
    *out_answer = answer_of(*news);
    return {};
  });
}

cudaq_status_t cudaq_qec_client_give_up(cudaq_qec_client_t *client, uint32_t request) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_client(client, client, "client"); result.failed())
      return result;
    if (!client->driver.give_up(request))
      return make_reason(CUDAQ_ERR_STATE, "request %u is not open", request);
    return {};
  });
}

cudaq_status_t cudaq_qec_client_describe(cudaq_qec_client_t *client, uint64_t decoder_id, uint64_t timeout_ns,
                                         cudaq_qec_decoder_description_t *out_description, int32_t *out_status) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_client(client, out_description, "out_description"); result.failed())
      return result;
    if (out_status == nullptr)
      return {CUDAQ_ERR_INVALID_ARG, "out_status is NULL"};
    const expected<std::int32_t> status = describe(*client, decoder_id, timeout_ns, *out_description);
    if (status.failed())
      return status;
    *out_status = *status;
    if (*status == CUDAQ_QEC_SERVER_OK)
      client->boot_ids[decoder_id] = out_description->boot_id;
    return {};
  });
}

cudaq_status_t cudaq_qec_client_was_restarted(cudaq_qec_client_t *client, uint64_t decoder_id, uint64_t timeout_ns,
                                              int *out_restarted) {
  return guarded(__func__, [&]() -> expected<> {
    if (expected<> result = check_client(client, out_restarted, "out_restarted"); result.failed())
      return result;
    *out_restarted = 0;
    const auto before = client->boot_ids.find(decoder_id);
    if (before == client->boot_ids.end() || before->second == 0)
      return {};
    cudaq_qec_decoder_description_t now;
    const expected<std::int32_t> status = describe(*client, decoder_id, timeout_ns, now);
    if (status.failed())
      return status;
    *out_restarted = *status == CUDAQ_QEC_SERVER_OK && now.boot_id != 0 && now.boot_id != before->second ? 1 : 0;
    return {};
  });
}

cudaq_status_t cudaq_qec_client_get_counts(const cudaq_qec_client_t *client, cudaq_qec_client_counts_t *out_counts) {
  return guarded_brief(__func__, [&]() -> expected<> {
    if (expected<> result = check_client(client, out_counts, "out_counts"); result.failed())
      return result;
    const request_driver &driver = client->driver;
    *out_counts = {driver.requests().repeated(), driver.requests().busy(), driver.unexpected(), driver.slot_size()};
    return {};
  });
}

void cudaq_qec_client_close(cudaq_qec_client_t *client) {
  const cancellation_disabled during_the_call;
  delete client;
}

const char *cudaq_qec_client_error(void) { return last_error_text(); }

} // extern "C"
