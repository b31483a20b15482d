// SPDX-License-Identifier: Apache-2.0
//
// Model of one session between a requester that repeats and a server that executes each request once: the table of
// lib/session/request_state.h. The network loses and delays messages as it likes: a copy may come at any later time, or
// never, and so may an answer.
//
// The requester sends NREQ requests with the numbers 1 to NREQ, one after the other, each as often as COPIES says at
// most. After an answer, a refusal, or when it gives up, it sends the next one. What it learns of a request must be
// true: executed once with the answer of that execution, or not executed and never to be.
//
// The server remembers the last WINDOW numbers. A request that is executed may end without an answer (CLOSES). If it
// has no room for a new request it says so (-1011): then nothing is remembered. With REFUSES it may refuse one for
// good, as a decoder whose queue is full (5).
//
// Configuration (off by default):
//   NREQ COPIES WINDOW   requests, frames of each request, numbers that the server remembers
//   CLOSES REFUSES       see above
// Mutants: MUTANT_*; each must fail. REACH_*: its `reached` assertion must fail.

#ifndef NREQ
#define NREQ 3
#endif
#ifndef COPIES
#define COPIES 2
#endif
#ifndef WINDOW
#define WINDOW 2
#endif

#define UNSEEN 0
#define EXECUTING 1
#define ANSWERED 2
#define REFUSED 3
#define CLOSED 4
#define STALE 5 // a finding, not a state of a record

// What a message to the requester says
#define RESULT 1  // the answer of an execution
#define REFUSAL 2 // not executed, and never will be
#define NO_ROOM 3 // this frame was not executed
#define TOO_OLD 4 // perhaps executed

// The network
byte frames[NREQ + 1]; // copies that are on their way
byte in_flight;        // of all requests
chan answers = [1] of { byte, byte, byte }; // number, what, execution

// The server
byte state[WINDOW];
byte number_at[WINDOW];
byte kept[WINDOW]; // the execution whose answer is kept
byte newest;
byte executions;

// Ghosts
byte g_executed[NREQ + 1];  // how often
byte g_execution[NREQ + 1]; // its execution
bit g_refused[NREQ + 1];    // the requester knows that it was not executed, and sends another one in its place

inline reply(number, what, execution) {
  if
  :: nfull(answers) -> answers!number, what, execution
  :: true // lost
  fi
}

// A copy with this number has arrived.
inline look_up(number) {
  place = number % WINDOW;
  if
  :: number > newest -> found = UNSEEN
  :: number <= newest && newest - number >= WINDOW -> found = STALE
  :: number <= newest && newest - number < WINDOW ->
#ifdef MUTANT_SKIPPED_ARE_NOT_FORGOTTEN
    found = state[place]
#else
    found = (number_at[place] == number -> state[place] : UNSEEN)
#endif
  fi
}

inline begin(number) {
  if
  :: number > newest -> newest = number
  :: else
  fi;
  number_at[place] = number;
  state[place] = EXECUTING;
  executions++;
  g_executed[number]++;
  g_execution[number] = executions;
  assert(g_executed[number] == 1); // E1: a request is executed once
  assert(!g_refused[number])       // E2: what was refused is never executed
}

active proctype server() {
  byte n;
  byte place;
  byte found;
end_server:
  do
  :: atomic { // a frame arrives
      in_flight > 0 ->
      select(n: 1 .. NREQ);
      if
      :: frames[n] > 0 ->
        frames[n]--;
        in_flight--;
        look_up(n);
#ifdef REACH_STALE
        assert(found != STALE); // reached: a copy from before the window
#endif
#ifdef MUTANT_STALE_IS_NEW
        if
        :: found == STALE -> found = UNSEEN
        :: else
        fi;
#endif
#ifdef MUTANT_EXECUTING_IS_NEW
        if
        :: found == EXECUTING -> found = UNSEEN
        :: else
        fi;
#endif
#ifdef MUTANT_CLOSED_IS_NEW
        if
        :: found == CLOSED -> found = UNSEEN
        :: else
        fi;
#endif
        if
        :: found == UNSEEN -> // there is room
          begin(n)
        :: found == UNSEEN -> // there is none
#ifdef MUTANT_BUSY_OF_ALL_COPIES
          reply(n, REFUSAL, 0)
#else
          reply(n, NO_ROOM, 0)
#endif
#ifdef REFUSES
        :: found == UNSEEN -> // refused for good, and remembered
#ifndef MUTANT_REFUSAL_IS_FORGOTTEN
          if
          :: n > newest -> newest = n
          :: else
          fi;
          number_at[place] = n;
          state[place] = REFUSED;
#endif
          reply(n, REFUSAL, 0)
        :: found == REFUSED -> reply(n, REFUSAL, 0)
#endif
        :: found == ANSWERED ->
#ifdef REACH_REPEATED
          assert(false); // reached: a copy gets the kept answer
#endif
          reply(n, RESULT, kept[place])
        :: found == EXECUTING || found == CLOSED // nothing
        :: found == EXECUTING -> reply(n, NO_ROOM, 0) // as a decoder does, so that the copy keeps no slot
        :: found == STALE -> reply(n, TOO_OLD, 0)
        fi
      :: else
      fi;
      n = 0; place = 0; found = 0
    }
  :: atomic { // an execution ends, in any order
      select(n: 1 .. NREQ);
      place = n % WINDOW;
      if
      :: g_executed[n] > 0 && g_execution[n] != 0 ->
        found = g_execution[n];
        if
#ifdef MUTANT_ANSWER_BY_PLACE
        :: state[place] == EXECUTING -> // the place may be that of a newer number
#else
        :: state[place] == EXECUTING && number_at[place] == n ->
#endif
          if
          :: state[place] = ANSWERED; kept[place] = found; reply(n, RESULT, found)
#ifdef CLOSES
          :: state[place] = CLOSED
#endif
          fi
        :: else
        fi
      :: else
      fi;
      n = 0; place = 0; found = 0
    }
  od
}

active proctype requester() {
  byte id = 1;
  byte sent;
  byte from;
  byte what;
  byte execution;
  do
  :: id > NREQ -> break
  :: id <= NREQ && sent < COPIES -> // the first time, or again
    atomic {
      frames[id]++;
      in_flight++;
      sent++
    }
  :: id <= NREQ && sent > 0 -> // gives up, and sends the next one
    atomic { id++; sent = 0 }
  :: id <= NREQ && nempty(answers) ->
    atomic {
      answers?from, what, execution;
      assert(what != RESULT || g_execution[from] == execution); // E3: an answer is that of its request's execution
      if
      :: from != id // late
      :: from == id && what == RESULT -> id++; sent = 0
      :: from == id && what == REFUSAL ->
        assert(g_executed[id] == 0); // E2: what was refused was not executed
        g_refused[id] = 1;
        id++; sent = 0
      :: from == id && what == NO_ROOM // of this frame: it sends the same again
      :: from == id && what == TOO_OLD -> id++; sent = 0
      fi;
      from = 0; what = 0; execution = 0
    }
  od
}
