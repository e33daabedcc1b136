import { z } from "zod";
import { filePath, refuse } from "./fields.ts";

export const TLS_CHOICES =
  "give { certFile, keyFile }, or { selfSigned: true } for development, or off behind a mesh that provides TLS";

function clientCertificates() {
  return z
    .strictObject({
      mode: z
        .enum(["optional", "required"])
        .describe(
          "required refuses clients without a certificate; an invalid certificate is always refused",
        ),
      caFile: filePath().describe(
        "Authorities that issue the clients' certificates, PEM; reloaded when it changes",
      ),
    })
    .describe("Requests certificates from clients; the subject goes to the backend");
}

function writtenTls() {
  return z.strictObject({
    certFile: filePath()
      .exactOptional()
      .describe("Certificate chain, PEM; reloaded when it changes"),
    keyFile: filePath({ secret: true })
      .exactOptional()
      .describe("Private key, PEM; reloaded together with the certificate"),
    minVersion: z
      .enum(["TLSv1.2", "TLSv1.3"])
      .exactOptional()
      .describe("Oldest accepted TLS version; default: TLSv1.2"),
    ticketKeyFile: filePath({ secret: true })
      .exactOptional()
      .describe(
        "Key for session tickets, 48 random bytes in base64; replicas with the same key resume each other's sessions. Reloaded when it changes",
      ),
    selfSigned: z
      .boolean()
      .exactOptional()
      .describe("Generates a certificate at start; only for development"),
    clientCertificates: clientCertificates().exactOptional(),
  });
}

type WrittenTls = z.output<ReturnType<typeof writtenTls>>;
type ServerTls =
  | (Pick<WrittenTls, "ticketKeyFile" | "clientCertificates"> &
      Required<Pick<WrittenTls, "certFile" | "keyFile" | "minVersion">> & {
        readonly mode: "files";
      })
  | (Pick<WrittenTls, "clientCertificates"> & { readonly mode: "selfSigned" })
  | { readonly mode: "off" };

/** `server.tls`: certificate and key, client certificates, and session resumption. */
export function serverTls() {
  const mapping = writtenTls().transform(chosen);
  // YAML 1.1 (Helm, for one) turns an unquoted `off` into false.
  const off = z.literal(["off", false]).transform((): ServerTls => ({ mode: "off" }));
  return z.union([mapping, off], {
    error: ({ input }) =>
      input === undefined ? `is missing: ${TLS_CHOICES}` : `is not valid: ${TLS_CHOICES}`,
  });
}

function chosen(tls: WrittenTls, context: z.RefinementCtx): ServerTls {
  const { certFile, keyFile, minVersion = "TLSv1.2", ticketKeyFile, selfSigned = false } = tls;
  if (ticketKeyFile !== undefined && tls.clientCertificates !== undefined) {
    return refuse(
      context,
      "has ticketKeyFile and clientCertificates: sessions of clients with a certificate cannot be resumed",
    );
  }
  const named = certFile ?? keyFile ?? tls.minVersion ?? ticketKeyFile;
  const client = tls.clientCertificates && { clientCertificates: tls.clientCertificates };
  if (selfSigned && named === undefined) return { mode: "selfSigned", ...client };
  if (!selfSigned && certFile !== undefined && keyFile !== undefined) {
    const ticket = ticketKeyFile !== undefined && { ticketKeyFile };
    return { mode: "files", certFile, keyFile, minVersion, ...ticket, ...client };
  }
  return refuse(
    context,
    selfSigned
      ? "has files or a version in addition to selfSigned: choose one"
      : `is not complete: ${TLS_CHOICES}`,
  );
}
