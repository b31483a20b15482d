/* SPDX-License-Identifier: Apache-2.0 */
/* The C API: a manager owns dispatchers; a dispatcher serves the requests of one ring buffer.
 *
 *   manager_create -> dispatcher_create -> set_ringbuffer, set_function_table, set_control
 *                  -> start -> (traffic) -> stop -> dispatcher_destroy -> manager_destroy
 *
 * Rules that hold for every function unless its comment states otherwise:
 *  - Return: CUDAQ_OK or an error. After an error nothing has changed; on the same thread cudaq_last_error_message()
 *    returns the reason.
 *  - Threads: calls that wire, start, stop or destroy one dispatcher may come from any thread; the library serialises
 *    them. Reading calls (get_*, dump_state) and slot helpers may run at the same time, from any thread. No thread may
 *    use a handle during or after the destroy that returns CUDAQ_OK.
 *  - Ownership: the library keeps pointers to ring memory and control words from the set_* call to the destroy that
 *    returns CUDAQ_OK. It never frees what the caller allocated. It copies the structs that are passed in.
 *  - Signals and cancellation: on the library's own threads cancellation is disabled, and all signals are blocked
 *    except those that a thread causes by its own instructions (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP,
 *    SIGABRT). No function is a cancellation point: a pthread_cancel of its caller takes effect after it has returned.
 *  - Sizes are in bytes. No function prints, aborts, throws, or changes the caller's current CUDA device.
 *
 * The slot protocol is specified in docs/ring_protocol.md, the frames in docs/message_protocol.md. */
#ifndef CUDAQ_REALTIME_H
#define CUDAQ_REALTIME_H

#include "cudaq/realtime/daemon/dispatcher/realtime_types.h"
#include "cudaq/realtime/daemon/dispatcher/ring_producer.h"
#include "cudaq/realtime/daemon/dispatcher/rpc_wire_format.h"
#include <stddef.h>
#include <stdint.h>
#if defined(CUDAQ_REALTIME_HAS_CUDA_HEADER)
#include "cudaq/realtime/daemon/dispatcher/device_dispatch.h"
#include <cuda_runtime_api.h>
#endif
#include "cudaq/realtime/daemon/dispatcher/upstream_interface.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------- version and error text -- */

/* CUDAQ_REALTIME_VERSION (version.h) of the library that is loaded, which may differ from that of the header. */
CUDAQ_REALTIME_API uint32_t cudaq_realtime_version(void);

/* Optional parts of the library that is loaded. A header newer than the library may define bits that the library never
 * sets. */
#define CUDAQ_REALTIME_FEATURE_HOST_PATH 0x1u   /* HOST_CALL dispatch by a CPU thread */
#define CUDAQ_REALTIME_FEATURE_CUDA_MEMORY 0x2u /* mapped and device rings; they need a driver */
#define CUDAQ_REALTIME_FEATURE_NUMA 0x4u        /* NUMA placement of rings and threads */
#define CUDAQ_REALTIME_FEATURE_DEVICE_PATH 0x8u /* dispatch by a kernel; needs a driver and a launch function */
CUDAQ_REALTIME_API uint64_t cudaq_realtime_features(void);

/* Name and meaning of a status. Never NULL; static storage. */
CUDAQ_REALTIME_API const char *cudaq_status_string(cudaq_status_t status);
/* Meaning of the status field of a response. Never NULL; static storage. */
CUDAQ_REALTIME_API const char *cudaq_rpc_status_string(int32_t status);
/* Reason of the last failed call of this thread: function, argument, value. Empty before the first failure; valid until
 * another call of the thread fails. */
CUDAQ_REALTIME_API const char *cudaq_last_error_message(void);

/* ---------------------------------------------------- manager, dispatcher -- */

CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatch_manager_create(cudaq_dispatch_manager_t **out_mgr);
/* CUDAQ_ERR_STATE while the manager owns dispatchers. If the manager has used the device path, this call frees pinned
 * memory and graphs, which waits for all kernels that run. So end the kernels of other managers first, and keep the
 * modules of the launch functions loaded. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatch_manager_destroy(cudaq_dispatch_manager_t *mgr);

/* The manager's first dispatcher with CUDAQ_DISPATCH_GRAPH_LAUNCH on a device path grows the driver's pool of streams.
 * That waits for all kernels of the program that already run on the device; if they do not end, it waits without limit.
 * So create this dispatcher before you start such kernels, or declare them by cudaq_dispatch_manager_reserve_blocks:
 * then the pool is not grown. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_create(cudaq_dispatch_manager_t *mgr,
                                                          const cudaq_dispatcher_config_t *config,
                                                          cudaq_dispatcher_t **out_dispatcher);
/* Stops the dispatcher first if it runs. CUDAQ_ERR_TIMEOUT: a handler did not return within the grace period. The
 * handle then stays valid, ring and control words must stay, and the call may be repeated. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_destroy(cudaq_dispatcher_t *dispatcher);

/* Wiring; CUDAQ_ERR_STATE while the dispatcher runs. If the caller's own shutdown flag has ended the run, the next
 * wiring call or start first completes the stop, and can return the errors of cudaq_dispatcher_stop. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_ringbuffer(cudaq_dispatcher_t *dispatcher,
                                                                  const cudaq_ringbuffer_t *ringbuffer);
/* start copies the entries. Later changes of the table have no effect on that run. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_function_table(cudaq_dispatcher_t *dispatcher,
                                                                      const cudaq_function_table_t *table);
/* shutdown_flag: belongs to the library from this call to destroy: start clears it, stop sets it. The caller may set it
 * to end the loop. stats: one counter of processed requests (answered or dropped). It continues from the value that
 * start finds in it. No other dispatcher may use these words at the same time: start refuses words that a running
 * dispatcher of the same manager uses. Of another manager, or of another process, the library cannot know it, because
 * the words are memory of the caller: then the stop of one dispatcher also ends the loop of the other, whose requests
 * stay without answers until it is stopped and started again, and the counts of both are wrong.
 * CUDAQ_ERR_INVALID_ARG: a word is NULL or not aligned to its size. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_control(cudaq_dispatcher_t *dispatcher,
                                                               volatile int *shutdown_flag, uint64_t *stats);

/* Device path: the function that launches the kernel, from the archive (libcudaq-realtime-dispatch.a) or the caller's
 * own. If both forms are set, the later call counts. start calls the function once, on the thread that called start,
 * with the dispatcher's device current. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_launch_fn(cudaq_dispatcher_t *dispatcher,
                                                                 cudaq_dispatch_launch_fn_t launch_fn);
/* CUDAQ_KERNEL_UNIFIED: the launch function and its transport context, which must live until destroy. Such a dispatcher
 * has no ring. The last call of this function or of its other form counts (upstream_interface.h). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_unified_launch_spec(cudaq_dispatcher_t *dispatcher,
                                                                           cudaq_unified_launch_spec_fn_t launch_fn,
                                                                           void *transport_ctx);
/* Host path with CUDAQ_KERNEL_UNIFIED: the dispatcher's loop receives and sends through a provider of a transport.
 * cpu_dataplane (daemon/bridge/bridge_types.h) is copied; ctx and ring must stay until destroy. It replaces the ring:
 * config.num_slots and slot_size are those of the provider's slots. num_slots 0: at most 4096. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_cpu_dataplane(cudaq_dispatcher_t *dispatcher,
                                                                     const cudaq_cpu_dataplane_t *cpu_dataplane);
/* Host path: a transport whose answers are shorter than a slot. Longer results are answered
 * CUDAQ_RPC_ERR_RESULT_TOO_LARGE, and handlers find the limit in max_result_len. Bytes without the 24 bytes of the
 * header; 0, the default, and larger numbers: as many bytes as a slot holds. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_max_result_bytes(cudaq_dispatcher_t *dispatcher, uint32_t bytes);
/* Declares that `blocks` blocks of the caller's own kernels stay resident on a device while dispatchers of the manager
 * run. start then refuses a cooperative grid that does not fit on the device together with them. 0 revokes the
 * declaration. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatch_manager_reserve_blocks(cudaq_dispatch_manager_t *mgr, int device_id,
                                                                        uint32_t blocks);

/* Returns when the dispatcher's threads, or its kernel, run; at once with CUDAQ_OK if they run already.
 * CUDAQ_ERR_INVALID_ARG: something is not wired. The dispatcher continues at the slot where it stopped last; a
 * newly wired ring begins at slot 0. Device path: CUDAQ_ERR_TIMEOUT if the launch is queued but the kernel has not
 * begun to run after 5 s, because the device has no room for it. start then requests the kernel to end; the state
 * is CUDAQ_DISPATCHER_FAILED until a stop finds that the kernel has ended. CUDAQ_ERR_STATE: arrays of the ring or a
 * control word overlap memory of another running dispatcher of the manager (members of one shared ring may share
 * its arrays), or a dispatcher of another manager runs on this ring, and cudaq_ringbuffer_create has made it in
 * host or mapped memory. Other double use is not detected. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_start(cudaq_dispatcher_t *dispatcher);
/* Ends the loop after the present request and waits for the requests that are accepted, at most the grace period of the
 * options. Requests that are not accepted stay in their slots. A handler of the same dispatcher must not call it
 * (CUDAQ_ERR_STATE). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_stop(cudaq_dispatcher_t *dispatcher);
/* The same with timeout_ns instead of the grace period. A timeout that the clock cannot add means: without limit.
 * CUDAQ_ERR_TIMEOUT: a thread or kernel did not end, usually because its handler did not return; the state is
 * CUDAQ_DISPATCHER_STOPPING until a later stop succeeds, and only stop and destroy are allowed. CUDAQ_ERR_CUDA: a
 * device fault has ended the kernel; it is reported once: the next stop succeeds, and so does destroy.
 *
 * A callback returns, or throws where its contract allows that. One that ends its thread (pthread_exit, a cancellation
 * that it has enabled) ends the process: a line on stderr names the callback, then the library calls abort. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_stop_timeout(cudaq_dispatcher_t *dispatcher, uint64_t timeout_ns);
/* The number of processed requests, also while the dispatcher runs. It counts on from the value that start found in
 * `stats`, and may be ahead of the word `stats`. On a shared ring it includes the requests that the library's host
 * thread dropped or answered for a kernel; the word does not. For a kernel that is not the library's it is the word
 * itself. CUDAQ_ERR_CUDA: that word is in device memory, and could not be read. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_get_processed(cudaq_dispatcher_t *dispatcher, uint64_t *out_packets);

/* -------------------------------------------------- options, state, stats -- */

CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_options_init(cudaq_dispatcher_options_t *options,
                                                                uint32_t struct_size);
/* CUDAQ_ERR_STATE while running. If the system refuses to pin a thread, start returns an error. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_options(cudaq_dispatcher_t *dispatcher,
                                                               const cudaq_dispatcher_options_t *options);

/* Threads that call it see only these transitions: CREATED and WIRED in both directions; WIRED or STOPPED to RUNNING;
 * RUNNING to STOPPING to STOPPED, where STOPPING may be too short to be seen; RUNNING or STOPPING to FAILED; FAILED to
 * STOPPED; WIRED or STOPPED to FAILED if the start of a kernel has timed out. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_get_state(const cudaq_dispatcher_t *dispatcher,
                                                             cudaq_dispatcher_state_t *out_state);

CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_get_stats(const cudaq_dispatcher_t *dispatcher,
                                                             cudaq_dispatcher_stats_t *out_stats);

/* Host path. on != 0: from the next start on, the dispatcher records the time of each request that a handler or a graph
 * serves; 0, the default: it does not. Each start forgets the times of the last run, and takes 2 ms more. Memory: 9 KB
 * for each function and each thread (the pool's threads, and two more). CUDAQ_ERR_STATE while running.
 * CUDAQ_ERR_UNSUPPORTED: device path. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_handler_times(cudaq_dispatcher_t *dispatcher, int on);
/* The histogram of one function, of the present run or the last one; times in nanoseconds. Also while the dispatcher
 * runs: then a request that was answered a moment ago may be missing, or be in sum_ns and max_ns only. After stop it is
 * exact. CUDAQ_ERR_STATE: no start has recorded times. CUDAQ_ERR_INVALID_ARG: the run has no such function.
 * CUDAQ_ERR_UNSUPPORTED: device path. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_get_handler_times(const cudaq_dispatcher_t *dispatcher,
                                                                     uint32_t function_id,
                                                                     cudaq_handler_times_t *out_times);

/* Writes a text: state, options as applied, counters, flags of every slot that is not free, and what each thread does.
 * It is NUL-terminated and cut off at buf_len. *out_len (may be NULL): length of the whole text without NUL. It reads
 * the ring of the last run, until the next start: also after stop, and after a later set_ringbuffer. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_dump_state(const cudaq_dispatcher_t *dispatcher, char *buf,
                                                              size_t buf_len, size_t *out_len);

/* ------------------------------- graph workers of the host path: host_dispatcher.h -- */

/* One word per worker, in mapped memory of the caller. Before a launch the library stores there, for graphs and hooks
 * to read, the device address of the request's slot, or that of the worker's io_ctx (options.mailbox_content). Like
 * io_ctx, the word is written for one launch at a time and keeps its value until the worker's next launch. NULL: no
 * mailbox. CUDAQ_ERR_STATE while running. The last call of this function or of its other form counts
 * (upstream_interface.h). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_dispatcher_set_mailbox_spec(cudaq_dispatcher_t *dispatcher,
                                                                    void **h_mailbox_bank);
/* Gives a CALLER_PUBLISHES worker back. From any thread, but not at the same time as start. The worker's request may be
 * completed before or after, by cudaq_host_complete_deferred with the job of cudaq_host_worker_job. With markers, a
 * caller that has set the tx flag itself before this call need not complete the request. CUDAQ_ERR_STATE: the worker is
 * idle, or the library frees it. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_release_worker(cudaq_dispatcher_t *dispatcher, int worker_id);

/* ------------------------------------------------------------ ring memory -- */

CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_options_init(cudaq_ringbuffer_options_t *options,
                                                                uint32_t struct_size);
/* Allocates a zeroed ring and fills in `out_ring`, ready for cudaq_dispatcher_set_ringbuffer. CUDAQ_ERR_UNSUPPORTED:
 * the machine cannot make this kind; the message says what is missing. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_create(const cudaq_ringbuffer_options_t *options,
                                                          cudaq_ringbuffer_memory_t **out_memory,
                                                          cudaq_ringbuffer_t *out_ring);
/* Any thread, until the destroy. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_get_info(const cudaq_ringbuffer_memory_t *memory,
                                                            cudaq_ringbuffer_info_t *out_info);
/* CUDAQ_ERR_STATE, and the ring stays: a producer's handle is open, or a dispatcher was started on the ring and not
 * stopped (not noticed for CUDAQ_MEMORY_DEVICE, nor for a ring without its host addresses). After any other error the
 * ring is as before. Before the ring is destroyed, destroy its dispatchers, or wire each to another ring and start it;
 * else such a dispatcher must not be started, nor passed to cudaq_dispatcher_dump_state, which shows the slots of the
 * last run. Memory that the CPU and a device share is freed by a CUDA call that waits for all kernels of the device:
 * end kernels without limit first. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_ringbuffer_destroy(cudaq_ringbuffer_memory_t *memory);

/* ----------------------------------------------------------- slot helpers -- */
/* For software that plays the control system. They work on the host views of a ring. slot_idx must be less than the
 * number of slots of the ring; the helpers cannot check that, because cudaq_ringbuffer_t does not hold the number.
 * Producers should fill slots in ring order: one that skips slots loses no request, but gets no order, and delays
 * (docs/ring_protocol.md section 4). Only one thread may work on a slot at a time. */

/* Returns 1 if both flags are 0 and the slot may be filled, else 0. Reads rx, then tx. On CUDAQ_MEMORY_DEVICE_RX it
 * reads across the bus, 2 us, and the lap of the slot's last request must have come (docs/ring_protocol.md section 13).
 */
CUDAQ_REALTIME_API int cudaq_host_ringbuffer_slot_available(const cudaq_ringbuffer_t *rb, uint32_t slot_idx);
/* Writes a request frame into a free slot; does not signal it. payload may be NULL if payload_len is 0.
 * CUDAQ_ERR_INVALID_ARG: the frame does not fit in rx_stride_sz. */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_ringbuffer_write_rpc_request(const cudaq_ringbuffer_t *rb,
                                                                          uint32_t slot_idx, uint32_t function_id,
                                                                          const void *payload, uint32_t payload_len,
                                                                          uint32_t request_id, uint64_t ptp_timestamp);
/* Publishes the request: stores the slot's host address to its rx flag. Frame before flag, and flag before all later
 * stores, on each kind of memory. */
CUDAQ_REALTIME_API void cudaq_host_ringbuffer_signal_slot(const cudaq_ringbuffer_t *rb, uint32_t slot_idx);
/* Reads the tx flag with acquire. *out_cuda_error (may be NULL) gets the CUDA error of CUDAQ_TX_ERROR, else 0. */
CUDAQ_REALTIME_API cudaq_tx_status_t cudaq_host_ringbuffer_poll_tx_flag(const cudaq_ringbuffer_t *rb, uint32_t slot_idx,
                                                                        int *out_cuda_error);
/* Copies the response header and sets *out_result to the result inside the TX slot, which is valid until clear_slot.
 * Call it after CUDAQ_TX_READY. CUDAQ_ERR_INTERNAL: the slot holds no valid response (wrong magic or length). */
CUDAQ_REALTIME_API cudaq_status_t cudaq_host_ringbuffer_read_rpc_response(const cudaq_ringbuffer_t *rb,
                                                                          uint32_t slot_idx,
                                                                          cudaq_rpc_response_t *out_header,
                                                                          const void **out_result);
/* Consumer: gives the slot back by clearing its tx flag with release. Reset your own bookkeeping of the slot before. */
CUDAQ_REALTIME_API void cudaq_host_ringbuffer_clear_slot(const cudaq_ringbuffer_t *rb, uint32_t slot_idx);

#ifdef __cplusplus
} /* extern "C" */

/* The argument of the specification is void *, which C++ does not convert by itself. A pointer to another type does not
 * compile. */
template <class T>
inline cudaq_status_t cudaq_dispatcher_set_cpu_dataplane(cudaq_dispatcher_t *dispatcher, T *cpu_dataplane) {
  return cudaq_dispatcher_set_cpu_dataplane(dispatcher, static_cast<const cudaq_cpu_dataplane_t *>(cpu_dataplane));
}
#endif

#endif
