/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share a producer's handle (lib/ring/producer_core.h): who signals the committed requests.
 *
 * Each thread claims a number, commits it, and adds to `arrivals`. The thread that found 0 there signals, in the order
 * of the claims, all requests that are committed, until no arrival is new.
 *
 * A frame leaves the thread's write-combining buffer at any time, but not later than a fence of that thread.
 *
 * H0  the frame of a signalled request has left its thread's buffer
 * H1  requests are signalled in the order of their claims, by one thread at a time
 * H2  at the end every committed request is signalled
 *
 * Mutants: MUTANT_NO_FENCE_BEFORE_MARK, MUTANT_SIGNALS_ITS_OWN, MUTANT_ONE_ROUND (the arrivals during the round are
 * not looked at again), MUTANT_ARRIVES_FIRST (before the request is marked as committed). REACH_*: a situation that
 * must occur. */

#ifndef THREADS
#define THREADS 3
#endif
#ifndef EACH
#define EACH 2
#endif
#define ALL (THREADS * EACH)

byte claimed = 0, signalled = 0, arrivals = 0, finished = 0;
bool committed[ALL + 1];
bool left[ALL + 1]; /* its frame is in the ring */
byte signalling = 0;

inline signal_all() {
  atomic { signalling++; assert(signalling == 1) }; /* H1 */
  p = signalled;
  do
  :: committed[p] ->
    assert(p == signalled); /* H1 */
    assert(left[p]); /* H0 */
    signalled++;
    p++
  :: !committed[p] -> break
  od;
  signalling--
}

proctype thread() {
  byte mine, n, p, before, seen;
  for (n : 1 .. EACH) {
    atomic { mine = claimed; claimed++ };
#ifdef MUTANT_ARRIVES_FIRST
    atomic { before = arrivals; arrivals++ };
#else
#ifndef MUTANT_NO_FENCE_BEFORE_MARK
    left[mine] = true;
#endif
    committed[mine] = true;
    left[mine] = true;
#ifdef MUTANT_SIGNALS_ITS_OWN
    assert(mine == signalled); /* H1 */
#endif
    atomic { before = arrivals; arrivals++ };
#endif
    if
    :: before != 0 ->
#ifdef REACH_LEFT_TO_ANOTHER
      assert(false); /* reached */
#endif
      skip
    :: before == 0 ->
      seen = 1;
      do
      :: signal_all();
#ifdef MUTANT_ONE_ROUND
        atomic { arrivals = 0; break }
#else
        atomic {
          arrivals = arrivals - seen;
          seen = arrivals
        };
        if
        :: seen == 0 -> break
        :: seen != 0
        fi
#endif
      od
    fi;
#ifdef MUTANT_ARRIVES_FIRST
    left[mine] = true;
    committed[mine] = true;
#endif
  };
  atomic {
    finished++;
    if
    :: finished == THREADS -> assert(signalled == ALL) /* H2 */
    :: else
    fi
  }
}

init {
  byte t;
  atomic {
    for (t : 1 .. THREADS) {
      run thread()
    }
  }
}
