"""Runs the snippets of docs/sdks.md unchanged, against the real server."""

import pathlib
import re
import unittest

from world import Call, Reviewer

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "sdks.md"


class PageTest(unittest.TestCase):
    def test_page(self):
        blocks = re.findall(r"(?s)```python\n(.*?)```", PAGE.read_text(encoding="utf-8"))
        self.assertEqual(len(blocks), 3)
        names = {"__name__": "page"}
        exec(blocks[0], names)
        reviewer = Reviewer()
        call = Call(exec, blocks[1], names)
        while call.is_alive():
            page = reviewer.client._call("GET", "/proposed-actions", query={"status": "pending"})
            for action in page["items"]:
                if action["target"].get("entity_ref") == "ord_1042":
                    reviewer.decide(action, "approved")
            call.join(0.05)
        self.assertIsNone(call.end().error)
        self.assertEqual(names["said"], "refunded 12.50 EUR")
        exec(blocks[2], names)
        with self.assertRaises(Exception):
            names["receive"]({}, b"{}")
