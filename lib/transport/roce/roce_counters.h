// SPDX-License-Identifier: Apache-2.0
// What the roce provider counts of packets. One thread counts, any thread reads; roce_provider.h describes each number.
#pragma once

#include "cudaq/realtime/daemon/bridge/roce_provider.h"
#include "cudaq/realtime/detail/base/shared_word.h"

namespace cudaq::realtime::detail {

struct roce_counters {
  counter packets, messages, parts;
  counter dropped_short, dropped_opcode, dropped_version, dropped_padding, dropped_icrc, dropped_qp, dropped_pkey;
  counter dropped_rkey, dropped_address, dropped_length, dropped_immediate, dropped_sequence, dropped_peers;
  counter icrc_partly, icrc_unchecked, packets_lost, packets_late, messages_broken;

  void read(cudaq_roce_statistics_t &out) const {
    out.packets = packets.value();
    out.messages = messages.value();
    out.parts = parts.value();
    out.dropped_short = dropped_short.value();
    out.dropped_opcode = dropped_opcode.value();
    out.dropped_version = dropped_version.value();
    out.dropped_padding = dropped_padding.value();
    out.dropped_icrc = dropped_icrc.value();
    out.dropped_qp = dropped_qp.value();
    out.dropped_pkey = dropped_pkey.value();
    out.dropped_rkey = dropped_rkey.value();
    out.dropped_address = dropped_address.value();
    out.dropped_length = dropped_length.value();
    out.dropped_immediate = dropped_immediate.value();
    out.dropped_sequence = dropped_sequence.value();
    out.dropped_peers = dropped_peers.value();
    out.icrc_partly = icrc_partly.value();
    out.icrc_unchecked = icrc_unchecked.value();
    out.packets_lost = packets_lost.value();
    out.packets_late = packets_late.value();
    out.messages_broken = messages_broken.value();
  }
};

} // namespace cudaq::realtime::detail
