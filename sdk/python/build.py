"""Writes the wheel and the sdist of this package: build.py OUTPUT

The package contains only Python files, so a wheel is a zip of them with three metadata
files (https://packaging.python.org/specifications/binary-distribution-format/), and an
sdist is a tar of the sources. This script writes both with the standard library, and
the same sources give the same bytes. With a build backend, pyproject.toml works too.
"""

import base64
import gzip
import hashlib
import io
import pathlib
import re
import sys
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
THEN = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store


def project():
    """The name, version, minimum Python version and summary, from pyproject.toml."""
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    return [re.search(rf'(?m)^{name} = "([^"]+)"$', text).group(1)
            for name in ("name", "version", "requires-python", "description")]


def sources():
    return {f"gatehouse/{p.name}": p.read_bytes() for p in sorted((HERE / "gatehouse").iterdir())
            if p.suffix == ".py" or p.name == "py.typed"}


def main(out):
    name, version, python, summary = project()
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    metadata = (f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\nSummary: {summary}\n"
                f"Requires-Python: {python}\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n"
                f"Description-Content-Type: text/markdown\n\n{readme}").encode()
    licence = (HERE.parents[1] / "LICENSE").read_bytes()

    info = f"{name}-{version}.dist-info"
    files = {**sources(), f"{info}/licenses/LICENSE": licence, f"{info}/METADATA": metadata,
             f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: gatehouse-build\nRoot-Is-Purelib: true\n"
                              b"Tag: py3-none-any\n"}
    record = "".join(f"{path},sha256={_digest(body)},{len(body)}\n" for path, body in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    wheel = out / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, body in files.items():
            entry = zipfile.ZipInfo(path, THEN)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, body)

    files = {**sources(), "LICENSE": licence, "PKG-INFO": metadata}
    files.update({f: (HERE / f).read_bytes() for f in ("README.md", "build.py", "pyproject.toml")})
    sdist = out / f"{name}-{version}.tar.gz"
    with open(sdist, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped, \
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, body in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size, entry.mode = len(body), 0o644
            archive.addfile(entry, io.BytesIO(body))
    print(wheel.name, sdist.name, sep="\n")


def _digest(body):
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
