// SPDX-License-Identifier: Apache-2.0
// An instance of the provider: a port of an adapter, the exchange over it, one of the two shapes, and the thread that
// connects peers.
#pragma once

#include "lib/transport/cpu_roce/cpu_roce_dataplane.h"
#include "lib/transport/cpu_roce/cpu_roce_ring.h"
#include "lib/transport/cpu_roce/rendezvous.h"
#include "lib/transport/provider/provider_instance.h"

#include <condition_variable>

namespace cudaq::realtime::detail {

/// Opens a port of an adapter; open_ibverbs_port, or a test's.
using port_opener =
    std::function<expected<>(const rdma_port_options &, const rdma_memory &, std::unique_ptr<rdma_port> &)>;

class cpu_roce_instance final : public provider_instance {
public:
  cpu_roce_instance() = default;
  ~cpu_roce_instance() override;

  /// With hsb_fpga the sensor bridge may send from now on; with rendezvous a caller may connect.
  expected<> open(const cpu_roce_options &options, const port_opener &open_port);

  /// rendezvous: waits for the first caller. Starts the thread that connects later ones.
  expected<> connect() override;
  expected<> launch() override;
  expected<> disconnect() override;
  bool unified() const override { return dataplane_ != nullptr; }
  cudaq_cpu_dataplane_t dataplane() override;
  const cpu_roce_counters &counters() const { return exchange_->counters(); }

private:
  void write_endpoint();
  expected<> start_bridge();
  void connect_peers();
  std::optional<rendezvous_numbers> accept(const rendezvous_numbers &caller);
  std::optional<rendezvous_numbers> refuse(const expected<> &reason);
  void repair_bridge();

  std::unique_ptr<cpu_roce_exchange> exchange_;
  std::unique_ptr<rdma_port> port_; ///< closed before the memory of the exchange is freed
  std::uint32_t bridge_qp_ = 0;     ///< hsb_fpga: the number of this side's queue pair, which stays the same
  std::unique_ptr<cpu_roce_dataplane> dataplane_; ///< one of these two is set
  std::unique_ptr<cpu_roce_ring> pump_;
  rendezvous rendezvous_;
  std::mutex mutex_; ///< protects the members after it
  std::condition_variable changed_;
  bool linked_ = false, stopped_ = false;
  std::string last_refusal_; ///< why the last caller was refused
  loop_thread connector_;
};

} // namespace cudaq::realtime::detail
