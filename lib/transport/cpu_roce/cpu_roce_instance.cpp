// SPDX-License-Identifier: Apache-2.0
#include "lib/transport/cpu_roce/cpu_roce_instance.h"
#include "lib/base/condition.h"

#include <cstdio>
#include <unistd.h>

namespace cudaq::realtime::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto kHandOverTime = 5s;                  // a new peer waits until the requests of the old one are answered
constexpr auto kRepairPeriod = 100ms;               // of looks at the sensor bridge's connection
constexpr std::uint64_t kJoinTimeNs = 10000000000u; // an adapter may look for the peer's address

cudaq_rx_status_t rx_poll(void *ctx, std::uint32_t *out_slot) {
  return static_cast<cpu_roce_dataplane *>(ctx)->poll(*out_slot);
}
cudaq_status_t tx_publish(void *ctx, std::uint32_t slot) {
  return guarded_brief("tx_publish", [&] { return static_cast<cpu_roce_dataplane *>(ctx)->publish(slot); });
}

} // namespace

cpu_roce_instance::~cpu_roce_instance() {
  if (exchange_) // create failed half-way, or close has done this already
    (void)cpu_roce_instance::disconnect();
}

expected<> cpu_roce_instance::open(const cpu_roce_options &options, const port_opener &open_port) {
  // Peers see the first slot at address 0: libibverbs wants the same place in a page.
  if (expected<> result = allocate(options.num_slots, options.slot_size, options.pinned_rings,
                                   static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE)));
      result.failed())
    return result;
  exchange_ = std::make_unique<cpu_roce_exchange>(options, ring());
  rdma_port_options wanted;
  wanted.device = options.device;
  wanted.ib_port = options.ib_port;
  wanted.address = options.local_address;
  wanted.reliable = options.reliable;
  wanted.mtu = options.mtu;
  wanted.frame_size = options.frame_size;
  wanted.receives = exchange_->max_receives();
  wanted.sends = exchange_->max_sends();
  if (expected<> result = open_port(wanted, exchange_->memory(), port_); result.failed())
    return result;
  if (expected<> result = options.sensor_bridge ? start_bridge() : rendezvous_.open(options.listen_ip, options.port);
      result.failed())
    return result;
  if (options.unified)
    dataplane_ = std::make_unique<cpu_roce_dataplane>(*exchange_);
  else
    pump_ = std::make_unique<cpu_roce_ring>(*exchange_);
  write_endpoint();
  return {};
}

void cpu_roce_instance::write_endpoint() {
  const cpu_roce_options &o = exchange_->options();
  char words[400];
  if (o.sensor_bridge)
    std::snprintf(words, sizeof(words),
                  "transport=cpu_roce qp_config=hsb_fpga peer_ip=%s qp=0x%x rkey=%u buffer_addr=0x0", o.peer_ip.c_str(),
                  bridge_qp_, port_->rkey());
  else
    std::snprintf(words, sizeof(words), "transport=cpu_roce port=%u roce_ip=%s", rendezvous_.port(),
                  o.local_ip.c_str());
  endpoint_ = words;
  std::snprintf(words, sizeof(words), " frame_size=%u qp_type=%s mtu=%u", o.frame_size, o.reliable ? "rc" : "uc",
                port_->mtu());
  endpoint_ += words + o.ignored_words;
}

// --- peers ---

expected<> cpu_roce_instance::start_bridge() {
  const cpu_roce_options &o = exchange_->options();
  std::unique_ptr<rdma_queue_pair> pair;
  if (expected<> result = port_->make_queue_pair(pair); result.failed())
    return result;
  if (expected<> result = pair->start({o.remote_qp, o.peer_address}, exchange_->max_receives()); result.failed())
    return result;
  bridge_qp_ = pair->number();
  exchange_->counters().newest_address.store(o.peer_address);
  exchange_->attach(std::move(pair));
  return {};
}

expected<> cpu_roce_instance::connect() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!stopped_ && connector_.ended())
    if (expected<> result = connector_.start("cudaq-roce-link", {}, [this] { connect_peers(); }); result.failed())
      return result;
  const bool bridge = exchange_->options().sensor_bridge;
  wait_on(changed_, lock, [&] { return bridge || linked_ || stopped_; });
  if (stopped_)
    return make_reason(CUDAQ_ERR_STATE, "disconnect came before a peer%s%s",
                       last_refusal_.empty() ? "" : "; the last caller was refused: ", last_refusal_.c_str());
  return {};
}

void cpu_roce_instance::connect_peers() {
  if (exchange_->options().sensor_bridge)
    return repair_bridge();
  const rendezvous::hooks hooks = {[this](const rendezvous_numbers &caller) { return accept(caller); },
                                   [this] { return exchange_->connected(); },
                                   [this] { exchange_->counters().callers_refused.bump(); },
                                   [this] { exchange_->counters().callers_delayed.bump(); }};
  rendezvous_.serve(hooks);
}

std::optional<rendezvous_numbers> cpu_roce_instance::refuse(const expected<> &result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_refusal_ = result.text();
  return {};
}

/// Each peer gets a queue pair of its own: packets that an earlier peer still sends are discarded.
std::optional<rendezvous_numbers> cpu_roce_instance::accept(const rendezvous_numbers &caller) {
  std::unique_ptr<rdma_queue_pair> pair;
  if (!exchange_->take_back(
          steady_clock::now() + kHandOverTime, [this] { return rendezvous_.stopped(); }, pair))
    return refuse({CUDAQ_ERR_STATE, "requests of the peer before it are executed still"});
  pair.reset();
  if (const expected<> result = port_->make_queue_pair(pair); result.failed())
    return refuse(result);
  // Before the reply: the first message may come as soon as the caller has it.
  if (const expected<> result = pair->start({caller.qp, caller.address}, exchange_->max_receives()); result.failed())
    return refuse(result);
  const std::uint32_t number = pair->number();
  exchange_->counters().newest_address.store(caller.address);
  exchange_->attach(std::move(pair));
  const std::lock_guard<std::mutex> lock(mutex_);
  linked_ = true;
  changed_.notify_all();
  return rendezvous_numbers{number, port_->rkey(), exchange_->options().local_address};
}

/// A sensor bridge cannot call again: its connection is made again when the adapter has ended it.
void cpu_roce_instance::repair_bridge() {
  const cpu_roce_options &o = exchange_->options();
  std::unique_ptr<rdma_queue_pair> pair;
  const auto stopped = [this] {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopped_;
  };
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (changed_.wait_for(lock, kRepairPeriod, [this] { return stopped_; }))
        return;
    }
    if (!pair && exchange_->why_broken().empty())
      continue;
    if (!pair && !exchange_->take_back(steady_clock::now() + kHandOverTime, stopped, pair))
      continue;
    if (pair->start({o.remote_qp, o.peer_address}, exchange_->max_receives()).ok())
      exchange_->attach(std::move(pair));
  }
}

// --- launch and end ---

expected<> cpu_roce_instance::launch() {
  if (pump_)
    return pump_->launch();
  exchange_->launch();
  return {};
}

expected<> cpu_roce_instance::disconnect() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  rendezvous_.stop();
  if (!connector_.join_until(deadline_after(kJoinTimeNs)))
    return make_reason(CUDAQ_ERR_TIMEOUT, "the thread that connects peers did not end: the adapter looks for one");
  if (pump_)
    if (expected<> result = pump_->disconnect(); result.failed())
      return result;
  exchange_->disconnect();
  return {};
}

cudaq_cpu_dataplane_t cpu_roce_instance::dataplane() { return {dataplane_.get(), ring(), rx_poll, tx_publish}; }

} // namespace cudaq::realtime::detail
