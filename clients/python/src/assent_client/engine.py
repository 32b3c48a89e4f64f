"""Decisions in this process, without a server: the engine as a WebAssembly module. Needs assent-client[engine].

The answers are those of `assent decide` and `agf-validate`, byte for byte. The module has no files, no network and no
environment. Whoever decides here asks nobody: where the outcome is ask, take the call from a server.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path
from types import TracebackType
from typing import Any

import wasmtime

from .call import body_of
from .errors import AssentError
from .models import Decision
from .wire import read

MOST_INPUT = 64 << 20  # bytes, of the module


class EngineError(AssentError):
    """The engine gave no answer that can be used. Nothing may run."""


def files_of(folder: str | Path) -> dict[str, str]:
    """The texts of all YAML files below a folder, by their paths in it."""
    top = Path(folder)
    found = sorted(path for path in top.rglob("*.y*ml") if path.suffix in (".yaml", ".yml") and path.is_file())
    return {path.relative_to(top).as_posix(): path.read_text(encoding="utf-8") for path in found}


class Engine:
    """The module, compiled and started. Safe to use from several threads; it answers one of them at a time.

    Compiling takes seconds; wasmtime keeps the result in the user's cache folder, from where it is loaded in no time.
    `memory` bounds what the module may use, in bytes.
    """

    def __init__(self, memory: int = 1 << 30) -> None:
        self._lock, self._memory_bound, self.starts = threading.RLock(), memory, 0
        config = wasmtime.Config()
        with suppress(wasmtime.WasmtimeError):  # no home to keep it in
            config.cache = True
        self._engine = wasmtime.Engine(config)
        try:
            with as_file(files("assent_client") / "engine.wasm") as path:
                self._module = wasmtime.Module.from_file(self._engine, path)
        except OSError as e:
            raise EngineError("this assent was built without its engine: build it with clients/python/build") from e
        self._start()

    def run(self, request: Mapping[str, Any] | str) -> str:
        """The answer to a request (docs/contracts/engine.md), which has kind lint or decide."""
        return self._ask("assent_run", request if isinstance(request, str) else json.dumps(request))

    def plan(
        self,
        files: Mapping[str, str],
        agent: str,
        *,
        policies: Iterable[str] = (),
        parents: Iterable[str] = (),
        config: str | None = None,
    ) -> Plan:
        """Compiles an agent with its policies. All are paths in files; policies are folders."""
        request: dict[str, Any] = {"kind": "decide", "files": dict(files), "agent": agent, "config": config}
        request |= {"policies": list(policies), "parents": list(parents)}
        return Plan(self, json.dumps({name: value for name, value in request.items() if value}))

    def _start(self) -> None:
        linker, self._store = wasmtime.Linker(self._engine), wasmtime.Store(self._engine)
        linker.define_wasi()
        self._store.set_wasi(wasmtime.WasiConfig())
        self._store.set_limits(memory_size=self._memory_bound)
        self._exports = linker.instantiate(self._store, self._module).exports(self._store)
        self.starts += 1
        self._call("_initialize")

    def _call(self, name: str, *args: int) -> int:
        function = self._exports[name]
        assert isinstance(function, wasmtime.Func)
        got = function(self._store, *args)
        return got & 0xFFFFFFFF if isinstance(got, int) else 0

    def _ask(self, name: str, text: str, *args: int) -> str:
        """Gives an export an input. A module that trapped has ended: it is started anew, and plans open again."""
        try:
            data = text.encode()
        except UnicodeEncodeError as e:
            raise EngineError("half a pair of surrogates is no text") from e
        with self._lock:
            try:
                at = self._call("assent_input", len(data)) if len(data) <= MOST_INPUT else 0
                memory = self._exports["memory"]
                assert isinstance(memory, wasmtime.Memory)
                if at == 0:
                    raise EngineError(f"there is no room for an input of {len(data)} bytes")
                memory.write(self._store, data, at)
                size = self._call(name, *args)
                out = self._call("assent_output")
                return bytes(memory.read(self._store, out, out + size)).decode()
            except (wasmtime.WasmtimeError, wasmtime.Trap, wasmtime.ExitTrap, IndexError, ValueError) as e:
                self._start()
                raise EngineError(f"the engine broke off: {str(e).splitlines()[0]}") from e


class Plan:
    """An agent with its policies, which decides calls. `findings` say what is wrong with the files."""

    def __init__(self, engine: Engine, request: str) -> None:
        self._engine, self._request, self._decider = engine, request, 0
        self._open()

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Frees what the engine keeps of it. It denies every call from then on."""
        with self._engine._lock:
            if self._started == self._engine.starts:
                self._engine._call("assent_close", self._decider)
            self._decider = 0

    def decide(self, call: Mapping[str, Any]) -> Decision:
        """Decides a call without asking anybody."""
        return read(Decision, self.decide_text(body_of(call)[0]).encode())

    def decide_text(self, call: str) -> str:
        """The decision about a call in JSON, as `assent decide` prints it."""
        with self._engine._lock:
            if self._decider and self._started != self._engine.starts:
                self._open()
            answer = self._engine._ask("assent_decide", call, self._decider)
        if not answer:
            raise EngineError("the plan decides nothing: it has been closed")
        return answer

    def _open(self) -> None:
        with self._engine._lock:
            said = json.loads(self._engine._ask("assent_open", self._request))
            self._started, self._decider = self._engine.starts, said.get("decider", 0)
            self.findings: list[dict[str, Any]] = (said.get("findings") or {}).get("findings", [])
        if not self._decider:
            told = "".join(f"\n{f['file']}:{f.get('line', 1)}: {f['message']}" for f in self.findings)
            raise EngineError(f"{said.get('error', 'there is no plan')}{told}")
