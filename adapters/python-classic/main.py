"""Checks that the classic Pulsar client works on a broker, with persistent:// topics with and without partitions.

Prints one line of JSON. Exit code: 0 all checks hold, 1 one does not, 2 usage, 3 no client can be made.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback

import pulsar

import checks
from harness import Broker, CheckFailed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service-url", required=True, help="where clients connect, pulsar://HOST:PORT")
    parser.add_argument("--admin-url", required=True, help="where the admin REST is, http://HOST:PORT")
    parser.add_argument("--partitions", type=int, default=3, help="of the partitioned topics (default 3)")
    parser.add_argument("--only", default="", help="run the checks whose name contains this, like key_shared/plain")
    parser.add_argument("--timeout", type=int, default=30, help="seconds that one wait may take (default 30)")
    parser.add_argument("--log", help="file for the client's log (default: a new one, kept when a check fails)")
    return parser.parse_args()


def run(check, broker, partitions):
    """The failure of a check, or None when it holds."""
    try:
        check(broker, partitions)
        return None
    except CheckFailed as failure:
        return str(failure)
    except Exception as error:  # the client's errors are many, and each is a failure of the check that met it
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"


def main():
    options = arguments()
    chosen = [
        (f"{check.__name__}/{kind}", check, partitions)
        for check in checks.ALL
        for kind, partitions in [("plain", 0), ("partitioned", options.partitions)]
        if options.only in f"{check.__name__}/{kind}"
    ]
    if not chosen:
        print(f"no check is called {options.only}", file=sys.stderr)
        return 2
    started = time.monotonic()
    log = options.log
    if log is None:
        handle, log = tempfile.mkstemp(prefix="python-classic-", suffix=".log")
        os.close(handle)
    try:
        broker = Broker(options.service_url, options.admin_url, options.timeout, log)
    except (pulsar.PulsarException, ValueError) as error:
        print(f"no client for {options.service_url}: {error}", file=sys.stderr)
        return 3
    results = {}
    for name, check, partitions in chosen:
        begun = time.monotonic()
        failure = run(check, broker, partitions)
        results[name] = {"ok": failure is None, "ms": round((time.monotonic() - begun) * 1000)}
        if failure is not None:
            results[name]["failure"] = failure
    broker.close()
    ok = all(result["ok"] for result in results.values())
    if ok and options.log is None:
        os.remove(log)
    summary = {
        "ok": ok,
        "client": f"pulsar-client {pulsar.__version__}",
        "failures": [name for name, result in results.items() if not result["ok"]],
        "checks": results,
        "ms": round((time.monotonic() - started) * 1000),
    }
    if not ok:
        summary["log"] = log
    print(json.dumps(summary))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
