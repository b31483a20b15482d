// SPDX-License-Identifier: Apache-2.0
//
// Model of the slot protocol (docs/ring_protocol.md): one producer, one dispatcher, one consumer and, in some
// configurations, workers.
//
// Every shared word is one variable, and every access to it is one step. Between two steps of a process any other
// process may run. A poll that finds nothing waits in the model: the poller keeps no state, so repeated polls add no
// behaviour. The state space then has no cycle, and a request that is never answered is an invalid end state.
//
// Configuration (all off by default):
//   NSLOTS NREQ NWORKERS  ring size, requests sent (NREQ / NSLOTS laps), workers
//   IN_PLACE              RX slot and TX slot are the same memory
//   MARKERS               IN_FLIGHT and error sentinels are written to tx (off: private in-flight bit, rx stays set)
//   WORKER                a worker (a graph, or a CPU stage after it) reads the slot and publishes tx itself, at any
//                         time after its launch
//   FORWARD               the worker sets a private completion word, and the dispatcher publishes tx for it
//   POOL                  handler pool: one queue per function, at most one thread in a function; the pool thread
//                         publishes and retires
//   INLINE                with WORKER or FORWARD: the dispatcher may also serve a request itself (a table with mixed
//                         entries)
//   RETIRE_BY_WORKER      without MARKERS: the worker clears rx and the in-flight bit (POOL implies it)
//   LAUNCH_FAIL           any launch may fail
//   DROP                  any request may carry a wrong magic
//   GIVE_UP               with WORKER and MARKERS: the dispatcher may answer instead of a late worker
//   RESYNC                the dispatcher may search the ring, slot by slot, when the slot at its cursor is empty; it
//                         may serve and retire between two steps of the search
//   GAPS                  the producer fills slots in any order (needs RESYNC)
// Mutants: MUTANT_*; each must fail. REACH_*: a situation that must be possible; its `reached` assertion must fail.

#ifndef NSLOTS
#define NSLOTS 2
#endif
#ifndef NREQ
#define NREQ 6
#endif
#ifndef NWORKERS
#define NWORKERS 2
#endif
#if defined(POOL) && !defined(MARKERS)
#define RETIRE_BY_WORKER
#endif
#if defined(WORKER) || defined(FORWARD) || defined(POOL)
#define ASYNC
#else
#define INLINE
#endif
#if (defined(RESYNC) && defined(POOL)) || (defined(GAPS) && !defined(RESYNC))
#error "this combination is not modelled"
#endif

// Values of a tx flag. ADDRESS: a response frame is in the TX slot.
#define EMPTY 0
#define ADDRESS 1
#define IN_FLIGHT 2
#define LAUNCH_ERROR 3

// Contents of a slot: request id plus kind.
#define RESPONSE 32
#define ERROR_FRAME 64
#define BAD_MAGIC 128

byte rx[NSLOTS];
byte tx[NSLOTS];
byte rx_data[NSLOTS];
#ifdef IN_PLACE
#define tx_data rx_data
#else
byte tx_data[NSLOTS];
#endif

byte side_table[NSLOTS]; // private to the requester: the request in the slot (0: no request)

#ifdef ASYNC
bit in_flight[NSLOTS]; // private to the dispatcher (and to a worker that retires); used without MARKERS
byte job_slot[NWORKERS];
byte job_id[NWORKERS];
bit launched[NWORKERS];
bit finished[NWORKERS];
bit busy[NWORKERS];
#endif
#ifdef GIVE_UP
bit claimed[NWORKERS]; // the right to answer this job; claimed once by compare-and-swap
#endif
#ifdef POOL
byte function_of[NSLOTS]; // part of the request data
chan inbox[2] = [NSLOTS] of { byte, byte };
bit function_busy[2];
#endif

// Ghosts: they only observe; the protocol never reads them.
bit g_served[NREQ + 1];
bit g_answered[NREQ + 1];
byte g_closed; // answered or dropped
byte g_error_of[NSLOTS];
byte g_last_taken;
byte g_last_published[2];

// -------------------------------------------------------------------------------------------------------- stores to tx
inline store_marker(s) {
  atomic {
    assert(tx[s] != ADDRESS && tx[s] != LAUNCH_ERROR); // R7: IN_FLIGHT never overwrites a completion
    assert(tx[s] == EMPTY);                            // R4: no answer waits in a slot whose request is taken
    tx[s] = IN_FLIGHT
  }
}

inline publish_address(s) {
  atomic {
    assert(tx[s] == EMPTY || tx[s] == IN_FLIGHT); // R5: one completion per request
    tx[s] = ADDRESS
  }
}

inline publish_error(s, id) {
  atomic {
#if !defined(MARKERS)
    assert(false); // R9: without markers no sentinel is stored
#endif
    assert(tx[s] == IN_FLIGHT); // R8: the sentinel replaces only the marker
    g_error_of[s] = id;
    tx[s] = LAUNCH_ERROR
  }
}

inline write_response(s, value) {
  atomic {
    assert(tx[s] != ADDRESS); // R6: a response that waits for its consumer is not overwritten
    tx_data[s] = value
  }
}

// ------------------------------------------------------------------------------------------------------------ producer
active proctype producer() {
  byte id = 1;
  byte s = 0;
  do
  :: id > NREQ -> break
  :: else ->
#ifdef GAPS
    if
    :: s = 0
    :: s = 1
#if NSLOTS > 2
    :: s = 2
#endif
    fi;
#endif
free_test:
#if defined(MUTANT_TX_READ_BEFORE_RX)
    tx[s] == EMPTY;
    if
    :: rx[s] == 0
    :: else -> rx[s] == 0; goto free_test
    fi;
#elif defined(MUTANT_REFILL_ON_TX_ALONE)
    tx[s] == EMPTY;
#elif defined(MUTANT_REFILL_ON_RX_ALONE)
    rx[s] == 0;
#else
    rx[s] == 0;
    if
    :: tx[s] == EMPTY
    :: else -> tx[s] == EMPTY; goto free_test
    fi;
#endif
#ifdef MUTANT_SIGNAL_BEFORE_DATA
    rx[s] = 1;
#endif
    if
    :: rx_data[s] = id
#ifdef DROP
    :: rx_data[s] = id + BAD_MAGIC
#endif
    fi;
#ifdef POOL
    if
    :: function_of[s] = 0
    :: function_of[s] = 1
    fi;
#endif
    side_table[s] = id;
#ifndef MUTANT_SIGNAL_BEFORE_DATA
    rx[s] = 1;
#endif
    atomic { id++; s = (s + 1) % NSLOTS }
  od
}

// ---------------------------------------------------------------------------------------------------------- dispatcher
inline take(value) { // ghost: the dispatcher accepts the request
  atomic {
    assert(value != 0 && (value & (RESPONSE | ERROR_FRAME)) == 0); // R1: a request, completely written
    assert(!g_served[value & 31]);                                  // R3: no slot is served twice
    g_served[value & 31] = 1;
#ifndef GAPS
    assert((value & 31) == g_last_taken + 1); // R10: served in ring order, no request is skipped
    g_last_taken = value & 31;
#endif
    assert(tx[cursor] == EMPTY) // R4: therefore the device path need not read tx
  }
}

inline clear_rx(s) {
  atomic {
    assert(rx[s] == 1); // R2: rx is cleared once per request
    rx[s] = 0
  }
}

inline serve_inline() {
  assert(rx_data[cursor] == id); // R1: the request does not change while it is read
#if defined(MUTANT_FLAG_BEFORE_RESPONSE)
  publish_address(cursor);
  tx_data[cursor] = id + RESPONSE;
  clear_rx(cursor)
#elif defined(MUTANT_RX_CLEARED_BEFORE_TX)
  write_response(cursor, id + RESPONSE);
  clear_rx(cursor);
  publish_address(cursor)
#else
  write_response(cursor, id + RESPONSE);
  publish_address(cursor);
  clear_rx(cursor)
#endif
}

inline hold_slot(s) { // the hold that outlives the launch
#ifdef MARKERS
  store_marker(s)
#else
#ifndef MUTANT_NO_IN_FLIGHT_BIT
  in_flight[s] = 1
#else
  skip
#endif
#endif
}

#ifdef POOL
inline dispatch_async() {
  hold_slot(cursor);
  atomic { assert(nfull(inbox[function_of[cursor]])); inbox[function_of[cursor]] ! cursor, id };
#ifdef MARKERS
  clear_rx(cursor)
#endif
}
#else
#ifdef ASYNC
inline retire() { // the dispatcher has seen that worker w has finished
  finished[w] = 0;
#if defined(FORWARD) && defined(MUTANT_RX_CLEARED_BEFORE_TX) && !defined(MARKERS)
  clear_rx(job_slot[w]);
  publish_address(job_slot[w]);
  in_flight[job_slot[w]] = 0;
#else
#ifdef FORWARD
  publish_address(job_slot[w]);
#endif
#if !defined(MARKERS) && !defined(RETIRE_BY_WORKER) && !defined(MUTANT_RX_CLEARED_AT_LAUNCH)
  clear_rx(job_slot[w]);
  in_flight[job_slot[w]] = 0;
#endif
#endif
  busy[w] = 0
}

inline dispatch_async() {
  do // if every worker is busy: stay at this slot, and continue to collect completions
#ifndef MUTANT_WAIT_WITHOUT_SWEEP
  :: finished[0] -> w = 0; retire()
#if NWORKERS > 1
  :: finished[1] -> w = 1; retire()
#endif
#endif
  :: atomic { !busy[0] -> w = 0; busy[0] = 1 }; break // the bit scan of the idle mask
#if NWORKERS > 1
  :: atomic { busy[0] && !busy[1] -> w = 1; busy[1] = 1 }; break
#endif
  od;
  job_slot[w] = cursor;
  job_id[w] = id;
#ifdef GIVE_UP
  claimed[w] = 0;
#endif
#ifndef MUTANT_MARKER_AFTER_LAUNCH
  hold_slot(cursor);
#endif
  if
  :: launched[w] = 1;
#ifdef MUTANT_MARKER_AFTER_LAUNCH
    hold_slot(cursor);
#endif
#if defined(MARKERS) || defined(MUTANT_RX_CLEARED_AT_LAUNCH)
    clear_rx(cursor)
#endif
#ifdef LAUNCH_FAIL
  :: true ->
#if defined(MARKERS) || defined(MUTANT_SENTINEL_WITHOUT_MARKERS)
    publish_error(cursor, id);
#else
    write_response(cursor, id + ERROR_FRAME);
    publish_address(cursor);
#endif
    clear_rx(cursor);
    in_flight[cursor] = 0;
    busy[w] = 0
#endif
  fi
}
#endif
#endif

#if defined(ASYNC) && !defined(MARKERS)
#define IN_FLIGHT_BIT(s) (in_flight[s])
#else
#define IN_FLIGHT_BIT(s) false
#endif
// The bit is read before rx. Only this thread sets the bit, so one read of both is exact.
#define READY(s) (!IN_FLIGHT_BIT(s) && rx[s])
#ifdef MUTANT_RESYNC_PASSES_IN_FLIGHT
#define STOPS(s) false
#else
#define STOPS(s) IN_FLIGHT_BIT(s)
#endif

active proctype dispatcher() {
  byte cursor = 0;
  byte id;
#if defined(ASYNC) && !defined(POOL)
  byte w;
#endif
#ifdef MUTANT_RX_READ_BEFORE_BIT
  bit rx_seen;
#endif
#ifdef RESYNC
  byte found; // first look: the slots before this distance from the cursor were empty
  bit seen;   // the first look has ended at a ready slot
  byte back;  // second look: the slots before this distance are still empty
#endif
end_poll:
  do
#ifdef MUTANT_RX_READ_BEFORE_BIT
  :: !rx_seen && rx[cursor] -> rx_seen = 1
  :: rx_seen && !in_flight[cursor] -> rx_seen = 0;
#else
  :: READY(cursor) ->
#endif
serve:
    id = rx_data[cursor];
    take(id);
    if
    :: id & BAD_MAGIC -> atomic { clear_rx(cursor); g_closed++ }
#ifdef INLINE
    :: !(id & BAD_MAGIC) -> serve_inline()
#endif
#ifdef ASYNC
    :: !(id & BAD_MAGIC) -> dispatch_async()
#endif
    fi;
#if defined(RESYNC) && !defined(MUTANT_RESYNC_GOES_ON)
    atomic { cursor = (cursor + 1) % NSLOTS; found = 0; seen = 0; back = 0 }
#else
    cursor = (cursor + 1) % NSLOTS
#endif
#if defined(ASYNC) && !defined(POOL)
  :: finished[0] -> w = 0; retire()
#if NWORKERS > 1
  :: finished[1] -> w = 1; retire()
#endif
#endif
#ifdef GIVE_UP
  :: atomic { busy[0] && launched[0] && !claimed[0] -> claimed[0] = 1 }; publish_error(job_slot[0], job_id[0])
#endif
#ifdef RESYNC
  :: !READY(cursor) && !STOPS(cursor) -> // looks at one slot; anything may happen before it looks at the next one
    if
    :: !seen -> // pass over empty slots; stop at the first slot that is not empty
      if
      :: found == NSLOTS -> goto nothing_found
#ifdef MUTANT_RESYNC_WITHOUT_REREAD
      :: found < NSLOTS && READY((cursor + found) % NSLOTS) -> back = found; goto move
#else
      :: found < NSLOTS && READY((cursor + found) % NSLOTS) -> seen = 1
#endif
      :: found < NSLOTS && STOPS((cursor + found) % NSLOTS) -> goto nothing_found
      :: else -> found++
      fi
    :: seen -> // a later slot is filled: read the skipped slots again
      if
      :: back == found -> goto move
      :: back < found && READY((cursor + back) % NSLOTS) -> goto move
      :: else -> back++
      fi
    fi
#endif
  od;
#ifdef RESYNC
move:
  atomic { cursor = (cursor + back) % NSLOTS; found = 0; seen = 0; back = 0 };
  goto serve;
nothing_found:
  atomic { found = 0; back = 0 };
end_wait:
  if // wait for a change instead of polling again
  :: READY(cursor)
  :: READY((cursor + 1) % NSLOTS) && !IN_FLIGHT_BIT(cursor)
#if NSLOTS > 2
  :: READY((cursor + 2) % NSLOTS) && !IN_FLIGHT_BIT(cursor) && !IN_FLIGHT_BIT((cursor + 1) % NSLOTS)
#endif
#ifdef ASYNC
  :: finished[0] -> w = 0; retire()
#if NWORKERS > 1
  :: finished[1] -> w = 1; retire()
#endif
#endif
  fi;
  goto end_poll
#endif
}

// ------------------------------------------------------------------------------------------------------------- workers
#ifdef POOL
inline pool_take(f) {
#ifdef MUTANT_POOL_WITHOUT_FUNCTION_LOCK
  nempty(inbox[f])
#else
  atomic { !function_busy[f] && nempty(inbox[f]) -> function_busy[f] = 1 }
#endif
}

active[NWORKERS] proctype worker() {
  byte f;
  byte s;
  byte id;
end_idle:
  do
  :: pool_take(0) -> f = 0; goto take_one
  :: pool_take(1) -> f = 1;
take_one:
    if
    :: inbox[f] ? s, id
#ifdef MUTANT_POOL_WITHOUT_FUNCTION_LOCK
    :: empty(inbox[f]) -> goto end_idle
#endif
    fi;
    assert(rx_data[s] == id && function_of[s] == f); // R1
    write_response(s, id + RESPONSE);
#ifdef MUTANT_POOL_LOCK_RELEASED_EARLY
    function_busy[f] = 0;
#endif
    atomic {
      assert(id > g_last_published[f]); // R11: FIFO per function
      g_last_published[f] = id;
      publish_address(s)
    };
#ifndef MARKERS
#ifdef MUTANT_BIT_CLEARED_BEFORE_RX
    in_flight[s] = 0;
    clear_rx(s);
#else
    clear_rx(s);
    in_flight[s] = 0;
#endif
#endif
    function_busy[f] = 0
  od
}
#else
#ifdef ASYNC
active[NWORKERS] proctype worker() {
  byte me = _pid - 2;
  byte s;
  byte id;
  byte seen;
end_idle:
  do
#ifdef MUTANT_TAG_READ_BEFORE_READY
  :: s = job_slot[me];
    launched[me] ->
#else
  :: launched[me] ->
    s = job_slot[me];
#endif
    id = job_id[me];
    seen = rx_data[s];
#ifdef GIVE_UP
#if defined(MUTANT_COMPLETION_WITHOUT_CLAIM)
    skip;
#elif defined(MUTANT_CLAIM_NOT_ATOMIC)
    if
    :: claimed[me] -> goto lost
    :: else -> claimed[me] = 1
    fi;
#else
    if // compare-and-swap: only one side answers
    :: atomic { !claimed[me] -> claimed[me] = 1 }
    :: claimed[me] -> goto lost
    fi;
#endif
#endif
    assert(seen == id);       // R1: the job is the request of the slot it names
    assert(rx_data[s] == id); // R1: and it does not change while the worker reads
#ifdef MUTANT_WORKER_FREED_BEFORE_PUBLISH
    launched[me] = 0;
    finished[me] = 1;
#endif
    write_response(s, id + RESPONSE);
#ifdef REACH_OUT_OF_ORDER
    assert(g_last_published[0] < id); // reached: a later request completes first
    g_last_published[0] = id;
#endif
#ifndef FORWARD
    publish_address(s);
#if defined(RETIRE_BY_WORKER)
#ifdef MUTANT_BIT_CLEARED_BEFORE_RX
    in_flight[s] = 0;
    clear_rx(s);
#else
    clear_rx(s);
    in_flight[s] = 0;
#endif
#endif
#endif
lost:
#ifndef MUTANT_WORKER_FREED_BEFORE_PUBLISH
    atomic { launched[me] = 0; s = 0; id = 0; seen = 0 };
    finished[me] = 1;
#endif
  od
}
#endif
#endif

// ------------------------------------------------------------------------------------------------------------ consumer
#ifdef MUTANT_CONSUMER_TAKES_IN_FLIGHT
#define HARVESTABLE(s) (tx[s] != EMPTY)
#else
#define HARVESTABLE(s) (tx[s] == ADDRESS || tx[s] == LAUNCH_ERROR)
#endif

active proctype consumer() {
  byte s;
  byte flag;
  byte id;
  do
  :: g_closed == NREQ -> break
  :: HARVESTABLE(0) -> s = 0; goto harvest
#if NSLOTS > 1
  :: HARVESTABLE(1) -> s = 1; goto harvest
#endif
#if NSLOTS > 2
  :: HARVESTABLE(2) -> s = 2;
#else
  :: false ->
#endif
harvest:
    flag = tx[s];
#ifdef REACH_EARLY_HARVEST
    assert(!(flag == ADDRESS && rx[s] == 1)); // reached: the answer is seen while rx is still set
#endif
#ifdef MUTANT_TX_CLEARED_BEFORE_READ
    tx[s] = EMPTY;
#endif
    id = side_table[s];
    assert(id != 0); // R12: the side table names the request of this answer
    atomic {
      if
      :: flag == LAUNCH_ERROR -> assert(g_error_of[s] == id) // R5: its own error
      :: else -> assert(tx_data[s] == id + RESPONSE || tx_data[s] == id + ERROR_FRAME) // R5, R6: its own, complete
      fi;
      assert(g_served[id] && !g_answered[id]); // R5: answered exactly once
      g_answered[id] = 1
    };
#if defined(MUTANT_SIDE_TABLE_RESET_LATE)
    tx[s] = EMPTY;
    side_table[s] = 0;
#else
    side_table[s] = 0;
#ifndef MUTANT_TX_CLEARED_BEFORE_READ
    tx[s] = EMPTY;
#endif
#endif
    atomic { g_closed++; s = 0; flag = 0; id = 0 }
  od;
  id = 1;
  do // R13: every request was served; a dropped request is closed without an answer
  :: id <= NREQ -> assert(g_served[id]); id++
  :: else -> break
  od
}
