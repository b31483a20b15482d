/* SPDX-License-Identifier: Apache-2.0 */
/* A ring whose requests lie in device memory (docs/ring_protocol.md section 13): a producer, a device, a consumer.
 *
 * The producer's stores to device memory go through a write-combining buffer. Its lines leave in any order, at any
 * time, or not at all before a fence (`eager` is false). The device's stores go to device memory (rx, count) and to
 * host memory (tx, lap, answers). They are seen in any order, at any time; a fence of the device waits for them.
 *
 * The device posts the lap of a slot at once (after a second fence), or owes it: it is posted with the answer to the
 * next request, or alone while no request is there, or before the device stops (STOPS: it stops and starts again
 * between any two requests). Which of these it does is open in each step.
 *
 * The producer is the handle, or with STATELESS the slot helpers, which read rx and count across the bus. With MIXED
 * the first lap of the ring is sent by the helpers, before the handle is opened. DROP: the device drops some requests.
 *
 * Q1  a request that the device takes is the next one of its slot, and whole
 * Q2  a frame is not written while the device reads the one before it, and no answer is overwritten
 * Q3  every request is answered once or dropped once: the model does not stop before (spin: invalid end state)
 *
 * Mutants of the producer: MUTANT_NO_FENCE_BEFORE_FLAG, MUTANT_NO_FENCE_AFTER_FLAG, MUTANT_TRUSTS_TX_ALONE,
 * MUTANT_TRUSTS_LAP_ALONE, MUTANT_TRUSTS_BOTH_FLAGS (the helpers do not wait for the lap), MUTANT_BASE_FROM_LAP (the
 * handle takes the lap that it finds for the number of all laps so far).
 * Mutants of the device: MUTANT_NO_LAP, MUTANT_LAP_WITH_ITS_RX (no fence between them), MUTANT_COUNT_WITH_RX,
 * MUTANT_ANSWER_WITH_TX, MUTANT_LAP_NOT_POSTED_IDLE, MUTANT_LAP_FORGOTTEN_BY_A_DROP, MUTANT_LAP_FORGOTTEN_BY_A_STOP,
 * MUTANT_DROP_WITHOUT_LAP. REACH_*: a situation that must occur. */

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

/* stores of the device that are not seen yet */
bool to_count[NSLOTS], to_answer[NSLOTS], to_tx[NSLOTS], to_rx[NSLOTS], to_lap[NSLOTS];
byte next_count[NSLOTS]; /* count of the device's own view; the lap gets the same */
byte next_answer[NSLOTS];
byte count_of_lap[NSLOTS];

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

inline device_store_arrives(i) {
  if
  :: to_count[i] -> count[i] = next_count[i]; to_count[i] = false
  :: to_answer[i] -> answered[i] = next_answer[i]; to_answer[i] = false
  :: to_tx[i] -> tx[i] = true; to_tx[i] = false
  :: to_rx[i] -> rx[i] = false; to_rx[i] = false
  :: to_lap[i] -> lap[i] = count_of_lap[i]; to_lap[i] = false
  fi
}

#define WAITS(i) (to_count[i] || to_answer[i] || to_tx[i] || to_rx[i] || to_lap[i])
#if NSLOTS > 1
#define ALL_SEEN (!WAITS(0) && !WAITS(1))
#else
#define ALL_SEEN (!WAITS(0))
#endif

proctype device_bus() {
end:
  do
  :: atomic { WAITS(0) -> device_store_arrives(0) }
#if NSLOTS > 1
  :: atomic { WAITS(1) -> device_store_arrives(1) }
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

/* A read across the bus sends the line before it: it sees the reader's own store. Once rx is 0, the count is final. */
inline wait_for_count(i) {
  !rx[i] && !holds_flag[i];
#ifndef MUTANT_TRUSTS_BOTH_FLAGS
  laps[i] = count[i];
#ifdef REACH_LATE_LAP
  assert(lap[i] == laps[i]); /* reached */
#endif
  lap[i] == laps[i];
#endif
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
    wait_for_count(i);
#else
    if
#ifdef MIXED
    :: n <= NSLOTS -> wait_for_count(i)
    :: n > NSLOTS && n <= 2 * NSLOTS -> /* the first lap of the handle */
#else
    :: n <= NSLOTS ->
#endif
#ifdef MUTANT_BASE_FROM_LAP
      !rx[i] && !holds_flag[i];
      !tx[i];
      laps[i] = lap[i]
#else
      wait_for_count(i)
#endif
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

inline device_fence() { ALL_SEEN }

inline post_lap(i) {
  atomic { count_of_lap[i] = next_count[i]; to_lap[i] = true }
}

inline post_owed() {
  if
#ifndef MUTANT_NO_LAP
  :: owes -> post_lap(owed)
  :: !owes
#else
  :: true
#endif
  fi;
  owes = false
}

/* has_answer: the answer is written, and not seen yet. */
inline give_back(i, has_answer) {
#ifdef MUTANT_COUNT_WITH_RX
  device_fence();
#endif
  atomic { next_count[i]++; to_count[i] = true };
#ifndef MUTANT_COUNT_WITH_RX
  device_fence();
#endif
#ifdef MUTANT_ANSWER_WITH_TX
  to_answer[i] = has_answer;
#endif
  to_tx[i] = has_answer;
#ifdef MUTANT_LAP_FORGOTTEN_BY_A_DROP
  if
  :: has_answer -> post_owed()
  :: !has_answer
  fi;
#else
  post_owed();
#endif
  to_rx[i] = true;
#ifdef MUTANT_LAP_WITH_ITS_RX
  post_lap(i)
#else
  atomic { owes = true; owed = i };
  if
  :: has_answer /* the lap is owed */
  :: true -> device_fence(); post_owed()
  fi
#endif
}

inline drop(i) {
#ifdef MUTANT_DROP_WITHOUT_LAP
  to_rx[i] = true;
#else
  give_back(i, false);
#endif
  closed++
}

proctype device() {
  byte c = 0, expected = 1, owed = 0;
  bool owes = false;
  do
  :: expected > NREQ -> break
  :: expected <= NREQ ->
    do
    :: atomic { rx[c] && !to_rx[c] -> reading[c] = true }; break
#ifndef MUTANT_LAP_NOT_POSTED_IDLE
    :: owes && !(rx[c] && !to_rx[c]) -> device_fence(); post_owed()
#endif
#ifdef STOPS
    :: owes ->
#ifndef MUTANT_LAP_FORGOTTEN_BY_A_STOP
      device_fence();
      post_owed();
#endif
      owes = false
#endif
    od;
    assert(frame[c] == expected); /* Q1 */
    if
#ifdef DROP
    :: expected % 3 == 2 -> reading[c] = false; drop(c)
    :: expected % 3 != 2 ->
#else
    :: true ->
#endif
      assert(!tx[c] && !to_tx[c]); /* Q2 */
#ifdef REACH_A_LAP_WITH_THE_NEXT_ANSWER
      assert(!owes); /* reached */
#endif
      next_answer[c] = expected;
#ifndef MUTANT_ANSWER_WITH_TX
      to_answer[c] = true;
#endif
      reading[c] = false;
      give_back(c, true)
    fi;
    atomic { c = (c + 1) % NSLOTS; expected++ }
  od;
#ifndef MUTANT_LAP_FORGOTTEN_BY_A_STOP
  device_fence();
  post_owed()
#endif
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
    run device_bus();
    run consumer()
  }
}
