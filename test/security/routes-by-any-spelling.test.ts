/**
 * A route found by one spelling, a request forwarded with another. Traefik matched the decoded path and stripped the
 * prefix from the raw one (GHSA-6jwx-7vp4-9847): two spellings of one path, authorized as the same, arrived in two
 * places. And a route by host is bypassed if the same host is written differently (Caddy's case-sensitive host
 * lists): with a trailing dot, a port, another case, or empty labels. All spellings of a path go where their route
 * leads, and an invalid host name is refused, not sent to the route for all hosts.
 */
import { describe, expect, it } from "vitest";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const get = (wanted: string): string => request([`GET ${wanted} HTTP/1.1`, "Host: localhost"]);

describe("Sallyport with a rewriting route", () => {
  const rewrite = { stripPrefix: "/@me", addPrefix: "/me" };
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: {
      routes: [
        { name: "me", path: "/@me/", auth: "none", upstream: "app", rewrite },
        { name: "me-itself", path: "/me", auth: "none", upstream: "app" },
        { name: "everything", path: "/", upstream: "app" },
      ],
    },
  });

  it.each(["/@me/x", "/%40me/x", "/@%6de/x", "/%40%6D%65/x"])(
    "sends %s to the one place of its route",
    async (wanted) => {
      const { gate, backend } = standing();
      expect((await exchange(gate, get(wanted))).last.status).toBe(200);
      expect(backend.seen()).toEqual(["GET /me/x"]);
    },
  );
});

describe("Sallyport with routes by host", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: {
      routes: [
        { name: "secret", hosts: ["secret.example"], path: "/", upstream: "app" },
        { name: "everything", path: "/", auth: "none", upstream: "app" },
      ],
    },
  });

  it.each([
    ...["secret.example", "SECRET.example", "secret.example.", "secret.example:8443"],
    ...["Secret.Example.:1", "secret.example..", "secret..example", ".secret.example"],
    ...["secret.example:99999", "secret.example:", "secret.example:-1", ".", "..", ""],
  ])("takes %j for the protected host or for none", async (host) => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, request(["GET /x HTTP/1.1", `Host: ${host}`]));
    expect([400, 401]).toContain(last.status);
    expect(backend.seen()).toEqual([]);
  });

  const to = (...hosts: string[]): string =>
    request(["GET /x HTTP/1.1", ...hosts.map((host) => `Host: ${host}`)]);

  it("reads the host of every request on a connection", async () => {
    const { gate, backend } = standing();
    const hosts = [
      "open.example",
      "secret.example",
      "open.example",
      "SECRET.example:1",
      "b.example",
    ];
    const bytes = hosts.map((host) => to(host)).join("") + to("open.example", "b.example");
    const { responses } = await exchange(gate, bytes, { responses: Infinity });
    expect(responses.map(({ status }) => status)).toEqual([200, 401, 200, 401, 200, 400]);
    const told = backend
      .requests()
      .flatMap(({ headers }) => [valuesOf(headers, "host"), valuesOf(headers, "x-forwarded-host")])
      .map((values) => values.join());
    const expected = ["open.example", "open.example", "b.example"].flatMap((host) => [host, host]);
    expect(told.toSorted()).toEqual(expected.toSorted());
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("forwards invalid host names, and the path as received", async () => {
    const { gate, backend } = standing();
    const bytes = request(["GET /public/%40me HTTP/1.1", "Host: secret.example.."]);
    expect((await exchange(gate, bytes)).last.status).toBe(200);
    expect(backend.seen()).toEqual(["GET /public/%40me"]);
  });
});
