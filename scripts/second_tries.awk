# SPDX-License-Identifier: Apache-2.0
# Passes on what ctest prints with --repeat until-pass:2. Names before its closing lines the tests that passed only at
# their second try. Exits with 1 if there are more than `most` of them, or if a sanitizer reported in one: a report is a
# proof, however seldom it appears.
match($0, /Test +#[0-9]+: [^ ]+/) {
  test = substr($0, RSTART, RLENGTH)
  sub(/^Test +#[0-9]+: /, "", test)
  if (/\*\*\*/ && !/\*\*\*Skipped/)
    failed[test] = 1
  else if (test in failed)
    second[test] = 1
}
/WARNING: ThreadSanitizer|ERROR: (Address|Leak)Sanitizer|: runtime error: / { reported[test] = 1 }
/^[0-9]+% tests passed, / {
  for (test in second) {
    print "Passed at the second try only: " test (test in reported ? ", but a sanitizer reported: this run fails" : "")
    refused += test in reported
    ++number
  }
  if (number > most) {
    print number " tests passed at the second try only: more than " most ", this run fails"
    ++refused
  }
}
{ print; fflush() }
END { exit refused > 0 }
