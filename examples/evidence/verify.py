"""Usage: python3 verify.py [SIZE ROOT] < entries

Entries: pages of GET /api/v1/audit/entries, or one entry per line, from 0 on.
SIZE and ROOT: a head that you kept; without them the head is printed.
"""
import base64, hashlib, json, sys

class Number(str):
    """A JSON number, kept digit for digit."""

def canonical(v):
    if isinstance(v, Number):
        return str(v)
    if isinstance(v, dict):
        members = sorted(v.items(), key=lambda m: m[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(k) + ":" + canonical(x) for k, x in members) + "}"
    if isinstance(v, list):
        return "[" + ",".join(map(canonical, v)) + "]"
    return json.dumps(v, ensure_ascii=False)  # strings, true, false, null

def entries(text):
    decoder = json.JSONDecoder(parse_int=Number, parse_float=Number)
    text = text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        yield from value.get("items", [value])
        text = text[end:].lstrip()

def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def b64(h):
    return base64.b64encode(h).decode()

def root(subtrees):
    if not subtrees:
        return sha256()
    h = subtrees[-1][1]
    for _, left in reversed(subtrees[:-1]):
        h = sha256(b"\x01", left, h)
    return h

kept = (int(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 1 else None
count, subtrees, proven = 0, [], False  # subtrees: (size, hash), the largest first
if kept and kept[0] == 0:
    proven = b64(root(subtrees)) == kept[1]
for e in entries(sys.stdin.buffer.read().decode()):
    if int(e["index"]) != count:
        sys.exit(f"entry {count} is missing: entry {e['index']} comes next")
    h = sha256(b"\x00", canonical(e["leaf"]).encode())
    if b64(h) != e["leaf_hash"]:
        sys.exit(f"entry {count}: its bytes give {b64(h)}, it says {e['leaf_hash']}")
    size = 1
    while subtrees and subtrees[-1][0] == size:
        h = sha256(b"\x01", subtrees.pop()[1], h)
        size *= 2
    subtrees.append((size, h))
    count += 1
    if kept and kept[0] == count:
        proven = b64(root(subtrees)) == kept[1]
        if not proven:
            sys.exit(f"the first {count} entries give {b64(root(subtrees))}, you kept {kept[1]}")
if kept and not proven:
    sys.exit(f"{kept[0]} entries and the root {kept[1]} were expected, {count} entries found")
print(count, b64(root(subtrees)))
