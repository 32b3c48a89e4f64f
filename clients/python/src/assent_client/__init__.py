"""Client of an assent server: decides an agent's calls, has people asked, and runs exactly what they approved."""

from importlib.metadata import version as _version

from .aio import AsyncClient
from .call import key_of, tool
from .errors import (
    AssentError,
    CallError,
    MisuseError,
    NotRun,
    ProblemError,
    StillPending,
    UnreachableError,
    UnreadableError,
    told,
)
from .guard import guard
from .models import Decision, Opened, Problem, Request
from .sse import FROM_NOW, FROM_START, Event
from .sync import Client
from .webhook import Message, Receiver, Replayed, WebhookError
from .wire import Asking, Options, Taken

__version__ = _version("assent-client")

__all__ = [
    "FROM_NOW", "FROM_START", "Asking", "AssentError", "AsyncClient", "CallError", "Client", "Decision",
    "Event", "Message", "MisuseError", "NotRun", "Opened", "Options", "Problem", "ProblemError", "Receiver", "Replayed",
    "Request", "StillPending", "Taken", "UnreachableError", "UnreadableError", "WebhookError", "guard",
    "key_of", "told", "tool",
]  # fmt: skip
