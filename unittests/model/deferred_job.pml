/* SPDX-License-Identifier: Apache-2.0 */
/* One job whose handler may defer its answer (lib/shared_ring/job_table.h, job_phase).
 *
 * One thread runs the handler. The handler defers or gives its own answer. Two completers try to answer the job, each
 * before, while or after the handler returns. A stop gives the job up at some moment after the handler has returned.
 * Every claim is one compare-and-swap.
 *
 * J1  the job is published exactly once
 * J2  the job is not published before the handler returns: a published slot may be refilled while the handler reads it
 * J3  an accepted completion is the one that was published; a refused completion was not published
 * J4  if the handler defers and a completer answers, the job is published
 *
 * Mutants: MUTANT_EARLY_PUBLISHES, MUTANT_NO_PASS_ON, MUTANT_CLAIM_BY_TEST_AND_STORE, MUTANT_OWN_ANSWER_UNCLAIMED. */

mtype = { running, deferred, storing_completion, completion_stored, completer_publishes, completing, done };

mtype phase = running;
bool handler_returned = false;
bool handler_defers;
byte published = 0;
byte published_by = 0;  /* 1, 2: completer; 3: the stop; 4: the handler's own answer */
byte early_by = 0;      /* the completer whose answer is in the record */
bool accepted[3];
byte finished = 0;

inline claim(from, to, won) {
#ifdef MUTANT_CLAIM_BY_TEST_AND_STORE
  won = (phase == from);
  if
  :: won -> phase = to
  :: else
  fi
#else
  atomic {
    won = (phase == from);
    if
    :: won -> phase = to
    :: else
    fi
  }
#endif
}

inline publish(who) {
  assert(handler_returned);  /* J2 */
  atomic { published++; assert(published == 1); published_by = who }  /* J1 */
  phase = done
}

proctype handler() {
  bool won;
  if  /* its own answer together with completers breaks its contract; the rules must hold all the same */
  :: handler_defers = true
  :: handler_defers = false
  fi;
  handler_returned = true;  /* does not read the slot after this */
  if
  :: handler_defers -> claim(running, deferred, won)
#ifdef MUTANT_OWN_ANSWER_UNCLAIMED
  :: !handler_defers -> won = true
#else
  :: !handler_defers -> claim(running, completing, won)
#endif
  fi;
  if
  :: won && !handler_defers -> publish(4)
  :: won && handler_defers
  :: !won ->
#ifdef MUTANT_NO_PASS_ON
    publish(early_by)
#else
    claim(storing_completion, completer_publishes, won);
    if
    :: won
    :: else -> publish(early_by)
    fi
#endif
  fi;
  finished++
}

proctype completer(byte me) {
  bool won, mine = false, over = false;
  claim(deferred, completing, mine);
  if
  :: mine
  :: else ->
    claim(running, storing_completion, won);
    if
    :: won ->
#ifdef MUTANT_EARLY_PUBLISHES
      mine = true;
      phase = completing
#else
      early_by = me;
      claim(storing_completion, completion_stored, won);
      if
      :: won -> over = true; accepted[me] = true
      :: else -> claim(completer_publishes, completing, mine)
      fi
#endif
    :: else -> claim(deferred, completing, mine)
    fi
  fi;
  if
  :: mine && !over -> publish(me); accepted[me] = true
  :: else
  fi;
  finished++
}

proctype stopper() {
  bool mine = false;
  handler_returned;  /* a stop first waits for the thread */
  claim(deferred, completing, mine);
  if
  :: mine -> publish(3)
  :: else
  fi;
  finished++
}

init {
  atomic { run handler(); run completer(1); run completer(2); run stopper() }
  finished == 4;
  assert(published == 1);  /* J1, J4 */
  assert(!(accepted[1] && accepted[2]));  /* J3 */
  assert(!accepted[1] || published_by == 1);  /* J3 */
  assert(!accepted[2] || published_by == 2);  /* J3 */
  assert(published_by >= 3 || accepted[published_by])  /* J3 */
}
