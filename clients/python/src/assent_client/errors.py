"""Errors of this package, and the sentences that tell a model about a call that failed."""

from __future__ import annotations

from datetime import timezone

from .models import Opened, Problem, Request


class AssentError(Exception):
    """Every error of this package."""


class CallError(AssentError, ValueError):
    """The call, or what was given beside it, can't be presented as it is."""


class MisuseError(AssentError):
    """The program uses this package in a way that can't work. Adapters raise it and tell the model nothing."""


class UnreachableError(AssentError):
    """The server gave no answer."""


class UnreadableError(AssentError):
    """The server's answer makes no sense, so nothing may run."""


class ProblemError(AssentError):
    """An error that the server gave; `problem` says what to do next."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(f"{problem.title} ({problem.code})" + (f": {problem.detail}" if problem.detail else ""))

    @property
    def code(self) -> str:
        return self.problem.code


class StillPending(AssentError):
    """Nobody has decided within the caller's time. The request stays open, and the same key goes on with it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        super().__init__("Not run. People are still asked; nobody has decided yet.")


class NotRun(AssentError):
    """A call may not run. It is an answer, not a failure: tell the agent the text as it is, and don't try again."""

    def __init__(self, opened: Opened, request: Request | None = None) -> None:
        self.opened, self.request = opened, request
        super().__init__(_ended(request) if request else _denied(opened))


_CODES = {
    "consumed": "Not run again. The approval has been used already.",
    "frozen": "Not run. The agent is frozen by its operators. Do not try it again.",
}


_RAN = "_assent_ran"


def mark(error: BaseException, ran: bool) -> None:
    """Records on an error whether the guarded function had started. The last record counts."""
    object.__setattr__(error, _RAN, ran)  # also on errors that are frozen


def told(error: BaseException) -> str:
    """The sentence for the model about a call that failed. It says "Not run" only if the function did not start.

    An error of other packages is known to come before or after the start if guard, take or do raised it.
    """
    ran = getattr(error, _RAN, None)
    if ran:
        return f"It ran and failed ({type(error).__name__}). Find out what it has done before you try it again."
    if ran is None and not isinstance(error, AssentError):
        return f"It failed ({type(error).__name__}), and it may have run. Find out before you try it again."
    return not_run(error)


def not_run(error: BaseException) -> str:
    """The sentence for the model about a call whose function did not start. A MisuseError is raised again."""
    if isinstance(error, MisuseError):
        raise error
    if isinstance(error, (NotRun, StillPending)):
        return str(error)
    if isinstance(error, ProblemError) and error.code in _CODES:
        return _CODES[error.code]
    if isinstance(error, AssentError):
        return f"Not run. It could not be established that this call may run: {error}"
    # The text of another package's error may hold what no model should read.
    return f"Not run. It could not be established that this call may run ({type(error).__name__})."


def _ended(r: Request) -> str:
    who, cause = r.by or "Somebody", r.cause or ""
    back = _because("Not run. The request was taken back", r.reason)
    if r.state == "denied":
        denied = _because(f"Not run. {who} denied this call", r.reason) + " Do not try it again."
        return "Not run. A person answered instead: " + r.response if r.response else denied
    if r.state != "expired":
        return {"cancelled": back, "consumed": _CODES["consumed"]}.get(r.state, f"Not run. The request is {r.state}.")
    until = r.deadline.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    late = _because(f"Not run. It was approved, and {who} denied it before it ran", r.reason)
    return {
        "deadline": f"Not run. Nobody decided about this call in time (until {until}). That is no denial.",
        "late_deny": late + " Do not try it again.",
        "permit_age": "Not run. It was approved, and the approval was not used in time. That is no denial.",
        "plan_changed": "Not run. It was approved, and the rules changed before it ran. It may be asked again.",
        "history": "Not run. It was approved, and calls that ran since then used up a limit. It may be asked again.",
        "superseded": "Not run. A newer request stands in its place.",
        "requester": back,
    }.get(cause, f"Not run. The request expired ({cause}).")


def _denied(o: Opened) -> str:
    if o.denied == "frozen":
        return _CODES["frozen"]
    text = "Not run. Policy denies this call"
    if o.denied == "cooling_down":
        text = "Not run. A person has just denied this same call"
    return _because(text, o.decision.message) + " Do not try it again."


def _because(text: str, reason: str | None) -> str:
    return f"{text}: {reason.rstrip('.')}." if reason else text + "."
