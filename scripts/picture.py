#!/usr/bin/env python3
"""picture.py OUT.svg: draws the README's picture: clients, HTTP, the front-end, a process for each session, the GPU.

The drawing has its own background, so that it looks the same on a light and on a dark page."""
import html
import pathlib
import sys

WIDTH, HEIGHT = 860, 300
FONT = "system-ui, sans-serif"
INK, MUTED, PAPER = "#1f2933", "#52606d", "#ffffff"
CLIENT, FRONT_END, WORKER, FAULTED, DEVICE = "#e3eefb", "#fdf3d8", "#e4f5e9", "#fbe3e3", "#ece7fa"
ROW_TOP, ROW_HEIGHT, ROW_GAP = 58, 58, 16


def text(x, y, words, size=14, colour=INK, anchor="middle", weight="normal"):
    return (f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{html.escape(words)}</text>")


def box(x, y, width, height, title, note, fill):
    middle = x + width / 2
    return (f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{MUTED}"/>'
            + text(middle, y + height / 2 - 4, title, weight="bold") + text(middle, y + height / 2 + 15, note, 12, MUTED))


def arrow(x1, y1, x2, y2, dashed=False):
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{MUTED}" stroke-width="1.5"{dash} marker-end="url(#head)" marker-start="url(#head)"/>'


def row_top(row):
    return ROW_TOP + row * (ROW_HEIGHT + ROW_GAP)


def drawing():
    middle = row_top(1) + ROW_HEIGHT / 2
    parts = [text(x, 34, words, 13, MUTED, weight="bold")
             for x, words in ((85, "clients"), (355, "gpurestd, the front-end"), (590, "sessions: one process each"), (785, "device"))]
    clients = (("curl", "any HTTP client"), ("Python, C", "the SDKs"), ("gpurest", "the command line"))
    workers = (("session A", "own GPU context", WORKER), ("session B", "faulted: A and C go on", FAULTED), ("session C", "own GPU context", WORKER))
    parts.append(box(270, row_top(0), 170, row_top(2) + ROW_HEIGHT - row_top(0), "HTTP API", "no GPU driver in here", FRONT_END))
    parts.append(box(730, row_top(0), 110, row_top(2) + ROW_HEIGHT - row_top(0), "GPU", "or the CPU", DEVICE))
    for row, (client, worker) in enumerate(zip(clients, workers)):
        centre = row_top(row) + ROW_HEIGHT / 2
        parts += [box(20, row_top(row), 130, ROW_HEIGHT, *client, CLIENT), box(510, row_top(row), 160, ROW_HEIGHT, *worker),
                  arrow(154, centre, 266, centre), arrow(444, centre, 506, centre), arrow(674, centre, 726, centre, dashed=worker[2] == FAULTED)]
    parts += [text(210, middle - 10, "HTTP", 14, INK, weight="bold"), text(210, middle + 20, "or Unix socket", 12, MUTED),
              text(475, row_top(2) + ROW_HEIGHT + 22, "shared memory", 12, MUTED)]
    return "\n".join(parts)


def svg():
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="{FONT}" role="img">\n'
            "<title>Clients send HTTP requests to gpurestd; each session is a process with a GPU context of its own</title>\n"
            f'<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
            f'<path d="M0 0L8 4L0 8z" fill="{MUTED}"/></marker></defs>\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="{PAPER}"/>\n{drawing()}\n</svg>\n')


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    pathlib.Path(sys.argv[1]).write_text(svg(), encoding="utf-8")
