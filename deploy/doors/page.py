"""Runs a page of docs/start as its reader does: page.py PAGE DIRECTORY, with the reader's environment.

It writes the files that the page shows after "Write this to `NAME`", runs the commands of blocks of the type console
and compares what they print, starts the commands of blocks of the type sh in the background, and waits until the last
of those has printed the next block of the type text. Meanwhile it opens the inbox by the link that was printed, and
approves what waits there. On a page that says "repeat the command" it repeats a background command that failed. "…" in
a page stands for any text, and a line of it for any lines. A page may have six commands, and at least one call must
have been approved."""

import html
import http.cookiejar
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

MOST = 6
REPEATS = 5  # of a background command that ended too early, on a page that says "repeat the command"
LOOK = 2  # seconds; the inbox takes no answer that comes right after the page opened
BLOCK = re.compile(
    r"(?:Write this to `(?P<name>[^`\n]+)`(?:(?!\n\n).)*:\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.S
)
LINK = re.compile(r"http://127\.0\.0\.1:\d+/auth/\S+|http://127\.0\.0\.1:\d+/\S*dev/\S+")


def fields(form: str) -> "dict[str, str]":
    """Returns the hidden fields of a form."""
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in found}


class Inbox:
    """The inbox in a browser without scripts."""

    def __init__(self, link: str) -> None:
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
        self.base = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(link))
        self.read(link, {**fields(self.read(link)), "confirm": "on"})  # the button of the page, which signs in
        self.approved = 0

    def read(self, address: str, form: "dict[str, str] | None" = None) -> str:
        data = urllib.parse.urlencode(form).encode() if form else None
        request = urllib.request.Request(urllib.parse.urljoin(self.base, address), data, {"Origin": self.base})
        with self.browser.open(request, timeout=60) as answer:
            return answer.read().decode()

    def approve(self) -> None:
        for address in sorted(set(re.findall(r'href="(/requests/apr_[a-z0-9]+)', self.read("/")))):
            page = self.read(address)
            form = re.search(r'<form[^>]* id="approve-form".*?</form>', page, re.S)
            if form is None:
                continue
            time.sleep(LOOK)
            try:
                answer = self.read(address + "/vote", fields(form[0]))
            except urllib.error.HTTPError as e:
                print(f"the inbox refused the vote: {e}", file=sys.stderr)
                continue
            if "Nothing was decided" in answer:
                print("the inbox: nothing was decided", file=sys.stderr)
            else:
                self.approved += 1


class Reader:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.set: "list[str]" = []
        self.running: "list[tuple[subprocess.Popen[bytes], str]]" = []
        self.inbox: "Inbox | None" = None
        self.commands = 0
        self.repeats = 0
        self.last = ""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = str(s.getsockname()[1])

    def start(self, command: str, **more: object) -> "subprocess.Popen[bytes]":
        self.commands += 1
        line = "\n".join([*self.set, command.replace("7717", self.port)])
        print("$ " + command, flush=True)
        return subprocess.Popen(["bash", "-c", line], cwd=self.folder, stdin=subprocess.DEVNULL, **more)

    def console(self, text: str) -> None:
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            if command.startswith("export "):
                self.set.append(self.evaluated(command))
                continue
            process = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            out = process.communicate(timeout=300)[0].decode()
            if out and not out.endswith("\n"):
                out += "\n"
            if not re.fullmatch(pattern(shown), out):
                sys.exit(f"{command}\nprints (exit code {process.returncode}):\n{out}\nand the page shows:\n{shown}")

    def evaluated(self, command: str) -> str:
        """Returns an export with its value, so that a later command does not compute another one."""
        name = command.removeprefix("export ").partition("=")[0]
        script = f"{command} && printf %s \"${name}\""
        process = self.start(script, stdout=subprocess.PIPE)
        value = process.communicate(timeout=60)[0].decode()
        if process.returncode or not value:
            sys.exit(f"{command}\nsets nothing")
        return f"export {name}='{value}'"

    def background(self, text: str) -> None:
        self.last = text
        output = tempfile.NamedTemporaryFile(dir=self.folder, prefix=".out-", delete=False)
        process = self.start(text.rstrip("\n"), stdout=output, stderr=output, start_new_session=True)
        self.running.append((process, output.name))

    def printed(self) -> str:
        with open(self.running[-1][1], encoding="utf-8") as f:
            return f.read().replace(self.port, "7717")

    def expect(self, text: str) -> None:
        """Waits until the last background command has printed a text, and approves meanwhile."""
        wanted = re.compile(pattern(text).removesuffix("\\\n"), re.M)
        limit = time.monotonic() + 120
        while not wanted.search(self.printed()):
            link = LINK.search(self.printed())
            if self.inbox is None and link:
                self.inbox = Inbox(link[0].replace("7717", self.port))
            if self.inbox is not None:
                self.inbox.approve()
            process = self.running[-1][0]
            if self.repeats and process.poll() and not wanted.search(self.printed()):
                self.repeats -= 1
                self.commands -= 1  # the same command again
                self.background(self.last)
                continue
            if time.monotonic() > limit or (process.poll() is not None and not wanted.search(self.printed())):
                sys.exit(f"this was not printed:\n{text}\nbut (exit code {process.poll()}):\n{self.printed()}")
            time.sleep(0.2)
        link = LINK.search(self.printed())
        if self.inbox is None and link:
            self.inbox = Inbox(link[0].replace("7717", self.port))

    def end(self) -> None:
        for process, _ in reversed(self.running):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=60)


def pattern(shown: str) -> str:
    """Returns the expression for what a page shows: "…" is any text, and a line of it any lines."""
    text = re.escape(shown).replace("…\\\n", "(?:.*\n)*") if shown else ""
    text = re.sub(r"(?m)^…$", "(?:.*\n)*", text)
    return text.replace("…", ".*")


def main() -> None:
    page, folder = sys.argv[1:]
    with open(page, encoding="utf-8") as f:
        text = f.read()
    reader = Reader(folder)
    reader.repeats = REPEATS if "repeat the command" in " ".join(text.split()) else 0
    try:
        for block in BLOCK.finditer(text):
            kind = block["kind"]
            if kind == "console":
                reader.console(block["text"])
            elif kind == "sh":
                reader.background(block["text"])
            elif kind == "text":
                reader.expect(block["text"])
            elif block["name"]:
                with open(os.path.join(folder, block["name"]), "w", encoding="utf-8") as f:
                    f.write(block["text"].replace("7717", reader.port))
            else:
                sys.exit(f"{page}: a block of type {kind} has no name of a file before it")
    finally:
        reader.end()
    if reader.commands > MOST:
        sys.exit(f"{page} has {reader.commands} commands, at most {MOST} are allowed")
    if reader.inbox is None or reader.inbox.approved == 0:
        sys.exit(f"{page}: no call was approved")
    print(f"{os.path.basename(page)}: {reader.commands} commands, {reader.inbox.approved} approved")


main()
