/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's handle on a ring of cudaq_ringbuffer_create, or of another process: finds free slots, writes requests in
 * the way that the ring's memory needs, and signals them in ring order.
 *
 *   open -> claim -> write, or (frame, write_header) -> commit ... -> close
 *   open -> send ... -> close
 *
 * On CUDAQ_MEMORY_DEVICE_RX it writes whole lines with streaming stores, orders them with fences, and never reads
 * across the bus, except until the first claim of each slot. The answer side is that of cudaq_realtime.h: poll_tx_flag,
 * read_rpc_response, clear_slot.
 *
 * Rules for all functions:
 *  - One handle per ring; threads may share it. While it is open, nothing else writes requests to the ring.
 *  - A slot is named by its number. A claimed slot belongs to the claiming thread until commit or abort: the thread
 *    that has written it commits it. Requests are signalled in the order of their claims: a slot that stays claimed
 *    holds back later ones.
 *  - Only kernels of this library tell the handle of a DEVICE_RX ring that a slot is free again.
 *  - Return values, error text and sizes as in cudaq_realtime.h. None of the functions waits, except send. */
#ifndef CUDAQ_REALTIME_RING_PRODUCER_H
#define CUDAQ_REALTIME_RING_PRODUCER_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudaq_ringbuffer_producer_t cudaq_ringbuffer_producer_t; /* opaque */

/* `memory`: from cudaq_ringbuffer_create; it must stay until close. The first claim is the slot after the last one of
 * the ring's last handle; slot 0 if there was none. The dispatcher must be at that slot: on a ring on which the slot
 * helpers were used before, it finds the requests later, and not in order. CUDAQ_ERR_STATE: a handle is open.
 * CUDAQ_ERR_UNSUPPORTED: the CPU cannot write the ring (CUDAQ_MEMORY_DEVICE). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_open(cudaq_ringbuffer_memory_t *memory,
                                                                 cudaq_ringbuffer_producer_t **out_producer);
/* The handle of a ring that another process has made, and whose memory this process has mapped, as a client of the
 * transport shm has it. `memory_kind`: HOST or MAPPED, or DEVICE_RX if the requests are in device memory; then the ring
 * must be laid out as cudaq_ringbuffer_create does it, with its laps. The first claim is slot 0, and all slots must be
 * free. The memory must stay until close. Nothing prevents a second handle: the caller has one for each ring.
 * CUDAQ_ERR_INVALID_ARG: an address, a stride, num_slots or memory_kind. CUDAQ_ERR_UNSUPPORTED: DEVICE. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_open_ring(const cudaq_ringbuffer_t *ring,
                                                                      uint32_t num_slots, uint32_t memory_kind,
                                                                      cudaq_ringbuffer_producer_t **out_producer);
/* CUDAQ_ERR_STATE while a slot is claimed. Not at the same time as another call on the handle. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_close(cudaq_ringbuffer_producer_t *producer);

/* Claims up to max_count slots that are free and follow one another in ring order; slot 0 comes after the last one.
 * *out_count: number of slots claimed, 0 if the next slot is not free. *out_slot: the first one. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_claim(cudaq_ringbuffer_producer_t *producer,
                                                                  uint32_t max_count, uint32_t *out_slot,
                                                                  uint32_t *out_count);
/* Writes a whole request into a claimed slot. payload may be NULL if payload_len is 0. CUDAQ_ERR_INVALID_ARG: the slot
 * is not claimed, or the frame does not fit in the stride. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_write(cudaq_ringbuffer_producer_t *producer, uint32_t slot,
                                                                  uint32_t function_id, const void *payload,
                                                                  uint32_t payload_len, uint32_t request_id,
                                                                  uint64_t ptp_timestamp);
/* The payload area of a claimed slot, *out_bytes long, for a caller that writes the payload itself. Write it from front
 * to back, and do not read it: on DEVICE_RX a read takes about 1 us. Valid until commit or abort. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_payload(cudaq_ringbuffer_producer_t *producer,
                                                                    uint32_t slot, void **out_payload,
                                                                    size_t *out_bytes);
/* The header for such a payload of payload_len bytes. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_write_header(cudaq_ringbuffer_producer_t *producer,
                                                                         uint32_t slot, uint32_t function_id,
                                                                         uint32_t payload_len, uint32_t request_id,
                                                                         uint64_t ptp_timestamp);
/* Gives `count` claimed slots, from `slot` on in ring order, to the dispatcher. After the return they are signalled,
 * or will be by a thread that is in commit, as soon as the slots claimed before them are committed.
 * CUDAQ_ERR_INVALID_ARG: one of them is not claimed; then none is committed. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_commit(cudaq_ringbuffer_producer_t *producer, uint32_t slot,
                                                                   uint32_t count);
/* Gives up a claimed slot. A frame without magic goes to the dispatcher in its place, which drops it without an
 * answer, and counts it (dropped_bad_magic). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_abort(cudaq_ringbuffer_producer_t *producer, uint32_t slot);
/* Claim, write and commit of one request. Waits up to timeout_ns for a free slot, spinning. *out_slot (may be NULL):
 * its slot. CUDAQ_ERR_TIMEOUT: none became free; nothing was sent. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_producer_send(cudaq_ringbuffer_producer_t *producer,
                                                                 uint32_t function_id, const void *payload,
                                                                 uint32_t payload_len, uint32_t request_id,
                                                                 uint64_t ptp_timestamp, uint64_t timeout_ns,
                                                                 uint32_t *out_slot);

#ifdef __cplusplus
}
#endif

#endif
