import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    config: {
      routes: [
        { name: "watched", path: "/watched/", mode: "monitor", upstream: "app" },
        {
          name: "grouped",
          path: "/grouped/",
          mode: "monitor",
          upstream: "app",
          require: { groups: { any: ["nobody"] } },
        },
        { name: "everything", path: "/", upstream: "app" },
      ],
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

describe("a route with mode: monitor", () => {
  it.each<[string, Record<string, string>, string, string]>([
    ["no token", {}, "missing", "/watched/1"],
    ["garbage", { authorization: "Bearer a.b.c" }, "malformed", "/watched/2"],
    [
      "a forged identity",
      { "x-auth-subject": "admin", X_Auth_Groups: "admin" },
      "missing",
      "/watched/3",
    ],
  ])(
    "forwards a request with %s as nobody's, and says why it would not",
    async (_, headers, reason, path) => {
      const before = await scrape(gate);
      const answer = await ask(gate, path, { headers });
      expect(answer.status).toBe(200);
      const got = echoedBy(answer);
      for (const name of ["x-auth-subject", "x-auth-groups", "x_auth_groups"]) {
        expect(got.header(name)).toBeUndefined();
      }
      const line = () => gate.log().findLast((each) => each["path"] === path);
      await until(() => line()?.["auth"] === "would_deny");
      expect(line()).toMatchObject({ auth: "would_deny", reason, status: 200, source: "upstream" });
      const series = `sallyport_auth_decisions_total{result="would_deny",reason="${reason}"}`;
      expect((await scrape(gate)).value(series)).toBe((before.value(series) ?? 0) + 1);
    },
  );

  it("forwards who lacks the group, without identity", async () => {
    const answer = await ask(gate, "/grouped/x", { token: gate.token });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBeUndefined();
    const line = () => gate.log().findLast(({ path }) => path === "/grouped/x");
    await until(() => line()?.["auth"] === "would_deny");
    expect(line()).toMatchObject({ reason: "forbidden", subject: "alice" });
  });

  it("tells the backend who is calling when the token is good", async () => {
    const answer = await ask(gate, "/watched/y", { token: gate.token });
    expect(echoedBy(answer).header("x-auth-subject")).toBe("alice");
  });

  it("still refuses what can be read in two ways", async () => {
    expect((await ask(gate, "/watched/..%2fx")).status).toBe(400);
  });
});

it("other routes refuse as ever", async () => {
  expect((await ask(gate, "/other")).status).toBe(401);
});

it("it shouts at start", () => {
  const lines = gate.log().filter(({ level, routes }) => level === "warn" && routes !== undefined);
  expect(lines).toMatchObject([{ routes: ["watched", "grouped"] }]);
});
