/**
 * Names in client certificates that read like others. Node prints all subject alternative names as one text; programs that split it
 * took a name with a comma for two (CVE-2021-44532), and a NUL byte for the end of a name (CVE-2009-2408). Of a SPIFFE ID, two
 * spellings must not be one caller, nor one certificate two callers.
 */
import { describe, expect, it } from "vitest";
import { clientAuthority } from "../support/client-certificates.ts";
import { type HttpMessage, valuesOf } from "../support/http-reader.ts";
import { useSallyport } from "../support/pair.ts";
import { request } from "../support/raw-client.ts";
import { tlsExchange } from "../support/tls-client.ts";

const authority = await clientAuthority();
const WEB = "spiffe://shop.example/ns/shop/web";
const DN = "CN=alice,OU=sales,O=Example";
const standing = useSallyport(undefined, {
  withoutToken: true,
  files: { "clients.crt": authority.cert },
  config: {
    server: { tls: { clientCertificates: { mode: "optional", caFile: "clients.crt" } } },
    routes: [
      { name: "any", path: "/any", auth: "certificate", upstream: "app" },
      {
        name: "web",
        path: "/web",
        auth: "certificate",
        upstream: "app",
        require: { spiffe: [WEB, "spiffe://shop.example/ns/jobs/*"] },
      },
    ],
  },
});

const get = (path: string): string =>
  request([`GET ${path} HTTP/1.1`, "Host: localhost", "Connection: close"]);

interface Seen {
  readonly status: string;
  readonly web: string;
  readonly header: (name: string) => string[];
}

/** How a caller with these names is seen: by the routes, and by the backend. */
async function seen(altNames: readonly string[], ca = authority): Promise<Seen> {
  const { gate, backend } = standing();
  const certificate = await ca.certificate({ altNames });
  backend.forget();
  const any = await tlsExchange(gate, get("/any"), certificate);
  const [message]: HttpMessage[] = backend.requests();
  const web = await tlsExchange(gate, get("/web"), certificate);
  return {
    status: any.raw.slice(9, 12),
    web: web.raw.slice(9, 12),
    header: (name) => valuesOf(message?.headers ?? [], name),
  };
}

describe("a certificate with one SPIFFE ID", () => {
  it.each([
    [WEB, "200"],
    ["spiffe://shop.example/ns/jobs/a", "200"],
    ["spiffe://shop.example/ns/jobs/a/b.c/D_e-f", "200"],
    ["spiffe://shop.example/ns/jobs", "403"],
    ["spiffe://shop.example/ns/jobs-of-others/a", "403"],
    ["spiffe://shop.example/ns/shop/WEB", "403"],
    ["spiffe://shop.example.evil.example/ns/jobs/a", "403"],
    [`spiffe://shop.example/${"a".repeat(2_000)}`, "403"],
  ])("%.60s is that caller", async (id, web) => {
    const caller = await seen([`DNS:a.example`, `URI:${id}`, "IP:127.0.0.1"]);
    expect([caller.status, caller.web]).toEqual(["200", web]);
    expect(caller.header("x-auth-subject")).toEqual([id]);
    expect(caller.header("x-auth-client-spiffe-id")).toEqual([id]);
    expect(caller.header("x-auth-client-dns-names")).toEqual(["a.example"]);
  });
});

describe("a certificate has no SPIFFE ID", () => {
  it.each([
    ["with two URIs", [`URI:${WEB}`, "URI:spiffe://shop.example/ns/shop/db"]],
    ["with two equal URIs", [`URI:${WEB}`, `URI:${WEB}`]],
    ["with another URI", [`URI:${WEB}`, "URI:https://shop.example/"]],
    ["with it in a DNS name", [`DNS:${WEB}`]],
    ["with it behind a comma in a DNS name", [`DNS:a.example, URI:${WEB}`]],
    ["with it behind a comma and a quote in a DNS name", [`DNS:a", URI:${WEB}`]],
    ["with it behind a comma in a mail address", [`email:a@b.example, URI:${WEB}`]],
    ["with a comma in it", [`URI:${WEB}, DNS:b.example`]],
    ["with a NUL byte behind it", [`URI:${WEB}\0.evil.example/x`]],
    ["with a NUL byte in front", [`URI:\0${WEB}`]],
    ["with a line break", [`URI:${WEB}\r\nX-Admin: 1`]],
    ["with a quote", [`URI:${WEB}"`]],
    ["with a slash at its end", [`URI:${WEB}/`]],
    ["with an empty segment", ["URI:spiffe://shop.example/ns//shop/web"]],
    ["with a dot segment", ["URI:spiffe://shop.example/ns/jobs/../shop/web"]],
    ["with a single dot", ["URI:spiffe://shop.example/ns/./shop/web"]],
    ["with an encoded character", ["URI:spiffe://shop.example/ns/shop/%77eb"]],
    ["with an encoded slash", ["URI:spiffe://shop.example/ns/jobs%2Fweb"]],
    ["with another case of the scheme", ["URI:SPIFFE://shop.example/ns/shop/web"]],
    ["with another case of the trust domain", ["URI:spiffe://Shop.example/ns/shop/web"]],
    ["with a port", ["URI:spiffe://shop.example:443/ns/shop/web"]],
    ["with user information", ["URI:spiffe://a@shop.example/ns/shop/web"]],
    ["with a query", [`URI:${WEB}?a`]],
    ["with a fragment", [`URI:${WEB}#a`]],
    ["with an asterisk", ["URI:spiffe://shop.example/ns/jobs/*"]],
    ["without a trust domain", ["URI:spiffe:///ns/shop/web"]],
    ["without a path", ["URI:spiffe://shop.example"]],
    ["that is too long", [`URI:spiffe://shop.example/${"a".repeat(2_048)}`]],
    ["among too many names", [`URI:${WEB}`, ...many(1_500)]],
  ])("%s", async (_name, altNames) => {
    const caller = await seen(altNames);
    expect([caller.status, caller.web]).toEqual(["200", "403"]);
    expect(caller.header("x-auth-subject")).toEqual([DN]);
    expect(caller.header("x-auth-client-spiffe-id")).toEqual([]);
    expect(caller.header("x-admin")).toEqual([]);
  });
});

describe("the DNS names of a certificate", () => {
  it("stay apart, whatever is in them", async () => {
    const caller = await seen([
      "DNS:a.example,b.example",
      "DNS:c\r\nd",
      `DNS:e"f`,
      "DNS:*.g.example",
    ]);
    expect(caller.header("x-auth-client-dns-names")).toEqual([
      `a.example%2Cb.example,c%0D%0Ad,e"f,*.g.example`,
    ]);
  });

  it.each([32, 33])("are sent whole or not at all: %i", async (count) => {
    const caller = await seen(many(count));
    const names = caller.header("x-auth-client-dns-names").flatMap((list) => list.split(","));
    expect(names).toHaveLength(count > 32 ? 0 : count);
  });
});

function many(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `DNS:${"n".repeat(20)}${at}.example`);
}
