"""Types of the HTTP API. Generated from server/openapi/openapi.yaml by dev/generate.py: don't edit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel


class ContextItem(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    label: Annotated[str, Field(description="visible characters", max_length=100, min_length=1)]
    text: Annotated[str | None, Field(max_length=65536)] = None
    link: Annotated[
        str | None,
        Field(description="an https address in ASCII, without a user name or password in it", max_length=2000),
    ] = None
    diff: Annotated[
        str | None, Field(description="a unified diff whose hunks have the lines that they say", max_length=65536)
    ] = None


class Choice(RootModel[str]):
    root: Annotated[str, Field(max_length=4096)]


class Group(RootModel[str]):
    root: Annotated[str, Field(max_length=1024, min_length=1)]


class Question(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    asker: Annotated[
        str, Field(description="the name under which the tool server is registered", max_length=1024, min_length=1)
    ]
    prompt: Annotated[str, Field(max_length=65536)]
    choices: Annotated[
        list[Choice] | None,
        Field(
            description="labels in the tool's order; they may be equal or empty, the index decides",
            max_length=10000,
            min_length=1,
        ),
    ] = None
    default: Annotated[int | None, Field(description="index of the choice that a dismissal picks", ge=0, le=9999)] = (
        None
    )
    schema_: Annotated[
        dict[str, Any] | None,
        Field(
            alias="schema",
            description="A flat JSON Schema, as MCP's form mode has it: an object whose properties are texts (length, pattern of RE2, format email, uri, date or date-time), numbers,\nbooleans, and lists of options (enum, or oneOf or items.anyOf with const and title); or one text (`type: string`). Nothing nested, no `$ref`, no field for a\npassword or key. Dismissing it gives no answer.\n",
        ),
    ] = None
    groups: Annotated[
        list[Group] | None,
        Field(
            description="One person of any of these answers, and none of those who may not approve the call. Without groups it is the user who is asked: the\ncall's principal and nobody else, or any approver where it names none.\n",
            max_length=50,
        ),
    ] = None


class UnfillableItem(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    group: Annotated[str, Field(description='every approver when ""')]
    need: Annotated[int, Field(description="people")]
    have: Annotated[int, Field(description="people who could fill the stage beside all others")]


class History(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    measure: str
    of: Annotated[str | None, Field(description="the argument of sum and distinct")] = None
    used: Annotated[str, Field(description="by past calls, a decimal number")]
    this: Annotated[str | None, Field(description="what this call adds; absent if it does not count")] = None
    bound: Annotated[str | None, Field(description="such as `gt 20000`; absent for exists")] = None
    currency: Annotated[str | None, Field(description="the code, if only one currency counts")] = None
    window: Annotated[str, Field(description="such as `24h` or `day Europe/Berlin`")]
    doubtful: Annotated[int | None, Field(description="past calls of which it is not known whether they count")] = None


class Matcher(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    group: int
    key: str
    test: str
    truth: str
    why: str
    seen: str
    line: int | None = None
    column: int | None = None
    history: Annotated[History | None, Field(description="The numbers that a test of past calls compared.")] = None


class Reason(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    source: str
    policy: str | None = None
    rule: str | None = None
    code: str
    detail: Annotated[str, Field(description="one sentence; classes of values, never values")]
    description: Annotated[
        str | None, Field(description="what the rule is for, in the words of the policy's author")
    ] = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    matchers: list[Matcher] | None = None


class EscalateItem(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    after: str
    to: str
    may: Annotated[str | None, Field(description="`look`: they may deny or answer, and fill no seat")] = "approve"


class Arguments(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    redact: list[str]
    approve_hidden: Annotated[bool | None, Field(description="false: nobody can approve while a value is hidden")] = (
        True
    )


class ReasonRule1(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    pattern: Annotated[str | None, Field(description="RE2 expression that the reason must match")] = None
    patterns: Annotated[list[str] | None, Field(description="several of them, all of which it must match")] = None


class StandIn(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    after: str
    group: str


class Stage(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    group: Annotated[str, Field(description='every approver when ""')]
    people: Annotated[int, Field(ge=1)]
    stand_ins: Annotated[
        list[StandIn] | None,
        Field(description="groups whose members may fill seats as well, some time after the request was opened"),
    ] = None


class Requester(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    runtime: str
    person: Annotated[str | None, Field(description="whose token that is")] = None
    principal: str | None = None
    session: str | None = None
    also: Annotated[
        list[str] | None,
        Field(
            description="further tokens that asked for the very same call meanwhile; each may read, consume and cancel the request",
            max_length=50,
        ),
    ] = None
    also_people: Annotated[
        list[str] | None, Field(description='whose tokens those are, in the same order; "" where nobody\'s')
    ] = None
    unknown_principal: Annotated[
        bool | None, Field(description="nobody is known by the principal's name, so one more person is asked")
    ] = None
    owners: list[str] | None = None


class Agent(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    id: str
    version: str | None = None
    name: str | None = None
    description: str | None = None


class LadderItem(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    at: AwareDatetime
    kind: str
    to: str | None = None


class Permit(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    expires: AwareDatetime
    key: str | None = None
    by: str | None = None
    consumed: AwareDatetime | None = None
    audience: Annotated[
        str | None, Field(description="the tool that checks the signed permit; absent where it checks none")
    ] = None
    until: Annotated[AwareDatetime | None, Field(description="when the signed permit is over")] = None
    signed: Annotated[
        str | None,
        Field(
            description="in the answer to consume, for a tool that checks permits: a JWS in the compact form to hand to it (docs/contracts/permits.md)"
        ),
    ] = None


class Workspace(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    root: Annotated[str | None, Field(description="absolute path of the workspace")] = None
    directory: Annotated[
        str | None, Field(description="absolute path of the directory of the call; root without it")
    ] = None
    outside: Annotated[list[str] | None, Field(description="paths, as the call has them, that a link leads out")] = None
    secrets: Annotated[
        list[str] | None,
        Field(
            description="files with secrets, below root, as far as the call may search them; absent if nobody looked"
        ),
    ] = None
    incomplete: Annotated[str | None, Field(description="why secrets may lack files that the call searches")] = None
    sensitive: Annotated[
        list[str] | None,
        Field(description="paths, as the call has them, that a link leads to a file with secrets or settings"),
    ] = None
    installed: Annotated[list[str] | None, Field(description="programs that npx runs without downloading them")] = None
    foreign: Annotated[
        str | None, Field(description="why git would use another repository than that of the workspace")
    ] = None
    unknown: Annotated[str | None, Field(description="why the workspace is not known")] = None


class Bound(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    path: str
    kind: str
    value: Annotated[
        str | None,
        Field(
            description="another text, a prefix, a directory, a host with its port, or the words of a command line in which * stands for others",
            max_length=1024,
            min_length=1,
        ),
    ] = None


class Example(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    path: str
    text: Annotated[str, Field(description="a text without quotes, or a number")]
    covered: bool


class Rule(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    source: str
    policy: str | None = None
    rule: str | None = None


class Leaf(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    actor: str
    facts: dict[str, Any]
    sealed: dict[str, str]
    subject: str
    tenant: str
    time: AwareDatetime
    type: str
    v: Literal[1]


class Problem(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    type: Annotated[str, Field(description="urn:assent:problem: and the code")]
    title: Annotated[str, Field(description="the code in words")]
    status: Annotated[int, Field(description="of the answer")]
    detail: Annotated[str | None, Field(description="what was wrong here, and how to mend it")] = None
    code: Annotated[
        str, Field(description="What went wrong. Codes may grow in number; a code never changes its meaning.")
    ]
    next_action: Annotated[
        str,
        Field(
            description="What a runtime does next: `retry` the same later (after reading again, where a version is at fault); open a new `request`;\nor `none`, tell the agent.\n"
        ),
    ]
    retry_after: Annotated[int | None, Field(description="seconds", ge=0)] = None
    outcome: Annotated[
        str | None, Field(description="on the way to running a call, every error means: do not run it")
    ] = None
    state: Annotated[
        str | None,
        Field(
            description="`expired` is never reported as `denied`, nor `cancelled` as either. Only a question is `answered`; it is never approved, denied or consumed."
        ),
    ] = None
    request: Annotated[str | None, Field(description="id of the request that it is about")] = None
    request_id: Annotated[str | None, Field(description="of this exchange")] = None
    field: Annotated[str | None, Field(description="which field of the body, header or query")] = None


class GrantLimits1(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    session: bool | None = None
    max_age: str | None = None
    max_uses: int | None = None
    bounds: Annotated[list[Bound] | None, Field(description="what every rule that asks lets vary")] = None


class RecordedCall(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    kind: Annotated[str, Field(description="empty in a question that the agent asks by itself: there is no call")]
    tool: str | None = None
    server: str | None = None
    agent: str | None = None
    skill: str | None = None
    args: Annotated[str, Field(description="JSON text")]
    parent_input: Annotated[str | None, Field(description="JSON text")] = None
    annotations: dict[str, bool] | None = None
    declared: Annotated[list[str] | None, Field(description="arguments that the input schema of the tool declares")] = (
        None
    )
    remote: Annotated[bool | None, Field(description="absent when not stated")] = None
    principal: str | None = None
    session: str | None = None
    tool_definition: str | None = None
    workspace: Workspace | None = None


class Grant1(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    session: bool | None = None
    max_age: Annotated[str | None, Field(description="how long it lives, such as 8h")] = None
    max_uses: int | None = None
    bounds: list[Bound] | None = None


class Vote(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    person: str
    verdict: Annotated[
        str,
        Field(
            description="`respond`: do not run it; the agent is told `response` instead. For questions: `choose` one, `submit` the text or form, or `dismiss`, which picks the default of choices"
        ),
    ]
    revision: int
    binding: Annotated[str, Field(description="what the person saw")]
    reason: str | None = None
    channel: str
    groups: list[str] | None
    shown_fully: bool
    hidden: Annotated[list[str] | None, Field(description="paths of values that policy hid when it was shown")] = None
    token: Annotated[
        str | None, Field(description="name of the token that the answer came by; absent when the person was signed in")
    ] = None
    chosen: Annotated[int | None, Field(description="for choose and dismiss: index of the choice", ge=0)] = None
    data: Annotated[dict[str, Any] | str | None, Field(description="for submit: the answer, in canonical JSON")] = None
    late: Annotated[bool | None, Field(description="after the end; kept for the audit")] = None
    also: Annotated[
        int | None,
        Field(
            description="how many further runtimes (requester.also) the person was shown; the vote counts while no more have joined"
        ),
    ] = None
    grant: Grant1 | None = None
    at: AwareDatetime


class Grant(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    id: str
    tenant: str
    agent: str
    target: str
    call: RecordedCall
    plan: str
    bounds: list[Bound] | None
    ignored: Annotated[
        list[str] | None, Field(description="arguments that are not compared if they are texts, null or missing")
    ] = None
    examples: Annotated[
        list[Example] | None,
        Field(description="of each bounded argument up to two values that are covered, and one that is not"),
    ] = None
    session: str
    runtimes: Annotated[list[str], Field(description="names of the tokens that asked, which alone may use it")]
    runtime_people: Annotated[
        list[str] | None, Field(description='whose tokens those are, in the same order; "" where nobody\'s')
    ] = None
    redact: Annotated[list[str] | None, Field(description="paths of arguments that channels hide")] = None
    rules: Annotated[
        list[Rule] | None,
        Field(
            description="the rules that asked when it was given; a call about which another rule asks is not covered"
        ),
    ]
    stages: Annotated[list[Stage] | None, Field(description="what the approval fulfilled")]
    any_of: Annotated[
        list[list[list[Stage]]] | None,
        Field(
            description="lists of alternatives, each a list of stages: one alternative of every list must be filled, next to `stages`"
        ),
    ] = None
    expires: AwareDatetime
    max_uses: int
    uses: int
    request: str
    by: list[str] | None
    created: AwareDatetime
    revoked: AwareDatetime | None = None
    revoked_by: str | None = None
    revoked_why: str | None = None


class Require(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    stages: list[Stage] | None = None
    within: str | None = None
    on_timeout: str
    escalate: list[EscalateItem] | None = None
    grants: Annotated[
        Any | GrantLimits1 | None, Field(description="What standing approvals may come out of a request.")
    ] = None
    arguments: Literal["full"] | Arguments
    any_of: Annotated[
        list[list[list[Stage]]] | None,
        Field(
            description="lists of alternatives, each a list of stages: one alternative of every list must be filled, next to `stages`"
        ),
    ] = None
    reason: Annotated[
        Literal["required"] | ReasonRule1 | None, Field(description="the reason that an approval needs")
    ] = None


class Decision(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    outcome: Literal["allow", "ask", "deny"]
    message: Annotated[str, Field(description="the author's words for the approver; never instead of the arguments")]
    reasons: list[Reason]
    require: Require | None = None
    missing_variables: list[str]
    binding: Annotated[str | None, Field(description="digest of exactly this call under exactly this plan")] = None
    configuration: Annotated[
        str | None, Field(description="digest of the decision configuration; absent without one")
    ] = None


class Revision(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    number: Annotated[int, Field(description="0 as asked", ge=0)]
    call: RecordedCall
    binding: str
    plan: Annotated[str, Field(description="version of the plan that decided")]
    decision: Decision
    message_from: Annotated[
        str | None,
        Field(
            description="whose template the message was made of; `default` when no rule has one and it was made from the call"
        ),
    ] = None
    hints_believed: Annotated[
        bool | None, Field(description="the hints about the tool come from a server that the runtime's owner trusts")
    ] = None
    ignored: Annotated[
        list[str] | None,
        Field(
            description="arguments that a standing approval of this call does not compare, as the runtime's owner declares them"
        ),
    ] = None
    author: Annotated[str | None, Field(description="the person who edited")] = None
    note: str | None = None
    at: AwareDatetime


class Request(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    id: str
    tenant: str
    version: Annotated[int, Field(description="grows with every change")]
    state: Annotated[
        str,
        Field(
            description="`expired` is never reported as `denied`, nor `cancelled` as either. Only a question is `answered`; it is never approved, denied or consumed."
        ),
    ]
    cause: Annotated[str | None, Field(description="why it left its last state")] = None
    by: Annotated[str | None, Field(description="person or runtime that brought the state about")] = None
    reason: Annotated[str | None, Field(description="their words")] = None
    response: Annotated[str | None, Field(description="what a person answers instead of letting it run")] = None
    created: AwareDatetime
    deadline: AwareDatetime
    decided: AwareDatetime | None = None
    closed: AwareDatetime | None = None
    due: Annotated[AwareDatetime | None, Field(description="when time itself next acts on it")] = None
    requester: Annotated[Requester, Field(description="who wants the call to run; none of them may answer")]
    agent: Agent
    question: Question | None = None
    chosen: Annotated[
        int | None, Field(description="index of the choice that was picked, once the state is answered", ge=0)
    ] = None
    data: Annotated[
        dict[str, Any] | str | None,
        Field(
            description="what was submitted, in canonical JSON, once the state is answered; absent where the question was dismissed"
        ),
    ] = None
    context: Annotated[
        list[ContextItem] | None,
        Field(
            description="What the agent says about its call or question: why it wants it, a link, the change it would make. These are the agent's words: every channel shows them\nbelow the facts and says whose they are. They decide nothing and are not bound; the log has their digest. 64 KiB together at most.\n",
            max_length=20,
        ),
    ] = None
    revisions: Annotated[
        list[Revision],
        Field(description="what was asked, and every edit since; the last one is what may run", min_length=1),
    ]
    stages: list[Stage] | None
    any_of: Annotated[
        list[list[list[Stage]]] | None,
        Field(
            description="lists of alternatives, each a list of stages: one alternative of every list must be filled, next to `stages`"
        ),
    ] = None
    needs_reason: Annotated[
        Literal["required"] | ReasonRule1 | None, Field(description="the reason that an approval needs")
    ] = None
    on_timeout: str
    within: Annotated[int | None, Field(description="from opening to the first deadline, in nanoseconds")] = None
    ladder: Annotated[list[LadderItem] | None, Field(description="reminders and escalations still to come")] = None
    called: Annotated[list[str] | None, Field(description="groups that escalation has called in")] = None
    grants: Annotated[
        Any | GrantLimits1 | None, Field(description="What standing approvals may come out of a request.")
    ] = None
    redact: Annotated[list[str] | None, Field(description="paths whose values channels hide")] = None
    forbid_hidden: Annotated[bool | None, Field(description="nobody can approve while a value is hidden")] = None
    lookers: Annotated[
        list[str] | None, Field(description="groups that escalation calls in to look, not to approve")
    ] = None
    votes: list[Vote] | None = None
    permit: Annotated[Permit | None, Field(description="the single-use right to run it")] = None
    grant: Annotated[str | None, Field(description="id of the standing approval that came out of it")] = None
    replaces: str | None = None
    replaced_by: str | None = None


class Opened(BaseModel):
    model_config = ConfigDict(
        extra="allow",
    )
    outcome: Annotated[
        Literal["allow", "deny", "granted", "pending"],
        Field(
            description="`allow` and `granted` run it, `deny` doesn't, `pending` waits for people; see the state of `request`, which may be decided already"
        ),
    ]
    decision: Decision
    binding: str | None = None
    request: Request | None = None
    grant: Grant | None = None
    shared: Annotated[bool | None, Field(description="an identical call had been asked before")] = None
    permit_age: Annotated[
        str | None,
        Field(
            description="how long an approval will wait to be used, `15m`; of a call that people are asked about, where there is a decision configuration"
        ),
    ] = None
    replace_permissions: Annotated[
        bool | None,
        Field(
            description="the rules allow the call, and the owner lets it run in a coding agent without the agent's own permission check"
        ),
    ] = None
    unfillable: Annotated[
        list[UnfillableItem] | None,
        Field(description="stages that nobody can fill as of now: the request can only be denied, or expire"),
    ] = None
    denied: Annotated[str | None, Field(description="why it is denied")] = None
