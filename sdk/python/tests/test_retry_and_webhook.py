"""Tests retries against a server that fails as the gate documents, and webhook signatures."""

import json
import os
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

from gatehouse import APIError, Client, Gate, InvalidSignature, Rejected, Unreachable, verify_webhook
from world import Call

# The test vector of the Standard Webhooks reference libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ACTION = {"id": "act_1", "status": "pending"}
BODY = b'{"test": 2432232314}'
HEADERS = {"Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "Webhook-Timestamp": "1614265330",
           "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}


class WebhookTest(unittest.TestCase):
    def test_signed_right(self):
        for secret in (SECRET, "whsec_plJ3nmyCDGBKInavdOK15jsl1VcD6eCWpH5b5Nf0kzA=\n" + SECRET + "\n"):
            self.assertEqual(verify_webhook(secret, HEADERS, BODY, now=1614265330), {"test": 2432232314})

    def test_refused(self):
        for headers, body, now in (
            (HEADERS, BODY + b" ", 1614265330), (HEADERS, BODY, 1614265330 + 301), (HEADERS, BODY, 1614265330 - 301),
            ({**HEADERS, "Webhook-Id": "msg_2"}, BODY, 1614265330), ({}, BODY, 1614265330),
            ({**HEADERS, "Webhook-Signature": "v2" + HEADERS["Webhook-Signature"][2:]}, BODY, 1614265330),
            ({**HEADERS, "Webhook-Signature": "v1,\udcff"}, BODY, 1614265330),
            ({**HEADERS, "Webhook-Id": "\udcff"}, BODY, 1614265330),
            ({**HEADERS, "Webhook-Timestamp": "9" * 5000}, BODY, 1614265330),
        ):
            with self.assertRaises(InvalidSignature):
                verify_webhook(SECRET, headers, body, now=now)


class RetryTest(unittest.TestCase):
    def serve(self, *answers, retries=5, port=0):
        seen, left = [], list(answers)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def do_GET(self):
                seen.append(self.headers["Idempotency-Key"])
                status, headers, body = left.pop(0)
                if status == 0:
                    return  # the connection breaks
                self.send_response(status)
                kind = "application/json" if status < 300 else "application/problem+json"
                for name, value in {"Content-Type": kind, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write((body if isinstance(body, str) else json.dumps(body)).encode())

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return Client(f"http://127.0.0.1:{server.server_port}", "gth_x", retries=retries), seen

    def test_busy_is_retried_under_the_same_key(self):
        busy = (503, {"Retry-After": "1"}, {"code": "busy", "retryable": True})
        client, seen = self.serve(busy, (201, {}, ACTION))
        self.assertEqual(client.propose({"action_type": "x"}), ACTION)
        self.assertEqual((len(seen), len(set(seen))), (2, 1))
        self.assertTrue(seen[0])

    def test_what_is_not_retryable_is_not_retried(self):
        errors = [{"pointer": "/target", "detail": "is required"}, {"pointer": "/connector", "detail": "is required"}]
        error = {"code": "invalid", "retryable": False, "detail": "/target is required", "errors": errors}
        client, seen = self.serve((422, {}, error))
        with self.assertRaisesRegex(APIError, "^invalid: /target is required; /connector is required$"):
            client.propose({"action_type": "x"})
        self.assertEqual(len(seen), 1)

    def test_a_redirect_does_not_take_the_key_away(self):
        client, seen = self.serve((302, {"Location": "http://127.0.0.1:1/"}, {}))
        with self.assertRaises(APIError):
            client.propose({"action_type": "x"})
        self.assertEqual(len(seen), 1)

    def test_a_lease_is_not_repeated(self):
        client, seen = self.serve((503, {}, {"code": "busy", "retryable": True}))
        with self.assertRaises(APIError):
            client.lease_pushes(["erp"])
        self.assertEqual(seen, [None])

    def test_an_answer_of_another_server(self):
        for answer in ({"ok": True}, [], None):
            client, _ = self.serve((200, {}, answer))
            with self.assertRaisesRegex(Unreachable, "no action of Gatehouse: is the address right"):
                client.propose({"action_type": "x"})

    def test_decimals_keep_their_digits(self):
        for digits, want in (("1.50", 1.5), ("-0.0", 0.0), ("4.12345678901234567890", None), ("1e400", None),
                             ("1e99999999999999999999", None)):
            body = json.dumps({**ACTION, "price": "?"}).replace('"?"', digits)
            client, _ = self.serve((200, {}, body))
            self.assertEqual(client.propose({"action_type": "x"})["price"], digits if want is None else want)

    def test_what_the_client_is_given(self):
        for url, key in (("", "gth_x"), ("127.0.0.1:8080", "gth_x"), ("ftp://127.0.0.1", "gth_x"),
                         ("http://127.0.0.1", ""), ("http://127.0.0.1", "gth_\nx"), ("http://127.0.0.1", "gth_ä")):
            with mock.patch.dict(os.environ, {"GATEHOUSE_URL": url, "GATEHOUSE_KEY": key}):
                with self.assertRaises(ValueError) as wrong:
                    Client()
                self.assertNotIn("gth_", str(wrong.exception))
        self.assertEqual(Client("http://127.0.0.1:1/api/v1/", "gth_x\n").url, "http://127.0.0.1:1")

    def test_out_of_reach(self):
        with self.assertRaises(Unreachable):
            Client("http://127.0.0.1:1", "gth_x", retries=1).get("act_1")

    # Without retries, so that each failure alone would end a call that is no wait.
    OUTAGE = (0, {}, ""), (502, {}, ""), (429, {"Retry-After": "1"}, {"code": "rate_limited", "retryable": True})

    def test_a_wait_outlasts_an_outage(self):
        question = {"kind": "question", "number": 1, "text": "why?"}
        rejected = {**ACTION, "status": "rejected"}
        client, seen = self.serve((200, {}, ACTION), *self.OUTAGE, (200, {}, {**ACTION, "comments": [question]}),
                                  self.OUTAGE[0], (201, {}, ACTION), self.OUTAGE[2], (200, {}, rejected), retries=0)
        asked = []
        self.assertEqual(client.wait("act_1", answer=lambda q: asked.append(q["text"]) or "so"), rejected)
        self.assertEqual((len(seen), asked), (9, ["why?"]))
        self.assertEqual(len({key for key in seen if key}), 1)  # of the answer

        client, seen = self.serve((201, {}, ACTION), *self.OUTAGE[:2], (200, {}, rejected), retries=0)
        tool = Gate(client).tool(action_type="x", target="x/1", connector="erp", operation="refund")
        with self.assertRaises(Rejected):
            tool(lambda: None)()
        self.assertEqual(len(seen), 4)

    def test_a_wait_continues_when_the_decision_precedes_the_answer(self):
        asked = {**ACTION, "comments": [{"kind": "question", "number": 1, "text": "why?"}]}
        for status, code, outcome in ((409, "already_decided", "rejected"), (410, "expired", "expired")):
            client, seen = self.serve((200, {}, asked), (status, {}, {"code": code, "retryable": False}),
                                      (200, {}, {**ACTION, "status": outcome}))
            self.assertEqual(client.wait("act_1", answer=lambda _: "so")["status"], outcome)
            self.assertEqual(len(seen), 3)
        client, _ = self.serve((200, {}, asked), (422, {}, {"code": "invalid", "retryable": False}))
        with self.assertRaisesRegex(APIError, "invalid"):
            client.wait("act_1", answer=lambda _: "so")

    def test_a_wait_outlasts_a_restart(self):
        client, _ = self.serve(retries=0)
        port = int(client.url.rpartition(":")[2])
        self.doCleanups()
        call = Call(client.wait, "act_1")
        time.sleep(0.5)
        self.assertTrue(call.is_alive())
        self.serve((200, {}, {**ACTION, "status": "applied"}), port=port)
        self.assertEqual((call.end().error, call.result["status"]), (None, "applied"))

    def test_a_wait_ends_with_its_patience(self):
        begun = time.monotonic()
        with self.assertRaisesRegex(Unreachable, "patience is over: GET .*refused"):
            Client("http://127.0.0.1:1", "gth_x").wait("act_1", patience=0.5)
        self.assertTrue(0.5 <= time.monotonic() - begun < 5)
        busy = (503, {"Retry-After": "40"}, {"code": "busy", "retryable": True})
        client, seen = self.serve(busy, busy, retries=0)
        with self.assertRaisesRegex(APIError, "busy"):
            client.wait("act_1", patience=0.5)
        self.assertEqual(len(seen), 2)

    def test_a_refusal_ends_a_wait(self):
        for status, code in ((401, "unauthenticated"), (404, "not_found")):
            client, seen = self.serve((status, {}, {"code": code, "retryable": False}))
            with self.assertRaisesRegex(APIError, code):
                client.wait("act_1")
            self.assertEqual(len(seen), 1)
        client, seen = self.serve((200, {}, {"ok": True}))
        with self.assertRaisesRegex(Unreachable, "no action of Gatehouse"):
            client.wait("act_1")
