"""The whole way of a call with the client that openapi-python-client made."""

import os

from generated import AuthenticatedClient, models
from generated.api.admin import create_token, lift_freeze, list_deliveries, list_tokens, revoke_token
from generated.api.health import healthz, readyz
from generated.api.people import edit, freeze, get_grant, history, list_freezes, list_grants, list_requests, revoke_grant, vote
from generated.api.runtime import ask_question, cancel, consume, decide, get_request, open_request
from generated.api.watch import checkpoint, proof, stats
from generated.types import UNSET

AGENT = "trading-desk"
clients = {name: AuthenticatedClient(base_url=os.environ["url"], token=os.environ[name]) for name in ("runtime", "mara", "omar", "admin")}
calls = []


def ask(operation, who, *args, status=200, **kwargs):
    """Calls an operation, and returns what its generated types make of the answer."""
    calls.append(operation.__name__)
    answer = operation.sync_detailed(*args, client=clients[who], **kwargs)
    assert answer.status_code == status, f"{operation.__name__}: {answer.status_code} {answer.content!r}"
    assert (answer.parsed is None) == (answer.content == b""), f"{operation.__name__}: not parsed: {answer.content!r}"
    return answer.parsed


def trade(amount, **more):
    args = {"amount": amount, "currency": "USD"}
    return models.Call(kind=models.CallKind.TOOL, tool="execute_trade", args=args, session="s-17", **more)


def opened(amount, status=201):
    return ask(open_request, "runtime", AGENT, status=status, body=models.OpenBody(call=trade(amount)))


def votes(request, who, status=200, **more):
    body = models.VoteBody(verdict=models.Verdict.APPROVE, binding=request.revisions[-1].binding, shown_fully=True, **more)
    return ask(vote, who, request.id, status=status, body=body, if_match=f'"{request.version}"')


def consumes(request, key, status=200):
    return ask(consume, "runtime", request.id, status=status, body=models.ConsumeBody(key=key, binding=request.revisions[-1].binding))


def administers(operation, status=200, **kwargs):
    """Asks for an act of administration, has two administrators approve it, and does it."""
    asked = ask(operation, "admin", status=202, **kwargs).request
    assert votes(votes(asked, "mara").request, "omar").outcome == "approved"
    return ask(operation, "admin", status=status, **kwargs)


assert ask(decide, "runtime", AGENT, body=models.Call(kind=models.CallKind.TOOL, tool="get_quote", args={"symbol": "ACME"})).outcome == "allow"
denied = ask(decide, "runtime", AGENT, body=models.Call(kind=models.CallKind.TOOL, tool="wire_funds", args={}))
assert denied.outcome == "deny" and denied.reasons[0].detail

# Two people approve, and it runs once.
request = opened(20000).request
assert ask(list_requests, "mara", mine=True, state="pending").requests[0].id == request.id
assert votes(request, "mara").outcome == "counted"
assert votes(request, "omar", status=412).code == "version_mismatch"
request = ask(get_request, "omar", request.id, wait="10ms")
assert votes(request, "omar").outcome == "approved"
assert consumes(request, "run-1").state == "consumed"
assert consumes(request, "run-2", status=409).code == "consumed"
assert ask(history, "mara", request.id).entries

# An edit is a new call; the grant that comes with its approval covers the next one.
request = opened(12000).request
body = models.EditBody(arguments='{"amount": 11000, "currency": "USD"}', binding=request.revisions[-1].binding, reason="less", shown_fully=True)
assert ask(edit, "mara", request.id, body=body, if_match=f'"{request.version}"', preview=True).changes
edited = ask(edit, "mara", request.id, body=body, if_match=f'"{request.version}"')
assert edited.voted.request.state == "approved", edited
assert consumes(edited.voted.request, "run-3").revisions[-1].call.args == '{"amount": 11000, "currency": "USD"}'
request = opened(13000).request
voted = votes(request, "mara", grant=models.GrantOffer(session=True, max_age="1h", max_uses=2))
assert voted.outcome == "approved" and voted.grant
assert consumes(ask(get_request, "runtime", request.id), "run-4").state == "consumed"
granted = opened(13000, status=200)
assert granted.outcome == "granted" and granted.grant.uses == 1, granted
assert ask(get_grant, "mara", granted.grant.id).max_uses == 2 and ask(list_grants, "mara", all_=True).grants
assert ask(revoke_grant, "mara", granted.grant.id, body=models.ReasonBody(reason="enough")).revoked

# A question, a cancellation, a freeze.
question = models.Question(asker="files", prompt="Which?", choices=["a", "b"], default=1, groups=["risk"])
asked = ask(ask_question, "runtime", AGENT, status=201, idempotency_key="q-1", body=models.AskBody(call=trade(1), question=question, within="5m")).request
choice = models.VoteBody(verdict=models.Verdict.CHOOSE, binding=asked.revisions[-1].binding, shown_fully=True, choice=0)
assert ask(vote, "mara", asked.id, body=choice, if_match=f'"{asked.version}"').outcome == "answered"
assert ask(get_request, "runtime", asked.id).chosen == 0
assert ask(cancel, "runtime", opened(30000).request.id, body=models.ReasonBody(reason="no")).state == "cancelled"
assert ask(freeze, "mara", body=models.FreezeBody(agent=AGENT, reason="stop")).freezes
assert opened(1, status=200).denied == "frozen" and ask(list_freezes, "mara").freezes
assert not administers(lift_freeze, body=models.FreezeBody(agent=AGENT, reason="go")).freezes

made = administers(create_token, status=201, body=models.TokenBody(name="x", scopes=[models.Scope.DECIDE], agents=["*"], expires_in="1h"))
assert made.secret.startswith("assent_") and len(ask(list_tokens, "admin").tokens) == 5
ask(revoke_token, "admin", made.token.id, status=204)
assert ask(list_deliveries, "admin").deliveries == [] and ask(stats, "mara").approvers
size = ask(checkpoint, "mara").size
assert size > 10 and ask(proof, "mara", size - 1).hashes is not None
assert ask(healthz, "mara").ok and ask(readyz, "mara").ok
assert ask(decide, "mara", AGENT, status=403, body=trade(1)).code == "missing_scope"
assert UNSET is models.Call(kind=models.CallKind.TOOL).args
print(f"Python: {len(calls)} calls of {len(set(calls))} operations, every answer in its generated type")
