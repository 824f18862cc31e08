"""The adapter protocol: lines in, lines out. Nothing in here is about any SDK; docs/adapter-protocol.md is the guide."""

import json
import os
import socket
import sys
import threading
import traceback


class Unsupported(Exception):
    """The SDK does not offer something: an operation, or an option of one."""


class Failed(Exception):
    """The operation failed, as the application sees it. `how` is byBlockingCall when a call threw that waits, byFuture when
    a future failed, synchronously when a call threw that was to return one."""

    def __init__(self, category, message, how):
        super().__init__(message)
        self.data = {"category": category, "message": message, "how": how}


METHODS = {}


def method(function):
    """Marks a function as the method of its name."""
    METHODS[function.__name__] = function
    return function


def only(options, *known):
    """Options that nobody reads would be ignored, and the verdict wrong: anything but `known` is unsupported."""
    for name in options:
        if name not in known:
            raise Unsupported(f"the option {name}")


def serve():
    """Answers requests until the suite closes the stream. Each runs in a thread of its own, because a receive may wait
    while others come and go."""
    reader, writer = streams()
    writing = threading.Lock()

    def answer(request):
        outcome = run(request)
        line = json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome})
        with writing:
            writer.write(line + "\n")
            writer.flush()

    for line in reader:
        threading.Thread(target=answer, args=[json.loads(line)], daemon=True).start()


def streams():
    """Standard input and output, or a socket to a suite that waits with `--attach`."""
    address = os.environ.get("STC_CONNECT")
    if address:
        host, port = address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)))
        return connection.makefile("r", encoding="utf-8"), connection.makefile("w", encoding="utf-8")
    # Nothing else may end up between the answers: neither a stray print nor what a native library logs, which writes past
    # sys.stdout. Both go to standard error from here on.
    writer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return sys.stdin, writer


def run(request):
    function = METHODS.get(request["method"])
    if function is None:
        return {"error": {"code": -32601, "message": f"no method {request['method']}"}}
    try:
        return {"result": function(**request["params"])}
    except Unsupported as e:
        return {"error": {"code": -32001, "message": str(e), "data": {"capability": str(e)}}}
    except Failed as e:
        return {"error": {"code": -32000, "message": str(e), "data": e.data}}
    except Exception as e:  # the adapter's own fault; the trace goes into the report
        traceback.print_exc()
        return {"error": {"code": -32603, "message": f"{type(e).__name__}: {e}"}}
