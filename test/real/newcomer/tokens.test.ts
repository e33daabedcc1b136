/** A newcomer's wishes about what callers send: tokens of a provider, scopes, rate limits, CORS, HTTP/2 and gRPC. */
import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { grpcClient, startGrpcBackend } from "../../support/grpc.ts";
import { startIssuer, newKey, ORDERS } from "../oidc-issuer.ts";
import { follow } from "./follow.ts";

it("tokens of an OpenID provider, with groups and scopes", async () => {
  // As its administrator would set it up for the page.
  await using provider = await startIssuer(newKey("first", "RS256"), {
    audience: "orders",
    claims: { preferred_username: "zoe", groups: ["staff"] },
  });
  const followed = await follow("openid-tokens", {
    filled: { "https://id.example.com/realms/shop": provider.issuer },
  });
  const [reader, writer] = [
    await provider.tokenFor(ORDERS),
    await provider.tokenFor(ORDERS, "orders:write"),
  ];
  const file = '(umask 077 && printf %s "$TOKEN" > token)\n';
  const inspected = await followed.run(`TOKEN=${writer}\n${file}`);
  expect(inspected).toBe("");
  expect(await followed.sh("sallyport doctor")).toMatch(/1 keys, 0 ignored[^]*zoe/);
  const { body } = await ask(followed, "/x", { token: reader });
  expect(body).toMatch(/"x-auth-subject","zoe"/i);
  expect((await ask(followed, "/reports/2026", { token: reader })).status).toBe(200);
  expect((await ask(followed, "/orders/1", { token: writer })).status).toBe(200);
  const refused = await ask(followed, "/orders/1", { token: reader });
  expect(refused.status).toBe(403);
  expect(refused.headers["www-authenticate"]).toContain('scope="orders:write"');
});

it("a rate limit for each user, and CORS", async () => {
  const followed = await follow("protect-an-app");
  const [alice, admin] = [await followed.login("alice"), await followed.login("admin")];
  const asked = Array.from({ length: 100 }, () => ask(followed, "/orders", { token: alice }));
  const statuses = new Set((await Promise.all(asked)).map(({ status }) => status));
  expect([...statuses]).toEqual([200]);
  const late = await ask(followed, "/orders", { token: alice });
  expect(late.status).toBe(429);
  expect(Number(late.headers["retry-after"])).toBeGreaterThan(0);
  expect((await ask(followed, "/orders", { token: admin })).status).toBe(200);

  const preflight = (origin: string) =>
    ask(followed, "/orders", {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "GET" },
    });
  const allowed = await preflight("https://shop.example.com");
  expect(allowed.status).toBe(200);
  expect(allowed.headers["access-control-allow-origin"]).toBe("https://shop.example.com");
  expect((await preflight("https://else.example.com")).status).toBe(403);
});

it("HTTP/2 and gRPC", async () => {
  await using service = await startGrpcBackend();
  const followed = await follow("grpc", { filled: { "http://127.0.0.1:8080": service.url } });
  expect(await followed.sh("curl")).toBe("2 401\n");
  const client = grpcClient(followed);
  try {
    expect((await client.unary("hello")).error?.code).toBe(16);
    const answer = await client.unary("hello", { token: await followed.login("alice") });
    expect(answer.text).toBe("hello");
    expect(service.calls.at(-1)?.get("x-auth-subject")).toEqual(["alice"]);
  } finally {
    client.close();
  }
});
