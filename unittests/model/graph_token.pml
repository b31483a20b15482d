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
 * One launched graph raises no flag (`silent_of` is the member that launched it). That it has ended is known when its
 * member is back on the device, because a relaunch waits for all graphs of the execution. After the grace period of the
 * stop, which is not modelled, the member that serves closes that request as soon as this is known. If the graph is its
 * own, it passes the token or frees it, and relaunches itself. A request of a member that is lost stays in its slot.
 *
 * T1  at most one member serves
 * T2  while a member is on the device, a member can serve: no member waits for a token that no member will move
 * T3  after a shutdown, every member on the device leaves, unless the member that launched the silent graph never comes
 *     back: the graph may still run
 * T4  the request of the silent graph is not answered before the graph has ended
 *
 * Reachability: REACH_FREE_TAKEN, REACH_ALONE, REACH_CLOSED.
 * Mutants: MUTANT_KEEPS_TOKEN, MUTANT_OPEN_FROM_START, MUTANT_TAKES_BY_TEST_AND_STORE, MUTANT_PASSES_BLINDLY,
 * MUTANT_LOST_LEAVES_TOKEN, MUTANT_WAITS_FOR_SIGNAL, MUTANT_CLOSES_EARLY. */

#ifndef MEMBERS
#define MEMBERS 3
#endif
#ifndef SHIFTS
#define SHIFTS 2 /* maximum of each member; the last one lasts until the shutdown */
#endif
#define FREE 100
#define SHUT 101
#define END 102
#define NONE 103

mtype = { away, there, lost };

byte token;
mtype presence[MEMBERS];
bool stop;
byte serving;
byte on_device; /* members that are on the device and have not left */
byte silent_of = NONE; /* launched the silent graph, whose request is open */
bool silent_used, silent_ended;
bool absent[MEMBERS]; /* never comes (back) */
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
  other = 0;
  do
  :: atomic { other < MEMBERS && (other == me || presence[other] != what) -> other++ }
  :: atomic { other < MEMBERS && other != me && presence[other] == what -> found = other; break }
  :: other == MEMBERS -> break
  od;
  other = 0
}

/* Closes the request of the silent graph if its end is known. */
inline close_silent() {
  if
  :: silent_of < MEMBERS && silent_of != me && presence[silent_of] == lost -> silent_of = NONE /* stays in its slot */
#ifdef MUTANT_CLOSES_EARLY
  :: silent_of < MEMBERS && silent_of != me && presence[silent_of] != lost ->
#else
  :: silent_of < MEMBERS && silent_of != me && presence[silent_of] == there ->
#endif
    assert(silent_ended); /* T4 */
#ifdef REACH_CLOSED
    assert(false); /* reached */
#endif
    silent_of = NONE
  :: else
  fi
}

inline all_lost(answer) {
  answer = true;
  other = 0;
  do
  :: atomic { other < MEMBERS ->
    if
    :: other != me && presence[other] != lost -> answer = false
    :: else
    fi;
    other++ }
  :: else -> break
  od;
  other = 0
}

proctype member(byte me) {
  byte shifts, next, other;
  bool won, alone, stranded;
comes:
  if
  :: true -> on_device++
  :: true -> absent[me] = true; goto end_never /* it never starts: other work occupies the device */
  fi;
  presence[me] = there;
waits:
  won = false;
end_waits_token: /* the assertion in init finds a wait that should end */
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
  if
  :: silent_of == me -> /* launched by an earlier execution of this member */
    assert(silent_ended); /* T4 */
    silent_of = NONE
  :: else
  fi;
serves:
  if
  :: !stop && !silent_used -> silent_used = true; silent_of = me
  :: stop ->
    close_silent();
    if
    :: silent_of == NONE ->
      serving--;
      token = END;
      goto leaves
    :: silent_of != NONE && silent_of != me -> /* it may still run: its member is not back */
#ifdef MUTANT_WAITS_FOR_SIGNAL
      false
#else
end_waits: /* without limit if that member never comes back */
      atomic { presence[silent_of] == there || presence[silent_of] == lost }
#endif
    :: silent_of == me -> /* of this execution */
#ifdef MUTANT_WAITS_FOR_SIGNAL
      false;
#endif
      find(there, next);
      if
      :: next < MEMBERS ->
        serving--;
        token = next;
        if
        :: goto comes_back
        :: presence[me] = lost; goto leaves
        fi
      :: next == MEMBERS && !stranded ->
        if
        :: serving--;
          freed = true;
          token = FREE;
          goto comes_back
        :: stranded = true
        fi
      :: next == MEMBERS && stranded -> /* its end will not be known: the request stays in its slot */
        silent_of = NONE;
        serving--;
        token = END;
        goto leaves
      fi
    fi
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
      :: alone && silent_of == NONE ->
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
  atomic {
    silent_ended = silent_ended || silent_of == me; /* the relaunch waits for it */
    on_device--; next = 0; other = 0; won = false
  };
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
  assert(on_device == 0 || (silent_of < MEMBERS && absent[silent_of])) /* T2, T3 */
}
