/** ingress-nginx asks with the fields that its template writes, and with those of the client. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  const config = { decisions: { from: ["127.0.0.0/8"] } };
  gate = await startSallyport({ target: backend.url, config });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

type Headers = Record<string, string>;

/** With `auth-url` alone, for https://orders.example.com/a?b=c. */
const QUESTION: Headers = {
  Host: "sallyport.sallyport.svc",
  "X-Original-URL": "https://orders.example.com/a?b=c",
  "X-Original-Method": "GET",
  "X-Sent-From": "nginx-ingress-controller",
  "X-Real-IP": "192.0.2.50",
  "X-Forwarded-For": "192.0.2.50",
  "X-Auth-Request-Redirect": "/a?b=c",
};

const statusFor = async (more: Headers): Promise<number> =>
  (await ask(gate, "/_sallyport/decide", { headers: { ...QUESTION, ...more } })).status;

it("gets an answer about the caller", async () => {
  expect(await statusFor({ authorization: `Bearer ${gate.token}` })).toBe(200);
  expect(await statusFor({})).toBe(401);
});

it.each<Headers>([
  { "X-Auth-Request-User": "root" },
  { "X-Auth-Request-Redirect-User": "root" },
  { "X-Original-URI": "/public" },
  { "X-Forwarded-Uri": "/a?b=c" },
])("is refused with %j of a client", async (more) => {
  expect(await statusFor({ ...more, authorization: `Bearer ${gate.token}` })).toBe(400);
});
