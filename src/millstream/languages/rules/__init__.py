"""Rules: what must hold for a vessel, a truck or whatever a domain is about.

units       physical units and their dimensions; where pint is used
domain      the entities of a domain, their columns, and how they find each other;
            read by domain_file, checked by domain_check
tokens      lines and words of a rule file
read        lines become the tree of `ast`
check       the tree with types: terms, and formulas to reason about; look_back of
            what has lasted or was before
reduce      what need not be run, what contradicts itself, what can never fire
facts       all that rules ask about one subject, joined into one row; over_time
            adds the columns for what is looked back at
translate   facts, a judge and the warnings, as operators of the calculus
"""
