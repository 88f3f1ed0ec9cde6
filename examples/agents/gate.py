import http.client, json, os, time, urllib.error, urllib.request

def call(path, body=None):
    """One call, made again while the gate is busy or out of reach. A POST is safe to
    repeat because the proposal has an idempotency_key."""
    for pause in (1, 2, 4, 8, 16, None):
        request = urllib.request.Request(os.environ["GATEHOUSE_URL"] + "/api/v1/proposed-actions" + path,
            json.dumps(body).encode() if body else None,
            {"Authorization": "Bearer " + os.environ["GATEHOUSE_KEY"], "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            problem = problem_of(refused)
            if problem["code"] == "invalid":
                return {"status": "invalid", "errors": problem["errors"]}
            if pause is None or not problem.get("retryable"):
                raise RuntimeError(f"{problem['code']}: {problem.get('detail', '')}") from None
            after = refused.headers.get("Retry-After", "")
            pause = int(after) if after.isdigit() else pause  # a proxy may name a date
        except (OSError, http.client.HTTPException):  # no connection, or half an answer
            if pause is None:
                raise
        time.sleep(pause)

def problem_of(refused):
    """The gate's problem; of another's answer, such as the page of a proxy, only the status."""
    try:
        if refused.headers.get_content_type() == "application/problem+json":
            return json.load(refused)
    except (OSError, http.client.HTTPException, ValueError):
        pass  # half an answer
    return {"code": f"HTTP {refused.code}", "detail": refused.reason, "retryable": refused.code >= 500}

def propose_change(task, tool_input, patience=3600):
    """Executes a tool call. Returns the action (without an id if it is "invalid"; the newest if others
    replaced it) and what to tell the model. task names this piece of work, such as ticket-4711-price;
    patience is in seconds."""
    proposal = {"connector": "shop", "operation": "update", "idempotency_key": task,
        "action_type": tool_input["action_type"],
        "target": {"entity_type": "item", "entity_ref": tool_input["entity_ref"]},
        "current_state": tool_input["current_state"], "proposed_change": tool_input["proposed_change"],
        "rationale": tool_input["rationale"]}
    action = call("", proposal)
    proposed, until = action.get("id"), time.monotonic() + patience
    while True:
        while action["status"] == "superseded" and action.get("superseded_by"):  # by a reviewer's edit, for example
            action = call("/" + action["superseded_by"])
        left = until - time.monotonic()
        if action["status"] not in ("pending", "approved", "pushing") or left <= 0:
            break
        action = call(f"/{action['id']}?wait={min(60, int(left) + 1)}s&until=finished")
    words = in_words(action)
    if action.get("id") != proposed:
        words = f"A revision took its place, which changes {json.dumps(action['proposed_change'])}. {words}"
    return action, words

def in_words(action):
    status = action["status"]
    if status == "invalid":
        errors = "; ".join(f"{e['pointer']} {e['detail']}" for e in action["errors"])
        return "Not proposed. Correct it and call again: " + errors
    if status == "applied":
        return "Applied."
    if status == "denied":
        return "Not allowed: " + "; ".join(action["policy"]["reasons"])
    if status == "rejected":
        votes = [v for v in action["approval"]["votes"] if v["decision"] == "rejected"]
        return "Rejected by a person: " + "; ".join(v.get("notes") or "no reason given" for v in votes)
    if status == "failed":
        why = action["failure"]
        hint = {"never": "Read the target again before you propose another change.",
            "later": "It is sent again when the target is up: do not propose it again.",
            "operator": "An operator looks into it: do not propose it again."}[why["retry"]]
        words = f"{why['code']}: {why['detail']} {why.get('target_says', '')}"
        return f"Approved, but it failed at the target: {words} {hint}"
    if status == "unknown":
        return "Sent, but nobody knows yet whether it took effect. Do not propose it again; a person looks into it."
    if status in ("pending", "approved", "pushing"):
        return f"Not decided yet ({action['id']}). Go on with other work, and ask again later."
    return f"It came to nothing: {status}."
