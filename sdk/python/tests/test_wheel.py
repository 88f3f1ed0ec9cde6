"""Compares the wheel and the sdist with their sources and metadata."""

import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import pathlib
import sys
import tarfile
import unittest
import zipfile

import gatehouse

BUILT = pathlib.Path(os.environ["WHEEL"])
SOURCES = pathlib.Path(__file__).parents[1]


class WheelTest(unittest.TestCase):
    def test_record(self):
        with zipfile.ZipFile(BUILT / "gatehouse-0.1.0-py3-none-any.whl") as wheel:
            record = wheel.read("gatehouse-0.1.0.dist-info/RECORD").decode()
            listed = {path: (digest, size) for path, digest, size in csv.reader(io.StringIO(record))}
            self.assertEqual(set(listed), set(wheel.namelist()))
            for path, (digest, size) in listed.items():
                if path.endswith("/RECORD"):
                    continue
                body = wheel.read(path)
                want = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), ("sha256=" + want, str(len(body))))
            for source in (SOURCES / "gatehouse").iterdir():
                if source.is_file():
                    self.assertEqual(wheel.read("gatehouse/" + source.name), source.read_bytes())

    def test_metadata(self):
        self.assertNotIn(str(SOURCES), sys.modules["gatehouse"].__file__)
        found = importlib.metadata.metadata("gatehouse")
        self.assertEqual((found["Version"], found["Requires-Python"]), ("0.1.0", ">=3.9"))
        self.assertIn("from gatehouse import Gate", found.get_payload())
        self.assertTrue(gatehouse.__all__)

    def test_sdist(self):
        with tarfile.open(BUILT / "gatehouse-0.1.0.tar.gz") as sdist:
            names = sdist.getnames()
        for name in ("pyproject.toml", "PKG-INFO", "LICENSE", "gatehouse/gate.py", "gatehouse/py.typed"):
            self.assertIn("gatehouse-0.1.0/" + name, names)
