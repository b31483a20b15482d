/* SPDX-License-Identifier: Apache-2.0 */
/* A ring whose requests lie in device memory (docs/ring_protocol.md section 13): a producer, a device, a consumer.
 *
 * The producer's stores to device memory go through a write-combining buffer. Its lines leave in any order, at any
 * time, or not at all before a fence (`eager` is false). The device's stores are seen in their order. They go to
 * device memory (rx, count) and to host memory (tx, lap, answers).
 *
 * The producer is the handle, or with STATELESS the slot helpers, which read rx across the bus. With MIXED the first
 * lap of the ring is sent by the helpers, before the handle is opened. DROP: the device drops some requests.
 *
 * Q1  a request that the device takes is the next one of its slot, and whole
 * Q2  a frame is not written while the device reads the one before it, and no answer is overwritten
 * Q3  every request is answered once or dropped once: the model does not stop before (spin: invalid end state)
 *
 * Mutants: MUTANT_NO_FENCE_BEFORE_FLAG, MUTANT_NO_FENCE_AFTER_FLAG, MUTANT_NO_LAP, MUTANT_LAP_BEFORE_RX,
 * MUTANT_DROP_WITHOUT_LAP, MUTANT_TRUSTS_TX_ALONE, MUTANT_TRUSTS_LAP_ALONE, MUTANT_BASE_FROM_LAP (the handle takes the
 * lap that it finds for the number of all laps so far). REACH_*: a situation that must occur. */

#ifndef NSLOTS
#define NSLOTS 2
#endif
#ifndef NREQ
#define NREQ 6
#endif

/* device memory */
bool rx[NSLOTS];
byte frame[NSLOTS];    /* number of the request, 0: none */
byte count[NSLOTS];
/* host memory */
bool tx[NSLOTS];
byte lap[NSLOTS];
byte answered[NSLOTS]; /* number in the answer's frame */
/* the producer's write-combining buffer */
bool holds_frame[NSLOTS];
byte held_frame[NSLOTS];
bool holds_flag[NSLOTS];
bool fencing = false;
bool eager;

byte collected[NSLOTS]; /* answers that the producer knows of */
byte closed = 0;        /* requests that are collected or dropped */
byte sent = 0;
bool reading[NSLOTS];   /* the device uses the frame */

inline frame_leaves(i) {
  holds_frame[i] && (eager || fencing) ->
    assert(!reading[i]); /* Q2 */
    frame[i] = held_frame[i];
    holds_frame[i] = false
}

proctype buffer() {
end:
  do
  :: atomic { frame_leaves(0) }
  :: atomic { holds_flag[0] && (eager || fencing) -> rx[0] = true; holds_flag[0] = false }
#if NSLOTS > 1
  :: atomic { frame_leaves(1) }
  :: atomic { holds_flag[1] && (eager || fencing) -> rx[1] = true; holds_flag[1] = false }
#endif
  od
}

#if NSLOTS > 1
#define EMPTY (!holds_frame[0] && !holds_flag[0] && !holds_frame[1] && !holds_flag[1])
#else
#define EMPTY (!holds_frame[0] && !holds_flag[0])
#endif

inline fence() {
  fencing = true;
  EMPTY;
  fencing = false
}

/* Both flags are 0, rx read first. A read across the bus sends the line before it: it sees the reader's own store. */
inline wait_for_flags(i) {
  !rx[i] && !holds_flag[i];
  !tx[i]
}

proctype producer() {
  byte n = 1, i = 0;
  byte laps[NSLOTS]; /* how often the slot is given back once it is free */
  do
  :: n > NREQ -> break
  :: n <= NREQ ->
    i = (n - 1) % NSLOTS;
#if defined(STATELESS)
    wait_for_flags(i);
#else
    if
#ifdef MIXED
    :: n <= NSLOTS -> wait_for_flags(i)
    :: n > NSLOTS && n <= 2 * NSLOTS -> /* the first lap of the handle */
#else
    :: n <= NSLOTS ->
#endif
      do
      :: wait_for_flags(i);
#ifdef MUTANT_BASE_FROM_LAP
        laps[i] = lap[i]; break
#else
        laps[i] = count[i];
        if
        :: lap[i] == laps[i] -> break
        :: lap[i] != laps[i] ->
#ifdef REACH_LATE_LAP
          assert(false); /* reached */
#endif
          lap[i] == laps[i]
        fi
#endif
      od
    :: else ->
#ifdef MUTANT_TRUSTS_TX_ALONE
      collected[i] == (n - 1) / NSLOTS;
      !tx[i]
#else
      lap[i] == laps[i];
#ifndef MUTANT_TRUSTS_LAP_ALONE
      !tx[i]
#endif
#endif
    fi;
#endif
    atomic { held_frame[i] = n; holds_frame[i] = true };
#ifndef MUTANT_NO_FENCE_BEFORE_FLAG
    fence();
#endif
    holds_flag[i] = true;
#ifndef MUTANT_NO_FENCE_AFTER_FLAG
    fence();
#endif
    atomic { laps[i]++; sent = n; n++ }
  od
}

inline give_back(i) {
#ifdef MUTANT_LAP_BEFORE_RX
  count[i]++;
  lap[i] = count[i];
  rx[i] = false
#else
  count[i]++;
  rx[i] = false;
#ifndef MUTANT_NO_LAP
#ifdef REACH_REFILLED_BEFORE_THE_LAP
  assert(!rx[i]); /* reached */
#endif
  lap[i] = count[i]
#endif
#endif
}

inline drop(i) {
#ifdef MUTANT_DROP_WITHOUT_LAP
  rx[i] = false;
#else
  give_back(i);
#endif
  closed++
}

proctype device() {
  byte c = 0, expected = 1;
  do
  :: expected > NREQ -> break
  :: expected <= NREQ ->
    atomic { rx[c] -> reading[c] = true };
    assert(frame[c] == expected); /* Q1 */
    if
#ifdef DROP
    :: expected % 3 == 2 -> reading[c] = false; drop(c)
    :: expected % 3 != 2 ->
#else
    :: true ->
#endif
      assert(!tx[c]); /* Q2 */
      answered[c] = expected;
      reading[c] = false;
      tx[c] = true;
      give_back(c)
    fi;
    atomic { c = (c + 1) % NSLOTS; expected++ }
  od
}

inline take(i) {
  assert(answered[i] > before[i]); /* Q3 */
  before[i] = answered[i];
  atomic { collected[i]++; tx[i] = false; closed++ }
}

proctype consumer() {
  byte before[NSLOTS];
  do
  :: closed == NREQ -> break
  :: tx[0] -> take(0)
#if NSLOTS > 1
  :: tx[1] -> take(1)
#endif
  od
}

init {
  atomic {
    if
    :: eager = true
    :: eager = false
    fi;
    run buffer();
    run producer();
    run device();
    run consumer()
  }
}
