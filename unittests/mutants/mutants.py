# SPDX-License-Identifier: Apache-2.0
"""Faults that the tests must find: name: (file, text that stands in it once, text instead, program, tests). Each test
named must fail with the fault; a filter of GoogleTest, so several are joined by `:`. `*`: not run yet. run.py applies
them."""
RING, SLOT = "include/cudaq/realtime/detail/ring/", "include/cudaq/realtime/detail/ring/slot_ring.h"
HOST, SHARED, API = "lib/host_dispatcher/", "lib/shared_ring/", "lib/api/"
DATAGRAM, ROCE, SHM, ROUTE = ("lib/transport/" + name for name in ("datagram/", "roce/", "shm/", "route/"))
STREAM, DECODER, TOOLS = "lib/qec/stream/", "lib/qec/decoders/decoder.cpp", "tools/"

MUTANTS = {
    # The ring.
    "judge_takes_a_wrong_magic": (
        RING + "judge.h", "if (r.magic != CUDAQ_RPC_MAGIC_REQUEST)", "if (r.magic == 0)",
        "ring_test", "Judge.EachVerdictHasItsReason"),
    "judge_takes_a_byte_too_many": (
        RING + "judge.h", "if (r.arg_len > max_payload)", "if (r.arg_len > max_payload + 1)",
        "ring_test", "Judge.EachVerdictHasItsReason"),
    "judge_refuses_the_shortest_arguments": (
        RING + "judge.h", ": arg_len < route.args_bytes;", ": arg_len <= route.args_bytes;",
        "ring_test", "Judge.VariableArgumentLeavesALowerBound"),
    "slot_is_free_before_its_answer_is_collected": (
        SLOT, "(rx_flags[i]) == 0 && load_acquire<std::uint64_t, Scope>(tx_flags[i]) == 0;", "(rx_flags[i]) == 0;",
        "ring_test", "Placement/SlotRing.SlotIsFreeOnlyWhenBothFlagsAreZero/*"),
    "dropped_request_keeps_its_slot": (
        "lib/ring/turn.h", "    ring.release_rx(i);\n    return turn_result::dropped;",
        "    return turn_result::dropped;",
        "ring_test", "Flavours/Turn.DropsAndRefusesWithoutAHandler/*"),
    "turn_takes_a_slot_that_is_not_collected": (
        "lib/ring/turn.h", "  if (!server.may_take(i))\n    return turn_result::waiting;",
        "  static_cast<void>(server.may_take(i));",
        "ring_test", "Flavours/Turn.WaitsAndTouchesNothing/*"),
    "producer_claims_a_slot_that_is_not_signalled": (
        "lib/ring/producer_core.h", "if (p >= n && signalled_.load() <= p - n)",
        "if (p >= n && signalled_.load() < p - n)",
        "ring_test", "Laps/RingProducer.SignalsInTheOrderOfTheClaims/Without"),
    "answer_has_the_id_of_the_function": (
        RING + "frame.h", "store_frame<std::uint32_t>(tx_slot + 12, to.request_id);",
        "store_frame<std::uint32_t>(tx_slot + 12, to.function_id);",
        "ring_test", "Frame.ResponseEchoesIdAndTimestampOfItsRequest"),
    # Requests that come again.
    "skipped_number_keeps_an_old_answer": (
        "lib/session/sequence_window.cpp", "skipped = n.newest + 1; skipped", "skipped = number; skipped",
        "session_test", "SequenceWindow.KnowsWhatAnOracleKnows"),
    "reused_number_gets_the_old_answer": (
        "lib/session/sequence_window.cpp", "r.content != content)", "r.content > content)",
        "session_test", "SequenceWindow.KnowsWhatAnOracleKnows"),
    "old_answer_is_repeated_after_its_life": (
        "lib/session/recent_requests.cpp", "now - r.arrival > life_)", "now - r.arrival > 2 * life_)",
        "session_test", "RecentRequests.RemembersTheLastOnesForTheirLife"),
    # The loop on the CPU.
    "schema_is_not_checked": (
        HOST + "host_dispatcher.cpp", "rules.check_schema = o.check_schema != 0;", "rules.check_schema = false;",
        "api_test", "Flavours/ErrorAnswers.SchemaMismatchIsAnsweredIfTheOptionIsSet/Pool"),
    "exception_of_a_handler_is_no_response": (
        HOST + "handler_table.cpp", "CUDAQ_RPC_ERR_HANDLER_THREW", "CUDAQ_RPC_ERR_NO_RESPONSE",
        "api_test", "Flavours/ErrorAnswers.ThrowingHandlerIsAnswered/Pool"),
    "deferred_request_is_answered_at_once": (
        HOST + "handler_table.cpp", "return {false, status, call.result_len};", "return {true, status, 0};",
        "host_dispatcher_test", "Flavours/DeferredCompletion.AnswersOutOfOrder/Pool"),
    "handler_reads_what_it_overwrites": (
        HOST + "handler_table.cpp", "payload = std::memcpy(here.scratch.data(), payload, r.arg_len);",
        "std::memcpy(here.scratch.data(), payload, r.arg_len);",
        "host_dispatcher_test",
        "Flavours/DeferredCompletion.PayloadIsInTheSlotIfTheOptionIsSetOrTheResultIsElsewhere/OneSlot"),
    "late_return_wins_over_an_early_completion": (
        HOST + "job_responder.cpp", "    response = record.completion;", "    response.now = true;",
        "host_dispatcher_test", "Flavours/DeferredCompletion.BeforeTheReturnOfTheHandlerIsTheAnswer/Pool"),
    "stop_answers_deferred_requests_as_if_no_response_came": (
        HOST + "host_dispatcher.cpp", "{true, CUDAQ_RPC_ERR_SHUTTING_DOWN, 0}, counters_[kSharedCounters]",
        "{true, CUDAQ_RPC_ERR_NO_RESPONSE, 0}, counters_[kSharedCounters]",
        "host_dispatcher_test", "Flavours/DeferredCompletion.OfAStaleJobMayComeAtAnyMomentOfARestart/Pool"),
    "two_threads_run_one_function_in_order": (
        HOST + "work_queues.h", "(exclusive_ && !l.serving.claim(0, 1))", "(exclusive_ && l.serving.load() > 1)",
        "loop_test", "Host/LoopLoad.LosesDoublesTearsAndReordersNothing/Pool"),
    "completion_of_another_dispatcher_is_taken": (
        HOST + "host_dispatcher.cpp", "if (seen.generation == job.generation && record.owner.peek() != this)",
        "if (seen.generation == job.generation && record.owner.peek() == nullptr)",
        "host_dispatcher_test", "SharedDeferred.IsRefusedOnAnotherDispatcherOfTheRing"),
    "answer_of_a_plain_handler_loses_its_result": (
        HOST + "handler_table.cpp", "return {true, frame.status, frame.result_len};", "return {true, frame.status, 0};",
        "loop_test", "Host/LoopLoad.LosesDoublesTearsAndReordersNothing/Plain"),
    "stop_returns_before_a_claimed_answer": (
        HOST + "host_dispatcher.cpp", "if (!wait_until(steady_clock::now() + std::chrono::seconds(1), idle))",
        "if (steady_clock::now() < deadline)",
        "host_dispatcher_test", "Stop.DoesNotComeBackFromItsDeadlineBeforeAClaimedAnswerIsPublished"),
    # Several dispatchers on one ring.
    "two_members_are_the_default_owner": (
        SHARED + "ring_router.cpp", "if (s.member->is_default_owner() && member.is_default_owner())",
        "if (s.member->is_default_owner() && s.member == &member)",
        "shared_ring_test", "SharedRingMember.IsRefusedASecondDefaultOwnership"),
    "parked_requests_wait_for_ever": (
        SHARED + "ring_router.cpp", "    *place = {&member, false};\n    hand_out_parked();",
        "    *place = {&member, false};",
        "shared_ring_test", "SharedRingMember.StopsAndRestartsInTraffic"),
    "cursor_stays_at_a_parked_request": (
        SHARED + "job_table.cpp", "return phase == job_phase::parked || (phase", "return (phase",
        "shared_ring_test", "JobTable.PassesASlotWithoutAnOwner"),
    # cudaq_realtime.h.
    "request_may_be_longer_than_its_slot": (
        API + "rings/slot_helpers.cpp",
        "std::uint64_t{payload_len} + CUDAQ_RPC_HEADER_SIZE <= rb->rx_stride_sz;",
        "std::uint64_t{payload_len} <= rb->rx_stride_sz;",
        "api_test", "SlotHelperRules.PayloadMustFitAndNothingWrapsIn32Bits"),
    "request_loses_its_time": (
        API + "rings/slot_helpers.cpp", "payload_len, request_id, ptp_timestamp});",
        "payload_len, request_id, ptp_timestamp & 1});",
        "loop_test", "Host/LoopLoad.LosesDoublesTearsAndReordersNothing/TwoSlots"),
    "cuda_error_looks_like_an_answer": (
        API + "rings/slot_helpers.cpp", "if (flag >> CUDAQ_TX_FLAG_ERROR_SHIFT != CUDAQ_TX_FLAG_ERROR_TAG)",
        "if (flag != 0)",
        "api_test", "SlotHelperRules.PollDistinguishesSentinelsFromAddresses"),
    "response_may_be_longer_than_its_slot": (
        API + "rings/slot_helpers.cpp",
        "std::uint64_t{header.result_len} + CUDAQ_RPC_HEADER_SIZE <= stride)", "header.result_len <= stride)",
        "api_test", "SlotHelperRules.FramesThatAreNoResponseAreNotHandedOut"),
    "stride_may_be_odd": (
        API + "validation_ring.cpp", "if (stride % 8 != 0)", "if (stride % 4 != 0)",
        "api_test", "Geometry.EveryStrideFrom16To1024IsRefusedOrServed"),
    "arrays_may_overlap": (
        API + "validation_ring.cpp", "if (arrays[a].address() < arrays[b].address() + bytes[b] &&",
        "if (arrays[a].address() == arrays[b].address() &&",
        "api_test", "DeviceRingRules.RefusesOverlapOfDeviceAddresses"),
    "handle_closes_with_a_claimed_slot": (
        API + "rings/producer_handle.cpp", "if (!producer->core.idle())", "if (producer->core.num_slots() == 0)",
        "api_test", "ProducerHandle.OneHandlePerRingAndItsRingStays"),
    "two_handles_are_open_on_a_ring": (
        API + "rings/producer_handle.cpp", "if (!memory->producers.claim(0, 1))",
        "if (memory->producers.load() > 1)",
        "api_test", "ProducerHandle.OneHandlePerRingAndItsRingStays"),
    # Transports: options, datagrams.
    "number_of_an_option_has_no_limit": (
        "lib/transport/provider/option_parser.cpp", " || number > option.highest)", ")",
        "provider_options_test", "*ProviderOptions.AreRefusedWithATextThatNamesOptionAndValue/udp"),
    "answer_reaches_the_next_peer_of_a_place": (
        DATAGRAM + "peer_windows.cpp", " || table_.generation(key.peer) != key.generation)", ")",
        "datagram_test", "PeerWindows.ForgetAPeerThatWasIdle"),
    "peer_with_a_slot_is_served_again_first": (
        DATAGRAM + "fair_queue.h", "std::tie(a->held, a->last_turn, a) < std::tie(b->held, b->last_turn, b)",
        "std::tie(a->last_turn, a) < std::tie(b->last_turn, b)",
        "transport_contract_test", "*DatagramContract.ServesAnotherPeerNextWhileOneHoldsAllSlots/*"),
    "failed_launch_is_answered_from_the_slot": (
        DATAGRAM + "datagram_ring.cpp", "if (tx >> CUDAQ_TX_FLAG_ERROR_SHIFT == CUDAQ_TX_FLAG_ERROR_TAG)",
        "if (tx == CUDAQ_TX_FLAG_ERROR_TAG)",
        "datagram_test", "UdpRing.WaitsForTheAnswerAfterAMarkerAndAnswersAnErrorSentinel"),
    "slot_keeps_bytes_of_an_earlier_request": (
        DATAGRAM + "datagram_exchange.cpp",
        "  std::memset(target + frame.bytes.size(), 0, ring_.rx_stride_sz - frame.bytes.size());\n", "",
        "transport_contract_test", "*UdpContract.FillsTheRestOfASlotWithZeros/*"),
    "busy_answer_is_repeated": (
        DATAGRAM + "request_gate.cpp", "  if (is_busy(frame))", "  if (is_busy(frame) && frame.empty())",
        "datagram_test", "RequestGate.AcceptsTheIdOfARequestAgainThatAHandlerAnsweredBusy"),
    "truncated_datagram_is_a_request": (
        DATAGRAM + "request_gate.cpp", "arg_len > size - CUDAQ_RPC_HEADER_SIZE)", "arg_len > size)",
        "datagram_test", "RequestGate.AnswersARequestThatIsCutOff"),
    "repeated_request_is_executed_again": (
        DATAGRAM + "request_gate.cpp", "switch (rule_for_copies(found->state)) {", "switch (copy_rule::execute) {",
        "provider_processes_test", "Provider/DatagramProcesses.ExecuteEachMessageOnceOverALossyNetwork/UdpRing"),
    "answer_is_shorter_than_a_slot": (
        "lib/transport/udp/udp_wire.cpp", "{zeros_.data(), zeros_.size() - frame.size()}", "{zeros_.data(), 0}",
        "provider_processes_test", "UdpReusedIds.EachRequestOfABurstIsAnsweredInADatagramOfASlotsSize"),
    "answers_of_several_packets_lose_the_last": (
        ROCE + "uc_receiver.cpp", "  f.at += static_cast<std::uint32_t>(payload.size());\n", "  f.at = f.end;\n",
        "provider_processes_test", "Provider/ProviderProcesses.IncrementAStringOfAnyLength/RoceRing"),
    # Transports: what all providers promise.
    "slot_of_a_request_is_received_into": (
        DATAGRAM + "datagram_dataplane.cpp", "return exchange_.request(slot).open; }),", "return slot == ~0u; }),",
        "transport_contract_test", "*Contract.LeavesASlotToTheLoopUntilItsAnswer/*Unified"),
    "dropped_request_keeps_the_slot_of_a_dataplane": (
        DATAGRAM + "datagram_dataplane.cpp", "    free_.push_back(slot);\n    return true;", "    return true;",
        "transport_contract_test", "*Contract.TakesBackTheSlotOfADroppedRequest/*Unified"),
    "dropped_request_keeps_its_place_in_the_ring": (
        DATAGRAM + "datagram_ring.cpp", "    exchange_.close_unanswered(slot);\n    return true;", "    return false;",
        "transport_contract_test", "*Contract.TakesBackTheSlotOfADroppedRequest/*Ring"),
    "dropped_request_takes_a_credit": (
        "lib/transport/cpu_roce/cpu_roce_exchange.cpp", "    counters_.unanswered.bump();\n    receive_again();",
        "    counters_.unanswered.bump();",
        "transport_contract_test", "*Contract.TakesBackTheSlotOfADroppedRequest/CpuRoce*"),
    "client_of_shared_memory_loses_a_dropped_slot": (
        SHM + "shm_dataplane.cpp", "  --r.held, --total_held_;\n  store_release<std::uint64_t>(rx_flag(r, i), 0);",
        "  --r.held, --total_held_;",
        "transport_contract_test", "*Contract.TakesBackTheSlotOfADroppedRequest/Shm"),
    "slot_is_answered_twice_in_shared_memory": (
        SHM + "shm_dataplane.cpp", "if (slot >= held_.size() || held_[slot] == 0)", "if (slot >= held_.size())",
        "transport_contract_test", "*Contract.RefusesAnAnswerInASlotThatTheLoopDoesNotHave/Shm"),
    "slot_is_answered_twice_over_an_adapter": (
        "lib/transport/cpu_roce/cpu_roce_exchange.cpp", "slots_[slot].in == phase::taken)",
        "slots_[slot].in != phase::ready)",
        "transport_contract_test", "*Contract.RefusesAnAnswerInASlotThatTheLoopDoesNotHave/CpuRoce*"),
    "garbage_takes_the_slot_at_the_head": (
        DATAGRAM + "datagram_ring.cpp", "    if (exchange_.accept_received(i, head_))\n      signal(head_);",
        "    if (exchange_.accept_received(i, head_) || n > 1)\n      signal(head_);",
        "transport_contract_test", "*Contract.WhatIsNoRequestTakesNoSlot/*Ring"),
    "ring_ends_with_answers_unsent": (
        DATAGRAM + "datagram_ring.cpp", "    const bool worked = collect() != 0;", "    const bool worked = false;",
        "transport_contract_test", "*Contract.SendsAtDisconnectWhatFindsRoomLater/*Ring"),
    "dataplane_ends_with_answers_unsent": (
        DATAGRAM + "datagram_dataplane.cpp",
        "    if (waiting_.empty() || steady_clock::now() >= deadline)",
        "    if (waiting_.size() != 1 || steady_clock::now() >= deadline)",
        "transport_contract_test", "*Contract.SendsAtDisconnectWhatFindsRoomLater/*Unified"),
    "dataplane_receives_after_its_end": (
        DATAGRAM + "datagram_dataplane.cpp", "  if (stopped_.load() != kRuns) {", "  if (stopped_.load() > kStopped) {",
        "transport_contract_test", "*Contract.ReturnsNoRequestAfterDisconnectUntilItIsLaunched/*"),
    # Transports: RoCE.
    "packet_with_a_wrong_key_is_taken": (
        ROCE + "uc_receiver.cpp", "if (packet.rkey != limits_.rkey)", "if (packet.rkey == ~limits_.rkey)",
        "roce_test", "UcReceiver.RefusesAddressesRkeysAndImmediatesOfOtherPages"),
    "old_packet_is_a_new_one": (
        ROCE + "uc_receiver.cpp", "f.known && ahead >= kHalfOfAllNumbers", "f.known && ahead > k24Bits",
        "roce_test", "UcReceiver.GoesOnAfterALatePacketOfAMessage"),
    "gap_has_bytes_of_an_earlier_message": (
        ROCE + "uc_receiver.cpp", "std::fill(to + f.end, to + f.at, std::uint8_t{0});", "f.end = f.at;",
        "roce_test", "UcReceiver.DeliversAPageOfSeveralWrites"),
    "message_completes_on_another_page": (
        ROCE + "uc_receiver.cpp", "(packet.immediate & kPageOfImmediate) != f.page)",
        "(packet.immediate & kPageOfImmediate) == limits_.num_pages)",
        "roce_test", "UcReceiver.RefusesAddressesRkeysAndImmediatesOfOtherPages"),
    "packet_of_another_version_is_read": (
        ROCE + "roce_packet.cpp", "(bth[1] & kVersionMask) != 0", "(bth[1] & kVersionMask) == kVersionMask",
        "roce_test", "RocePacket.IsRefusedWithAReason"),
    # Transports: shared memory.
    "request_is_taken_before_the_answer_is_collected": (
        SHM + "shm_dataplane.cpp", "  if (load_acquire(tx_flag(r, i)) != 0) ",
        "  if (load_acquire(tx_flag(r, i)) == 1) ",
        "shm_test", "ShmRings.ASlotIsServedAgainAfterItsAnswerIsCollected"),
    "next_client_begins_in_the_middle_of_the_ring": (
        SHM + "shm_attachments.cpp", "if (!options_.unified && rewind(k))", "if (options_.unified && rewind(k))",
        "shm_test", "Shape/ShmProcesses.OneRingServesManyClientsAfterEachOther/0"),
    "client_of_another_version_is_attached": (
        SHM + "shm_attachments.cpp", "if (request.version == kShmVersion)", "if (request.version >= kShmVersion)",
        "shm_test", "ShmHostile.WrongAttachRequestsAreClosedOrRefused"),
    "client_can_shrink_the_segment": (
        SHM + "shm_segment.cpp", "F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL", "F_SEAL_SEAL",
        "shm_test", "ShmHostile.ASegmentCannotBeShrunk"),
    # Transports: the router.
    "queue_of_a_node_has_no_limit": (
        ROUTE + "request_router.cpp", "if (node.queue.size() >= limits_.queue_length)",
        "if (node.queue.size() > limits_.queue_length)",
        "route_test", "RequestRouter.KeepsToCreditsThenQueuesThenIsBusy"),
    "node_defers_an_answer": (
        ROUTE + "request_router.cpp", "of_node == CUDAQ_HOST_CALL_DEFERRED ?", "of_node == INT32_MAX ?",
        "route_test", "ForeignNode.AnyStatusEndsItsRequestOnce"),
    "message_of_an_old_session_is_taken": (
        ROUTE + "request_router.cpp", "nodes_[header.node].epoch != header.epoch)",
        "nodes_[header.node].state == node_state::absent)",
        "route_test", "RequestRouter.BadMessagesChangeNothing"),
    "answer_of_an_earlier_request_is_taken": (
        ROUTE + "request_router.cpp", "node.slots[header.slot].generation != header.generation ||",
        "node.slots[header.slot].generation == 0 ||",
        "route_test", "RequestRouter.BadMessagesChangeNothing"),
    "decoder_is_trusted_after_another_router": (
        ROUTE + "request_router.cpp", "    lose_keys(node, true);", "    lose_keys(node, false);",
        "route_test", "RequestRouter.ANodeThatAnotherRouterHasUsedNeedsResets"),
    # stream.h.
    "pool_forgets_the_time_when_its_watcher_works": (
        STREAM + "worker_pool.cpp", " || next_wake_ns_.peek() < watched_ns_", "",
        "qec_stream_test", "Policies/WorkerPoolWaits.WakesAlsoWhileTheThreadThatHadTheTimeWorks/Block"),
    "pool_takes_a_later_time_for_the_next_one": (
        STREAM + "worker_pool.cpp", " || next_wake_ns_.peek() < watched_ns_", " || watched_ns_ == kNever",
        "qec_stream_test", "Policies/WorkerPoolWaits.WakesAlsoWhileTheThreadThatHadTheTimeWorks/Block"),
    "pool_polls_without_work": (
        STREAM + "worker_pool.cpp", "      sleep(lock);",
        "      base::wait_until(base::deadline_after(50'000), [] { return false; });",
        "qec_stream_test", "WorkerPool.SleepsWithoutWorkAndIsWokenByIt"),
    "pool_ends_before_it_may": (
        STREAM + "worker_pool.cpp", "if (stop_ && may_end_())", "if (stop_)",
        "qec_stream_test", "Policies/WorkerPoolWaits.EndsWhenItsListIsEmptyAndItMayEnd/*"),
    "pool_gives_a_client_all_its_pieces": (
        STREAM + "worker_pool.cpp", "const bool has_more = client->work();",
        "bool has_more = true;\n    while (has_more)\n      has_more = client->work();",
        "qec_stream_test", "WorkerPool.GivesEachClientAPieceBeforeAnyGetsTwo"),
    "push_reads_after_its_bits": (
        STREAM + "stream_engine.cpp",
        "    return decode_status::stream_misaligned;\n  if (bits.size() < count / 8 + (count % 8 != 0))\n"
        "    return decode_status::buffer_too_small;\n  if (pool_",
        "    return decode_status::stream_misaligned;\n  if (bits.size() < count / 8)\n"
        "    return decode_status::buffer_too_small;\n  if (pool_",
        "qec_stream_test", "StreamC.RefusesBadArgumentsWithoutACrash"),
    "tail_comes_in_the_middle_of_a_repetition": (
        STREAM + "stream_engine.cpp", " || (before - head_) % body_ != 0)", ")",
        "qec_stream_test", "Stream.EndsOnlyAfterAWholeRepetitionAndTakesNothingOtherwise"),
    "wait_goes_on_after_a_reset": (
        STREAM + "stream_engine.cpp", "  ++generation_;\n", "",
        "qec_stream_test", "StreamWorkers.AWaitEndsEarlyAfterAReset"),
    "poll_ignores_a_short_buffer": (
        STREAM + "stream_engine.cpp", "now.status = decode_status::buffer_too_small;", "now.status = status();",
        "qec_stream_test", "StreamWorkers.WaitReturnsWhenTheRoundIsFinal"),
    "broken_stream_does_not_say_why": (
        STREAM + "stream_engine.cpp", "    why = inner.fault();", "    why = \"\";",
        "qec_stream_test", "StreamC.SaysWhichPromiseAPluginBrokeInWhichWindow"),
    "finish_leaves_the_stream_open": (
        STREAM + "stream_engine.cpp", "  is_finished_ = true;\n", "",
        "qec_stream_test", "StreamC.GivesTheFramesOfTheCxxForm"),
    "queue_is_shorter_than_a_window": (
        STREAM + "stream_decoder.cpp", "wanted != 0 && (wanted < least ||", "wanted != 0 && (wanted == 0 ||",
        "qec_stream_test", "StreamWorkers.RefuseSizesThatCannotBeRightWithAText"),
    # decoder.h.
    "detector_after_the_last_is_decoded": (
        DECODER, "if (event >= num_detectors_)", "if (event > num_detectors_)",
        "qec_decoders_test", "DecoderClass.OfAProgramGetsCheckedEvents"),
    "event_may_come_twice": (
        DECODER, "std::adjacent_find(events_.begin(), events_.end()) != events_.end()", "events_.empty()",
        "qec_decoders_test", "DecoderClass.OfAProgramGetsCheckedEvents"),
    "batch_returns_its_last_status": (
        DECODER, "    if (first == decode_status::ok)\n      first = status;", "    first = status;",
        "qec_decoders_test", "Kinds/DecoderForms.ABadShotDoesNotStopItsBatch/lookup"),
    "observables_without_a_solution_are_not_cleared": (
        DECODER, "  if (!has_solution_)\n    std::fill(", "  if (observables.empty())\n    std::fill(",
        "qec_decoders_test", "PluginFaults.NameTheBrokenPromiseAndItsValues"),
    "late_decode_counts_as_met": (
        DECODER, "const bool missed = is_late_ || status", "const bool missed = status",
        "qec_propagation_test", "DecodeDeadlineOf.ADecoderThatIgnoresItIsCountedAsLate"),
    "budget_changes_the_control_of_the_caller": (
        DECODER, "    details->control.deadline_ns = kNoDeadline;", "    details->num_edges += 0;",
        "qec_propagation_test", "Kinds/DecodeDeadline.LeavesTheControlOfTheCallerAsItWas/bp_osd"),
    # Tools.
    "wrong_option_ends_with_another_status": (
        TOOLS + "command_line/program.cpp", "refuse(why.reason, kExitUsage)", "refuse(why.reason, kExitRefused)",
        "tools_program_test", "Program/Refusals.NameWhatIsWrongBeforeTheWork/Options"),
    "each_error_ends_with_the_status_of_a_full_stdout": (
        TOOLS + "command_line/program.cpp", "  if (problem.empty())", "  if (!problem.empty())",
        "tools_program_test", "CommandLineErrors.AreJsonIfTheCommandLineCannotBeParsed"),
    "report_overwrites_an_input": (
        TOOLS + "common/output_file.cpp", "    if (!file->is_at(path))", "    if (file->option() != path)",
        "tools_program_test", "OutputFiles.AreNotTheSameFile"),
    "stream_ends_in_the_middle_of_a_repetition": (
        TOOLS + "shots/round_reader.cpp", " || (round_ - head_.size()) % body_.size() != 0)", ")",
        "tools_program_test",
        "DecodeStream.AnInputThatEndsTooEarlyKeepsTheFramesBeforeIt"),
}
