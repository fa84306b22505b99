"""What jobs cost and how well they used it: pure computation from archived accounting rows.

``usage`` reads one job's rows, ``attempts`` and ``jobs`` put them together, ``runs`` and ``costs`` sum them up,
``formulas`` says how each number was made. What was not measured stays ``None`` and is never counted as 0.
"""
