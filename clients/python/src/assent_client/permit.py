"""Permits: a tool checks for itself that people approved the call which it got (docs/contracts/permits.md)."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import rfc8785
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, OKPKey

from .call import Arguments, text_of, values_of
from .errors import AssentError, CallError

HEADER = "Assent-Permit"
_AHEAD, _LONGEST_LIFE, _LONGEST = 60, 3600, 8192  # seconds, seconds, characters
_FRESH, _AGAIN, _PATIENCE = 900.0, 10.0, 5.0  # seconds: until keys are loaded anew, between two loads, for one
_KEPT = 24 * 3600.0  # seconds that keys count while they can't be loaded

Used = Callable[[str, float], bool]
"""Whether this is the first use of an id, which it keeps until the time given, in seconds since 1970."""


class PermitRefused(AssentError):
    """The call may not run. `reason` is one of the contract's words; the text may be shown to who sent the call."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"permit refused ({reason}): {detail}")
        self.reason = reason


@dataclass(frozen=True)
class Permit:
    """What a permit says: people approved this call, and it may run now, once."""

    issuer: str
    audience: str
    agent: str
    request: str  # id of the request that people approved
    binding: str  # digest of the approved call, as the ledger has it
    target: str
    principal: str  # for whom the call is made; "" when the runtime didn't say
    issued: int  # seconds since 1970
    expires: int


class Verifier:
    """Holds calls against permits. Safe to use from several threads; `verify` may load keys, which takes a moment."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        *,
        keys: Mapping[str, Any] | None = None,
        used: Used | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        url = httpx.URL(issuer)
        near = url.scheme == "http" and url.host in ("localhost", "127.0.0.1", "::1")
        if not audience or not url.host or not (near or url.scheme == "https"):
            raise CallError("permits: expected the issuer's URL, https:// unless on this machine, and an audience")
        self.issuer, self.audience, self._clock = issuer, audience, clock
        self._used = used or _Memory(clock)
        self._keys = _Keys(issuer, clock, _set_of(keys) if keys is not None else None)

    def verify(self, permit: str, target: str, arguments: Arguments) -> Permit:
        """Uses the permit for a call that is about to run, or raises PermitRefused: then nothing may run."""
        claims = self._opened(permit)
        got = self._checked(claims, target, arguments)
        try:
            first = self._used(got.request, got.expires + _AHEAD)
        except Exception as e:
            raise PermitRefused("unavailable", "whether it was used can't be told now") from e
        if first is not True:
            raise PermitRefused("used", "it was used already; a permit is for one run")
        return got

    def _opened(self, permit: str) -> dict[str, Any]:
        parts = permit.split(".") if isinstance(permit, str) else []
        if len(parts) != 3 or len(permit) > _LONGEST:
            raise PermitRefused("malformed", "expected a JWS in the compact form")
        header, claims, _ = _object(_bytes(parts[0])), _bytes(parts[1]), _bytes(parts[2])
        named = header.keys() <= _MEMBERS and isinstance(header.get("kid", ""), str)
        if header.get("alg") != "EdDSA" or header.get("typ") != "assent-permit+jwt" or not named:
            raise PermitRefused("malformed", "expected the header of a permit: alg EdDSA, kid and typ")
        key = self._keys.find(header.get("kid"))
        try:
            if key is None:
                raise PermitRefused("untrusted", "it is not signed by a key of its issuer")
            jws.deserialize_compact(permit, key, algorithms=["EdDSA"])
        except (JoseError, ValueError) as e:
            raise PermitRefused("untrusted", "it is not signed by a key of its issuer") from e
        return _object(claims)

    def _checked(self, claims: dict[str, Any], target: str, arguments: Arguments) -> Permit:
        got, digest = _permit_of(claims)
        now = int(self._clock())
        if got.issuer != self.issuer:
            raise PermitRefused("issuer", "it is of another issuer")
        if got.audience != self.audience:
            raise PermitRefused("audience", "it is for another tool")
        if got.issued > now + _AHEAD:
            raise PermitRefused("early", "it is of a time to come: compare the clocks of tool and server")
        if got.expires <= now:
            raise PermitRefused("expired", "its time is over: run the call right after it was taken")
        if got.target != target:
            raise PermitRefused("target", f"it is for another operation than {target}")
        if _digest(arguments) != digest:
            raise PermitRefused("arguments", "it is for other arguments: run what the server answered with")
        return got


_MEMBERS = {"alg", "kid", "typ"}


def _bytes(part: str) -> bytes:
    """The bytes of a part, in their one spelling."""
    try:
        out = base64.b64decode(part.encode("ascii") + b"=" * (-len(part) % 4), b"-_", validate=True)
    except ValueError as e:
        raise PermitRefused("malformed", "expected base64url") from e
    if base64.urlsafe_b64encode(out).rstrip(b"=").decode() != part:
        raise PermitRefused("malformed", "expected base64url as it is written")
    return out


def _object(text: bytes) -> dict[str, Any]:
    try:
        out = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise PermitRefused("malformed", "expected JSON") from e
    if not isinstance(out, dict):
        raise PermitRefused("malformed", "expected a JSON object")
    return out


def _permit_of(claims: dict[str, Any]) -> tuple[Permit, str]:
    names = ("iss", "aud", "sub", "jti", "binding", "target", "arguments")
    texts = [claims.get(name) for name in names] + [claims.get("principal", "")]
    times = [claims.get("iat"), claims.get("exp")]
    if not all(isinstance(text, str) for text in texts) or not all(type(at) is int for at in times):
        raise PermitRefused("malformed", "expected the claims of a permit")
    iss, aud, sub, jti, binding, target, digest, principal = map(str, texts)
    issued, expires = int(times[0] or 0), int(times[1] or 0)
    if not jti or issued <= 0 or not 0 < expires - issued <= _LONGEST_LIFE:
        raise PermitRefused("malformed", "expected an id, and a life of at most an hour")
    return Permit(iss, aud, sub, jti, binding, target, principal, issued, expires), digest


def _digest(arguments: Arguments) -> str:
    try:
        canonical = rfc8785.dumps(values_of(text_of(arguments)))
    except (AssentError, ValueError, RecursionError) as e:  # integers beyond 2^53 are no values of RFC 8785
        raise PermitRefused("arguments", str(e)) from e
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


def _set_of(keys: Mapping[str, Any]) -> dict[str, OKPKey]:
    found = [key for key in KeySet.import_key_set({"keys": list(keys["keys"])}).keys if isinstance(key, OKPKey)]
    out = {key.kid: key for key in found if key.kid and key.curve_name == "Ed25519"}
    if not out:
        raise CallError("permits: expected a set with a key of Ed25519")
    return out


class _Keys:
    """The issuer's keys, loaded when a permit names one that is unknown, but seldom, and when they are old."""

    def __init__(self, issuer: str, clock: Callable[[], float], given: dict[str, OKPKey] | None) -> None:
        self._url = issuer.rstrip("/") + "/.well-known/jwks.json"
        self._clock, self._given, self._lock = clock, given is not None, threading.Lock()
        self._known, self._loaded, self._tried = given or {}, 0.0, 0.0
        self._failed: Exception | None = None

    def find(self, kid: str | None) -> OKPKey | None:
        """The key of an id. Who names a known one waits for no load, and who names another waits for one at most."""
        now = self._clock()
        known = self._kept(kid, now)
        if self._given:
            return known
        if known is not None:
            if now - self._loaded > _FRESH and now - self._tried >= _AGAIN and self._lock.acquire(blocking=False):
                threading.Thread(target=self._load, args=(now,), daemon=True).start()
            return known
        if not self._lock.acquire(timeout=_PATIENCE):
            raise PermitRefused("unavailable", "the issuer's keys are being loaded")
        self._load(now)
        known = self._kept(kid, now)
        if known is None and self._failed:
            raise PermitRefused("unavailable", "the issuer's keys can't be had now") from self._failed
        return known

    def _kept(self, kid: str | None, now: float) -> OKPKey | None:
        return self._known.get(kid or "") if self._given or now - self._loaded <= _KEPT else None

    def _load(self, now: float) -> None:
        """Loads the keys unless they were loaded a moment ago, and releases the lock."""
        try:
            if now - self._tried >= _AGAIN:
                self._tried = now
                self._fetch(now)
        finally:
            self._lock.release()

    def _fetch(self, now: float) -> None:
        try:
            answer = httpx.get(self._url, timeout=_PATIENCE).raise_for_status()
            self._known, self._loaded, self._failed = _set_of(answer.json()), now, None
        except Exception as e:
            self._failed = e


class _Memory:
    """Remembers what was used in this process, and refuses rather than forget what is still good."""

    def __init__(self, clock: Callable[[], float], limit: int = 100_000) -> None:
        self._clock, self._limit, self._lock = clock, limit, threading.Lock()
        self._until: dict[str, float] = {}
        self._swept = 0.0

    def __call__(self, id: str, until: float) -> bool:
        with self._lock:
            now = self._clock()
            if len(self._until) >= self._limit or now - self._swept > 60:
                self._until = {id: over for id, over in self._until.items() if over >= now}
                self._swept = now
            if id in self._until:
                return False
            if len(self._until) >= self._limit:
                raise OverflowError("too many permits are remembered at once")
            self._until[id] = until
            return True
