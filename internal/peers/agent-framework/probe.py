"""Asks assent's probe, one JSON line for another."""

import json
import subprocess
import sys

process = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class Refused(Exception):
    """What assent refuses, in its words."""


def ask(do, content, shapes=("python",), **more):
    print(json.dumps({"do": do, "shapes": shapes, "content": content, **more}), file=process.stdin, flush=True)
    answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise Refused(answer["error"])
    return answer["out"]


def carry(content, *via):
    """A content through assent's Python codec, with other shapes between."""
    return ask("carry", content, ["python", *via, "python"])


def refused(do, *args, **kwargs):
    try:
        out = do(*args, **kwargs)
    except (Refused, TypeError, ValueError) as error:
        return str(error)
    raise AssertionError(f"this should have been refused, and gave {out}")
