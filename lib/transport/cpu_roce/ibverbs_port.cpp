// SPDX-License-Identifier: Apache-2.0
// The only file that calls libibverbs.
#include "lib/transport/cpu_roce/ibverbs_port.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <infiniband/verbs.h>
#include <string>

namespace cudaq::realtime::detail {
namespace {

constexpr std::uint32_t kMaxInline = 256;     // a frame up to this size goes with the work request, if the adapter can
constexpr std::uint8_t kHopLimit = 255;       // as the existing provider
constexpr std::uint8_t kShortestRnrDelay = 1; // 10 us: how long a peer of RC waits for a free slot
constexpr std::uint8_t kAckTimeout = 14;      // 4.096 us * 2^14 = 67 ms
constexpr std::uint8_t kRetries = 7, kEndlessly = 7;

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T *p) const {
    Free(p);
  }
};
using context_ptr = std::unique_ptr<ibv_context, freed_by<ibv_close_device>>;
using domain_ptr = std::unique_ptr<ibv_pd, freed_by<ibv_dealloc_pd>>;
using region_ptr = std::unique_ptr<ibv_mr, freed_by<ibv_dereg_mr>>;
using queue_ptr = std::unique_ptr<ibv_cq, freed_by<ibv_destroy_cq>>;
using pair_ptr = std::unique_ptr<ibv_qp, freed_by<ibv_destroy_qp>>;

/// `error`: an errno.
expected<> adapter_refused(const std::string &what, int error) {
  const char *const hint = error == ENOMEM ? " (the limit of locked memory, ulimit -l, or of the adapter)"
                           : error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT
                               ? " (the peer's address does not answer)"
                               : "";
  return make_reason(CUDAQ_ERR_INTERNAL, "%s: %s%s", what.c_str(), std::strerror(error), hint);
}

std::uint32_t bytes_of(ibv_mtu mtu) { return 128u << mtu; }

ibv_mtu mtu_of(std::uint32_t bytes) {
  std::uint32_t mtu = IBV_MTU_256;
  while (mtu < IBV_MTU_4096 && bytes_of(static_cast<ibv_mtu>(mtu)) < bytes)
    ++mtu;
  return static_cast<ibv_mtu>(mtu);
}

/// The GID of an IPv4 address: ::ffff:a.b.c.d
union ibv_gid gid_of(std::uint32_t address) {
  union ibv_gid gid {};
  gid.raw[10] = gid.raw[11] = 0xFF;
  for (unsigned i = 0; i < 4; ++i)
    gid.raw[12 + i] = static_cast<std::uint8_t>(address >> (24 - 8 * i));
  return gid;
}

std::string text_of(std::uint32_t address) {
  return std::to_string(address >> 24) + "." + std::to_string(address >> 16 & 0xFF) + "." +
         std::to_string(address >> 8 & 0xFF) + "." + std::to_string(address & 0xFF);
}

/// The resources that the queue pairs of a port share.
struct port_state {
  rdma_port_options options;
  context_ptr context;
  domain_ptr domain;
  region_ptr requests, answers, refusals;
  rdma_memory memory;
  std::uint8_t gid_index = 0;
  std::uint32_t mtu = 0;

  std::uint32_t key_of(const std::uint8_t *frame) const {
    const bool refusal = frame >= memory.refusals.data() && frame < memory.refusals.data() + memory.refusals.size();
    return (refusal ? refusals : answers)->lkey;
  }
};

class ibverbs_queue_pair final : public rdma_queue_pair {
public:
  explicit ibverbs_queue_pair(const port_state &port) : port_(port) {}

  expected<> create() {
    const rdma_port_options &o = port_.options;
    completions_.reset(ibv_create_cq(port_.context.get(), static_cast<int>(o.receives + o.sends), nullptr, nullptr, 0));
    if (!completions_)
      return adapter_refused("ibv_create_cq of " + std::to_string(o.receives + o.sends), errno);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = completions_.get();
    wanted.qp_type = o.reliable ? IBV_QPT_RC : IBV_QPT_UC;
    wanted.cap = {o.sends, o.receives, 1, 1, o.frame_size <= kMaxInline ? o.frame_size : 0};
    wanted.sq_sig_all = 1;
    pair_.reset(ibv_create_qp(port_.domain.get(), &wanted));
    if (!pair_) { // some adapters send fewer bytes with the work request itself
      wanted.cap = {o.sends, o.receives, 1, 1, 0};
      pair_.reset(ibv_create_qp(port_.domain.get(), &wanted));
    }
    if (!pair_)
      return adapter_refused("ibv_create_qp with " + std::to_string(o.receives) + " receives", errno);
    inline_ = wanted.cap.max_inline_data >= o.frame_size;
    return {};
  }

  expected<> start(const rdma_peer &peer, std::uint32_t receives) override {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RESET;
    if (const int error = ibv_modify_qp(pair_.get(), &a, IBV_QP_STATE))
      return adapter_refused("the queue pair to RESET", error);
    std::array<ibv_wc, 16> old; // completions of the time before stay in their queue
    while (ibv_poll_cq(completions_.get(), static_cast<int>(old.size()), old.data()) > 0) {
    }
    if (expected<> result = initialize(receives); result.failed())
      return result;
    return connect(peer);
  }

  void halt() override {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(pair_.get(), &a, IBV_QP_STATE); // the only refusal is one of an adapter that was removed
  }

  std::uint32_t number() const override { return pair_->qp_num; }

  bool post_receive() override {
    ibv_recv_wr request{}, *bad = nullptr; // without memory: a write with immediate needs none
    return ibv_post_recv(pair_.get(), &request, &bad) == 0;
  }

  bool post_send(const std::uint8_t *frame) override {
    ibv_sge part = {reinterpret_cast<std::uintptr_t>(frame), port_.options.frame_size, port_.key_of(frame)};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &part;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    if (inline_)
      request.send_flags |= IBV_SEND_INLINE;
    return ibv_post_send(pair_.get(), &request, &bad) == 0;
  }

  std::uint32_t poll(std::span<rdma_completion> out) override {
    std::array<ibv_wc, 16> done;
    const int n = ibv_poll_cq(completions_.get(), static_cast<int>(std::min(out.size(), done.size())), done.data());
    if (n < 0) {
      out[0] = {rdma_completion::kind::failed, 0, 0, "ibv_poll_cq failed"};
      return 1;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      out[i] = read(done[i]);
    return static_cast<std::uint32_t>(n);
  }

private:
  static rdma_completion read(const ibv_wc &done) {
    if (done.status != IBV_WC_SUCCESS)
      return {rdma_completion::kind::failed, 0, 0, ibv_wc_status_str(done.status)};
    if ((done.opcode & IBV_WC_RECV) == 0)
      return {rdma_completion::kind::sent, 0, 0, nullptr};
    // A SEND of the peer has taken a receive, too: without an immediate it names no slot.
    const bool names_slot = done.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    return {rdma_completion::kind::request, names_slot ? __builtin_bswap32(done.imm_data) : UINT32_MAX, done.byte_len,
            nullptr};
  }

  expected<> initialize(std::uint32_t receives) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = static_cast<std::uint8_t>(port_.options.ib_port);
    a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (const int error =
            ibv_modify_qp(pair_.get(), &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
      return adapter_refused("the queue pair to INIT", error);
    for (std::uint32_t i = 0; i < receives; ++i)
      if (!post_receive())
        return make_reason(CUDAQ_ERR_INTERNAL, "the adapter refused receive %u of %u", i + 1, receives);
    return {};
  }

  expected<> connect(const rdma_peer &peer) {
    const rdma_port_options &o = port_.options;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = mtu_of(port_.mtu);
    a.dest_qp_num = peer.qp;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = static_cast<std::uint8_t>(o.ib_port);
    a.ah_attr.grh.sgid_index = port_.gid_index;
    a.ah_attr.grh.hop_limit = kHopLimit;
    a.ah_attr.grh.dgid = gid_of(peer.address);
    a.min_rnr_timer = kShortestRnrDelay;
    a.max_dest_rd_atomic = 1;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN; // both PSNs begin at 0
    if (const int error =
            ibv_modify_qp(pair_.get(), &a, o.reliable ? mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : mask))
      return adapter_refused(
          "the queue pair to RTR, for queue pair " + std::to_string(peer.qp) + " of " + text_of(peer.address), error);
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.timeout = kAckTimeout;
    a.retry_cnt = kRetries;
    a.rnr_retry = kEndlessly;
    a.max_rd_atomic = 1;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (o.reliable)
      mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    if (const int error = ibv_modify_qp(pair_.get(), &a, mask))
      return adapter_refused("the queue pair to RTS", error);
    return {};
  }

  const port_state &port_;
  queue_ptr completions_;
  pair_ptr pair_; // destroyed before its completion queue
  bool inline_ = false;
};

class ibverbs_port final : public rdma_port {
public:
  expected<> open(const rdma_port_options &options, const rdma_memory &memory) {
    state_.options = options;
    state_.memory = memory;
    if (expected<> result = open_device(); result.failed())
      return result;
    if (expected<> result = find_gid(); result.failed())
      return result;
    state_.domain.reset(ibv_alloc_pd(state_.context.get()));
    if (!state_.domain)
      return adapter_refused("ibv_alloc_pd", errno);
    const auto add = [&](std::span<std::uint8_t> bytes, int access, region_ptr &region) {
      // Address 0 is that of the first slot, so that peers need to know nothing but the number and size of slots.
      region.reset(ibv_reg_mr_iova(state_.domain.get(), bytes.data(), bytes.size(),
                                   access != 0 ? 0 : reinterpret_cast<std::uintptr_t>(bytes.data()), access));
      return region != nullptr;
    };
    if (!add(memory.requests, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, state_.requests) ||
        !add(memory.answers, 0, state_.answers) || !add(memory.refusals, 0, state_.refusals))
      return adapter_refused("the adapter cannot use the memory of the ring", errno);
    return {};
  }

  expected<> make_queue_pair(std::unique_ptr<rdma_queue_pair> &out) override {
    auto made = std::make_unique<ibverbs_queue_pair>(state_);
    if (expected<> result = made->create(); result.failed())
      return result;
    out = std::move(made);
    return {};
  }
  std::uint32_t rkey() const override { return state_.requests->rkey; }
  std::uint32_t mtu() const override { return state_.mtu; }

private:
  expected<> open_device() {
    int count = 0;
    const std::unique_ptr<ibv_device *, freed_by<ibv_free_device_list>> list(ibv_get_device_list(&count));
    if (!list || count == 0)
      return make_reason(CUDAQ_ERR_UNSUPPORTED,
                         "--device %s: this machine has no RDMA adapter whose driver libibverbs knows; "
                         "doctor --transport cpu_roce looks closer",
                         state_.options.device.c_str());
    std::string present;
    for (int i = 0; i < count; ++i) {
      ibv_device *const device = list.get()[i];
      const std::string name = ibv_get_device_name(device);
      present += (present.empty() ? "" : ", ") + name;
      if (name != state_.options.device)
        continue;
      state_.context.reset(ibv_open_device(device));
      if (!state_.context)
        return adapter_refused("--device " + name + ": it cannot be opened", errno);
    }
    if (!state_.context)
      return make_reason(CUDAQ_ERR_INVALID_ARG, "--device %s: there is none of this name, but there are: %s",
                         state_.options.device.c_str(), present.c_str());
    return check_port();
  }

  expected<> check_port() {
    ibv_port_attr port{};
    const std::uint32_t number = state_.options.ib_port;
    if (const int error = ibv_query_port(state_.context.get(), static_cast<std::uint8_t>(number), &port))
      return adapter_refused("--ib-port " + std::to_string(number) + " of " + state_.options.device, error);
    if (port.state != IBV_PORT_ACTIVE)
      return make_reason(CUDAQ_ERR_UNSUPPORTED, "--device %s: port %u is %s, not active: check the cable, and ip link",
                         state_.options.device.c_str(), number, ibv_port_state_str(port.state));
    state_.mtu = std::min(state_.options.mtu, bytes_of(port.active_mtu));
    gids_ = port.gid_tbl_len;
    return {};
  }

  expected<> find_gid() {
    const union ibv_gid wanted = gid_of(state_.options.address);
    for (int i = 0; i < gids_; ++i) {
      ibv_gid_entry entry{};
      if (ibv_query_gid_ex(state_.context.get(), state_.options.ib_port, static_cast<std::uint32_t>(i), &entry, 0) ==
              0 &&
          entry.gid_type == IBV_GID_TYPE_ROCE_V2 && std::memcmp(entry.gid.raw, wanted.raw, sizeof(wanted.raw)) == 0) {
        state_.gid_index = static_cast<std::uint8_t>(i);
        return {};
      }
    }
    return make_reason(CUDAQ_ERR_INVALID_ARG,
                       "--local-ip %s: port %u of %s has no GID of RoCE v2 with this address; give its network "
                       "interface the address, or choose another one",
                       text_of(state_.options.address).c_str(), state_.options.ib_port, state_.options.device.c_str());
  }

  port_state state_;
  int gids_ = 0;
};

} // namespace

expected<> open_ibverbs_port(const rdma_port_options &options, const rdma_memory &memory,
                             std::unique_ptr<rdma_port> &out) {
  auto made = std::make_unique<ibverbs_port>();
  if (expected<> result = made->open(options, memory); result.failed())
    return result;
  out = std::move(made);
  return {};
}

} // namespace cudaq::realtime::detail
