"""The gate: what a text states, what must not be kept of it, and what becomes of each candidate. All of it pure.

`extract(Source)` gives candidates. `examine(text, scanners)` gives the findings and signs of the text, once; with what is
known of the event they make `SourceFacts`. `admit(candidate, facts, policy, known)` gives the `Outcome`, with its reasons.
"""
