/* SPDX-License-Identifier: Apache-2.0 */
/* The graph workers of a host dispatcher: private queue, job table, pool of workers, job records, three ways to
 * complete (lib/host_dispatcher/graph_workers.h, graph_path.cpp; docs/graph_dispatch.md).
 *
 * One dispatcher puts requests into its private queue and launches graphs for them. A graph runs asynchronously and
 * reads its slot at any later moment. Each slot has a user that sends, collects and refills. A poll that finds nothing
 * waits.
 *
 * Configuration:
 *   LIBRARY, GRAPH, CALLER   who publishes; set one. LIBRARY with CALLER: CALLER for worker 0, LIBRARY for the others
 *   MARKERS                  IN_FLIGHT in tx, and rx is cleared at the launch; off: rx is cleared with the answer
 *   LAUNCH_FAIL              any launch may fail. The work that its hook has queued reads the slot at any later
 *                            moment; the worker rests until this work ends. With CALLER, the hook may have passed the
 *                            job to the caller. The caller completes it, or releases the worker while it rests
 *   LATE_FAIL                with GRAPH and MARKERS: any launch may report an error after its graph was launched. The
 *                            graph runs to its end, or is lost. Then the dispatcher looks at tx
 *   HANDS_OVER               with CALLER: any launch may be handed over. Another thread of the caller makes it, or it
 *                            fails there; the dispatcher does the rest of the launch after it has seen the result. The
 *                            graph may have ended by then, and its caller may have given the worker back
 *   STOP                     the intake closes at any moment. The dispatcher refuses the requests that wait for a
 *                            worker, and at the end the jobs of callers, which may be stuck
 *   NSLOTS NREQ NWORKERS
 *
 * W1  a request is answered exactly once, by its own answer
 * W2  a graph reads the request that it was launched for
 * W3  a worker is not launched while its graph runs or its caller uses it
 * W4  launches are in the order of the requests; with HANDS_OVER, their preparation by the dispatcher is
 * W5  a caller that reads a job record reads the job of the launch whose end it has seen
 * W6  every request is answered, every worker is idle at the end (after a stop: except workers of callers); no deadlock
 *
 * Mutants: MUTANT_*. REACH_*: a situation that must occur. */

#ifndef NSLOTS
#define NSLOTS 2
#endif
#ifndef NREQ
#define NREQ 5
#endif
#ifndef NWORKERS
#define NWORKERS 2
#endif
#if defined(CALLER) && defined(LIBRARY)
#define is_callers(w) ((w) == 0)
#elif defined(CALLER)
#define is_callers(w) true
#else
#define is_callers(w) false
#endif

#define EMPTY 0
#define ADDRESS 1
#define IN_FLIGHT 2
#define SENTINEL 3
#define RESPONSE 64
#define REFUSAL 128 /* an error frame */

mtype = { open, queued, running, storing_completion, completion_stored, completer_publishes, deferred, completing };

/* The ring. */
bit rx[NSLOTS];
byte tx[NSLOTS], rx_data[NSLOTS], tx_data[NSLOTS];

/* The job table. Phase and generation are one word. */
mtype phase[NSLOTS] = open;
byte generation[NSLOTS];
bit marked[NSLOTS];          /* rx was cleared at the launch */

/* The workers. */
chan queue = [NSLOTS] of { byte };
bit idle[NWORKERS] = 1;      /* the caller sets it, too */
bit in_use[NWORKERS];        /* private to the dispatcher: launched, and its end was not seen yet */
byte record_slot[NWORKERS], record_generation[NWORKERS], record_ticket[NWORKERS];
byte io_slot[NWORKERS];      /* the slot that the graph is launched for */
byte done_word[NWORKERS], launch_ticket[NWORKERS];
bit launched[NWORKERS], ready[NWORKERS];
bit failed[NWORKERS];        /* private to the dispatcher: the launch has failed */
byte tickets = 0;

/* Ghosts. */
byte answered[NREQ + 1];
byte taken = 0, closed = 0, last_launched = 0, callers_ended = 0;
byte meant_for[NWORKERS];    /* request of the launch */
bit graph_runs[NWORKERS], caller_uses[NWORKERS];
#ifdef LAUNCH_FAIL
bit hook_works[NWORKERS];    /* the work that the hook of a failed launch has queued runs */
byte hook_slot[NWORKERS], hook_generation[NWORKERS], hook_request[NWORKERS];
bit hinted[NWORKERS];        /* the hook has passed that job to the caller */
#else
#define hook_works launched  /* none */
#endif
#ifdef HANDS_OVER
bit handed[NWORKERS];        /* private to the dispatcher: the caller launches, and the result was not seen yet */
bit offered[NWORKERS];
mtype = { pending, made, refused };
mtype result[NWORKERS] = pending;
#define none_handed (!handed[0] && !handed[NWORKERS - 1])
#define is_back(w) (idle[w] && !handed[w])
#else
#define none_handed true
#define is_back(w) idle[w]
#endif
#ifdef MUTANT_STOP_WITHOUT_A_HANDED_LAUNCH
#undef none_handed
#define none_handed true
#endif
#ifdef MUTANT_BACK_BEFORE_THE_LAUNCH_IS_SEEN
#undef is_back
#define is_back(w) idle[w]
#endif
bool dispatcher_ended = false, closing = false;
#ifdef REACH_EARLY
bool early_seen = false;
#endif

#ifdef MUTANT_ANY_TICKET
#define has_ended(w) (done_word[w] != 0)
#elif defined(MUTANT_FREED_WHEN_PUBLISHED)
#define has_ended(w) (tx[record_slot[w]] != IN_FLIGHT)
#else
#define has_ended(w) (done_word[w] == record_ticket[w])
#endif
#ifdef MUTANT_RESTING_WORKER_IS_STARTED
#define can_start(w) (nempty(queue) && idle[w] && (!in_use[w] || failed[w]))
#else
#define can_start(w) (nempty(queue) && idle[w] && !in_use[w])
#endif
#ifdef MUTANT_ANSWERED_WHILE_THE_HOOK_READS
#define rested(w) (failed[w])
#elif defined(LATE_FAIL)
#define rested(w) (failed[w] && !hook_works[w] && !graph_runs[w])
#else
#define rested(w) (failed[w] && !hook_works[w])
#endif
#ifdef MUTANT_TAKES_WITHOUT_JOB
#define is_free(s) (phase[s] != queued)
#else
#define is_free(s) (phase[s] == open)
#endif

inline claim(s, g, from, to, won) {
#ifdef MUTANT_CLAIM_BY_TEST_AND_STORE
  won = (phase[s] == from && generation[s] == g);
  if
  :: won -> phase[s] = to
  :: else
  fi
#else
  atomic {
#ifdef MUTANT_COMPLETES_BY_SLOT
    won = (phase[s] == from);
#else
    won = (phase[s] == from && generation[s] == g);
#endif
    if
    :: won -> phase[s] = to
    :: else
    fi
  }
#endif
}

/* Called by the process that moved the job to phase completing, or that owned it alone. */
inline publish(s, what, flag) {
  tx_data[s] = what;
  atomic {
    assert(tx[s] == EMPTY || tx[s] == IN_FLIGHT);  /* W1 */
    tx[s] = flag
  }
  end_job(s)
}

inline end_job(s) {
#ifdef MUTANT_OPEN_BEFORE_RX
  phase[s] = open;
#endif
  if
  :: !marked[s] -> rx[s] = 0
  :: else
  fi;
  phase[s] = open
}

inline refuse(s) {
#ifdef MARKERS
  publish(s, REFUSAL + rx_data[s], SENTINEL)
#else
  publish(s, REFUSAL + rx_data[s], ADDRESS)
#endif
}

proctype user(byte s) {
  byte r = s + 1;
end:
  do
  :: r <= NREQ ->
    rx[s] == 0;
    tx[s] == EMPTY;
    rx_data[s] = r;
    rx[s] = 1;
end_unanswered: /* with STOP only: the dispatcher asserts that all requests it took are answered */
    (tx[s] == ADDRESS || tx[s] == SENTINEL);
    atomic {
      answered[r]++;
      assert(answered[r] == 1);  /* W1 */
      assert(tx_data[s] == RESPONSE + r || tx_data[s] == REFUSAL + r);  /* W1 */
      closed++
    }
    tx[s] = EMPTY;
    r = r + NSLOTS
  :: else -> break
  od
}

/* The device: one instance, one execution at a time. */
proctype graph(byte w) {
  byte s, what;
end:
  do
  :: launched[w] ->
    launched[w] = 0;
    s = io_slot[w];
    what = rx_data[s];
    assert(what == meant_for[w]);  /* W2 */
    tx_data[s] = RESPONSE + what;
#ifdef GRAPH
    atomic {
      assert(tx[s] == EMPTY || tx[s] == IN_FLIGHT);  /* W1 */
      tx[s] = ADDRESS
    }
#endif
    if
    :: is_callers(w) -> graph_runs[w] = 0; ready[w] = 1
    :: else -> atomic { graph_runs[w] = 0; done_word[w] = launch_ticket[w] }
    fi
#ifdef LATE_FAIL
  :: atomic { launched[w] && failed[w] -> launched[w] = 0; graph_runs[w] = 0 } /* lost */
#endif
  od
}

#ifdef LAUNCH_FAIL
/* Work that the hook of a failed launch has queued on the worker's stream. */
proctype hook(byte w) {
end:
  do
  :: hook_works[w] ->
    assert(rx_data[hook_slot[w]] == hook_request[w]);  /* W2 */
    hook_works[w] = 0
  od
}
#endif

/* As in deferred_job.pml: if a completion arrives before the launch has returned, the dispatcher publishes it. */
inline complete(s, g, what) {
  won = false;
  accepted = false;
  claim(s, g, deferred, completing, won);
  if
  :: won
  :: else ->
    claim(s, g, running, storing_completion, won);
    if
    :: won ->
      tx_data[s] = what;
      claim(s, g, storing_completion, completion_stored, accepted);
      if
      :: accepted -> won = false
      :: else -> claim(s, g, completer_publishes, completing, won)
      fi
    :: else -> claim(s, g, deferred, completing, won)
    fi
  fi;
  if
  :: won -> publish(s, what, ADDRESS); accepted = true
  :: else
  fi
}

/* The caller's CPU stage after its worker. It may complete a job a second time, long after the first completion. */
proctype caller(byte w) {
  byte s, g, what, old_s = 0, old_g = 0;
  bool won, accepted;
end:
  do
  :: ready[w] ->
    ready[w] = 0;
#ifdef STOP
    if
    :: true
    :: break /* stuck */
    fi;
#endif
    caller_uses[w] = 1;
    s = record_slot[w];
    g = record_generation[w];
    assert(closing || (rx_data[s] == meant_for[w] && generation[s] == g));  /* W5 */
    what = RESPONSE + meant_for[w];
    if
    :: old_g != 0 -> complete(old_s, old_g, 0); assert(!accepted)  /* W1: a late second completion is refused */
    :: true
    fi;
    if
    :: complete(s, g, what); caller_uses[w] = 0; idle[w] = 1
    :: caller_uses[w] = 0; idle[w] = 1; complete(s, g, what)
    fi;
    old_s = s;
    old_g = g
#ifdef LAUNCH_FAIL
  :: hinted[w] ->
    s = hook_slot[w];
    g = hook_generation[w];
    what = RESPONSE + hook_request[w];
    hinted[w] = 0;
    if
    :: complete(s, g, what)
    :: atomic { failed[w] -> idle[w] = 1 }
    :: true
    fi
#endif
  od
}

inline start_graph(w, of_slot, ticket) {
  atomic { meant_for[w] = rx_data[of_slot]; launch_ticket[w] = ticket; graph_runs[w] = 1; launched[w] = 1 }
}

#ifdef HANDS_OVER
/* A thread of the caller that makes the launches of a worker. */
proctype launcher(byte w) {
end:
  do
  :: offered[w] ->
    offered[w] = 0;
    if
    :: start_graph(w, io_slot[w], record_ticket[w]); result[w] = made
    :: result[w] = refused
    fi
  od
}
#endif

/* The launch of the job in slot s has succeeded. */
inline end_launch() {
#ifdef MARKERS
  rx[s] = 0;
  marked[s] = 1;
#endif
  g = generation[s];
  claim(s, g, running, deferred, won);
  if
  :: won
  :: else ->
#ifdef REACH_EARLY
    early_seen = true;
#endif
    claim(s, g, storing_completion, completer_publishes, won);
    if
    :: won
    :: else -> publish(s, tx_data[s], ADDRESS)
    fi
  fi
}

#ifdef HANDS_OVER
inline see_result(w) {
  s = record_slot[w];
  handed[w] = 0;
  if
  :: result[w] == made -> end_launch()
  :: result[w] == refused -> failed[w] = 1
  fi
}
#endif

inline launch(w) {
  queue?s;
  idle[w] = 0;
  in_use[w] = 1;
  assert(!graph_runs[w] && !caller_uses[w] && !hook_works[w]);  /* W3 */
  assert(rx_data[s] > last_launched);  /* W4: with one cursor the ids increase */
  last_launched = rx_data[s];
  phase[s] = running;
#ifdef MARKERS
  atomic { assert(tx[s] == EMPTY); tx[s] = IN_FLIGHT };
#endif
  io_slot[w] = s;
#ifndef MUTANT_RECORD_AFTER_LAUNCH
  record_slot[w] = s;
  record_generation[w] = generation[s];
#endif
  tickets++;
  record_ticket[w] = tickets;
  if
#ifdef LAUNCH_FAIL
  :: atomic {
      !hinted[w] -> /* at most one job at a time was passed to the caller */
      failed[w] = 1;
      hook_slot[w] = s;
      hook_generation[w] = generation[s];
      hook_request[w] = rx_data[s];
      hook_works[w] = 1;
      hinted[w] = is_callers(w)
    }
#endif
#ifdef LATE_FAIL
  :: start_graph(w, s, tickets); failed[w] = 1
#endif
#ifdef HANDS_OVER
  :: result[w] = pending; handed[w] = 1; offered[w] = 1
#endif
  :: true ->
    start_graph(w, s, tickets);
#ifdef MUTANT_RECORD_AFTER_LAUNCH
    record_slot[w] = s;
    record_generation[w] = generation[s];
#endif
    end_launch()
  fi
}

/* The work of the hook and the graph have ended: no process reads the slot any more. */
inline end_failed(w) {
  s = record_slot[w];
  g = record_generation[w];
  claim(s, g, running, completing, won);
  if
#if defined(LATE_FAIL) && !defined(MUTANT_FAILS_WITHOUT_A_LOOK)
  :: won && tx[s] != IN_FLIGHT -> end_job(s) /* the graph has answered it */
  :: won && tx[s] == IN_FLIGHT -> refuse(s)
#else
  :: won -> refuse(s)
#endif
  :: else -> /* the caller has answered it */
#ifdef REACH_FAILED_AND_COMPLETED
    assert(false); /* reached */
#endif
    claim(s, g, storing_completion, completer_publishes, won);
    if
    :: won
    :: else -> publish(s, tx_data[s], ADDRESS)
    fi
  fi;
#ifdef MUTANT_ANSWERED_WHILE_THE_HOOK_READS
  !hook_works[w];
#endif
  failed[w] = 0;
#ifndef MUTANT_FAILED_WORKER_IS_LOST
  in_use[w] = 0;
  idle[w] = 1
#endif
}

/* The end of a graph of a LIBRARY or GRAPH worker. */
inline collect(w) {
  s = record_slot[w];
  g = record_generation[w];
#ifdef GRAPH
  claim(s, g, deferred, completing, won);
  if
  :: won -> end_job(s)
  :: else
  fi;
#else
  claim(s, g, deferred, completing, won);
  assert(won && tx_data[s] == RESPONSE + meant_for[w]);  /* W2: the graph has written its frame */
  publish(s, tx_data[s], ADDRESS);
#endif
  in_use[w] = 0;
  idle[w] = 1
}

proctype dispatcher() {
  byte s, g, cursor = 0, w;
  bool won;
  do
  :: !closing && rx[cursor] == 1 && is_free(cursor) ->
    generation[cursor]++;
    phase[cursor] = queued;
    marked[cursor] = 0;
    taken++;
    queue!cursor;
    cursor = (cursor + 1) % NSLOTS
  :: can_start(0) -> launch(0)
  :: rested(0) -> end_failed(0)
  :: in_use[0] && !failed[0] && !is_callers(0) && has_ended(0) -> collect(0)
  :: in_use[0] && !failed[0] && is_callers(0) && is_back(0) -> in_use[0] = 0
#if NWORKERS > 1
  :: can_start(1) && !(idle[0] && !in_use[0]) -> launch(1)
  :: rested(1) -> end_failed(1)
  :: in_use[1] && !failed[1] && !is_callers(1) && has_ended(1) -> collect(1)
  :: in_use[1] && !failed[1] && is_callers(1) && is_back(1) -> in_use[1] = 0
#endif
#ifdef HANDS_OVER
  :: handed[0] && result[0] != pending -> see_result(0)
#if NWORKERS > 1
  :: handed[1] && result[1] != pending -> see_result(1)
#endif
#endif
#ifdef STOP
  :: !closing -> closing = true
  :: closing && nempty(queue) && in_use[0] && (NWORKERS == 1 || in_use[NWORKERS - 1]) -> /* the grace period is over */
    queue?s;
    phase[s] = completing;
#ifdef MARKERS
    tx[s] = IN_FLIGHT;
#endif
    refuse(s)
  :: closing && empty(queue) && none_handed && !graph_runs[0] && (NWORKERS == 1 || !graph_runs[NWORKERS - 1]) -> break
#endif
  :: taken == NREQ && empty(queue) && !in_use[0] && (NWORKERS == 1 || !in_use[NWORKERS - 1]) -> break
#ifdef REACH_EARLY
  :: early_seen -> assert(false)  /* reached */
#endif
#ifdef REACH_BACKLOG
  :: nempty(queue) && in_use[0] && in_use[NWORKERS - 1] -> assert(false)  /* reached */
#endif
  od;
#ifdef STOP
  w = 0;
  do
  :: w < NWORKERS && failed[w] -> rested(w); end_failed(w)
  :: w < NWORKERS && !failed[w] && in_use[w] && !is_callers(w) -> has_ended(w); collect(w)
  :: w < NWORKERS && !failed[w] && !(in_use[w] && !is_callers(w)) -> w++
  :: w == NWORKERS -> break
  od;
  assert(is_callers(0) || idle[0]);  /* W6 */
  assert(is_callers(NWORKERS - 1) || idle[NWORKERS - 1]);  /* W6 */
  s = 0;
  do
  :: s < NSLOTS ->
    g = generation[s];
    claim(s, g, deferred, completing, won);
    if
    :: won -> refuse(s)
    :: else
    fi;
    s++
  :: else -> break
  od;
#endif
  dispatcher_ended = true
}

init {
  byte i;
  atomic {
    run dispatcher();
    for (i : 0 .. NSLOTS - 1) {
      run user(i)
    }
    for (i : 0 .. NWORKERS - 1) {
      run graph(i);
#ifdef HANDS_OVER
      run launcher(i);
#endif
#ifdef LAUNCH_FAIL
      run hook(i);
#endif
      if
      :: is_callers(i) -> run caller(i)
      :: else
      fi
    }
  }
  dispatcher_ended;
  closed == taken; /* W6: otherwise an invalid end state */
#ifndef STOP
  assert(closed == NREQ)  /* W6 */
#endif
}
