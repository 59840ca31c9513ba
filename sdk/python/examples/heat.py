"""Heat flows through a plate with hot and cold spots: each step is one expression over shifted views.

    python heat.py out.png [--size 256] [--steps 400]
"""
import argparse

import numpy as np
import pictures

import gpurest as gp

SPOTS = [(0.3, 0.3, 0.08, 1.0), (0.7, 0.62, 0.05, 1.0), (0.35, 0.75, 0.1, -1.0)]  # row, column, radius, temperature


def held_spots(n):
    """Where the temperature is held, and at which; the plate's edge is held at 0."""
    row, column = gp.arange(n).reshape(-1, 1) / n, gp.arange(n) / n
    held, temperature = gp.zeros((n, n), bool), gp.zeros((n, n), "f4")
    for y, x, radius, value in SPOTS:
        inside = (row - y) ** 2 + (column - x) ** 2 < radius ** 2
        held |= inside
        temperature = gp.where(inside, np.float32(value), temperature)
    return held, temperature


def flow(n, steps):
    held, fixed = held_spots(n)
    u = fixed.copy()
    for _ in range(steps):
        neighbours = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = gp.where(held[1:-1, 1:-1], fixed[1:-1, 1:-1], 0.25 * neighbours)
    return u


def colours(u):
    """Blue below 0, red above, white at 0; lines of equal temperature."""
    strength = gp.sqrt(gp.clip(gp.abs(u), 0, 1)) * (0.85 + 0.15 * gp.cos(u * 25))
    warm, cold = gp.where(u > 0, strength, 0), gp.where(u < 0, strength, 0)
    return (255 * gp.stack([1 - cold, 1 - warm - 0.6 * cold, 1 - warm], axis=2).clip(0, 1)).astype(np.uint8)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out")
    options.add_argument("--size", type=int, default=256)
    options.add_argument("--steps", type=int, default=400)
    given = options.parse_args()
    u = flow(given.size, given.steps)
    pictures.write_png(given.out, colours(u).get())
    print(f"{given.out}: after {given.steps} steps from {float(u.min()):.3f} to {float(u.max()):.3f}, mean {float(u.mean()):.5f}")


if __name__ == "__main__":
    main()
