"""The gate: what a text states, what must not be kept of it, and what becomes of each candidate. All of it pure.

`extract(Source)` gives candidates; with what is known of the event and its text (`SourceFacts`), `admit` judges each on its
own, with its reasons. `weigh` takes all of one record together, with what people decided and agree to.
"""
