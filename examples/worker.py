#!/usr/bin/env python3
"""A worker for the steps of a workflow that say `uses: worker.page`.

    GATEHOUSE_URL=http://127.0.0.1:8080 GATEHOUSE_KEY=gth_... python3 worker.py

It needs Python 3.9 or later and nothing else; the key's principal has the role
worker. Replace page() with what your step does, and keep the rest.
"""
import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ["GATEHOUSE_URL"] + "/api/v1"
KEY = os.environ["GATEHOUSE_KEY"]
LEASE = float(os.environ.get("WORKER_LEASE", "60"))  # seconds without a heartbeat
BROKEN = OSError, http.client.HTTPException  # no connection, or half an answer: the server may or may not have acted


class Retry(Exception):
    """Raise it when another attempt may succeed. Other exceptions are final."""


def page(step, stop):
    """Pages somebody. A step is executed at least once: step["idempotency_key"]
    is the same in every attempt, so hand it to whatever you call. stop is set
    when the gate says that the step is canceled, or is not ours any more; not
    while the gate cannot be reached."""
    order = step["input"]
    if order.get("pager") == "busy" and step["attempts"] == 1:
        raise Retry("the pager is busy")
    if stop.wait(order.get("seconds", 0)):  # replace it with the call to the pager
        raise RuntimeError("told to stop")
    return {"paged": order["who"], "key": step["idempotency_key"]}


class Refused(Exception):
    """An answer that is an error, by its code."""

    def __init__(self, problem):
        super().__init__(f"{problem.get('code')}: {problem.get('detail')}")
        self.code, self.retryable = problem.get("code"), problem.get("retryable", True)


def problem_of(error):
    """The server's problem; of another's answer, such as the page of a proxy, only the status."""
    try:
        if error.headers.get_content_type() == "application/problem+json":
            return json.load(error)
    except (*BROKEN, ValueError):
        pass  # half an answer
    return {"detail": str(error)}


def call(path, body, tries=1, limit=90):
    """Posts JSON. The Idempotency-Key makes several tries one request: the
    effect happens once, and each try gets the first answer. limit is in
    seconds."""
    headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
    while True:
        tries -= 1
        try:
            request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=limit) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            refused = Refused(problem_of(error))
            if tries <= 0 or not refused.retryable:
                raise refused from None
        except BROKEN:
            if tries <= 0:
                raise
        time.sleep(1)


def keep(path, generation, done, stop):
    """Keeps the lease until done, and sets stop when the step is no longer ours to do."""
    due = time.monotonic() + LEASE / 3
    while not done.wait(max(0, due - time.monotonic())):
        due = time.monotonic() + LEASE / 3
        try:  # a heartbeat that gets no answer leaves time for another one
            beat = {"generation": generation, "lease": f"{LEASE:g}s"}
            if call(path + "/heartbeat", beat, limit=LEASE / 3)["cancel"]:
                stop.set()
        except Refused as refused:
            if not refused.retryable:  # lease_lost
                return stop.set()
        except BROKEN:
            pass  # the next heartbeat may succeed


def execute(step, lease):
    path, done, stop = "/steps/" + step["id"], threading.Event(), threading.Event()
    threading.Thread(target=keep, args=(path, lease["generation"], done, stop), daemon=True).start()
    try:
        verb, result = "/complete", {"output": page(step, stop)}
    except Exception as error:  # every exception must be reported to the run
        verb, result = "/fail", {"detail": str(error) or repr(error), "code": type(error).__name__, "retryable": isinstance(error, Retry)}
    try:
        call(path + verb, {"generation": lease["generation"], **result}, tries=5)
        print(step["key"] + ": " + verb[1:], file=sys.stderr)
    except Refused as refused:  # after lease_lost another worker has the step, and this result is dropped
        print(step["key"] + ": " + str(refused), file=sys.stderr)
    except BROKEN as error:  # the lease will expire, and another attempt will follow
        print(step["key"] + ": not reported: " + str(error), file=sys.stderr)
    finally:
        done.set()


class Stop(Exception):
    """Told to stop: lease nothing more. Python waits for the threads under way."""


def told_to_stop(*_):
    raise Stop


def main():
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told_to_stop)
    while True:
        try:  # each step of a batch runs in its own thread
            batch = call("/steps/lease", {"tools": ["page"], "max": 10, "wait": "30s", "lease": f"{LEASE:g}s", "worker": "worker.py"})
            threads = [threading.Thread(target=execute, args=(leased["step"], leased["lease"])) for leased in batch]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except Refused as refused:
            if not refused.retryable:
                sys.exit(str(refused))  # the key, the role or the request is refused
            time.sleep(5)
        except BROKEN:
            time.sleep(5)  # the server is unreachable; try again


try:
    main()
except Stop:
    pass
