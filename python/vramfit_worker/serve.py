"""The conversation with vramfit."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path

from . import PROTOCOL, VERSION, user_code
from .faults import Refusal, Unusable, one_line
from .streams import Channel

FAILED = 3


def main(file: Path, name: str) -> int:
    """Imports the user's file, then answers requests until told to quit or the input ends."""
    channel = Channel()
    try:
        _serve(channel, file, name)
    except Unusable as error:
        channel.say(
            "unusable",
            message=error.message,
            hint=error.hint,
            traceback=error.traceback,
            bad_input=error.bad_input,
        )
        return _end(FAILED)
    except Refusal as error:
        channel.say("refused", message=one_line(str(error)))
        return _end(FAILED)
    return _end(0)


def _serve(channel: Channel, file: Path, name: str) -> None:
    function = user_code.find(file, name)
    from . import device

    hello = device.open_device()
    # Only now, so that PyTorch is imported as the user's file wants it.
    from .bench import Bench

    bench = Bench(function)
    channel.say("ready", protocol=PROTOCOL, version=VERSION, pid=os.getpid(), **hello)
    for request in channel.requests():
        if request["request"] == "build":
            channel.say("built", built=bench.build(request["workload"]))
        elif request["request"] == "release":
            bench.release()
            channel.say("released")
        elif request["request"] == "survey":
            blocks, reason = bench.survey(request)
            channel.say("surveyed", id=request["id"], blocks=blocks, reason=reason)
            if not device.is_usable():
                os._exit(FAILED)
        elif request["request"] == "measure":
            outcome = bench.measure(request)
            usable = device.is_usable()
            reserved = device.reserved() if usable else 0
            channel.say("measured", id=request["id"], outcome=outcome, reserved=reserved)
            if not usable:
                # Nothing can be freed in a lost context, so nothing is tried.
                os._exit(FAILED)
        else:
            return


def _end(status: int) -> int:
    """Ends the process even if the user's code left threads for which Python would wait."""
    others = (thread for thread in threading.enumerate() if not thread.daemon)
    if any(thread is not threading.main_thread() for thread in others):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # The C library's own, so that the virtual GPU still writes its report.
        ctypes.CDLL(None).exit(status)
    return status
