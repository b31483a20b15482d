/* SPDX-License-Identifier: Apache-2.0 */
/* One slot of the pipeline on an external ring, with two requests, one after the other (request_phase in
 * lib/qec/pipeline/pipeline_ring.h). The producer writes the next request as soon as the last one is answered, also
 * while a stop answers; a third one is never accepted.
 *
 * A worker calls the CPU stage until it answers or defers (poll mode). Two threads call complete_deferred(slot) at any
 * time after a CPU stage has handed its request out. The GPU stage may never return. A stop comes at any time, and
 * does not wait for a stage: it sets give_up, answers what is open, stops the dispatcher, which answers what was
 * accepted since, and takes that back. Each claim is one compare-and-swap. The dispatcher's job is open or answered;
 * deferred_job.pml has its own steps.
 *
 * One assumption about time: a thread that has claimed a request finds its frame before the dispatcher's stop ends. In
 * between it runs no code of the program, and the stop waits for half a second. A CPU stage may run longer: what it
 * writes then is the program's concern (pipeline.h). After that the thread may lose its core and never go on.
 *
 * So an answer needs two claims: that of the slot, before the frame is found (else MUTANT_READ_BEFORE_CLAIM), and that
 * of the job, which a stop can win from a thread that has lost its core (else MUTANT_ONE_CLAIM).
 *
 * R1  each request is answered once
 * R2  complete_deferred answers a request only while its CPU stage runs or has deferred it
 * R3  the CPU stage is not called for a request that is answered
 * R4  who answers uses the slot while it has that request
 * R5  each request has one completion, after its answer; if the thread that claimed it has lost its core, none or one
 *
 * Mutants: MUTANT_OFFER_UNCLAIMED, MUTANT_WITHDRAW_UNCLAIMED, MUTANT_READ_BEFORE_CLAIM, MUTANT_NO_TAKE_BACK,
 * MUTANT_COMPLETES_HELD, MUTANT_NO_GENERATION, MUTANT_TAKES_BACK_FIRST, MUTANT_DISPATCHER_ANSWERS_FIRST,
 * MUTANT_GIVES_UP_LAST, MUTANT_STAGE_BEFORE_GIVE_UP, MUTANT_ONE_CLAIM. */

mtype = { none, held, completable, given_up };

mtype phase = none;     /* the state word: phase and generation */
byte generation = 0;
byte job = 0;           /* the dispatcher's open job; 0: none */
byte in_slot = 0;       /* the request whose bytes are in the slot */
byte queue = 0;         /* the request in the worker's queue */
byte accepted = 0;
byte finding = 0;       /* threads that have claimed a request and have still to find its frame in the slot */
bool give_up = false, closed = false /* no request is accepted */, stopped = false /* the dispatcher */;
byte answers[4], completions[4];
bool handed_out[3], lost[3];
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

inline claim_answer(g, from, won) {
  atomic {
    claim(g, from, none, won);
    if
    :: won -> finding++
    :: else
    fi
  }
}

inline answer_job(g) { answers[g]++; assert(answers[g] == 1) /* R1 */; job = 0 }

inline complete(g) { assert(answers[g] == 1 && completions[g] == 0) /* R5 */; completions[g]++ }

/* After a claim: cudaq_host_complete_deferred, the completion. */
inline publish(g) {
  atomic {
    if
    :: job == g -> answer_job(g)
    :: else
    fi
  }
  atomic { complete(g) }
}

/* The same, with a frame that a stage has written. */
inline publish_frame(g) {
  atomic { assert(in_slot == g) /* R4 */; finding-- };
  publish(g)
}

/* The producer, and the dispatcher's thread, which a stop waits for. */
proctype ring() {
  byte g = 1;
  do
  :: g <= 2 ->
    in_slot = g;
    atomic {
      if
      :: closed -> break
      :: else -> job = g; generation = g; phase = held; queue = g; accepted = g
      fi
    };
    answers[g] == 1;
    g++
  :: g > 2 -> in_slot = g; break
  od
}

/* SHUTTING_DOWN, for a request that is not ready. */
inline finish_early(g, won) {
  claim(g, held, none, won);
  if
  :: won -> publish(g)
  :: else
  fi
}

proctype worker() {
  byte g, polls;
  bool won;
  do
  :: atomic { queue != 0 -> g = queue; queue = 0 };
    polls = 0;
    if
    :: skip
    :: break  /* the GPU stage never returns */
    fi;
    do
#ifdef MUTANT_STAGE_BEFORE_GIVE_UP
    :: polls != 0 && give_up -> finish_early(g, won); break
    :: polls == 0 || !give_up ->
#else
    :: give_up -> finish_early(g, won); break
    :: !give_up ->
#endif
      if
      :: polls < 2 ->  /* ready */
        polls++;
        atomic {
#ifdef MUTANT_OFFER_UNCLAIMED
          phase = completable; won = true;
#else
          claim(g, held, completable, won);
#endif
          assert(!won || answers[g] == 0)  /* R3 */
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
          claim_answer(g, completable, won);
          if
          :: won -> publish_frame(g)
          :: else
          fi;
          break
        fi
      :: skip  /* not ready */
      fi
    od
  :: stopped && queue == 0 -> break
  od;
  ended++
}

proctype completer() {
  byte g;
  mtype seen;
  bool won = false;
  (handed_out[1] || handed_out[2] || stopped);
  do
  :: atomic { g = generation; seen = phase };
    if
    :: seen == completable ->
#ifdef MUTANT_READ_BEFORE_CLAIM
      assert(in_slot == g);  /* R4 */
#endif
      claim_answer(g, completable, won)
#ifdef MUTANT_COMPLETES_HELD
    :: seen == held && handed_out[1] ->
      atomic { claim(g, held, none, won); assert(!won) }  /* R2 */
#endif
    :: else -> break  /* std::logic_error, or nothing after a stop */
    fi;
    if
    :: won -> publish_frame(g); break
    :: won -> atomic { assert(in_slot == g) /* R4 */; finding--; lost[g] = true }; break
    :: else
    fi
  od;
  ended++
}

inline give_up_requests() {
  queue = 0;
  do
  :: atomic { g = generation; seen = phase };
    if
    :: seen == held -> claim(g, held, none, won)
    :: seen == completable -> claim(g, completable, given_up, won)
    :: else -> break
    fi;
    if
    :: won ->
#ifdef MUTANT_TAKES_BACK_FIRST
      atomic { complete(g) }
#else
      publish(g)
#endif
      break
    :: else
    fi
  od
}

proctype stopper() {
  byte g;
  mtype seen;
  bool won = false;
#ifndef MUTANT_GIVES_UP_LAST
  give_up = true;
#endif
#ifndef MUTANT_DISPATCHER_ANSWERS_FIRST
  give_up_requests();
#endif
  closed = true;  /* the dispatcher's stop */
#ifdef MUTANT_ONE_CLAIM
  give_up_requests();
  job == 0;
#endif
  atomic {
    (finding == 0);
    if
    :: job != 0 -> answer_job(job)
    :: else
    fi
  };
  stopped = true;
  give_up = true;
#ifndef MUTANT_NO_TAKE_BACK
  give_up_requests();
#endif
  ended++
}

init {
  byte g = 1;
  atomic { run ring(); run worker(); run completer(); run completer(); run stopper() }
  ended == 4;
  do
  :: g <= accepted -> assert(answers[g] == 1 && (completions[g] == 1 || lost[g])) /* R1, R5 */; g++
  :: else -> break
  od
}
