import type { Server } from "node:http";
import type { Socket } from "node:net";
import { takeListeners } from "../node-internals/node-sockets.ts";

/** The first line of the HTTP/2 connection preface (RFC 9113 §3.4). No HTTP/1.1 request can begin with it. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n", "latin1");

interface PriorKnowledge {
  /** Whether clients may speak HTTP/2 now. */
  readonly offered: () => boolean;
  /** The time limit for the first bytes, in milliseconds. */
  readonly headerMs: () => number;
  /** Starts HTTP/2 on a connection. */
  readonly accept: (socket: Socket) => void;
}

/**
 * Accepts HTTP/2 with prior knowledge over plain HTTP (RFC 9113 §3.3). The first bytes of a connection distinguish it
 * from HTTP/1.1. They are left in the socket for the listener that takes the connection. Create it before anything
 * else replaces the `connection` listeners of the server.
 *
 * @returns a function that closes the connections whose protocol is not known yet.
 */
export function acceptByFirstBytes(server: Server, options: PriorKnowledge): () => void {
  const waiting = new Set<Socket>();
  const acceptHttp1 = takeListeners(server, "connection");
  server.on("connection", (socket: Socket) => {
    if (!options.offered()) {
      acceptHttp1(socket);
      return;
    }
    waiting.add(socket);
    const late = (): void => {
      socket.on("error", () => socket.destroy());
      server.emit("clientError", { code: "ERR_HTTP_REQUEST_TIMEOUT" }, socket);
    };
    readFirstBytes(socket, options.headerMs(), (found) => {
      waiting.delete(socket);
      if (found === "http2") options.accept(socket);
      else if (found === "http1") acceptHttp1(socket);
      else if (found === "late") late();
    });
  });
  return () => {
    for (const socket of waiting) socket.destroy();
  };
}

type Found = "http1" | "http2" | "late" | "gone";

/** Waits for the first bytes of a connection, and leaves them for the next reader. @param done is called once. */
function readFirstBytes(socket: Socket, limitMs: number, done: (found: Found) => void): void {
  let arrived: Buffer = Buffer.alloc(0);
  const finish = (found: Found): void => {
    clearTimeout(timer);
    socket.off("readable", onReadable).off("end", onEnd).off("close", onGone).off("error", onGone);
    if (arrived.length > 0) socket.unshift(arrived);
    // By then, Node has noticed that there is no listener for `readable` any more.
    process.nextTick(() => {
      if (!socket.destroyed || found === "gone") done(found);
      else done("gone");
    });
  };
  const onEnd = (): void => finish("http1");
  const onGone = (): void => {
    socket.destroy();
    finish("gone");
  };
  const onReadable = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    arrived = arrived.length === 0 ? chunk : Buffer.concat([arrived, chunk]);
    const length = Math.min(arrived.length, PREFACE.length);
    if (!arrived.subarray(0, length).equals(PREFACE.subarray(0, length))) finish("http1");
    else if (length === PREFACE.length) finish("http2");
  };
  const timer = setTimeout(() => finish("late"), limitMs);
  socket.on("readable", onReadable).on("end", onEnd).on("close", onGone).on("error", onGone);
}
