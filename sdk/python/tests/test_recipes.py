"""Runs the recipe for Pydantic AI against the real server, with a fake of the framework."""

import importlib.util
import pathlib
import sys
import unittest

from world import Call, Reviewer

_HERE = pathlib.Path(__file__).parent


def _recipe():
    sys.path.insert(0, str(_HERE / "fakes"))
    try:
        path = _HERE.parents[2] / "examples" / "agents" / "pydantic-ai.py"
        spec = importlib.util.spec_from_file_location("pydantic_ai_recipe", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.pop(0)


class PydanticAI(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recipe, cls.reviewer = _recipe(), Reviewer()

    def start(self, order, run, amount="12.50"):
        def model(messages):
            if messages == ["Refund it."]:
                part = sys.modules["pydantic_ai"].ToolCallPart
                return part("refund", {"order_id": order, "amount": amount}, "call_1")
            return "the tool said: " + messages[-1]

        return Call(self.recipe.agent, model, "Refund it.", run)

    def test_approved(self):
        call = self.start("P-1", "run-1")
        action = self.reviewer.pending("P-1")
        self.assertEqual(action["proposed_change"], {"order_id": "P-1", "amount": "12.50"})
        self.reviewer.decide(action, "approved")
        self.assertEqual((call.end().error, call.result), (None, "the tool said: refunded 12.50 EUR for P-1"))

    def test_rejected(self):
        call = self.start("P-2", "run-2")
        self.reviewer.decide(self.reviewer.pending("P-2"), "rejected", "ask the shop first")
        self.assertEqual((call.end().error, call.result), (None, "the tool said: rejected: ask the shop first"))

    def test_edited_arguments_do_not_run(self):
        call = self.start("P-3", "run-3")
        action = self.reviewer.pending("P-3")
        self.assertRegex(self.start("P-3", "run-3", amount="9000.00").end().result, "duplicate_key")
        self.reviewer.decide(action, "approved")
        self.assertRegex(call.end().result, "refunded 12.50 EUR")


if __name__ == "__main__":
    unittest.main()
