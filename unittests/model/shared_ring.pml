// SPDX-License-Identifier: Apache-2.0
//
// Model of one ring served by two host dispatchers (shared_ring_mode, docs/ring_protocol.md). Each function belongs to
// one dispatcher.
//
// The ring has one cursor. The dispatcher that holds the router role checks the slot at the cursor, reads its header,
// marks the slot outstanding, appends it to the inbox of the dispatcher that owns the function, and advances the
// cursor. Each dispatcher serves its own inbox in order.
//
// As in slot_ring.pml, every access to a shared word is one step, and a poll that finds nothing waits.
//
// Configuration (all off by default):
//   NSLOTS NREQ    ring size, requests sent
//   IN_PLACE       RX slot and TX slot are the same memory
//   ORPHANS        a request may name a function without an owner; the default owner (dispatcher 0) drops it
//   STATIC_ROUTER  dispatcher 0 always has the role: no compare-and-swap is needed
//   STUCK          dispatcher 1 never returns from its first handler; what dispatcher 0 owns must still be answered
//   RESYNC         the router may search the ring, slot by slot, when the slot at the cursor is empty; it may release
//                  the role between two steps of the search
//   GAPS           the producer fills slots in any order (needs RESYNC)
// Mutants: MUTANT_*; each must fail. REACH_*: its `reached` assertion must fail.

#ifndef NSLOTS
#define NSLOTS 2
#endif
#ifndef NREQ
#define NREQ 6
#endif
#if (defined(GAPS) && !defined(RESYNC)) || (defined(RESYNC) && defined(MUTANT_RX_READ_BEFORE_BIT))
#error "this combination is not modelled"
#endif

#define EMPTY 0
#define ADDRESS 1
#define RESPONSE 32
#define ORPHAN 2
#define OWNER(f) ((f) == 1 -> 1 : 0) // dispatcher 0 is the default owner

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

bit role;         // 1: a dispatcher routes
byte cursor;      // accessed only by the holder of the role
byte outstanding; // one bit per slot: set by the holder of the role, cleared by the dispatcher that served the slot
chan inbox[2] = [NSLOTS] of { byte };
#ifdef RESYNC
// The search over the ring, accessed only by the holder of the role. A later holder goes on with it.
byte found; // first look: the slots before this distance from the cursor were empty
bit seen;   // the first look has ended at a ready slot
byte back;  // second look: the slots before this distance are still empty
#endif

#define IS_OUTSTANDING(s) (outstanding & (1 << (s)))
// The bit is read before rx. Only the holder of the role sets the bit of a slot, so one read of both is exact.
#define READY(s) (!IS_OUTSTANDING(s) && rx[s])
#ifdef MUTANT_RESYNC_PASSES_OUTSTANDING
#define STOPS(s) false
#else
#define STOPS(s) IS_OUTSTANDING(s)
#endif

// Ghosts
bit g_served[NREQ + 1];
bit g_answered[NREQ + 1];
byte g_closed;
byte g_last_of[3];
bit g_routed[NREQ + 1];
byte g_open_of_0; // signalled, owned by dispatcher 0, not yet closed

active proctype producer() {
  byte id = 1;
  byte s = 0;
  byte f;
  do
  :: id > NREQ -> break
  :: else ->
#ifdef GAPS
    if
    :: s = 0
    :: s = 1
    fi;
#endif
free_test:
#ifdef STUCK
end_blocked:
#endif
    rx[s] == 0;
    if
    :: tx[s] == EMPTY
    :: else -> tx[s] == EMPTY; goto free_test
    fi;
    rx_data[s] = id;
    if
    :: f = 0
    :: f = 1
#ifdef ORPHANS
    :: f = ORPHAN
#endif
    fi;
    function_of[s] = f;
    side_table[s] = id;
    atomic { rx[s] = 1; g_open_of_0 = g_open_of_0 + (OWNER(f) == 0 -> 1 : 0) };
    atomic { id++; s = (s + 1) % NSLOTS; f = 0 }
  od
}

inline clear_rx(s) {
  atomic {
    assert(rx[s] == 1); // R2: rx is cleared once per request
    rx[s] = 0
  }
}

inline clear_outstanding(s) {
#ifdef MUTANT_BIT_WORD_LOAD_STORE
  word = outstanding;
  outstanding = word & (255 - (1 << s))
#else
  outstanding = outstanding & (255 - (1 << s)) // one atomic read-modify-write
#endif
}

inline release_slot(s) {
#ifdef MUTANT_BIT_CLEARED_BEFORE_RX
  clear_outstanding(s);
  clear_rx(s)
#else
  clear_rx(s);
  clear_outstanding(s)
#endif
}

inline serve() {
  id = rx_data[s];
  atomic {
    assert((id & RESPONSE) == 0);            // R1: only a request is served
    assert(OWNER(function_of[s]) == me);     // S2: by the owner of its function
    assert(!g_served[id]);                   // R3: once
    g_served[id] = 1;
#ifndef GAPS
    assert(id > g_last_of[function_of[s]]);  // R11: FIFO per function
    g_last_of[function_of[s]] = id;
#endif
#ifdef REACH_OVERTAKING
    assert(id == 1 || g_served[id - 1]);     // reached: one dispatcher overtakes the other
#endif
    assert(tx[s] == EMPTY)                   // R4
  };
  if
  :: function_of[s] == ORPHAN ->
    atomic { clear_rx(s); g_closed++; g_open_of_0-- };
    clear_outstanding(s)
  :: else ->
    assert(rx_data[s] == id); // R1: the request does not change while it is read
    tx_data[s] = id + RESPONSE;
    atomic { assert(tx[s] == EMPTY); tx[s] = ADDRESS }; // R5
    release_slot(s)
  fi;
  atomic { s = 0; id = 0 }
}

inline read_header(s) {
  id = rx_data[s];
  f = function_of[s];
#ifdef MUTANT_ORPHANS_LEFT
  if
  :: f == ORPHAN -> goto release_role
  :: else
  fi
#endif
}

inline route(s) { // called by the holder of the role
#if defined(RESYNC) && !defined(MUTANT_RESYNC_GOES_ON)
  atomic { found = 0; seen = 0; back = 0 };
#endif
  atomic {
    assert((id & RESPONSE) == 0);        // S1: the header read is that of a request
    assert(id != 0 && rx_data[s] == id); // S1: and it has not changed
    assert(!g_routed[id]);               // S3: a request is routed once
    g_routed[id] = 1
  };
#ifdef MUTANT_ROLE_RELEASED_EARLY
  outstanding = outstanding | (1 << s);
  cursor = (s + 1) % NSLOTS;
  role = 0;
  inbox[OWNER(f)] ! s;
#else
  outstanding = outstanding | (1 << s);
  atomic { assert(nfull(inbox[OWNER(f)])); inbox[OWNER(f)] ! s }; // S4: an inbox of NSLOTS entries never overflows
  cursor = (s + 1) % NSLOTS;
#ifndef MUTANT_NO_ROLE
  role = 0;
#endif
#endif
  atomic { s = 0; f = 0; id = 0 }
}

active[2] proctype dispatcher() {
  byte me = _pid - 1;
  byte s;
  byte f;
  byte id;
#ifdef MUTANT_BIT_WORD_LOAD_STORE
  byte word;
#endif
end_poll:
  do
  :: inbox[me] ? s ->
serve_one:
#ifdef STUCK
    if
#ifdef MUTANT_ROLE_HELD_WHILE_SERVING
    :: me == 1 -> atomic { role == 0 -> role = 1 }; break
#else
    :: me == 1 -> break
#endif
    :: else
    fi;
#endif
    serve()
#if defined(MUTANT_HEADER_READ_WITHOUT_ROLE)
  :: READY(cursor) ->
    s = cursor;
    read_header(s);
    atomic { role == 0 -> role = 1 };
    if
    :: s != cursor || !READY(s) -> goto release_role
    :: else
    fi;
    route(s)
#else
#if defined(MUTANT_NO_ROLE)
  :: true ->
#elif defined(STATIC_ROUTER)
  :: me == 0 ->
#else
  :: atomic { role == 0 -> role = 1 } -> // one compare-and-swap; if it fails, the dispatcher serves its inbox
#endif
#if defined(MUTANT_SCAN_ANY_SLOT)
    if
    :: READY(0) -> s = 0
    :: !READY(0) && READY(1) -> s = 1
    :: else -> goto release_role
    fi;
#elif defined(MUTANT_RX_READ_BEFORE_BIT)
    s = cursor;
    if
    :: rx[s]
    :: else -> goto release_role
    fi;
    if
    :: !IS_OUTSTANDING(s)
    :: else -> goto release_role
    fi;
#else
    s = cursor;
    if
    :: READY(s)
    :: else ->
#ifdef RESYNC
      if // looks at one slot
      :: STOPS(cursor) -> goto release_role
      :: !STOPS(cursor) && !seen -> // pass over empty slots; stop at the first slot that is not empty
        if
        :: found == NSLOTS -> found = 0; goto release_role
#ifdef MUTANT_RESYNC_WITHOUT_REREAD
        :: found < NSLOTS && READY((cursor + found) % NSLOTS) -> back = found
#else
        :: found < NSLOTS && READY((cursor + found) % NSLOTS) -> seen = 1; goto search_again
#endif
        :: found < NSLOTS && STOPS((cursor + found) % NSLOTS) -> found = 0; goto release_role
        :: else -> found++; goto search_again
        fi
      :: !STOPS(cursor) && seen -> // a later slot is filled: read the skipped slots again
        if
        :: back == found
        :: back < found && READY((cursor + back) % NSLOTS)
        :: else -> back++; goto search_again
        fi
      fi;
      atomic { s = (cursor + back) % NSLOTS; found = 0; seen = 0; back = 0 }
#else
      goto release_role
#endif
    fi;
#endif
    read_header(s);
    route(s)
#endif
  od;
#ifdef RESYNC
search_again:
  atomic { s = 0; role = 0 };
  goto end_poll;
#endif
#ifdef STUCK
end_stuck:
  false;
#endif
release_role:
  atomic { s = 0; f = 0; id = 0; role = 0 };
end_wait:
  if // wait for a change instead of claiming again
  :: inbox[me] ? s -> goto serve_one
#if defined(STATIC_ROUTER)
  :: me == 0 && READY(cursor) -> goto end_poll
#else
  :: READY(cursor) -> goto end_poll
#endif
#ifdef RESYNC
  :: READY((cursor + 1) % NSLOTS) && !IS_OUTSTANDING(cursor) -> goto end_poll
#endif
#ifdef MUTANT_SCAN_ANY_SLOT
  :: READY(0) || READY(1) -> goto end_poll
#endif
  fi
}

active proctype consumer() {
  byte s;
  byte id;
#ifdef STUCK
end_harvest:
#endif
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
      g_answered[id] = 1;
      g_open_of_0 = g_open_of_0 - (OWNER(function_of[s]) == 0 -> 1 : 0)
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

#ifdef STUCK
active proctype monitor() {
end_watch:
  timeout -> assert(g_open_of_0 == 0) // S5: a stuck dispatcher does not delay the accepted requests of others
}
#endif
