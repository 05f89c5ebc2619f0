"""SMILE: streams of rows at ticks, and views of them that are never false.

statements  a text becomes declarations, views and subscriptions
extent      what is known of a column before anything runs: its range and its steps
cells       a view: rows whose columns have a value and bounds, steps and a mask
ranges      interval arithmetic and interval logic on terms
translate   declarations and views, one after another, to one program
select      the rules: selection, projection, the first rows; more in `joins`, `group`,
            `absence` (EXISTS and LEFT JOIN), `latest`, `windows`, `sources` (MERGE, QUIET)
types       what `explain --stage types` prints
"""
