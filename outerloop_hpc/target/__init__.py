"""A repository under improvement: what its contract says, who may change what, and exact trees of its commits.

``contract`` and ``terms`` (the contract and its fields), ``limits`` (its wishes within the operator's numbers),
``scope`` (whose files are whose), ``mirror`` (the bare mirror on the shared folder), ``export`` (a commit's tree,
byte for byte). Only this package talks to git.
"""
