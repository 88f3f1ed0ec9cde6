"""Verification of webhooks by Standard Webhooks, v1 (https://www.standardwebhooks.com/)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import Any, Dict, Mapping, Optional

from .client import decimal
from .errors import InvalidSignature


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, tolerance: float = 300, now: Optional[float] = None
) -> Dict[str, Any]:
    """Verifies a webhook and returns its body as an object.

    secret is whsec_ and base64; a secret with several lines accepts a signature by any of
    them. body is the request's body byte for byte. tolerance is in seconds, now in seconds
    since 1970. A webhook may arrive twice, with the same webhook-id. Without a valid
    signature, it raises InvalidSignature; for a secret that is not base64, ValueError.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        name, at, given = (lower["webhook-" + part] for part in ("id", "timestamp", "signature"))
    except KeyError as missing:
        raise InvalidSignature(f"the header {missing.args[0]} is missing") from None
    if not (at.isascii() and at.isdigit() and len(at) < 20) or abs((time.time() if now is None else now) - int(at)) > tolerance:
        raise InvalidSignature("webhook-timestamp is too far from the time now")
    signed = f"{name}.{at}.".encode(errors="replace") + body
    valid = False
    for line in filter(None, map(str.strip, secret.splitlines())):
        try:
            key = base64.b64decode(line[6:] if line.startswith("whsec_") else line, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("a line of the secret is not base64") from None
        if not key:
            raise ValueError("a line of the secret is empty")
        want = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        for one in given.split():
            valid |= hmac.compare_digest(one.encode(errors="replace"), want)
    if not valid:
        raise InvalidSignature("no signature of webhook-signature fits")
    try:
        content = json.loads(body, parse_float=decimal)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InvalidSignature("the body is not a JSON object")
    return content
