"""Tests leases and reports against a fake gate, whose answers each test chooses."""

import asyncio
import json
import sys
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from gatehouse import APIError, Client, Failed, Gate, NoEffect, Unknown, Waiting
from gatehouse.gate import _failure, _in_thread, _receipt
from world import Call

OK = (200, {}, {})
BUSY = (503, {}, {"code": "busy", "retryable": True})
APPROVED = (200, {}, {"id": "act_1", "status": "approved"})


class LeaseTest(unittest.TestCase):
    def setUp(self):
        self.seen = []  # the name and the body of each request
        self.routes = {"proposed-actions": lambda: APPROVED, "act_1": lambda: APPROVED, "lease": lambda: (200, {}, []),
                       "heartbeat": lambda: OK, "complete": lambda: self.finish("applied"), "fail": lambda: OK}
        test = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.do_GET(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def do_GET(self, body=None):
                name = self.path.partition("?")[0].rpartition("/")[2]
                test.seen.append((name, body))
                status, headers, answer = test.routes[name]()
                if status == 0:
                    return  # the connection breaks
                self.send_response(status)
                kind = "application/json" if status < 300 else "application/problem+json"
                for header, value in {"Content-Type": kind, **headers}.items():
                    self.send_header(header, value)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.gate = self.make()

    def make(self, **options):
        # Without retries, so that each failure alone would end a call.
        client = Client(f"http://127.0.0.1:{self.server.server_port}", "gth_x", retries=0)
        return Gate(client, **{"patience": 20, "lease": 1, **options})

    def tool(self, function, operation="pay"):
        return self.gate.tool(action_type="x", target="t/1", connector="c", operation=operation)(function)

    def lease_once(self, operation="pay"):
        push = {"push": {"id": "psh_1", "connector": "c"}, "lease": {"generation": 1}, "action_id": "act_1",
                "operation": operation, "target": {"entity_type": "t", "entity_ref": "1"}, "proposed_change": {}}
        left = [[push]]
        self.routes["lease"] = lambda: (200, {}, left.pop() if left else [])

    def finish(self, status, **more):
        self.routes["act_1"] = lambda: (200, {}, {"id": "act_1", "status": status, **more})
        return OK

    def count(self, name):
        return [seen for seen, _ in self.seen].count(name)

    def body(self, name):
        return next(body for seen, body in self.seen if seen == name)

    def test_a_result_is_reported_as_soon_as_the_gate_answers_again(self):
        self.lease_once()
        before = []

        def complete():
            before.append(self.count("heartbeat"))
            return BUSY if before[-1] < before[0] + 2 else self.finish("applied")

        self.routes["complete"] = complete
        call = Call(self.tool(lambda: "paid")).end()
        self.assertEqual((call.error, call.result), (None, "paid"))
        self.assertEqual(self.body("lease")["operations"], {"c": ["pay"]})  # other programs carry out the rest

    def test_a_server_without_operations_is_asked_without_them(self):
        self.lease_once()
        lease = self.routes["lease"]
        self.routes["lease"] = lambda: (
            (400, {}, {"code": "malformed", "retryable": False}) if "operations" in self.seen[-1][1] else lease())
        call = Call(self.tool(lambda: "paid")).end()
        self.assertEqual((call.error, call.result), (None, "paid"))

    def test_a_result_is_not_reported_after_the_end_of_its_lease(self):
        self.lease_once()
        self.routes.update({"heartbeat": lambda: (0, {}, {}), "fail": lambda: (0, {}, {})})
        self.finish("unknown", failure={})

        def broken():
            raise RuntimeError("broke")

        self.assertIsInstance(Call(self.tool(broken)).end().error, Unknown)
        self.assertGreater(self.count("fail"), 1)

    def test_a_refused_report_is_not_repeated(self):
        self.lease_once()
        self.routes["complete"] = lambda: (409, {}, {"code": "lease_lost", "retryable": False})
        self.finish("unknown", failure={})
        self.assertIsInstance(Call(self.tool(lambda: "paid")).end().error, Unknown)
        self.assertEqual(self.count("complete"), 1)

    def test_another_process_applies_what_failed_here(self):
        self.lease_once()
        receipt = {"response_metadata": {"result": "paid there"}}
        self.routes["fail"] = lambda: self.finish("applied", receipt=receipt)

        def busy():
            raise NoEffect("busy", retry=True)

        call = Call(self.tool(busy)).end()
        self.assertEqual((call.error, call.result), (None, "paid there"))

    def test_another_process_carries_out_what_this_key_may_not(self):
        applied = {**APPROVED[2], "status": "applied", "receipt": {"response_metadata": {"result": "paid there"}}}
        for code in ("role_required", "worker_not_allowed"):
            self.gate = self.make()
            self.seen.clear()
            self.routes["lease"] = lambda: (403, {}, {"code": code, "retryable": False})
            self.routes["act_1"] = lambda: APPROVED if self.count("act_1") < 3 else (200, {}, applied)
            call = Call(self.tool(lambda: "paid here")).end()
            self.assertEqual((call.error, call.result, self.count("lease")), (None, "paid there", 1))
            with self.assertRaises(APIError) as refused:
                self.gate.work(threading.Event())
            self.assertEqual(refused.exception.code, code)

    def test_a_key_that_may_not_report_ends_the_call(self):
        self.lease_once()
        self.routes["complete"] = lambda: (403, {}, {"code": "role_required", "retryable": False})
        self.assertEqual(getattr(Call(self.tool(lambda: "paid")).end().error, "code", None), "role_required")

    def test_a_heartbeat_that_hangs_does_not_hold_up_the_next(self):
        self.lease_once()
        second, over = threading.Event(), threading.Event()
        self.addCleanup(over.set)

        def heartbeat():
            if self.count("heartbeat") == 1:
                over.wait(60)
                return (0, {}, {})
            second.set()
            return OK

        self.routes["heartbeat"] = heartbeat
        self.assertTrue(Call(self.tool(lambda: second.wait(30))).end().result)

    def test_a_pause_ends_with_the_patience(self):
        self.gate = self.make(patience=0.5)
        self.routes["lease"] = lambda: (503, {"Retry-After": "3600"}, {"code": "busy", "retryable": True})
        self.assertIsInstance(Call(self.tool(lambda: None)).end().error, Waiting)

    def test_a_call_in_an_event_loop_carries_out_an_async_function(self):
        self.lease_once("later")

        async def later():
            await asyncio.sleep(0)
            return "paid later"

        async def go():
            return pay()

        pay = self.tool(lambda: None)
        self.tool(later, "later")
        self.assertEqual(asyncio.run(go()), "paid later")
        self.assertEqual(self.body("complete")["response_metadata"], {"result": "paid later"})

    def test_what_a_plain_function_returns_is_awaited(self):
        async def really():
            await asyncio.sleep(0)
            return "paid"

        async def go():
            return await self.tool(other, "other")()

        async def other():
            return None

        self.lease_once()
        pay = self.tool(lambda: really())
        self.assertEqual(pay(), "paid")
        self.finish("approved")
        self.lease_once()
        self.assertEqual(asyncio.run(go()), "paid")
        reports = [body["response_metadata"] for name, body in self.seen if name == "complete"]
        self.assertEqual(reports, [{"result": "paid"}] * 2)

    def test_a_generator_is_refused(self):
        def plain():
            yield 1

        async def later():
            yield 1

        for function in (plain, later):
            with self.assertRaisesRegex(TypeError, "cannot be a generator"):
                self.tool(function)

    def test_an_exit_reaches_the_waiting_task(self):
        async def go():
            asyncio.get_running_loop().call_later(30, asyncio.current_task().cancel)
            await _in_thread(sys.exit, 3)

        with self.assertRaises(SystemExit) as exit:
            asyncio.run(go())
        self.assertEqual(exit.exception.code, 3)

    def test_the_code_of_a_failure(self):
        for error, kind, code in (
            (NoEffect("closed", "closed"), "terminal", "closed"), (NoEffect("x", ""), "terminal", "refused"),
            (NoEffect("x", "ö" * 40, retry=True), "not_sent", "ö" * 32),
            (NoEffect("x", "a" + "ö" * 40), "terminal", "a" + "ö" * 31), (NoEffect("x", "a\0"), "terminal", "a\ufffd"),
            (type("Ü" * 40, (Exception,), {})("x"), "ambiguous", "Ü" * 32),
        ):
            got = _failure(error)
            self.assertEqual((got["kind"], got["code"]), (kind, code))

    def test_the_limit_of_a_result_is_in_bytes(self):
        self.assertEqual(_receipt("猫" * 4000), {"result": "猫" * 4000})
        self.assertEqual(list(_receipt("猫" * 4096)), ["not_kept"])


if __name__ == "__main__":
    unittest.main()
