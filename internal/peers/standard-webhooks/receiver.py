"""Verifies deliveries with the library for Python. Its first line is its port, each other one a delivery. The first try of each is refused."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook

hook = Webhook(open("old.secret").read())
seen = set()
writing = threading.Lock()


def tell(**line):
    with writing:
        print(json.dumps(line), flush=True)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        first = self.headers["Webhook-Id"] not in seen
        seen.add(self.headers["Webhook-Id"])
        try:
            message = hook.verify(body, dict(self.headers))
            tell(id=self.headers["Webhook-Id"], type=message["type"], refused=first)
        except Exception as error:
            tell(error=str(error))
        self.send_response(503 if first else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
server.serve_forever()
