import { once } from "node:events";
import { createServer, IncomingMessage, type Server } from "node:http";
import { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import type { GateRequest } from "../../src/core/request/gate-request.ts";
import { createNetworks } from "../../src/lib/http/networks.ts";
import { createIntake, MAX_HEADER_FIELDS, requestIdOf } from "../../src/server/request/intake.ts";
import { listeningPort } from "../support/listening-port.ts";
import { exchange, request } from "../support/raw-client.ts";

/** The results of intake for the requests that the server received. */
const read: (GateRequest | GateError)[] = [];
let server: Server;
const limits = { headers: MAX_HEADER_FIELDS };
const intake = createIntake({ trustedProxies: createNetworks([]), limits });

beforeAll(async () => {
  server = createServer({ requireHostHeader: false }, (message, response) => {
    try {
      read.push(intake(message, 7));
    } catch (error) {
      if (error instanceof GateError) read.push(error);
    }
    message.resume();
    response.end();
  });
  server.on("checkExpectation", (message, response) => server.emit("request", message, response));
  server.on("checkContinue", (message, response) => server.emit("request", message, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => server.close());

async function sent(line: string, headers: readonly string[] = [], host = ["Host: api.test"]) {
  const bytes = request([line, ...host, ...headers]);
  await exchange({ port: listeningPort(server) }, bytes, { head: true });
  const got = read.pop();
  if (got === undefined) throw new Error("nothing arrived");
  return got;
}

async function accepted(...parts: Parameters<typeof sent>): Promise<GateRequest> {
  const got = await sent(...parts);
  if (got instanceof GateError) throw got;
  return got;
}

async function refusal(...parts: Parameters<typeof sent>): Promise<string> {
  const got = await sent(...parts);
  return got instanceof GateError ? `${got.code} ${got.reason}` : "accepted";
}

describe("the request target", () => {
  test.each([
    ["/a/b?x=1&y=%zz", "/a/b", "/a/b", "?x=1&y=%zz"],
    ["/%41%40?", "/A%40", "/A@", "?"],
    ["/a??b", "/a", "/a", "??b"],
    ["http://api.test/a?x", "/a", "/a", "?x"],
    ["HTTP://API.TEST/a", "/a", "/a", ""],
    ["https://api.test", "/", "/", ""],
    ["http://api.test?x=1", "/", "/", "?x=1"],
  ])("%s", async (target, path, matchPath, query) => {
    const got = await accepted(`GET ${target} HTTP/1.1`);
    expect([got.path, got.matchPath, got.query]).toEqual([path, matchPath, query]);
  });

  test.each([
    ["/a//b", "path"],
    ["/a/%2e%2e/b", "path"],
    ["/a#b", "target"],
    ["/a?b#c", "target"],
    ["http://other.test/a", "target"],
    ["http://api.test:80/a", "target"],
    ["http://user@api.test/a", "target"],
    ["http:///a", "target"],
    ["ftp://api.test/a", "target"],
  ])("%s is refused for its %s", async (target, why) => {
    expect(await refusal(`GET ${target} HTTP/1.1`)).toBe(`bad_request ambiguous_${why}`);
  });

  test("* is refused", async () => {
    expect(await refusal("OPTIONS * HTTP/1.1")).toMatch(/^bad_request/);
  });
});

describe("the host", () => {
  test.each([
    ["api.test", "api.test", "api.test"],
    ["API.Test:8443", "API.Test:8443", "api.test"],
    ["api.test.", "api.test.", "api.test"],
    ["api.test.:8443", "api.test.:8443", "api.test"],
    ["[2001:DB8::1]:9", "[2001:DB8::1]:9", "[2001:db8::1]"],
    ["a_b.test", "a_b.test", "a_b.test"],
  ])("%s", async (host, authority, name) => {
    const got = await accepted("GET / HTTP/1.1", [], [`Host: ${host}`]);
    expect([got.authority, got.host]).toEqual([authority, name]);
  });

  test.each([
    [[]],
    [["Host:"]],
    [["Host: a.test", "Host: a.test"]],
    [["Host: a.test, b.test"]],
    [["Host: a.test/x"]],
    [["Host: user@a.test"]],
    [["Host: a.test:port"]],
    [["Host: a.test:123456"]],
    [["Host: [::1"]],
  ])("%j is refused", async (host) => {
    expect(await refusal("GET / HTTP/1.1", [], host)).toBe("bad_request ambiguous_host");
  });

  test("is not needed in HTTP/1.0", async () => {
    expect((await accepted("GET / HTTP/1.0", [], [])).host).toBe("");
  });
});

describe("the body", () => {
  test.each([
    [[], 0],
    [["Content-Length: 0"], 0],
    [["Content-Length: 5"], 5],
    [["Transfer-Encoding: chunked"], -1],
    [["Transfer-Encoding: Chunked"], -1],
  ])("%j is framed as %i", async (headers, length) => {
    expect((await accepted("POST / HTTP/1.1", headers)).bodyLength).toBe(length);
  });

  test.each([
    [["Transfer-Encoding: gzip, chunked"]],
    [["Transfer-Encoding: identity"]],
    [["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]],
  ])("%j is refused", async (headers) => {
    const message = messageWith(headers.flatMap((line) => line.split(": ")));
    expect(() => intake(message, 7)).toThrow(GateError);
  });
});

test("an expected 100 and two credentials are recognized", async () => {
  const got = await accepted("POST / HTTP/1.1", [
    ...["Content-Length: 1", "Expect: 100-continue"],
    ...["Authorization: Bearer one", "authorization: Bearer two"],
  ]);
  expect([got.expectsContinue, got.authorization, got.authorizations]).toEqual([
    ...[true, "Bearer one", 2],
  ]);
  const none = await accepted("GET / HTTP/1.1");
  expect([none.expectsContinue, none.authorization, none.authorizations]).toEqual([
    ...[false, undefined, 0],
  ]);
});

test("TRACE is a method that nothing allows", async () => {
  expect(await refusal("TRACE / HTTP/1.1")).toMatch(/^method_not_allowed/);
});

test("more fields than Node reports reliably are refused", async () => {
  const fields = (count: number) => Array.from({ length: count }, (_, i) => `X-${i}: 1`);
  expect(await refusal("GET / HTTP/1.1", fields(MAX_HEADER_FIELDS - 1))).toBe("accepted");
  expect(await refusal("GET / HTTP/1.1", fields(MAX_HEADER_FIELDS))).toBe(
    "header_too_large header_too_large",
  );
});

test("the peer is the address of the connection", async () => {
  const got = await accepted("GET / HTTP/1.1", ["X-Forwarded-For: 203.0.113.7"]);
  const { peer, peerTrusted, secure } = got.connection;
  expect([got.id, peer, got.client, peerTrusted, secure]).toEqual([
    ...[7, "127.0.0.1", "127.0.0.1", false, false],
  ]);
});

/** Creates a message from an address that a test cannot connect from. */
function messageWith(rawHeaders: readonly string[], from = "10.0.0.1"): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: from });
  const message = new IncomingMessage(socket);
  Object.assign(message, { method: "GET", url: "/", httpVersion: "1.1" });
  message.rawHeaders = ["Host", "api.test", ...rawHeaders];
  return message;
}

describe("behind trusted proxies, the client", () => {
  const behind = createIntake({
    trustedProxies: createNetworks(["10.0.0.0/8", "2001:db8::/32"]),
    limits,
  });
  const FAR = "203.0.113.7";

  test.each<[from: string, lists: string[], client: string]>([
    ["10.0.0.1", [FAR], FAR],
    ["::ffff:10.0.0.1", [FAR], FAR],
    ["2001:db8::9", [FAR], FAR],
    ["10.0.0.1", [`${FAR}, 10.0.0.2`], FAR],
    ["10.0.0.1", [`192.0.2.66, ${FAR}, 10.0.0.2`], FAR],
    ["10.0.0.1", [`192.0.2.66,${FAR}`, "10.0.0.2"], FAR],
    ["10.0.0.1", [`${FAR}, ::ffff:10.0.0.2`], FAR],
    ["10.0.0.1", [`::ffff:${FAR}`], FAR],
    ["10.0.0.1", [`${FAR}, 2001:db8::2`], FAR],
    ["10.0.0.1", ["2001:dead::1"], "2001:dead::1"],
    ["10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"],
    ["10.0.0.1", [], "10.0.0.1"],
    ["10.0.0.1", [""], "10.0.0.1"],
    ["10.0.0.1", ["unknown"], "10.0.0.1"],
    ["10.0.0.1", [`${FAR}, _hidden, 10.0.0.2`], "10.0.0.2"],
    ["10.0.0.1", [`${FAR}:1234`], FAR],
    ["10.0.0.1", [`192.0.2.66:1, ${FAR}:1234, 10.0.0.2:99`], FAR],
    ["10.0.0.1", ["[2001:dead::1]:443"], "2001:dead::1"],
    ["10.0.0.1", ["[2001:dead::1]"], "2001:dead::1"],
    ["10.0.0.1", [`${FAR}, [2001:db8::2]:443`], FAR],
    ["10.0.0.1", ["2001:DEAD:0::0001"], "2001:dead::1"],
    ["10.0.0.1", [`::FFFF:${FAR}`], FAR],
    ["10.0.0.1", ["::ffff:cb00:7107"], FAR],
    ["10.0.0.1", [`[0:0:0:0:0:ffff:cb00:7107]:1`], FAR],
    ["10.0.0.1", [`${FAR}, ::ffff:a00:2`], FAR],
    ["10.0.0.1", [`${FAR}:`], "10.0.0.1"],
    ["10.0.0.1", [`${FAR}:123456`], "10.0.0.1"],
    ["10.0.0.1", [`[${FAR}]:80`], "10.0.0.1"],
    ["10.0.0.1", ["app.example:80"], "10.0.0.1"],
    ["10.0.0.1", [`${FAR},`], "10.0.0.1"],
    ["192.0.2.9", [FAR], "192.0.2.9"],
    ["::ffff:192.0.2.9", [FAR], "192.0.2.9"],
    ["192.0.2.9", ["10.0.0.2"], "192.0.2.9"],
  ])("from %s with %j is %s", (from, lists, client) => {
    const message = messageWith(
      lists.flatMap((list) => ["X-Forwarded-For", list]),
      from,
    );
    expect(behind(message, 7).client).toBe(client);
  });

  test("is reported when it is not named, with the proxy that should have named it", () => {
    const told: [proxy: string, list: string | undefined][] = [];
    const reporting = createIntake({
      trustedProxies: createNetworks(["10.0.0.0/8"]),
      limits: { headers: 100 },
      unknown: (...one) => told.push(one),
    });
    const from = (list: readonly string[], peer = "10.0.0.1"): void => {
      reporting(
        messageWith(
          list.flatMap((value) => ["X-Forwarded-For", value]),
          peer,
        ),
        7,
      );
    };
    from([]);
    from([`${FAR}, _hidden, 10.0.0.2`]);
    from([`nonsense, ${FAR}`]);
    from(["10.0.0.3"]);
    from([], "192.0.2.9");
    from(["unknown"], "192.0.2.9");
    expect(told).toEqual([
      ["10.0.0.1", undefined],
      ["10.0.0.2", `${FAR}, _hidden, 10.0.0.2`],
    ]);
  });

  test.each([
    ["10.9.9.9", true],
    ["::ffff:10.9.9.9", true],
    ["11.0.0.1", false],
  ])("%s is trusted: %s", (from, trusted) => {
    expect(behind(messageWith([], from), 7).connection.peerTrusted).toBe(trusted);
  });
});

describe("the request id", () => {
  test.each(["a", "A-b_c.9", "x".repeat(128)])("is kept if it is valid: %s", (sent) => {
    expect(requestIdOf(sent, 7)).toBe(sent);
  });

  test.each([undefined, "", "a b", "a,b", "x".repeat(129), "<a>", "\u00e9", "a\n", ["a"]])(
    "is generated for %j",
    (sent) => {
      expect(requestIdOf(sent, 7)).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
      expect(requestIdOf(sent, 7)).not.toBe(sent);
      expect(requestIdOf(sent, 7)).not.toBe(requestIdOf(sent, 8));
    },
  );

  test("is the first of several", () => {
    const message = messageWith(["X-Request-Id", "one", "x-request-id", "two"]);
    expect(intake(message, 7).requestId).toBe("one");
  });
});
