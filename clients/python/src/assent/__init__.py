"""Client of an assent server: an agent's call is decided, people are asked where they must be, and what runs is what was approved."""

from .call import key_of, tool
from .client import AsyncClient, Client
from .errors import (
    AssentError,
    CallError,
    NotRun,
    ProblemError,
    StillPending,
    UnreachableError,
    UnreadableError,
    told,
)
from .guard import guard
from .models import Decision, Opened, Problem, Request
from .protocol import Asking, Options, Taken
from .sse import FROM_NOW, FROM_START, Event
from .webhook import Message, Receiver, Replayed, WebhookError

__all__ = [
    "FROM_NOW", "FROM_START", "Asking", "AssentError", "AsyncClient", "CallError", "Client", "Decision", "Event", "Message",
    "NotRun", "Opened", "Options", "Problem", "ProblemError", "Receiver", "Replayed", "Request", "StillPending", "Taken",
    "UnreachableError", "UnreadableError", "WebhookError", "guard", "key_of", "told", "tool",
]  # fmt: skip
