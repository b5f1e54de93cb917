"""Runs commands in a pseudo-terminal and draws their last screen as SVG.

The screen understands what the program writes: line feeds, carriage returns, "erase to the end of
the screen" and colours.
"""

import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import termios

COLUMNS, ROW, CHARACTER, MARGIN = 100, 17, 7.8, 14
COLOURS = {"31": "#f38ba8", "32": "#a6e3a1", "33": "#f9e2af", "34": "#89b4fa", "35": "#cba6f7",
           "36": "#94e2d5", "1": "#ffffff", "2": "#8b90a8", "prompt": "#a6e3a1"}
TOKEN = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)", re.S)


def run_in_terminal(command, folder, environment):
    """Returns what bash prints for a command in COLUMNS columns, with "Killed" if it was killed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    with subprocess.Popen(["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=theirs, env={**os.environ, **environment}) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux raises this when the other end is closed
                break
            if not part:
                break
            parts.append(part)
        os.close(ours)
        process.wait()
    return b"".join(parts).decode() + ("\r\nKilled\r\n" if process.returncode == -9 else "")


class Screen:
    """Lines of (character, colour)."""

    def __init__(self):
        self.lines, self.column, self.colour = [[]], 0, None

    def write(self, text, colour=None):
        self.colour = colour
        for codes, action, back, feed, plain in TOKEN.findall(text):
            if action == "m":
                self.colour = next((COLOURS[c] for c in codes.split(";") if c in COLOURS), None)
            elif action in ("J", "K"):
                del self.lines[-1][self.column:]
            elif back:
                self.column = 0
            elif feed:
                self.lines.append([])
                self.column = 0
            else:
                for character in plain:
                    self.lines[-1][self.column:self.column + 1] = [(character, self.colour)]
                    self.column += 1

    def rows(self, without=None):
        """Yields the non-empty lines that do not begin with `without`, folded to COLUMNS."""
        for line in self.lines:
            text = "".join(character for character, _ in line)
            if not text or without and text.startswith(without):
                continue
            yield from (line[i:i + COLUMNS] for i in range(0, len(line), COLUMNS))


def spans(row):
    """Returns [text, colour] for each group of adjacent characters of one colour."""
    found = []
    for character, colour in row:
        if found and found[-1][1] == colour:
            found[-1][0] += character
        else:
            found.append([character, colour])
    return found


def draw(rows, title):
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, len(rows) * ROW + 2 * MARGIN
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
             f'width="{width:.0f}" height="{height}" role="img">',
             f"<title>{html.escape(title)}</title>",
             f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#1e1e2e"/>',
             '<g font-family="ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="13" '
             'fill="#cdd6f4" xml:space="preserve">']
    for number, row in enumerate(rows):
        y, column = MARGIN + number * ROW + 13, 0
        for text, colour in spans(row):
            if text.strip():
                fill = f' fill="{colour}"' if colour else ""
                lines.append(f'<text x="{MARGIN + column * CHARACTER:.1f}" y="{y}" '
                             f'textLength="{len(text) * CHARACTER:.1f}"{fill}>'
                             f"{html.escape(text, quote=False)}</text>")
            column += len(text)
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def record(commands, folder, environment):
    """Returns the screen after the commands, with a prompt before each."""
    screen = Screen()
    for command in commands:
        screen.write("$ ", COLOURS["prompt"])
        screen.write(command.removeprefix("exec ") + "\r\n", COLOURS["1"])
        output = run_in_terminal(command, folder, environment)
        screen.write(output)
        if screen.lines[-1]:
            screen.write("\r\n")
    return screen
