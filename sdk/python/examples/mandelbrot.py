"""The Mandelbrot set: every pixel's iteration is array arithmetic, which becomes a few fused kernels.

    python mandelbrot.py out.png [--size 640x480] [--iterations 80] [--centre -0.6 0] [--width 3.2]
"""
import argparse

import numpy as np
import pictures

import gpurest as gp


def escape_times(width, height, centre, span, iterations):
    """How often z -> z*z + c can be done before |z| > 2, smoothed so that colours have no steps; `iterations` inside of the set."""
    x = gp.linspace(centre[0] - span / 2, centre[0] + span / 2, width)
    y = gp.linspace(centre[1] + span * height / width / 2, centre[1] - span * height / width / 2, height).reshape(-1, 1)
    real, imaginary = gp.zeros((height, width)) + x, gp.zeros((height, width)) + y
    zr, zi = gp.zeros((height, width)), gp.zeros((height, width))
    times = gp.full((height, width), float(iterations))
    for step in range(iterations):
        zr, zi = zr * zr - zi * zi + real, 2 * zr * zi + imaginary
        size = zr * zr + zi * zi
        smooth = step + 1 - gp.log2(gp.log2(gp.maximum(size, 4.0)) / 2)
        times = gp.where((size > 4) & (times == iterations), smooth, times)
        zr, zi = gp.clip(zr, -1e3, 1e3), gp.clip(zi, -1e3, 1e3)
    return times


def colours(times, iterations):
    """Waves of three colours; black inside."""
    phase = gp.sqrt(gp.maximum(times, 0.0) / iterations) * 9
    inside = times >= iterations
    channels = [gp.where(inside, 0.0, 127.5 * (1 - gp.cos(phase + shift))) for shift in (0.6, 1.0, 1.9)]
    return gp.stack(channels, axis=2).astype(np.uint8)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out")
    options.add_argument("--size", default="640x480")
    options.add_argument("--iterations", type=int, default=80)
    options.add_argument("--centre", type=float, nargs=2, default=(-0.6, 0.0))
    options.add_argument("--width", type=float, default=3.2)
    given = options.parse_args()
    width, height = map(int, given.size.split("x"))
    times = escape_times(width, height, given.centre, given.width, given.iterations)
    pictures.write_png(given.out, colours(times, given.iterations).get())
    print(f"{given.out}: {width}x{height}, {int((times >= given.iterations).sum())} pixels inside")


if __name__ == "__main__":
    main()
