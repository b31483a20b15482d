// SPDX-License-Identifier: Apache-2.0
//
// Model of one ring shared by a host dispatcher and a kernel, which have no common atomic read-modify-write
// (docs/ring_protocol.md section 9). The host routes and puts the kernel's requests into the kernel's inbox. Each word
// has one writer. Here the router is one process, which is also the default owner and serves its own inbox;
// shared_ring.pml models several host threads that may route.
//
// As in slot_ring.pml, every access to a shared word is one step, and a poll that finds nothing waits.
//
// Configuration (all off by default):
//   NSLOTS NREQ    ring size, requests sent
//   IN_PLACE       RX slot and TX slot are the same memory
//   ORPHANS        some requests belong to no dispatcher; the router drops them
//   LEAVES         the kernel is requested to end at some time; the default owner then serves the requests that the
//                  kernel has not answered
// Mutants: MUTANT_*; each must fail. REACH_*: its `reached` assertion must fail.
// MUTANT_LEFT_IN_PLACE is another design, without a router: each dispatcher reads flags and headers with its own
// cursor, and leaves the requests of the other in place.

#ifndef NSLOTS
#define NSLOTS 2
#endif
#ifndef NREQ
#define NREQ 6
#endif

#define EMPTY 0
#define ADDRESS 1
#define RESPONSE 32
#define HOST 0
#define KERNEL 1
#define ORPHAN 2

#define OPEN 0
#define QUEUED 1 // accepted by the host
#define GIVEN 2  // in the kernel's inbox
#define PARKED 3 // left in place for the kernel, which is leaving

byte rx[NSLOTS];
byte tx[NSLOTS];
byte rx_data[NSLOTS];
byte function_of[NSLOTS]; // part of the request's header
#ifdef IN_PLACE
#define tx_data rx_data
#else
byte tx_data[NSLOTS];
#endif
byte side_table[NSLOTS];

// Written by the router, read by the kernel; one word in the library
byte entry[NSLOTS]; // sequence * 8 + slot
// Written by the kernel, read by the router
byte answers[NSLOTS]; // sequence of the slot's last entry that it has served
bit end_requested;
bit ended;

// Private to the router
byte phase[NSLOTS];
byte given[NSLOTS]; // sequence
byte cursor;
chan inbox = [NSLOTS] of { byte };

// Ghosts
bit g_served[NREQ + 1];
bit g_answered[NREQ + 1];
bit g_routed[NREQ + 1];
byte g_closed;
byte g_last_of[2];

active proctype producer() {
  byte id = 1;
  byte s = 0;
  byte f;
  do
  :: id > NREQ -> break
  :: else ->
free_test:
    rx[s] == 0;
    if
    :: tx[s] == EMPTY
    :: else -> tx[s] == EMPTY; goto free_test
    fi;
    rx_data[s] = id;
    if
    :: f = HOST
    :: f = KERNEL
#ifdef ORPHANS
    :: f = ORPHAN
#endif
    fi;
    function_of[s] = f;
    side_table[s] = id;
    rx[s] = 1;
    atomic { id++; s = (s + 1) % NSLOTS; f = 0 }
  od
}

inline clear_rx(s) {
  atomic {
    assert(rx[s] == 1); // R2: rx is cleared once per request
    rx[s] = 0
  }
}

inline serve(f) {
  id = rx_data[s];
  atomic {
    assert((id & RESPONSE) == 0); // R1: only a request is served
    assert(!g_served[id]);        // R3: once
    g_served[id] = 1;
    assert(id > g_last_of[f]);    // R11: FIFO per function
    g_last_of[f] = id;
    assert(tx[s] == EMPTY)        // R4
#ifdef REACH_OVERTAKING
    ; assert(id == 1 || g_served[id - 1]) // reached: one dispatcher overtakes the other
#endif
  };
  assert(rx_data[s] == id); // R1: the request does not change while it is read
  tx_data[s] = id + RESPONSE;
  atomic { assert(tx[s] == EMPTY); tx[s] = ADDRESS } // R5
}

#ifdef MUTANT_LEFT_IN_PLACE
active[2] proctype dispatcher() {
  byte me = _pid - 1;
  byte s;
  byte id;
  byte at;
end_poll:
  do
  :: rx[at] ->
    if
    :: function_of[at] == me ->
      if // its flag, read after the header: our own request stays
      :: rx[at] -> s = at; serve(me); clear_rx(s); at = (at + 1) % NSLOTS
      :: else
      fi
    :: else -> at = (at + 1) % NSLOTS
    fi
  :: !rx[at] && rx[(at + 1) % NSLOTS] -> // a later slot is filled; read rx again
    if
    :: rx[at]
    :: else -> at = (at + 1) % NSLOTS
    fi
  od
}
#else

inline give(s) {
  atomic { sequence++; given[s] = sequence; phase[s] = GIVEN };
  atomic {
#ifndef LEAVES
    assert(entry[position] == 0 || answers[entry[position] % 8] >= entry[position] / 8); // S4: an inbox never overflows
#endif
    entry[position] = sequence * 8 + s
  };
  position = (position + 1) % NSLOTS
}

#define IS_FREE(s) (phase[s] == OPEN || (phase[s] == GIVEN && answers[s] == given[s]))

active proctype router() {
  byte s;
  byte n;
  byte id;
  byte sequence;
  byte position;
  bit leaving;
  bit has_left;
end_poll:
  do
  :: inbox ? s ->
serve_one:
    serve(function_of[s]);
    clear_rx(s);
    phase[s] = OPEN
#ifdef MUTANT_RX_READ_BEFORE_WORD
  :: rx[cursor] && phase[cursor] != QUEUED && phase[cursor] != PARKED ->
    if
    :: IS_FREE(cursor)
    :: else -> goto end_poll
    fi;
#else
  :: IS_FREE(cursor) ->
    phase[cursor] = OPEN;
end_wait:
    if
    :: rx[cursor]
    :: inbox ? s -> goto serve_one
#ifdef LEAVES
    :: !leaving -> goto leave
    :: leaving && !has_left && ended -> goto take_back
#endif
    fi;
#endif
    s = cursor;
    id = rx_data[s];
    atomic {
      assert((id & RESPONSE) == 0);        // S1: the header read is that of a request
      assert(id != 0 && rx_data[s] == id);
      assert(!g_routed[id]);               // S3: a request is routed once
      g_routed[id] = 1
    };
    if
    :: function_of[s] == ORPHAN -> atomic { clear_rx(s); g_served[id] = 1; g_closed++; phase[s] = OPEN }
    :: function_of[s] == KERNEL && !leaving -> give(s)
    :: function_of[s] == KERNEL && leaving && !has_left -> phase[s] = PARKED
    :: else -> atomic { phase[s] = QUEUED; assert(nfull(inbox)); inbox ! s } // S4
    fi;
    cursor = (cursor + 1) % NSLOTS
#ifdef LEAVES
  :: !leaving ->
leave:
    leaving = 1;
    end_requested = 1
#ifdef MUTANT_TAKES_BACK_EARLY
  :: leaving && !has_left ->
#else
  :: leaving && !has_left && ended ->
#endif
take_back:
    n = 0;
    do // oldest first: in ring order from the cursor on
    :: n < NSLOTS ->
      s = (cursor + n) % NSLOTS;
      if
      :: phase[s] == PARKED -> atomic { phase[s] = QUEUED; inbox ! s }
#ifdef MUTANT_TAKES_BACK_ALL
      :: phase[s] == GIVEN -> atomic { phase[s] = QUEUED; inbox ! s }
#else
      :: phase[s] == GIVEN && answers[s] != given[s] -> atomic { phase[s] = QUEUED; inbox ! s }
#endif
      :: else
      fi;
      n++
    :: else -> break
    od;
    has_left = 1
#endif
  od
}

active proctype kernel() {
  byte s;
  byte id;
  byte at;
  byte sequence = 1;
end_poll:
  do
  :: end_requested -> break // between two requests
  :: entry[at] / 8 == sequence ->
    s = entry[at] % 8;
    serve(KERNEL);
#ifdef MUTANT_REPORTED_BEFORE_RX
    answers[s] = sequence;
    clear_rx(s);
#else
    clear_rx(s);
    answers[s] = sequence;
#endif
    atomic { sequence++; at = (at + 1) % NSLOTS; s = 0; id = 0 }
#ifdef MUTANT_KERNEL_DISPOSES
  :: rx[0] && function_of[0] == ORPHAN -> clear_rx(0)
#endif
  od;
  ended = 1
}
#endif

active proctype consumer() {
  byte s;
  byte id;
  do
  :: g_closed == NREQ -> break
  :: tx[0] == ADDRESS -> s = 0; goto harvest
  :: tx[1] == ADDRESS -> s = 1; goto harvest
#if NSLOTS > 2
  :: tx[2] == ADDRESS -> s = 2;
#else
  :: false ->
#endif
harvest:
    id = side_table[s];
    atomic {
      assert(id != 0 && tx_data[s] == id + RESPONSE); // R5, R6: its own answer, complete
      assert(!g_answered[id]);                        // R5: answered exactly once
      g_answered[id] = 1
    };
    side_table[s] = 0;
    tx[s] = EMPTY;
    atomic { g_closed++; s = 0; id = 0 }
  od;
  id = 1;
  do // R13: every request was served
  :: id <= NREQ -> assert(g_served[id]); id++
  :: else -> break
  od
}
