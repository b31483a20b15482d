/* SPDX-License-Identifier: Apache-2.0 */
/* How a process sleeps until another one has changed a ring (lib/transport/shm/shm_bell.h).
 *
 * One sleeper, which is a server's loop or a client, and two wakers. A waker sets its flag, adds 2 to the word, and
 * wakes the sleeper if bit 0 was set. The sleeper raises bit 0, looks at all flags again, and sleeps if the word is
 * unchanged. Sleeps have no limit here, although those of the program do: so a wake-up that is lost is a state in
 * which the model stops.
 *
 * B1  every message is taken: the model does not stop before (spin: invalid end state)
 * B2  a sleeper is only woken by a waker that saw it announced
 *
 * The model is sequentially consistent. In the program, both read-modify-writes of the word have acquire and release
 * order: the one that comes second sees all that the other thread did before the first.
 *
 * Mutants: MUTANT_NO_SECOND_LOOK, MUTANT_LOOK_BEFORE_ANNOUNCE, MUTANT_RING_BEFORE_FLAG, MUTANT_SLEEP_WITHOUT_VALUE,
 * MUTANT_RING_WITHOUT_COUNT. REACH_*: a situation that must occur. */

#ifndef MESSAGES
#define MESSAGES 3
#endif
#define WAKERS 2

byte word = 0;         /* bit 0: sleeps; the rest counts rings */
bool flag[WAKERS];
bool asleep = false;   /* the sleeper is in the kernel */
byte taken = 0;

inline look(found) {
  found = false;
  if
  :: flag[0] -> found = true
  :: !flag[0] && flag[1] -> found = true
  :: else
  fi
}

inline announce(before) {
  atomic { before = word | 1; word = before }
}

proctype sleeper() {
  byte before;
  bool found;
  do
  :: taken == WAKERS * MESSAGES -> break
  :: taken < WAKERS * MESSAGES ->
    if
    :: atomic { flag[0] -> flag[0] = false; taken++ }
    :: atomic { flag[1] -> flag[1] = false; taken++ }
    :: atomic { !flag[0] && !flag[1] -> skip };
#ifdef MUTANT_LOOK_BEFORE_ANNOUNCE
      look(found);
      announce(before);
#else
      announce(before);
      look(found);
#endif
#ifdef MUTANT_NO_SECOND_LOOK
      found = false;
#endif
      if
      :: found
      :: !found ->
        atomic {                /* the kernel compares the word and queues the sleeper in one step */
          if
#ifdef MUTANT_SLEEP_WITHOUT_VALUE
          :: true -> asleep = true
#else
          :: word == before -> asleep = true
          :: else ->
#ifdef REACH_REFUSED
            assert(false)  /* reached */
#else
            skip
#endif
#endif
          fi
        };
        !asleep
      fi;
      atomic { word = word & 254 }
    fi
  od
}

inline ring(old) {
#ifdef MUTANT_RING_WITHOUT_COUNT
  old = word
#else
  atomic { old = word; word = word + 2 }
#endif
}

proctype waker(byte me) {
  byte sent = 0, old;
  do
  :: sent == MESSAGES -> break
  :: sent < MESSAGES ->
    !flag[me];                 /* the slot is free */
#ifdef MUTANT_RING_BEFORE_FLAG
    ring(old);
    flag[me] = true;
#else
    flag[me] = true;
    ring(old);
#endif
    if
    :: (old & 1) ->
      atomic {
        if
        :: asleep ->
          assert(word & 1);    /* B2 */
          asleep = false;
#ifdef REACH_WOKEN
          assert(false)  /* reached */
#endif
        :: else
        fi
      }
    :: else
    fi;
    sent++
  od
}

init {
  atomic { run sleeper(); run waker(0); run waker(1) }
}
