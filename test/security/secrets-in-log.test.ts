/**
 * Secrets in the log. People who read the log must not see tokens, passwords, cookies and queries (sign-in links have
 * their secret there), and a client must not be able to write its own lines. That includes refused requests: what
 * could not be parsed is the most likely to be logged unchanged.
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
  { name: "a login that is not JSON", bytes: login(`{"username":"alice","password":"${SECRET}`) },
  { name: "a login with a wrong type", bytes: login(`{"username":"a","password":["${SECRET}"]}`) },
];

/** Requests that Node refuses itself, or emits as another event. */
const NO_REQUEST = new Set(["a broken header", "a huge header", "CONNECT", "an expectation"]);

describe("Sallyport", () => {
  const standing = useSallyport();
  it.each(CASES)(
    "shows the secret neither in the log nor in the answer: $name",
    async ({ bytes }) => {
      const { gate } = standing();
      const before = gate.log().length;
      const answer = await exchange(gate, bytes, { responses: Infinity });
      await until(() => gate.log().length > before);
      expect(answer.responses.length).toBe(1);
      expect(answer.raw).not.toContain(SECRET);
      const told = JSON.stringify(gate.log().slice(before)) + gate.stderr();
      expect(told).not.toContain(SECRET);
    },
  );

  it("writes one line for input that tries to become two", async () => {
    const { gate } = standing();
    const before = gate.log().length;
    const forged = '/public/a","level":"fatal","x":"';
    await exchange(gate, get(forged.replaceAll('"', "%22")));
    await exchange(gate, get("/public/x", ['Host: a","level":"fatal']));
    await until(() => gate.log().length >= before + 2);
    expect(gate.log().filter(({ level }) => level === "fatal")).toEqual([]);
  });
});

describe("http-proxy-3 with its defaults and a simple request log", () => {
  const standing = useNaiveProxy(undefined, { logs: true });

  it.each(CASES.filter(({ name }) => !NO_REQUEST.has(name)))(
    "logs the secret: $name",
    async ({ bytes }) => {
      const { gate } = standing();
      const before = gate.lines.length;
      await exchange(gate, bytes, { responses: Infinity });
      await until(() => gate.lines.length > before);
      expect(gate.lines.slice(before).join("\n")).toContain(SECRET);
    },
  );

  it("writes lines that the client has forged", async () => {
    const { gate } = standing();
    await exchange(gate, get("/public/x", ['Host: a","level":"fatal']));
    const fatal = (line: string): boolean => JSON.parse(line).level === "fatal";
    await until(() => gate.lines.slice(1).some(fatal));
  });
});
