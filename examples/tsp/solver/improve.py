"""The function under improvement: make a tour shorter by local moves, until none helps."""

from __future__ import annotations


def improve(tour, between, looks):
    """Return a tour that no reversal of a piece makes shorter (2-opt), or the one so far when the looks are used up.

    ``looks.take(n)`` must be called for every n distances that are looked at; it is False when there are no more.
    """
    tour, size = list(tour), len(tour)
    better = True
    while better:
        better = False
        for i in range(size - 1):
            for j in range(i + 2, size if i else size - 1):
                if not looks.take(4):
                    return tour
                a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % size]
                if between[a][c] + between[b][d] < between[a][b] + between[c][d]:
                    tour[i + 1 : j + 1] = reversed(tour[i + 1 : j + 1])
                    better = True
    return tour
