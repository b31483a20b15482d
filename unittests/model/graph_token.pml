/* SPDX-License-Identifier: Apache-2.0 */
/* The token of the graph schedulers (kernels/graphs/graph_rotation.h).
 *
 * A root launches the members one by one. Any launch may fail; the root then sets the token to END, and the members
 * end. With OWN_STREAMS, the host launches each member on its own stream, the token is free from the start, and a
 * failed launch sets the shutdown word.
 *
 * A launched member starts on the device at some time, or never: other work may occupy the device without limit. It
 * serves for a while. Then it passes the token to a member that is present, or frees the token if no other is present,
 * and relaunches itself. The relaunch may fail. If no other member is present, the member then continues to serve
 * without launches, until another member is present, or until all others are lost. The shutdown word is set at some
 * moment; only the member that serves reads it.
 *
 * T1  at most one member serves
 * T2  while a member is on the device, a member can serve: no member waits for a token that no member will move
 * T3  after a shutdown, every member on the device leaves
 *
 * Reachability: REACH_FREE_TAKEN, REACH_ALONE.
 * Mutants: MUTANT_KEEPS_TOKEN, MUTANT_OPEN_FROM_START, MUTANT_TAKES_BY_TEST_AND_STORE, MUTANT_PASSES_BLINDLY,
 * MUTANT_LOST_LEAVES_TOKEN. */

#ifndef MEMBERS
#define MEMBERS 3
#endif
#ifndef SHIFTS
#define SHIFTS 2 /* maximum of each member; the last one lasts until the shutdown */
#endif
#define FREE 100
#define SHUT 101
#define END 102

mtype = { away, there, lost };

byte token;
mtype presence[MEMBERS];
bool stop;
byte serving;
byte on_device; /* members that are on the device and have not left */
bool freed;     /* by a member that relaunched itself when no other was present */

inline take(won) {
#ifdef MUTANT_TAKES_BY_TEST_AND_STORE
  won = (token == FREE);
  if
  :: won -> token = me
  :: else
  fi
#else
  atomic {
    won = (token == FREE);
    if
    :: won -> token = me
    :: else
    fi
  }
#endif
}

inline find(what, found) {
  found = MEMBERS;
  peer = 0;
  do
  :: atomic { peer < MEMBERS && (peer == me || presence[peer] != what) -> peer++ }
  :: atomic { peer < MEMBERS && peer != me && presence[peer] == what -> found = peer; break }
  :: peer == MEMBERS -> break
  od;
  peer = 0
}

inline all_lost(answer) {
  answer = true;
  peer = 0;
  do
  :: atomic { peer < MEMBERS ->
    if
    :: peer != me && presence[peer] != lost -> answer = false
    :: else
    fi;
    peer++ }
  :: else -> break
  od;
  peer = 0
}

proctype member(byte me) {
  byte shifts, next, peer;
  bool won, alone, stranded;
comes:
  if
  :: true -> on_device++
  :: true -> goto end_never /* it never starts: other work occupies the device */
  fi;
  presence[me] = there;
waits:
  won = false;
  atomic { token == me || token == FREE || token == END };
  if
  :: token == END -> presence[me] = away; goto leaves
  :: token == me -> won = true
  :: else -> take(won)
  fi;
  if
  :: won
  :: else -> goto waits
  fi;
  atomic { serving++; assert(serving == 1); } /* T1 */
#ifdef REACH_FREE_TAKEN
  assert(!freed); /* reached */
#endif
  presence[me] = away;
  stranded = false;
serves:
  if
  :: stop ->
    serving--;
    token = END;
    goto leaves
  :: shifts < SHIFTS || stranded -> /* it has used its launches */
    find(there, next);
    if
    :: next < MEMBERS ->
      serving--;
      token = next;
      shifts++;
      if
      :: goto comes_back
      :: presence[me] = lost; goto leaves /* the relaunch has failed */
      fi
    :: next == MEMBERS && !stranded ->
#ifdef MUTANT_PASSES_BLINDLY
      serving--;
      token = (me + 1) % MEMBERS;
      shifts++;
      goto comes_back
#else
      if
      :: serving--;
        shifts++;
#ifndef MUTANT_KEEPS_TOKEN
        freed = true;
        token = FREE;
#endif
        goto comes_back
      :: stranded = true; /* the relaunch has failed */
#ifdef MUTANT_LOST_LEAVES_TOKEN
        serving--;
        presence[me] = lost;
        goto leaves
#endif
      fi
#endif
    :: next == MEMBERS && stranded ->
      all_lost(alone);
      if
      :: alone ->
#ifdef REACH_ALONE
        assert(false); /* reached */
#endif
        serving--;
        token = END;
        goto leaves
      :: else
      fi
    fi
  fi;
  goto serves;
comes_back:
  atomic { on_device--; next = 0; peer = 0; won = false };
  goto comes;
leaves:
  on_device--;
end_never:
  skip
}

proctype root() {
  byte k = 0;
  do
  :: k < MEMBERS ->
    if
    :: run member(k)
#ifdef OWN_STREAMS
    :: stop = true; break /* the launch has failed */
#else
    :: token = END; break /* the launch has failed */
#endif
    fi;
    k++
  :: else ->
#if !defined(MUTANT_OPEN_FROM_START) && !defined(OWN_STREAMS)
    token = FREE;
#endif
    break
  od
}

proctype stopper() {
  stop = true
}

init {
  byte k = 0;
  do
  :: k < MEMBERS -> presence[k] = away; k++
  :: else -> break
  od;
#if defined(MUTANT_OPEN_FROM_START) || defined(OWN_STREAMS)
  token = FREE;
#else
  token = SHUT;
#endif
  atomic {
    run root();
    run stopper()
  }
  timeout; /* no process can continue */
  assert(on_device == 0) /* T2, T3 */
}
