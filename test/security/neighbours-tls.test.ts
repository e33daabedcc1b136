/**
 * Advisories of 2025 and 2026 about which TLS policy a connection gets: the class numbers are those of the table in
 * SECURITY.md.
 *
 * - 11: of two policies for one host the weaker holds, or a change of policy leaves connections and sessions under
 *   none (Traefik).
 * - 12: the policy is chosen by the name in the handshake, and the request names another host, or there is no name
 *   (Traefik, Contour, nginx). Sallyport has one policy, and no decision depends on that name.
 * - 13: a protocol other than HTTP/1.1 skips the client certificate (Traefik).
 */
import { describe, expect, it } from "vitest";
import { ask as plainly } from "../support/ask.ts";
import { clientAuthority } from "../support/client-certificates.ts";
import { editConfiguration, replaceFile } from "../support/edits.ts";
import { valuesOf } from "../support/http-reader.ts";
import { frame, FRAME } from "../support/http2-frames.ts";
import { useSallyport } from "../support/pair.ts";
import { request } from "../support/raw-client.ts";
import { tlsExchange, type TlsExchangeOptions } from "../support/tls-client.ts";

const authority = await clientAuthority();
const impostor = await clientAuthority("Somebody else");
const alice = await authority.certificate();
const stranger = await impostor.certificate();
const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;
const PREFACE = `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${frame(FRAME.settings, 0, 0).toString("latin1")}`;

const required = { mode: "required", caFile: "clients.crt" };
const standing = useSallyport(undefined, {
  withoutToken: true,
  files: { "clients.crt": authority.cert },
  config: {
    server: { http2: true, tls: { clientCertificates: required } },
    routes: [
      { name: "secret", hosts: ["secret.example"], path: "/", upstream: "app" },
      { name: "open", hosts: ["open.example"], path: "/", auth: "none", upstream: "app" },
    ],
  },
});

const get = (host: string): string =>
  request(["GET /x HTTP/1.1", `Host: ${host}`, "Connection: close"]);
const ask = async (host: string, options: TlsExchangeOptions): Promise<string> =>
  (await tlsExchange(standing().gate, get(host), { timeoutMs: 4_000, ...options })).raw.slice(
    9,
    12,
  );

describe("12: the name in the handshake", () => {
  // An empty name is not sent.
  const names = ["", "localhost", "open.example", "OPEN.EXAMPLE", "secret.example", "x.y"];

  it.each(names)("%j decides nothing: the Host of the request does", async (servername) => {
    const { backend } = standing();
    const options = { ...alice, servername, checkServerIdentity: () => undefined };
    expect(await ask("open.example", options)).toBe("200");
    expect(await ask("secret.example", options)).toBe("401");
    expect(await ask("other.example", options)).toBe("401");
    expect(await ask("open.example", { servername, checkServerIdentity: () => undefined })).toBe(
      "",
    );
    expect(await ask("open.example", { ...options, ...stranger })).toBe("");
    expect(backend.seen()).toEqual(["GET /x"]);
  });
});

describe("13: HTTP/2 without a client certificate", () => {
  it.each(VERSIONS)("gets no answer: %s", async (version) => {
    const { gate } = standing();
    const versions = { minVersion: version, maxVersion: version, ALPNProtocols: ["h2"] };
    for (const certificate of [{}, stranger]) {
      const { raw, error } = await tlsExchange(gate, PREFACE, { ...versions, ...certificate });
      expect([raw, error === "timeout"]).toEqual(["", false]);
    }
    const onSecure: TlsExchangeOptions["onSecure"] = (socket) =>
      socket.once("data", () => socket.destroy());
    const { raw, alpn } = await tlsExchange(gate, PREFACE, { ...versions, ...alice, onSecure });
    expect([raw === "", alpn]).toEqual([false, "h2"]);
  });
});

describe("11: a reload that would weaken the policy", () => {
  it("changes nothing for connections, sessions and the requests on them", async () => {
    const { gate, backend } = standing();
    const before = await tlsExchange(gate, get("open.example"), {
      ...alice,
      maxVersion: "TLSv1.2",
    });
    expect(before.raw).toMatch(/^HTTP\/1\.1 200 /);
    const session = before.session === undefined ? {} : { session: before.session };
    const check = async (): Promise<void> => {
      for (const maxVersion of VERSIONS) {
        expect(await ask("open.example", { maxVersion })).toBe("");
        expect(await ask("open.example", { maxVersion, ...stranger })).toBe("");
        expect(await ask("open.example", { maxVersion, ...alice })).toBe("200");
      }
      expect(await ask("open.example", { maxVersion: "TLSv1.2", ...session })).toBe("");
    };
    for (const clientCertificates of [{ ...required, mode: "optional" }, undefined]) {
      await editConfiguration(gate, ({ server }) => {
        server["tls"] = { certFile: "tls.crt", keyFile: "tls.key", clientCertificates };
      });
      const { status } = await plainly({ port: gate.adminPort }, "/-/reload", { method: "POST" });
      expect(status).toBe(200);
      await check();
    }
    // The authorities of the policy in force still follow their file.
    await replaceFile(gate, "clients.crt", impostor.cert);
    backend.forget();
  });

  it("and other authorities hold for every connection from then on", async () => {
    const { gate, backend } = standing();
    await editConfiguration(gate, ({ server }) => {
      server["tls"] = { certFile: "tls.crt", keyFile: "tls.key", clientCertificates: required };
    });
    await expect.poll(() => ask("open.example", stranger), { timeout: 8_000 }).toBe("200");
    for (const maxVersion of VERSIONS) {
      expect(await ask("open.example", { maxVersion, ...alice })).toBe("");
      expect(await ask("open.example", { maxVersion })).toBe("");
    }
    const subjects = backend
      .requests()
      .flatMap(({ headers }) => valuesOf(headers, "x-auth-client-subject"));
    expect(new Set(subjects)).toEqual(new Set(["CN=alice,OU=sales,O=Example"]));
  });
});
