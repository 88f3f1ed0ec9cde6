"""The real server of the tests, and the person who decides."""

import json
import os
import threading
import time
import urllib.request

from gatehouse import Client

URL = os.environ["GATEHOUSE_URL"]


class Reviewer:
    """Decides actions as a person."""

    def __init__(self):
        self.client = Client(URL, os.environ["REVIEWER_KEY"])

    def pending(self, ref):
        """Waits for the pending action about an entity."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            page = self.client._call("GET", "/proposed-actions", query={"status": "pending", "limit": "200"})
            found = [a for a in page["items"] if a["target"].get("entity_ref") == ref]
            if found:
                return found[0]
            time.sleep(0.05)
        raise AssertionError(f"nothing is pending for {ref}")

    def decide(self, action, decision, notes=""):
        body = {"decision": decision, "digest": action["digest"], "notes": notes}
        request = urllib.request.Request(
            f"{URL}/api/v1/proposed-actions/{action['id']}/decide", json.dumps(body).encode(),
            {"Authorization": "Bearer " + os.environ["REVIEWER_KEY"], "Content-Type": "application/json",
             "X-Edit-Token": os.environ["REVIEWER_EDIT_TOKEN"]})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


    def ask(self, action, text):
        body = {"kind": "question", "text": text}
        return self.client._call("POST", f"/proposed-actions/{action['id']}/comments", body)


class Call(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.function, self.args, self.result, self.error = function, args, None, None
        self.start()

    def run(self):
        try:
            self.result = self.function(*self.args)
        except Exception as error:
            self.error = error

    def end(self):
        self.join(60)
        if self.is_alive():
            raise AssertionError("the call did not end")
        return self
