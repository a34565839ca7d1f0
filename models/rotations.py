"""Cubes cut out of a larger field and turned: three ways to cut the same cube, written so that they check each other.

A cube has 24 proper rotations: those that put every face on a face and make no mirror image. Rotation ``r`` is the
matrix ``MATRICES[r]``; a turned cube has at point ``x``, counted from its centre, what the cube had at ``M x``.
`cut_views` (numpy) and `cut_tensor` (torch) turn by transposing and flipping axes. `point_places` computes where each
point came from, with the matrix alone, and `cut_points` reads there: the slow reference for both.

Only places are turned. Where three channels are the components of a velocity, their numbers stay as they are. The SC22
deep-learning tutorial of NERSC, where the workload comes from, does the same (``utils/data_loader.py``). Its list has
24 entries too, but some of them, number 5 for one, make mirror images; here none does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

AXES = 3

# Quarter turns about the first and the last axis. Every proper rotation of a cube is a product of these two.
_TURNS = (
    ((1, 0, 0), (0, 0, -1), (0, 1, 0)),
    ((0, -1, 0), (1, 0, 0), (0, 0, 1)),
)

Matrix = tuple[tuple[int, ...], ...]


def _product(left: Matrix, right: Matrix) -> Matrix:
    columns = tuple(zip(*right))
    return tuple(tuple(sum(a * b for a, b in zip(row, column)) for column in columns) for row in left)


def _closure() -> tuple[Matrix, ...]:
    """Return every product of the two quarter turns, sorted, so that each has the same number everywhere."""
    found: set[Matrix] = set(_TURNS)
    waiting: list[Matrix] = list(_TURNS)
    while waiting:
        known = waiting.pop()
        for turn in _TURNS:
            product = _product(turn, known)
            if product not in found:
                found.add(product)
                waiting.append(product)
    return tuple(sorted(found))


MATRICES = _closure()
"""The 24 rotations, each as three rows of -1, 0 and 1."""


def axes_and_flips(matrix: Matrix) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Say how a rotation is made of a transposition and flips.

    Parameters
    ----------
    matrix : tuple of tuple of int
        One of `MATRICES`.

    Returns
    -------
    axes : tuple of int
        For each axis of the turned cube the axis of the cube that it came from.
    flips : tuple of int
        Axes of the turned cube that run the other way round.
    """
    columns = tuple(zip(*matrix))
    axes = tuple(next(row for row in range(AXES) if column[row]) for column in columns)
    flips = tuple(axis for axis in range(AXES) if columns[axis][axes[axis]] < 0)
    return axes, flips


STEPS = tuple(axes_and_flips(matrix) for matrix in MATRICES)
"""`axes_and_flips` of each rotation."""


def cut_views(field: NDArray[Any], side: int, row: tuple[int, int, int, int]) -> NDArray[Any]:
    """Cut a cube out of a field and turn it; nothing is copied.

    Parameters
    ----------
    field : numpy.ndarray
        Shape ``(channels, n, n, n)``.
    side : int
        Points along an edge of the cube.
    row : tuple of int
        Lowest corner of the cube, 0 to ``n - side`` along each axis, and the number of a rotation.

    Returns
    -------
    numpy.ndarray
        A view of shape ``(channels, side, side, side)``.
    """
    z, y, x, rotation = row
    axes, flips = STEPS[rotation]
    cube = field[:, z : z + side, y : y + side, x : x + side].transpose(0, *(axis + 1 for axis in axes))
    ways = tuple(slice(None, None, -1 if axis in flips else 1) for axis in range(AXES))
    turned: NDArray[Any] = cube[(slice(None),) + ways]  # noqa: RUF005 - mypy takes a star in an index for Python 3.11
    return turned


def cut_tensor(field: torch.Tensor, side: int, row: tuple[int, int, int, int]) -> torch.Tensor:
    """Cut a cube out of a field on any device and turn it; as `cut_views`.

    torch has no views that run backwards, so a flip is a copy of the cube, on its device.
    """
    z, y, x, rotation = row
    axes, flips = STEPS[rotation]
    cube = field[:, z : z + side, y : y + side, x : x + side].permute(0, *(axis + 1 for axis in axes))
    return cube.flip([axis + 1 for axis in flips]) if flips else cube


def point_places(side: int, row: tuple[int, int, int, int]) -> NDArray[Any]:
    """Return where each point of a turned cube lies in the field; int, shape ``(3, side, side, side)``.

    Each point's place is counted from the centre in half steps, so that it is a whole number for an even side too,
    multiplied by the matrix, and counted from the corner of the field again. Shares no line with the fast ways.
    """
    z, y, x, rotation = row
    half_steps = 2 * np.indices((side,) * AXES) - (side - 1)
    came_from = np.einsum("ab,bijk->aijk", np.array(MATRICES[rotation]), half_steps)
    places: NDArray[Any] = (came_from + (side - 1)) // 2 + np.array([z, y, x]).reshape(AXES, 1, 1, 1)
    return places


def cut_points(field: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Cut a cube out of a field point by point, from `point_places`; as `cut_views`, and slow."""
    cube: NDArray[Any] = field[:, places[0], places[1], places[2]]
    return cube
