"""Tests the decorator and the client against the real server, with a person who decides."""

import asyncio
import threading
import time
import unittest

from gatehouse import APIError, Client, Denied, Failed, Gate, NoEffect, Rejected, Unknown, Waiting
from world import URL, Call, Reviewer


class GateTest(unittest.TestCase):
    def setUp(self):
        self.client, self.reviewer = Client(), Reviewer()
        self.gate = Gate(self.client, patience=60)
        self.runs = []

    def refund(self, operation="refund", fails=None, action_type="refund"):
        @self.gate.tool(action_type=action_type, target="order/{order}", connector="erp", operation=operation)
        def refund(order, amount="1.00"):
            self.runs.append((order, amount))
            if fails is not None:
                raise fails
            return {"refunded": amount}

        return refund

    def test_the_function_runs_once_approved(self):
        refund = self.refund()
        call = Call(refund, "A-1", "12.50")
        action = self.reviewer.pending("A-1")
        self.assertEqual(action["proposed_change"], {"order": "A-1", "amount": "12.50"})
        self.assertEqual(self.runs, [])
        self.reviewer.decide(action, "approved")
        self.assertEqual(call.end().error, None)
        self.assertEqual(call.result, {"refunded": "12.50"})
        self.assertEqual(refund("A-1", amount="12.50"), {"refunded": "12.50"})
        self.assertEqual(self.runs, [("A-1", "12.50")])
        self.assertEqual(self.client.get(action["id"])["status"], "applied")

    def test_a_result_that_the_gate_does_not_keep(self):
        deep = []
        for _ in range(40):
            deep = [deep]
        for ref, result in (("A-20", deep), ("A-21", "file-\udcff")):
            self.gate = Gate(self.client, patience=60)

            @self.gate.tool(action_type="refund", target="order/{order}", connector="erp", operation="refund")
            def refund(order):
                return result

            call = Call(refund, ref)
            action = self.reviewer.pending(ref)
            self.reviewer.decide(action, "approved")
            self.assertEqual((call.end().error, call.result), (None, result))
            self.assertEqual(self.client.get(action["id"])["status"], "applied")

    def test_two_equal_calls_at_once_run_the_function_once(self):
        refund = self.refund()
        calls = [Call(refund, "A-2"), Call(refund, "A-2")]
        self.reviewer.decide(self.reviewer.pending("A-2"), "approved")
        for call in calls:
            self.assertEqual((call.end().error, call.result), (None, {"refunded": "1.00"}))
        self.assertEqual(self.runs, [("A-2", "1.00")])

    def test_rejected_with_notes(self):
        call = Call(self.refund(), "A-3")
        self.reviewer.decide(self.reviewer.pending("A-3"), "rejected", "ask the shop first")
        self.assertIsInstance(call.end().error, Rejected)
        self.assertEqual(call.error.notes, ["ask the shop first"])
        self.assertEqual(self.runs, [])

    def test_denied(self):
        with self.assertRaises(Denied) as denied:
            self.refund(action_type="wipe")("A-4")
        self.assertTrue(denied.exception.reasons)
        self.assertEqual(self.runs, [])

    def test_what_a_failing_function_knows(self):
        for ref, fails, want in (("A-5", RuntimeError("broke"), Unknown), ("A-6", NoEffect("closed", "closed"), Failed)):
            self.gate = Gate(self.client, patience=60)
            call = Call(self.refund(fails=fails), ref)
            self.reviewer.decide(self.reviewer.pending(ref), "approved")
            self.assertIsInstance(call.end().error, want)
            self.assertIs(call.error.__cause__, fails)
            self.assertIn(str(fails), str(call.error))

    def test_a_function_that_asks_for_another_attempt_gets_one(self):
        @self.gate.tool(action_type="refund", target="order/{order}", connector="erp", operation="refund")
        def retried(order):
            self.runs.append(order)
            if len(self.runs) == 1:
                raise NoEffect("busy", retry=True)

        call = Call(retried, "A-11")
        self.reviewer.decide(self.reviewer.pending("A-11"), "approved")
        self.assertIsNone(call.end().error)
        self.assertEqual(self.runs, ["A-11", "A-11"])

    def test_an_async_function_runs_in_the_loop_of_its_caller(self):
        @self.gate.tool(action_type="refund", target="order/{order}", connector="erp", operation="refund")
        async def later(order):
            await asyncio.sleep(0)
            self.runs.append(threading.current_thread())
            return order

        async def both():
            one, two = asyncio.create_task(later("A-12")), asyncio.create_task(later("A-13"))
            for ref, decision in (("A-12", "approved"), ("A-13", "rejected")):
                self.reviewer.decide(await asyncio.to_thread(self.reviewer.pending, ref), decision)
            return await asyncio.gather(one, two, return_exceptions=True)

        one, two = asyncio.run(both())
        self.assertEqual(one, "A-12")
        self.assertIsInstance(two, Rejected)
        self.assertEqual(self.runs, [threading.main_thread()])

    def test_a_canceled_task_does_not_run_the_function(self):
        @self.gate.tool(action_type="refund", target="order/{order}", connector="erp", operation="refund")
        async def canceled(order):
            self.runs.append(order)

        async def go():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(canceled("A-14"), 0.5)
            return await canceled.propose("A-14")

        action = asyncio.run(go())
        self.reviewer.decide(action, "approved")
        time.sleep(1)
        self.assertEqual((self.client.get(action["id"])["status"], self.runs), ("approved", []))
        asyncio.run(canceled("A-14"))
        self.assertEqual(self.runs, ["A-14"])

    def test_a_revision_for_another_target_does_not_run(self):
        call = Call(self.refund(), "A-7")
        old = self.reviewer.pending("A-7")
        new = {m: old[m] for m in ("action_type", "connector", "operation", "target")}
        new = self.client.revise(old["id"], {**new, "proposed_change": {"order": "B-7", "amount": "1.00"}})
        self.reviewer.decide(new, "approved")
        self.assertIsInstance(call.end().error, Failed)
        self.assertEqual((call.error.code, self.runs), ("other_target", []))

    def test_patience_and_cancel(self):
        self.gate = Gate(self.client, patience=0.2)
        refund = self.refund()
        with self.assertRaises(Waiting) as waiting:
            refund("A-8")
        self.assertEqual(self.client.cancel(waiting.exception.action["id"])["status"], "canceled")

    def test_a_question_is_answered_where_the_agent_waits(self):
        action = self.refund().propose("A-20")
        asked = []

        def answer(question):
            asked.append(question["text"])
            return "the supplier raised it" if question["number"] == 1 else None

        call = Call(lambda: self.client.wait(action["id"], patience=60, until="decided", answer=answer))
        self.reviewer.ask(action, "why <so> much?")
        while len(self.client.get(action["id"]).get("comments", [])) < 2:
            time.sleep(0.05)
        self.reviewer.ask(action, "and tomorrow?")
        while len(asked) < 2:
            time.sleep(0.05)
        self.reviewer.decide(self.client.get(action["id"]), "rejected", "no")
        self.assertEqual(call.end().result["status"], "rejected")
        self.assertEqual(asked, ["why <so> much?", "and tomorrow?"])
        self.assertEqual([c["kind"] for c in call.result["comments"]], ["question", "answer", "question"])

    def test_a_connector_carries_it_out(self):
        @self.gate.tool(action_type="price_change", target="item/{sku}", connector="shop", operation="update",
                        run="connector", current_state=lambda sku, price: {"price": "10.00"})
        def set_price(sku, price):
            return {"price": price}

        call = Call(set_price, "SKU-1", "12.00")
        self.reviewer.decide(self.reviewer.pending("SKU-1"), "approved")
        self.assertEqual(call.end().error, None)
        self.assertEqual(call.result["status"], "applied")

    def test_wrong_key(self):
        self.gate = Gate(Client(URL, "gth_nobody"))
        with self.assertRaises(APIError) as refused:
            self.refund()("A-9")
        self.assertEqual((refused.exception.code, refused.exception.status), ("unauthenticated", 401))

    def test_arguments_without_a_text_for_the_target(self):
        for target, wrong in (("x/{a}", None), ("x/{a}", [1]), ("x/{a}", True), ("x/{b}", 1)):
            tool = Gate(self.client).tool(action_type="x", target=target, connector="erp", operation="refund")
            with self.assertRaisesRegex(TypeError, "no text for {[ab]} of the target"):
                tool(lambda a: a).propose(wrong)

    def test_arguments_that_are_no_json(self):
        for wrong in ((1, 2), {1: 2}, float("nan"), object()):
            with self.assertRaisesRegex(TypeError, "must be JSON values"):
                self.gate.tool(action_type="x", target="x/1", connector="erp", operation="refund")(lambda a: a)(wrong)
            self.gate = Gate(self.client)
