/* SPDX-License-Identifier: Apache-2.0 */
/* One slot of the pipeline on an external ring, with two requests, one after the other (request_phase in
 * lib/qec/pipeline/pipeline_ring.h).
 *
 * A worker calls the CPU stage until it answers or defers (poll mode). Two threads call complete_deferred(slot) at any
 * time after a CPU stage has handed its request out. A stop comes at any time, and does not wait for any of them. Each
 * claim is one compare-and-swap. The dispatcher's job is open or answered; deferred_job.pml has its own steps.
 *
 * R1  each request is answered once
 * R2  complete_deferred answers a request only while its CPU stage runs or has deferred it
 * R3  the CPU stage is not called for a request that another thread has answered (a stop excepted)
 * R4  who answers uses the slot while it has that request
 * R5  each request has one completion, after its answer
 *
 * Mutants: MUTANT_OFFER_UNCLAIMED, MUTANT_WITHDRAW_UNCLAIMED, MUTANT_READ_BEFORE_CLAIM, MUTANT_NO_TAKE_BACK,
 * MUTANT_COMPLETES_HELD, MUTANT_NO_GENERATION, MUTANT_TAKES_BACK_FIRST. */

mtype = { none, held, completable, given_up };

mtype phase = none;     /* the state word: phase and generation */
byte generation = 0;
byte job = 0;           /* the dispatcher's open job; 0: none */
byte in_slot = 0;       /* the request whose bytes are in the slot */
byte queue = 0;         /* the request in the worker's queue */
byte accepted = 0;
bool stopping = false, dispatcher_stopped = false;
byte answers[3], completions[3];
bool by_stop[3], handed_out[3];
byte ended = 0;

inline claim(g, from, to, won) {
  atomic {
#ifdef MUTANT_NO_GENERATION
    won = (phase == from);
#else
    won = (phase == from && generation == g);
#endif
    if
    :: won -> phase = to
    :: else
    fi
  }
}

inline answer_job(g) { answers[g]++; assert(answers[g] == 1) /* R1 */; job = 0 }

inline complete(g) { assert(answers[g] == 1 && completions[g] == 0) /* R5 */; completions[g]++ }

/* After a claim: the frame, cudaq_host_complete_deferred, the completion. */
inline publish(g) {
  assert(in_slot == g);  /* R4 */
  atomic {
    if
    :: job == g -> answer_job(g)
    :: else
    fi
  }
  atomic { complete(g) }
}

proctype ring() {
  byte g = 1;
  do
  :: g <= 2 && !stopping ->
    in_slot = g;
    atomic {  /* one step of the dispatcher's thread, which a stop waits for */
      if
      :: stopping -> break
      :: else -> job = g; generation = g; phase = held; queue = g; accepted = g
      fi
    };
    answers[g] == 1;
    if
    :: by_stop[g] -> break  /* the slot keeps it: no new request before the next start */
    :: else -> g++
    fi
  :: g > 2 || stopping -> break
  od;
  dispatcher_stopped = true
}

proctype worker() {
  byte g, polls;
  bool won;
  do
  :: atomic { queue != 0 -> g = queue; queue = 0 };
    polls = 0;
    do
    :: stopping ->  /* not ready: SHUTTING_DOWN */
      claim(g, held, none, won);
      if
      :: won -> publish(g)
      :: else
      fi;
      break
    :: polls < 2 ->
      polls++;
      atomic {
#ifdef MUTANT_OFFER_UNCLAIMED
        phase = completable; won = true;
#else
        claim(g, held, completable, won);
#endif
        assert(!won || answers[g] == 0 || by_stop[g])  /* R3 */
      };
      if
      :: !won -> break
      :: else
      fi;
      if  /* the CPU stage */
      :: handed_out[g] = true
      :: skip
      fi;
      if
      :: handed_out[g] -> break  /* DEFERRED_COMPLETION */
      :: polls < 2 ->  /* no answer yet */
#ifdef MUTANT_WITHDRAW_UNCLAIMED
        phase = held; won = true;
#else
        claim(g, completable, held, won);
#endif
        if
        :: won
        :: else -> break
        fi
      :: skip ->  /* a result */
        claim(g, completable, none, won);
        if
        :: won -> publish(g)
        :: else
        fi;
        break
      fi
    od
  :: dispatcher_stopped && queue == 0 -> break
  od;
  ended++
}

proctype completer() {
  byte g;
  mtype seen;
  bool won = false;
  (handed_out[1] || handed_out[2] || dispatcher_stopped);
  do
  :: atomic { g = generation; seen = phase };
    if
    :: seen == completable ->
#ifdef MUTANT_READ_BEFORE_CLAIM
      assert(in_slot == g);  /* R4 */
#endif
      claim(g, completable, none, won)
#ifdef MUTANT_COMPLETES_HELD
    :: seen == held && handed_out[1] ->
      atomic { claim(g, held, none, won); assert(!won) }  /* R2 */
#endif
    :: else -> break  /* std::logic_error, or nothing after a stop */
    fi;
    if
    :: won -> publish(g); break
    :: else
    fi
  od;
  ended++
}

inline take_back() {
  do
  :: atomic { g = generation; seen = phase };
    if
    :: seen == held -> claim(g, held, none, won)
    :: seen == completable -> claim(g, completable, given_up, won)
    :: else -> break
    fi;
    if
    :: won -> complete(g); break
    :: else
    fi
  od
}

proctype stopper() {
  byte g;
  mtype seen;
  bool won = false;
  stopping = true;
#ifdef MUTANT_TAKES_BACK_FIRST
  take_back();
#endif
  atomic {  /* the dispatcher's stop */
    if
    :: job != 0 -> by_stop[job] = true; answer_job(job)
    :: else
    fi
  };
  dispatcher_stopped;
  queue = 0;
#if !defined(MUTANT_NO_TAKE_BACK) && !defined(MUTANT_TAKES_BACK_FIRST)
  take_back();
#endif
  ended++
}

init {
  byte g = 1;
  atomic { run ring(); run worker(); run completer(); run completer(); run stopper() }
  ended == 4;
  do
  :: g <= accepted -> assert(answers[g] == 1 && completions[g] == 1) /* R1, R5 */; g++
  :: else -> break
  od
}
