/**
 * Secrets in the log. Whoever reads the log is not meant to read tokens, passwords, cookies and queries (sign-in links
 * carry their secret there), nor may a client write lines of its own into it. That holds for requests that are refused,
 * too: what could not be parsed is the easiest to log as it came.
 */
import { describe, expect, it } from "vitest";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const SECRET = "s3cr3t-0f-4lice";
const FIELDS = [`Authorization: Bearer ${SECRET}`, `Cookie: session=${SECRET}`];
const get = (target: string, headers: readonly string[] = ["Host: localhost"]): string =>
  request([`GET ${target} HTTP/1.1`, ...headers, ...FIELDS, "Connection: close"]);
const login = (body: string): string =>
  request(
    [
      `POST /api/authenticate?password=${SECRET} HTTP/1.1`,
      "Host: localhost",
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      "Connection: close",
    ],
    body,
  );

const CASES = [
  { name: "forwarded", bytes: get(`/public/x?key=${SECRET}`) },
  { name: "unauthenticated", bytes: get(`/orders?key=${SECRET}`) },
  { name: "two hosts", bytes: get(`/orders?key=${SECRET}`, ["Host: a", "Host: b"]) },
  { name: "a path trick", bytes: get(`/public/../x?key=${SECRET}`) },
  { name: "a fragment", bytes: get(`/x#key=${SECRET}`) },
  { name: "an absolute form", bytes: get(`http://other.example/x?key=${SECRET}`) },
  { name: "a password in the target", bytes: get(`http://alice:${SECRET}@localhost/x`) },
  { name: "a password in Host", bytes: get("/x", [`Host: alice:${SECRET}@localhost`]) },
  { name: "CONNECT", bytes: get(`/x?key=${SECRET}`).replace("GET", "CONNECT") },
  { name: "TRACE", bytes: get(`/x?key=${SECRET}`).replace("GET", "TRACE") },
  { name: "an expectation", bytes: get(`/x?key=${SECRET}`, ["Host: a", `Expect: ${SECRET}`]) },
  { name: "an upgrade", bytes: get(`/x?key=${SECRET}`, ["Host: a", "Upgrade: h2c"]) },
  { name: "a broken header", bytes: get(`/x?key=${SECRET}`, ["Host: a", SECRET]) },
  { name: "a huge header", bytes: get("/x", ["Host: a", `X: ${SECRET.repeat(2000)}`]) },
  { name: "a failed login", bytes: login(`{"username":"alice","password":"${SECRET}"}`) },
  { name: "a login that is no JSON", bytes: login(`{"username":"alice","password":"${SECRET}`) },
  { name: "a login with a wrong type", bytes: login(`{"username":"a","password":["${SECRET}"]}`) },
];

/** What Node refuses itself, or tells of by another event. */
const NO_REQUEST = new Set(["a broken header", "a huge header", "CONNECT", "an expectation"]);

describe("Sallyport", () => {
  const standing = useSallyport();
  it.each(CASES)("keeps the secret out of log and answer: $name", async ({ bytes }) => {
    const { gate } = standing();
    const before = gate.log().length;
    const answer = await exchange(gate, bytes, { responses: Infinity });
    await until(() => gate.log().length > before);
    expect(answer.responses.length).toBe(1);
    expect(answer.raw).not.toContain(SECRET);
    const told = JSON.stringify(gate.log().slice(before)) + gate.stderr();
    expect(told).not.toContain(SECRET);
  });

  it("writes one line for what a client would like to be two", async () => {
    const { gate } = standing();
    const before = gate.log().length;
    const forged = '/public/a","level":"fatal","x":"';
    await exchange(gate, get(forged.replaceAll('"', "%22")));
    await exchange(gate, get("/public/x", ['Host: a","level":"fatal']));
    await until(() => gate.log().length >= before + 2);
    expect(gate.log().filter(({ level }) => level === "fatal")).toEqual([]);
  });
});

describe("http-proxy-3 as it comes, with requests logged as they come", () => {
  const standing = useNaiveProxy(undefined, { logs: true });

  it.each(CASES.filter(({ name }) => !NO_REQUEST.has(name)))(
    "tells the secret: $name",
    async ({ bytes }) => {
      const { gate } = standing();
      const before = gate.lines.length;
      await exchange(gate, bytes, { responses: Infinity });
      await until(() => gate.lines.length > before);
      expect(gate.lines.slice(before).join("\n")).toContain(SECRET);
    },
  );

  it("writes what a client would like to have written", async () => {
    const { gate } = standing();
    await exchange(gate, get("/public/x", ['Host: a","level":"fatal']));
    const fatal = (line: string): boolean => JSON.parse(line).level === "fatal";
    await until(() => gate.lines.slice(1).some(fatal));
  });
});
