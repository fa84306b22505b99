"""A better solver for the iris target: one Gaussian per species with a shared covariance (linear discriminants)."""

from __future__ import annotations

from typing import Callable, Sequence  # noqa: UP035 - runs on Python 3.9

Flower = Sequence[float]

#: Added to the diagonal, in cm²: keeps the system solvable when a feature does not vary.
RIDGE = 1e-6


def train(flowers: Sequence[Flower], species: Sequence[str]) -> Callable[[Flower], str]:
    """Learn from measured flowers.

    flowers: sequence of (sepal length, sepal width, petal length, petal width) in cm.
    species: their names, in the same order.
    Returns a function from one flower to the name of a species.
    """
    size = len(flowers[0])
    groups = {name: [f for i, f in enumerate(flowers) if species[i] == name] for name in sorted(set(species))}
    means = {name: [sum(f[c] for f in group) / len(group) for c in range(size)] for name, group in groups.items()}
    covariance = [[RIDGE * (row == column) for column in range(size)] for row in range(size)]
    for name, group in groups.items():
        for flower in group:
            away = [flower[column] - means[name][column] for column in range(size)]
            for row in range(size):
                for column in range(size):
                    covariance[row][column] += away[row] * away[column] / (len(flowers) - len(groups))
    weights = {name: _solve(covariance, mean) for name, mean in means.items()}
    offsets = {name: -sum(w * m for w, m in _pairs(weights[name], means[name])) / 2 for name in means}

    def classify(flower: Flower) -> str:
        return max(means, key=lambda name: offsets[name] + sum(w * x for w, x in _pairs(weights[name], flower)))

    return classify


def _pairs(left: Sequence[float], right: Sequence[float]) -> list[tuple[float, float]]:
    return [(left[index], right[index]) for index in range(len(left))]


def _solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solve ``matrix · x = right`` by Gaussian elimination with pivoting."""
    size = len(right)
    rows = [[*matrix[row], right[row]] for row in range(size)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, size):
            factor = rows[row][column] / rows[column][column]
            rows[row] = [a - factor * b for a, b in _pairs(rows[row], rows[column])]
    solution = [0.0] * size
    for row in reversed(range(size)):
        known = sum(rows[row][column] * solution[column] for column in range(row + 1, size))
        solution[row] = (rows[row][size] - known) / rows[row][row]
    return solution
