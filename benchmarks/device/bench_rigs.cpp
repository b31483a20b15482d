// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/device/bench_rigs.h"

#include "cudaq/realtime/daemon/dispatcher/dispatch_kernel_launch.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

namespace cudaq::realtime::tools {
namespace {

constexpr std::uint32_t kFirstFunctionId = fnv1a_hash("bench_device");
constexpr std::uint32_t kSlots = 64;
constexpr std::uint32_t kWarp = 32;
constexpr auto kIdleSettle = std::chrono::milliseconds(20);
constexpr auto kIdleInterval = std::chrono::milliseconds(50);
constexpr int kIdleIntervals = 4; ///< intervals of one round
/// Part of the host's deadline for the producer kernel: time allowed per exchange.
constexpr std::uint64_t kProducerNsPerExchange = 1'000'000;

loop_result drive_ring(bench_session &session, drive how, const ring_port &port, std::uint32_t slots,
                       const exchange_config &config) {
  exchange_config batches = config;
  batches.batch = kBatch;
  switch (how) {
  case drive::one_by_one:
    break;
  case drive::full_ring:
    return exchange_full_ring(port, slots, config, session.scale(), session.cores());
  case drive::full_by_batches:
    return exchange_full_ring(port, slots, batches, session.scale(), session.cores());
  case drive::full_one_thread:
  case drive::full_one_by_one:
    batches.batch = how == drive::full_one_thread ? kBatch : 1;
    batches.exchanges += batches.warm_up;
    return exchange_pipelined(port, slots, batches, session.scale());
  case drive::any_order:
    return exchange_any_order(port, slots, config, session.scale(), session.any_order_threads(), session.cores());
  }
  return exchange_one_by_one(port, slots, config, session.scale());
}

unsigned threads_of(const bench_session &session, drive how) {
  switch (how) {
  case drive::one_by_one:
  case drive::full_one_thread:
  case drive::full_one_by_one:
    return 1;
  case drive::full_ring:
  case drive::full_by_batches:
    return 2;
  case drive::any_order:
    break;
  }
  return session.any_order_threads();
}

/// Runs `body`, then `end`, also if `body` throws: a ring can be freed only while no kernel runs on it.
template <typename Body, typename End>
loop_result stopped_after(Body body, End end) {
  loop_result result;
  try {
    result = body();
  } catch (...) {
    end();
    throw;
  }
  end();
  return result;
}

void stop_or_abandon(ring_service &service) {
  try {
    service.stop();
  } catch (const api_error &e) {
    abandon(e.what());
  }
}

} // namespace

loop_result dispatcher_round(ring_service &service, const round_runner &body) {
  service.start();
  return stopped_after(
      [&] {
        try {
          return body();
        } catch (const exchange_stalled &e) {
          throw exchange_stalled(std::string(e.what()) + "; state of the dispatcher:\n" + service.dump());
        }
      },
      [&] { stop_or_abandon(service); });
}

namespace {

template <typename Body>
loop_result floor_round(bench_session &session, const floor_plan &plan, const bare_ring &ring, Body body) {
  session.server().start_floor(plan, ring);
  return stopped_after(body, [&] { session.server().stop(); });
}

device_service_config with_functions(device_service_config config, bench_handler handler) {
  config.fill = [handler](cudaq_function_entry_t *entry, std::uint32_t i, cudaStream_t stream) {
    return fill_table_entry(entry, kFirstFunctionId + i, handler, stream);
  };
  return config;
}

exchange_config client_of(bench_session &session, const mapped_case &c) {
  exchange_config client = session.client(c.service.num_slots, threads_of(session, c.how));
  client.payload_bytes = c.payload_bytes;
  client.function_id = kFirstFunctionId + c.service.functions - 1;
  client.rule = c.rule;
  return client;
}

/// Runs the producer kernel on `ring`, which a dispatcher or a floor kernel serves, and reads its measurements.
loop_result run_producer(bench_session &session, const cudaq_ringbuffer_t &ring, std::uint32_t slots, bool ping_pong,
                         bool system_scope, const gpu_memory &cycles) {
  const round_size size = size_of_round(session.options(), slots);
  const producer_plan plan{.slots = slots,
                           .function_id = kFirstFunctionId,
                           .seed = session.next_seed(),
                           .warm_up = size.warm_up,
                           .exchanges = size.exchanges,
                           .cycles = cycles.as<std::uint32_t>(),
                           .ping_pong = ping_pong,
                           .system_scope = system_scope};
  controlled_kernel &producer = session.producer();
  const std::uint64_t begin = now_ns();
  producer.start_producer(plan, ring);
  // The producer ends by itself if no answer comes. The host's deadline is for a producer that does not end.
  const bool ended = producer.wait(3 * session.timeout_ns() + (size.exchanges + size.warm_up) * kProducerNsPerExchange);
  const kernel_report report = producer.stop();
  if (!ended || report.timed_out != 0 || report.done != size.exchanges + size.warm_up)
    throw exchange_stalled(fmt::format("GPU producer: no answer to request {}", report.done));
  loop_result result;
  result.wall_ns = now_ns() - begin;
  result.exchanges = size.exchanges;
  result.wrong = report.wrong;
  std::vector<std::uint32_t> values(size.exchanges);
  require_cuda(cudaMemcpyAsync(values.data(), plan.cycles, values.size() * sizeof values[0], cudaMemcpyDeviceToHost,
                               producer.stream().get()),
               "reading the producer's cycles");
  if (!producer.stream().wait(session.timeout_ns()))
    abandon("a copy from the GPU did not end");
  for (const std::uint32_t value : values)
    result.per_exchange.record(value);
  if (report.run_ns != 0)
    session.measured_clock_mhz = static_cast<double>(report.run_cycles) * 1e3 / static_cast<double>(report.run_ns);
  return result;
}

void record_poll(loop_result &result, double ns, double polls) {
  result.per_exchange.record(static_cast<std::uint64_t>(std::llround(ns / polls)));
  result.exchanges += static_cast<std::uint64_t>(polls);
  result.wall_ns += static_cast<std::uint64_t>(ns);
}

bench_rig idle_rig(bench_session &session) {
  const mapped_case c = make_mapped_case(session, kSlots, 8);
  const auto service = std::make_shared<device_service>(with_functions(c.service, c.handler));
  const auto ring = std::make_shared<bare_ring>(session.options().gpu, kSlots, 64, CUDAQ_MEMORY_MAPPED);
  bench_rig rig;
  rig.floor_payload_bytes = rig.payload_bytes = 0;
  rig.floor = [&session, ring] {
    loop_result result;
    for (int i = 0; i < kIdleIntervals; ++i) {
      session.server().start_floor(in_order_plan(kSlots, 64), *ring);
      std::this_thread::sleep_for(kIdleInterval);
      const kernel_report report = session.server().stop();
      if (report.empty_polls == 0)
        throw exchange_stalled("idle-poll: the floor kernel did not poll");
      record_poll(result, static_cast<double>(report.run_ns), static_cast<double>(report.empty_polls));
    }
    return result;
  };
  rig.ours = [service] {
    return dispatcher_round(*service, [&] {
      loop_result result;
      std::this_thread::sleep_for(kIdleSettle);
      for (int i = 0; i < kIdleIntervals; ++i) {
        const std::uint64_t begin = now_ns(), first = service->stats().polls;
        std::this_thread::sleep_for(kIdleInterval);
        const std::uint64_t end = now_ns(), last = service->stats().polls;
        if (last == first)
          throw exchange_stalled("idle-poll: an idle dispatcher does not poll");
        record_poll(result, static_cast<double>(end - begin), static_cast<double>(last - first));
      }
      return result;
    });
  };
  return rig;
}

bench_rig echo_rig(bench_session &session) {
  bench_rig rig;
  rig.floor = floor_rounds(session, in_order_plan(kSlots, 64), 8, drive::one_by_one);
  rig.ours = dispatcher_rounds(session, make_mapped_case(session, kSlots, 8));
  floor_plan counting = in_order_plan(kSlots, 64);
  counting.kind = floor_kind::in_order_counting;
  floor_plan flag = counting;
  flag.kind = floor_kind::flag_only;
  rig.other_floors = {
      {"one warp, 64 B, flags count up, not cleared", floor_rounds(session, counting, 8, drive::one_by_one)},
      {"one thread, flag only, no slot", floor_rounds(session, flag, 0, drive::one_by_one)}};
  return rig;
}

bench_rig frame_rig(bench_session &session, bench_handler handler, reply_rule rule, std::uint32_t blocks,
                    std::uint32_t threads, cudaq_kernel_type_t kernel) {
  constexpr std::uint32_t kBytes = 4096;
  mapped_case c = make_mapped_case(session, kSlots, kBytes);
  c.handler = handler;
  c.rule = rule;
  c.service.blocks = blocks;
  c.service.threads = threads;
  c.service.kernel = kernel;
  bench_rig rig;
  rig.payload_bytes = kBytes;
  rig.floor_payload_bytes = kBytes - CUDAQ_RPC_HEADER_SIZE;
  rig.floor = floor_rounds(session, in_order_plan(kSlots, kBytes), rig.floor_payload_bytes, drive::one_by_one);
  rig.ours = dispatcher_rounds(session, c);
  return rig;
}

bench_rig throughput_rig(bench_session &session, std::uint32_t slots, drive how) {
  mapped_case c = make_mapped_case(session, slots, 8);
  c.how = how;
  if (how == drive::full_one_by_one)
    c.service.slot_bytes = kUserSlotBytes;
  floor_plan floor = in_order_plan(slots, 64);
  if (how == drive::any_order) {
    c.service.options.ordering = CUDAQ_ORDERING_ANY;
    c.service.blocks = floor.blocks = (slots + kWarp - 1) / kWarp;
    floor.kind = floor_kind::lane_per_slot;
  }
  bench_rig rig;
  rig.floor = floor_rounds(session, floor, 8, c.how);
  rig.ours = dispatcher_rounds(session, c);
  return rig;
}

} // namespace

curve_point measure_point(const bench_session &session, std::string x, const bench_rig &rig) {
  curve_point point;
  point.x = std::move(x);
  point.ours.payload_bytes = rig.payload_bytes;
  if (rig.floor)
    point.floor.emplace().payload_bytes = rig.floor_payload_bytes;
  for (std::uint32_t round = 0; round < session.options().rounds; ++round) {
    if (rig.floor)
      point.floor->add_round(rig.floor());
    point.ours.add_round(rig.ours());
  }
  return point;
}

floor_plan in_order_plan(std::uint32_t slots, std::uint32_t frame_bytes) {
  const std::uint32_t vectors = frame_bytes / 16;
  return {.kind = floor_kind::in_order,
          .slots = slots,
          .frame_bytes = frame_bytes,
          .blocks = 1,
          .threads = vectors <= kWarp ? kWarp
                     : vectors <= 256 ? 256
                                      : 1024};
}

bench_rig make_device_ring_rig(bench_session &session, cudaq_dispatch_launch_fn_v2_t launch_fn, bool as_user) {
  mapped_case c = make_mapped_case(session, kSlots, 8);
  c.service.memory = CUDAQ_MEMORY_DEVICE;
  c.service.launch_fn = launch_fn;
  if (as_user)
    c.service.slot_bytes = kUserDeviceSlotBytes;
  else // the producer is a kernel on the same GPU
    c.service.options.ring_peers = CUDAQ_RING_PEERS_SAME_DEVICE;
  const auto cycles = std::make_shared<gpu_memory>(
      size_of_round(session.options(), kSlots).exchanges * sizeof(std::uint32_t), session.server().stream());
  const auto service = std::make_shared<device_service>(with_functions(c.service, c.handler));
  const auto ring = std::make_shared<bare_ring>(session.options().gpu, kSlots, 64, CUDAQ_MEMORY_DEVICE);
  bench_rig rig;
  const auto floor = [&session, ring, cycles, as_user](floor_kind kind) {
    return [&session, ring, cycles, kind, as_user] {
      return floor_round(session, {.kind = kind, .slots = kSlots}, *ring, [&] {
        return run_producer(session, ring->ring(), kSlots, kind == floor_kind::device_ping_pong, as_user, *cycles);
      });
    };
  };
  rig.floor = floor(as_user ? floor_kind::system_frames : floor_kind::device_ping_pong);
  if (!as_user)
    rig.other_floors = {{"the same, an answer frame written before the flag", floor(floor_kind::device_frames)}};
  rig.ours = [&session, service, cycles, as_user] {
    return dispatcher_round(*service, [&] {
      return run_producer(session, service->ring(), service->num_slots(), false, as_user, *cycles);
    });
  };
  return rig;
}

mapped_case make_mapped_case(const bench_session &session, std::uint32_t slots, std::size_t payload_bytes) {
  mapped_case c;
  c.service.device = session.options().gpu;
  c.service.num_slots = slots;
  c.service.slot_bytes = CUDAQ_RPC_HEADER_SIZE + static_cast<std::uint32_t>(payload_bytes);
  c.service.options = default_options();
  c.payload_bytes = payload_bytes;
  return c;
}

drive drive_of(std::string_view name) {
  return name.ends_with("-batches")      ? drive::full_by_batches
         : name.ends_with("-one-thread") ? drive::full_one_thread
         : name.ends_with("-user")       ? drive::full_one_by_one
                                         : drive::full_ring;
}

round_runner dispatcher_rounds(bench_session &session, const mapped_case &c) {
  const auto service = std::make_shared<device_service>(with_functions(c.service, c.handler));
  return [&session, c, service] {
    return dispatcher_round(*service, [&] {
      return drive_ring(session, c.how, {service->ring(), service->producer()}, c.service.num_slots,
                        client_of(session, c));
    });
  };
}

round_runner many_dispatcher_rounds(bench_session &session, const mapped_case &c, std::uint32_t dispatchers) {
  using services = std::vector<std::unique_ptr<device_service>>;
  const auto all = std::make_shared<services>();
  for (std::uint32_t d = 0; d < dispatchers; ++d)
    all->push_back(std::make_unique<device_service>(with_functions(c.service, c.handler)));
  const auto exchange = [&session, c](const services &members) {
    loop_result result;
    for (const auto &service : members) {
      exchange_config client = client_of(session, c);
      const std::uint64_t laps = (client.exchanges + client.warm_up) / members.size() / c.service.num_slots + 1;
      client.warm_up = std::min<std::uint64_t>(client.warm_up, laps * c.service.num_slots / 2);
      client.exchanges = laps * c.service.num_slots - client.warm_up;
      result.merge(exchange_one_by_one(service->ring(), c.service.num_slots, client, session.scale()));
    }
    return result;
  };
  // Each dispatcher starts inside the round of the previous one, so all stop before one is destroyed.
  return [all, exchange] {
    const std::function<loop_result(std::size_t)> with_rest = [&](std::size_t first) {
      return first == all->size() ? exchange(*all)
                                  : dispatcher_round(*(*all)[first], [&] { return with_rest(first + 1); });
    };
    return with_rest(0);
  };
}

round_runner floor_rounds(bench_session &session, const floor_plan &plan, std::size_t payload_bytes, drive how,
                          cudaq_memory_kind_t memory) {
  const auto ring =
      std::make_shared<bare_ring>(session.options().gpu, plan.slots, std::max(64u, plan.frame_bytes), memory);
  return [&session, plan, payload_bytes, how, memory, ring] {
    exchange_config client = session.client(plan.slots, threads_of(session, how));
    client.payload_bytes = payload_bytes;
    const bool counting = plan.kind == floor_kind::in_order_counting || plan.kind == floor_kind::flag_only;
    return floor_round(session, plan, *ring, [&] {
      return counting ? exchange_counting_flags(ring->ring(), plan.slots, client, session.scale())
                      : drive_ring(session, how,
                                   memory == CUDAQ_MEMORY_DEVICE_RX ? ring_port::on_tx_alone(ring->ring())
                                                                    : ring_port(ring->ring()),
                                   plan.slots, client);
    });
  };
}

bench_rig make_rig(bench_session &session, const bench_case &of) {
  const std::string_view name = of.name;
  if (name == "echo-8B")
    return echo_rig(session);
  if (name == "regular-4K-add-words")
    return frame_rig(session, bench_handler::add_words, reply_rule::add_words, 1, 256, CUDAQ_KERNEL_REGULAR);
  if (name == "regular-4K-add-words-batched")
    return frame_rig(session, bench_handler::add_words_batched, reply_rule::add_words, 1, 256, CUDAQ_KERNEL_REGULAR);
  if (name == "regular-4K-last-word")
    return frame_rig(session, bench_handler::last_word, reply_rule::last_word, 1, 256, CUDAQ_KERNEL_REGULAR);
  if (names_case("cooperative-4K", name))
    return frame_rig(session, bench_handler::add_bytes, reply_rule::add_bytes,
                     name == "cooperative-4K-1-block" ? 1 : 16, 128, CUDAQ_KERNEL_COOPERATIVE);
  if (names_case("fifo-64", name))
    return throughput_rig(session, kSlots, drive_of(name));
  if (name == "any-256")
    return throughput_rig(session, 256, drive::any_order);
  if (name == "device-ring-8B")
    return make_device_ring_rig(session);
  if (name == "device-ring-user")
    return make_device_ring_rig(session, nullptr, true);
  if (names_case("gpu-memory", name))
    return make_device_rx_rig(session, name);
  return idle_rig(session);
}

} // namespace cudaq::realtime::tools
