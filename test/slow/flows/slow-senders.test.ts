/** A client that sends its body slowly holds a connection to the backend only while no other request waits for one. */
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { ask, fieldsOf } from "../../support/ask.ts";
import { dribble, startCrowd, type Crowd } from "../../support/crowd.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { readMessages } from "../../support/http-reader.ts";
import { logLine } from "../../support/log-line.ts";
import { type PlainBackend, startPlainBackend } from "../../support/plain-backend.ts";
import { openSocket, request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

/** One connection, and a queue timeout that is long enough for a slow machine. */
const SCARCE = { connections: 1, queue: { timeout: "10s" } };
const NAMES = ["alone", "several", "reluctant", "many"];

let backend: EchoBackend;
let gate: Sallyport;
/** A backend that reads a body when `read` is called. `read` is undefined until it gets a request. */
let reluctant: PlainBackend;
let read: (() => void) | undefined;
beforeAll(async () => {
  backend = await startEchoBackend();
  reluctant = await startPlainBackend((incoming, response) => {
    read = () => void incoming.resume().on("end", () => response.end("ok"));
  });
  const targets = [backend.url];
  gate = await startSallyport({
    target: backend.url,
    config: {
      routes: NAMES.map((name) => ({ name, path: `/${name}/`, auth: "none", upstream: name })),
      upstreams: {
        alone: { targets, ...SCARCE },
        reluctant: { targets: [reluctant.url], ...SCARCE },
        several: { targets, ...SCARCE, connections: Object.keys(SLOW).length },
        many: { targets },
      },
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
  await reluctant[Symbol.asyncDispose]();
});

/** What slow clients send after the header section of a chunked upload. */
const SLOW: Readonly<Record<string, (socket: Socket) => void>> = {
  nothing: () => undefined,
  "one byte": (socket) => void socket.write("1\r\na\r\n"),
  "a byte now and then": (socket) => dribble(socket, "1\r\na\r\n", 50),
  "the digits of a size": (socket) => dribble(socket, "0", 50),
  "an extension": (socket) => {
    socket.write("1;a=");
    dribble(socket, "b", 50);
  },
  trailers: (socket) => {
    socket.write("1\r\na\r\n0\r\n");
    dribble(socket, "x-a: b\r\n", 50);
  },
};

/** Starts clients with chunked uploads, each to its own path. */
function upload(uploads: Readonly<Record<string, (socket: Socket) => void>>): Crowd {
  const paths = Object.keys(uploads);
  const crowd = startCrowd(gate, paths.length, {
    each(socket, index) {
      const path = paths[index] ?? "";
      const head = [`POST ${path} HTTP/1.1`, "Host: localhost", "Transfer-Encoding: chunked"];
      socket.write(request(head));
      uploads[path]?.(socket);
    },
  });
  onTestFinished(() => crowd[Symbol.dispose]());
  return crowd;
}

const untilInFlight = (upstream: string, count: number): Promise<void> =>
  until(async () => {
    const { value } = await scrape(gate);
    return value(`sallyport_upstream_requests_in_flight{upstream="${upstream}"}`) === count;
  });

function answersOf(crowd: Crowd, index = 0) {
  return readMessages("response", Buffer.from(crowd.received()[index] ?? "", "latin1")).messages;
}

it("disconnects clients that do not send, with 408, when other requests wait", async () => {
  const names = Object.keys(SLOW);
  const paths = names.map((name) => `/several/${name.replaceAll(" ", "-")}`);
  const slow = upload(
    Object.fromEntries(Object.values(SLOW).map((each, index) => [paths[index] ?? "", each])),
  );
  await untilInFlight("several", names.length);
  const before = await scrape(gate);
  // Each takes a connection and holds it.
  const others = startCrowd(gate, names.length, {
    each: (socket) => {
      socket.write(request(["GET /several/hang HTTP/1.1", "Host: localhost"]));
    },
  });
  onTestFinished(() => others[Symbol.dispose]());
  await until(() => slow.closed() === names.length);
  for (const [index, name] of names.entries()) {
    const [answer, ...more] = answersOf(slow, index);
    expect(answer?.startLine, name).toBe("HTTP/1.1 408 Request Timeout");
    expect(more, name).toEqual([]);
    const { id, message } = fieldsOf({ body: answer?.body.toString() ?? "" });
    expect(message).toBe("The request took too long to arrive");
    expect(await logLine(gate, { id }), name).toMatchObject({
      path: paths[index],
      status: 408,
      reason: "slow_client",
      source: "self",
    });
  }
  // It does not count as a failure of the backend.
  const after = await scrape(gate);
  const rejected = 'sallyport_requests_rejected_total{reason="request_timeout"}';
  expect(after.value(rejected)).toBe((before.value(rejected) ?? 0) + names.length);
  const failures = 'upstream="several"';
  expect(after.sum("sallyport_upstream_errors_total", failures)).toBe(
    before.sum("sallyport_upstream_errors_total", failures),
  );
  for (const socket of others.sockets) socket.destroy();
  await untilInFlight("several", 0);
});

it("does not limit such a client when no other request waits", async () => {
  const slow = upload({
    "/alone/patient": (socket) => void socket.write("1\r\na\r\n"),
  });
  await untilInFlight("alone", 1);
  // Longer than the limit while another request waits.
  expect((await ask(gate, "/many/slow?ms=900")).status).toBe(200);
  slow.sockets[0]?.write("1\r\nb\r\n0\r\n\r\n");
  await until(() => answersOf(slow).length === 1);
  expect(await logLine(gate, { path: "/alone/patient" })).toMatchObject({
    status: 200,
    reason: "ok",
    bytes_in: 2,
  });
});

it("does not disconnect a client that waits for a backend that does not read", async () => {
  // More than the system buffers for a backend that does not read.
  const body = Buffer.alloc(9_000_000);
  const uploaded = ask(gate, "/reluctant/large", { method: "POST", body });
  await until(() => read !== undefined);
  const next = await openSocket(gate);
  next.write(request(["GET /reluctant/next HTTP/1.1", "Host: localhost"]));
  // Longer than the limit for a slow client.
  expect((await ask(gate, "/many/slow?ms=900")).status).toBe(200);
  next.destroy();
  expect(await logLine(gate, { path: "/reluctant/next" })).toMatchObject({ status: 499 });
  read?.();
  expect((await uploaded).status).toBe(200);
});
