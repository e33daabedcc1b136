import { expect, it } from "vitest";
import { replaceFile } from "../support/edits.ts";
import { ALICE_SUBJECT, clientAuthority } from "../support/client-certificates.ts";
import { request } from "../support/raw-client.ts";
import { startSallyport } from "../support/sallyport.ts";
import { tlsExchange } from "../support/tls-client.ts";
import { until } from "../support/until.ts";

it.each([
  ["a configured certificate", {}],
  ["a self-signed certificate", { selfSigned: true, certFile: undefined, keyFile: undefined }],
])(
  "a reload replaces the authorities of client certificates, with %s",
  async (_name, tls) => {
    const [before, after] = [await clientAuthority(), await clientAuthority()];
    const [alice, later] = [
      await before.certificate({ subject: ALICE_SUBJECT }),
      await after.certificate({ subject: ALICE_SUBJECT }),
    ];
    await using gate = await startSallyport({
      withoutToken: true,
      target: "http://127.0.0.1:1",
      config: {
        server: {
          tls: { ...tls, clientCertificates: { mode: "required", caFile: "clients.crt" } },
        },
      },
      files: { "clients.crt": before.cert },
      clientCertificate: alice,
      insecure: true,
    });
    const isLetIn = async (certificate: typeof alice): Promise<boolean> => {
      const bytes = request(["GET /x HTTP/1.1", "Host: localhost", "Connection: close"]);
      const { raw } = await tlsExchange(gate, bytes, { ...certificate, rejectUnauthorized: false });
      return raw.startsWith("HTTP/1.1 401");
    };
    expect([await isLetIn(alice), await isLetIn(later)]).toEqual([true, false]);
    await replaceFile(gate, "clients.crt", after.cert);
    await until(() => isLetIn(later));
    expect(await isLetIn(alice)).toBe(false);
  },
  30_000,
);
