import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import { casesOf } from "./cases.ts";
import { type Draft, messages } from "./message.ts";
import { SMUGGLED, usualFields } from "./pieces.ts";

const HANDSHAKE = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  ...["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="],
];

const FIELDS = [
  ...[
    "Upgrade: h2c",
    "Upgrade: websocket, h2c",
    "Upgrade: WebSocket",
    "Upgrade: TLS/1.0",
    "Upgrade:",
  ],
  ...["Connection: close", "Connection: Upgrade, close", "Connection: upgrade, X-Auth-Subject"],
  ...["Connection: keep-alive", "HTTP2-Settings: AAMAAABkAAQAAP__", "Sec-WebSocket-Version: 777"],
  ...["Sec-WebSocket-Key: x", "Sec-WebSocket-Protocol: a, b", "Sec-WebSocket-Extensions: x"],
  ...[
    "Content-Length: 0",
    "Content-Length: 5",
    "Transfer-Encoding: chunked",
    "Expect: 100-continue",
  ],
  ...["X-Auth-Subject: forged", "X_Auth_Subject: forged", "X-Forwarded-For: 127.0.0.1"],
  ...["Host: another", "Proxy-Authorization: Basic eA==", "X-Request-Id: a b"],
];

/** Generates requests for another protocol, with data that the client sends immediately after them. */
export function upgrade(credentials: Credentials) {
  const draft = fc
    .record({
      method: fc.constantFrom("GET", "GET", "GET", "GET", "POST", "CONNECT", "OPTIONS"),
      target: fc.constantFrom("/public/ws", "/ws", "/public/refuse", "/refuse", "/public/../ws"),
      usual: usualFields(credentials),
      behind: fc.constantFrom("", "", "\u0081\u0085abcdhello", SMUGGLED, "\0\u00ff", "x\r\n\r\n"),
      handshake: fc.shuffledSubarray(HANDSHAKE, { minLength: 2 }),
      whole: fc.nat(3).map((turn) => turn > 0),
    })
    .map(({ method, target, usual, behind, handshake, whole }): Draft => ({
      line: `${method} ${target} HTTP/1.1`,
      fields: [...usual, ...(whole ? HANDSHAKE : handshake)],
      body: behind,
    }));
  return casesOf(messages(draft, fc.constantFrom(...FIELDS)));
}
