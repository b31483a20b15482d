# SPDX-License-Identifier: Apache-2.0
"""The words that neither texts (plain_english.py) nor names (plain_names.py) use, and which part of a file is text."""
import re

import tree

# Pattern of a word or phrase, in lower case: what to write instead.
WORDS = {
    r"behind": "'after' for time, 'below' or 'beyond' for place",
    r"in front of": "'before'",
    r"nobody|no one": "'no thread', 'no program', or who exactly",
    r"some(?:body|one)|any(?:body|one)|every(?:body|one)": "who exactly: 'another thread', 'the caller', 'each member'",
    r"whoever": "'the thread that', 'the caller that'",
    r"for ever|forever": "'without limit', 'until it is stopped'",
    r"he|him|his|himself|she|her|hers|herself": "'it' for a program, 'they' for a person",
    r"told": "'set', 'reported', 'notified', 'requested'",
    r"(?:see|sees|seen|saw) through": "what is detected, and how",
    r"keeps? house|keeping house|kept house|the house says": "poll_control(), or what it does",
    r"believe[sd]?|believing": "'assumes'; 'verifies' for a negation",
    r"seeds": "'the specification' (the seed of a random generator may be singular)",
    r"in work": "'in progress'",
    r"to be had|can be had": "'available'",
    r"of its own accord": "'by itself'",
    r"crews?|desks?|harvesters?|foresee[ns]?|glance[sd]?": "the word of the glossary (docs/guide/glossary.md)",
    r"ledgers?": "job_table, ring_router or graph_scheduler_state",
    r"upon|hereby|herein|thereof|therein|whereupon|lest|albeit|ere": "a plain word",
}
# Group 1 is a comment or a string, the parts of a program that people read. An #include and a character such as '"' are
# matched first, because a quote or a comment sign in them begins no string and no comment.
IN_C = re.compile(r"""^[ \t]*\#[ \t]*include[ \t]*(?:"[^"\n]*"|<[^>\n]*>) | '(?:\\.|[^'\\\n])' |
                      (//[^\n]* | /\*.*?\*/ | R"(?P<delimiter>\w*)\(.*?\)(?P=delimiter)" | "(?:\\.|[^"\\\n])*")""",
                  re.DOTALL | re.MULTILINE | re.VERBOSE)
IN_PYTHON = re.compile(r"""(\#[^\n]* | (?P<quote>\"\"\"|'''|"|')(?:\\.|(?!(?P=quote)).)*(?P=quote))""",
                       re.DOTALL | re.VERBOSE)
C_TEXT = (*tree.CODE, ".inc", ".pml")


def removed(part):
    """What replaces a part that is not checked: its line ends. No phrase continues across it, unless it is blank."""
    return (";" if part.strip() else "") + "\n" * part.count("\n")


def remove(pattern, text):
    return pattern.sub(lambda match: removed(match.group(0)), text)
