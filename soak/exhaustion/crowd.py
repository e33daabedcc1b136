"""A crowd of hostile TCP clients in one process, since Node cannot set the receive buffer or the segment size of a socket.

Reads one order, a JSON object on one line, from standard input; begins at once; prints its counts as a JSON line every
200 ms, until it is killed. Members of the order:

  host, port          where the attacked server listens
  tls                 whether to speak TLS (the certificate is not checked)
  addresses           local addresses; connection number i binds to addresses[i % len(addresses)]
  connections         how many connections to open
  steps               what each connection does, in order, each step one of
                        {"send": text, "times": n}    text as latin-1, n times; n < 0: forever; a list of numbers is
                                                      distributed over the connections
                        {"await": text}               reads until the text arrives
                        {"pause": seconds}
  read                "nothing", or "all" after the last step
  receiveBuffer       SO_RCVBUF in bytes; 0 leaves it to the system
  segment             TCP_MAXSEG in bytes; 0 leaves it to the system. Use 1,400, as on Ethernet: with the loopback's 65,483,
                      the other side's send buffer grows to megabytes
  handshake           false: with TLS, the first step is sent instead of the handshake
  reconnect           whether a connection that ended is opened again
"""

import errno
import heapq
import json
import os
import resource
import select
import socket
import ssl
import sys
import time

AT_ONCE = 64
READ_BYTES = 256 * 1024
SEND_BYTES = 256 * 1024
REPORT_SECONDS = 0.2
# Real attackers have their own machines. Here they share cores with the backends and the well-behaved client, which have
# priority: the attackers get the remaining CPU time.
NICE = 10
RECONNECT_SECONDS = 0.1


class Crowd:
    """All connections, and one event loop for them."""

    def __init__(self, order):
        self.order = order
        self.counts = dict.fromkeys(("opened", "refused", "open", "finished", "sent", "received"), 0)
        self.poll = select.epoll()
        self.clients = {}
        self.timers = []
        self.started = 0
        self.begun = 0
        self.context = context() if order["tls"] else None
        # A piece large enough that one call fills the other side's buffers.
        self.pieces = [piece_of(step) for step in order["steps"]]

    def run(self):
        report_at = 0.0
        while True:
            self.open_more()
            now = time.monotonic()
            if now >= report_at:
                print(json.dumps(self.counts), flush=True)
                report_at = now + REPORT_SECONDS
            while self.timers and self.timers[0][0] <= now:
                _, number, client = heapq.heappop(self.timers)
                if not client.closed:
                    client.turn()
            for handle, _ in self.poll.poll(0.02, 512):
                if handle in self.clients:
                    self.clients[handle].turn()

    def open_more(self):
        while self.started < self.order["connections"] and self.begun < AT_ONCE:
            number = self.started
            self.started += 1
            self.begun += 1
            Client(self, number).open()

    def later(self, seconds, client):
        heapq.heappush(self.timers, (time.monotonic() + seconds, id(client), client))


class Client:
    """One connection. `turn` does whatever can be done without waiting."""

    def __init__(self, crowd, number):
        self.crowd = crowd
        self.number = number
        self.state = "new"
        self.step = 0
        self.at = 0
        self.times = 0
        self.seen = b""
        self.resume_at = None
        self.closed = False
        self.watched = 0

    def open(self):
        self.state = "connecting"
        order = self.crowd.order
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The port is chosen at connect: the same one may serve several addresses.
        self.socket.setsockopt(socket.IPPROTO_IP, 24, 1)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if order["receiveBuffer"] > 0:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, order["receiveBuffer"])
        if order["segment"] > 0:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, order["segment"])
        addresses = order["addresses"]
        self.socket.bind((addresses[self.number % len(addresses)], 0))
        self.handle = self.socket.fileno()
        self.crowd.clients[self.handle] = self
        self.crowd.poll.register(self.handle, select.EPOLLOUT)
        self.watched = select.EPOLLOUT
        code = self.socket.connect_ex((order["host"], order["port"]))
        if code not in (0, errno.EINPROGRESS):
            self.end()

    def turn(self):
        if self.state == "new":
            self.open()
            return
        try:
            if self.state == "connecting":
                self.connected()
            if self.state == "handshake":
                self.socket.do_handshake()
                self.ready()
            if self.state == "steps":
                self.take_steps()
            if self.state == "rest":
                self.rest()
        except ssl.SSLWantReadError:
            self.watch(select.EPOLLIN)
        except ssl.SSLWantWriteError:
            self.watch(select.EPOLLOUT)
        except BlockingIOError:
            pass  # `watch` has been called
        except (OSError, EOFError):
            self.end()

    def connected(self):
        error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error != 0:
            raise OSError(error, "not connected")
        if self.crowd.context is None or not self.crowd.order["handshake"]:
            self.ready()
            return
        self.socket = self.crowd.context.wrap_socket(self.socket, do_handshake_on_connect=False)
        self.state = "handshake"

    def ready(self):
        self.state = "steps"
        self.crowd.begun -= 1
        self.crowd.counts["opened"] += 1
        self.crowd.counts["open"] += 1

    def take_steps(self):
        steps = self.crowd.order["steps"]
        while self.step < len(steps):
            step = steps[self.step]
            if "send" in step:
                self.send(step, self.crowd.pieces[self.step])
            elif "await" in step:
                self.receive(step["await"].encode("latin-1"))
            elif self.resume_at is None:
                self.resume_at = time.monotonic() + step["pause"]
                self.crowd.later(step["pause"], self)
                self.watch(0)
                return
            elif time.monotonic() < self.resume_at:
                return
            self.step += 1
            self.at = self.times = 0
            self.seen = b""
            self.resume_at = None
        self.crowd.counts["finished"] += 1
        self.state = "rest"

    def send(self, step, piece):
        """Sends until everything is sent, or raises the exception that means that it would block."""
        self.watch(select.EPOLLOUT)
        text, copies = piece
        wanted = step.get("times", 1)
        if isinstance(wanted, list):
            wanted = wanted[self.number % len(wanted)]
        size = len(text) // copies
        left = SEND_BYTES * 16
        while wanted < 0 or self.times < wanted:
            most = len(text) if wanted < 0 else min(len(text), (wanted - self.times) * size)
            sent = self.socket.send(memoryview(text)[self.at : min(most, self.at + SEND_BYTES)])
            self.crowd.counts["sent"] += sent
            self.at += sent
            if self.at >= most:
                self.times += most // size
                self.at = 0
            left -= sent
            if left <= 0:
                raise BlockingIOError  # the others' turn

    def receive(self, text):
        self.watch(select.EPOLLIN)
        while text not in self.seen:
            self.seen = self.seen[-len(text) :] + self.read()

    def rest(self):
        if self.crowd.order["read"] == "nothing":
            # EPOLLHUP and EPOLLERR are reported anyway.
            if self.watched != 0:
                self.watch(0)
            else:
                raise EOFError
            return
        self.watch(select.EPOLLIN)
        while True:
            self.read()

    def read(self):
        got = self.socket.recv(READ_BYTES)
        if got == b"":
            raise EOFError
        self.crowd.counts["received"] += len(got)
        return got

    def watch(self, events):
        if events != self.watched:
            self.crowd.poll.modify(self.handle, events)
            self.watched = events

    def end(self):
        if self.closed:
            return
        self.closed = True
        crowd = self.crowd
        if self.state in ("connecting", "handshake"):
            crowd.begun -= 1
            crowd.counts["refused"] += 1
        else:
            crowd.counts["open"] -= 1
        del crowd.clients[self.handle]
        crowd.poll.unregister(self.handle)
        self.socket.close()
        if crowd.order["reconnect"]:
            crowd.begun += 1
            crowd.later(RECONNECT_SECONDS, Client(crowd, self.number))


def context():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def piece_of(step):
    """Returns the text of a step, repeated up to some 64 KiB, and the number of repetitions."""
    text = step.get("send", "").encode("latin-1")
    if text == b"":
        return text, 1
    times = step.get("times", 1)
    most = max(times) if isinstance(times, list) else times
    copies = max(1, min(64 * 1024 // len(text), most if most > 0 else 2**31))
    return text * copies, copies


def main():
    os.nice(NICE)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    Crowd(json.loads(sys.stdin.readline())).run()


main()
