"""The engine: everything that has to do with machines; what has to do with meaning belongs to the kinds.

Read in this order: ``layout`` (what is where), ``spec`` and ``records`` (documents), ``events`` and ``state``
(the journal and its fold), ``rules`` and ``reconcile`` (pure decisions), ``tick`` (one pass), ``job`` (inside the
allocation).
"""
