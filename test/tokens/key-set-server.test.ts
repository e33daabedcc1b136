import { createServer as createSecureServer } from "node:https";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { KeySetServer, keySetUrlIn, lifeIn } from "../../src/tokens/trusted/key-set-server.ts";
import type { KeySetAddress } from "../../src/tokens/trusted/trusted-keys.ts";
import { testCertificates } from "../support/certificates.ts";
import { listeningPort } from "../support/listening-port.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { first, provider } from "./trust.ts";

const opened: KeySetServer[] = [];
afterEach(() => {
  for (const each of opened.splice(0)) each.close();
});

function fetchFrom(issuer: string, address: KeySetAddress = {}) {
  const server = new KeySetServer(issuer, address);
  opened.push(server);
  return server.fetch(AbortSignal.timeout(5_000));
}

/** Starts an issuer with this discovery document, which may depend on its URL. */
async function issuerWith(document: (issuer: string) => object) {
  const asked: IncomingMessage[] = [];
  const { url, state } = await provider((request, response) => {
    asked.push(request);
    const issuer = `http://${request.headers.host}/realm`;
    response.end(
      request.url === "/realm/.well-known/openid-configuration"
        ? JSON.stringify(document(issuer))
        : first,
    );
  });
  return { issuer: new URL("/realm", url).href, state, asked };
}

describe("discovery", () => {
  test("finds the key set, with or without a trailing slash in the issuer", async () => {
    const { issuer, asked } = await issuerWith((own) => ({ issuer: own, jwks_uri: `${own}/keys` }));
    expect((await fetchFrom(issuer)).text).toBe(first);
    expect(asked.map(({ url }) => url)).toEqual([
      "/realm/.well-known/openid-configuration",
      "/realm/keys",
    ]);
    const slash = await issuerWith((own) => ({ issuer: `${own}/`, jwks_uri: `${own}/keys` }));
    expect((await fetchFrom(`${slash.issuer}/`)).text).toBe(first);
  });

  test.each<[string, (own: string) => object]>([
    [
      "another issuer",
      () => ({ issuer: "https://evil.example.com", jwks_uri: "https://a.example" }),
    ],
    ["the issuer with a slash more", (own) => ({ issuer: `${own}/`, jwks_uri: `${own}/keys` })],
    ["no jwks_uri", (own) => ({ issuer: own })],
    ["a file", (own) => ({ issuer: own, jwks_uri: "file:///etc/passwd" })],
    ["plain http elsewhere", (own) => ({ issuer: own, jwks_uri: "http://id.example.com/keys" })],
    ["credentials", (own) => ({ issuer: own, jwks_uri: "https://a:b@id.example.com/keys" })],
    ["a bare address", (own) => ({ issuer: own, jwks_uri: "https://169.254.169.254/latest" })],
    ["a list", () => []],
  ])("that names %s is refused", async (_what, document) => {
    const { issuer, asked } = await issuerWith(document);
    await expect(fetchFrom(issuer)).rejects.toThrow(/discovery/);
    expect(asked).toHaveLength(1);
  });

  test("that differs by a slash is named beside ours, but no other one is", async () => {
    const slash = await issuerWith((own) => ({ issuer: `${own}/` }));
    await expect(fetchFrom(slash.issuer)).rejects.toThrow(
      `names another issuer: ${slash.issuer}/, not ${slash.issuer}`,
    );
    const bare = await issuerWith((own) => ({ issuer: own }));
    await expect(fetchFrom(`${bare.issuer}/`)).rejects.toThrow(`: ${bare.issuer}, not `);
    const evil = await issuerWith(() => ({ issuer: "https://evil.example.com/" }));
    await expect(fetchFrom(evil.issuer)).rejects.toThrow(/names another issuer$/);
  });

  test("of a remote issuer cannot lead to this machine", () => {
    const issuer = "https://id.example.com";
    const found = (url: string) => keySetUrlIn(JSON.stringify({ issuer, jwks_uri: url }), issuer);
    for (const url of [
      "http://127.0.0.1:9464/metrics",
      "http://localhost/keys",
      "https://localhost/keys",
      "https://localhost./keys",
      "https://LOCALHOST./keys",
      "https://keys.localhost/keys",
      "https://127.0.0.1./keys",
      "https://127.0.0.1/keys",
      "https://127.1/keys",
      "https://0x7f000001/keys",
      "https://2130706433/keys",
      "https://[::1]/keys",
      "https://[::ffff:127.0.0.1]/keys",
      "https://10.0.0.1/keys",
      "https://id.example.com/keys#x",
    ]) {
      expect(() => found(url), url).toThrow(/discovery/);
    }
    expect(found("https://keys.example.net/v3/certs")).toBe("https://keys.example.net/v3/certs");
  });
});

describe("a key set that requires a token", () => {
  test("gets the token from a file, over TLS with the authorities of caFile", async () => {
    const { ca, server } = await testCertificates();
    const seen: (string | undefined)[] = [];
    const api = createSecureServer(server, (request, response) => {
      seen.push(request.headers.authorization);
      response.end(first);
    });
    api.listen(0, "127.0.0.1");
    await once(api, "listening");
    onTestFinished(() => {
      api.closeAllConnections();
      api.close();
    });
    const directory = await temporaryDirectory();
    onTestFinished(() => directory.close());
    const caFile = await directory.write("ca.crt", ca);
    const tokenFile = await directory.write("token", "secret-of-the-pod\n");
    const url = `https://localhost:${listeningPort(api)}/openid/v1/jwks`;
    expect((await fetchFrom("https://k8s", { url, caFile, tokenFile })).text).toBe(first);
    expect(seen).toEqual(["Bearer secret-of-the-pod"]);
    await expect(fetchFrom("https://k8s", { url, tokenFile })).rejects.toThrow(/certificate/);
    expect(seen).toHaveLength(1);
  });

  test("gets the token only at the configured server, not at one that discovery names", async () => {
    const other = await provider((request, response) => {
      response.end(request.headers.authorization === undefined ? first : "{}");
    });
    const { issuer, asked } = await issuerWith((own) => ({ issuer: own, jwks_uri: other.url }));
    const directory = await temporaryDirectory();
    onTestFinished(() => directory.close());
    const tokenFile = await directory.write("token", "secret");
    expect((await fetchFrom(issuer, { tokenFile })).text).toBe(first);
    expect(asked.map(({ headers }) => headers.authorization)).toEqual(["Bearer secret"]);
  });
});

test.each([
  [undefined, undefined],
  ["public", undefined],
  ["public, max-age=300", 300_000],
  ["MAX-AGE = 60", 60_000],
  ["s-maxage=5, max-age=10", 10_000],
  ["no-store", 0],
  ["no-cache, max-age=300", 0],
])("Cache-Control: %s", (header, lifeMs) => {
  expect(lifeIn(header)).toBe(lifeMs);
});
