import { z } from "zod";
import { duration, filePath, listen, network } from "./fields.ts";
import { serverLimits } from "./schema-limits.ts";

/** The sections about Sallyport itself: `server`, `login`, `log`. */

const TLS_CHOICES =
  "give { certFile, keyFile }, or { selfSigned: true } for development, or off behind a mesh that does TLS";

/** Whether clients show a certificate of their own. */
interface ClientCertificates {
  readonly mode: "optional" | "required";
  readonly caFile: string;
}

type ServerTls =
  | {
      readonly mode: "files";
      readonly certFile: string;
      readonly keyFile: string;
      readonly minVersion: "TLSv1.2" | "TLSv1.3";
      readonly clientCertificates?: ClientCertificates;
    }
  | { readonly mode: "selfSigned"; readonly clientCertificates?: ClientCertificates }
  | { readonly mode: "off" };

function clientCertificates(directory: string) {
  return z
    .strictObject({
      mode: z
        .enum(["optional", "required"])
        .describe("required: without a certificate there is no connection; a wrong one never is"),
      caFile: filePath(directory).describe(
        "The authorities that clients' certificates come from, PEM; read again when it changes",
      ),
    })
    .describe("Asks clients for a certificate; its subject goes to the backend");
}

function serverTls(directory: string) {
  const mapping = z
    .strictObject({
      certFile: filePath(directory)
        .exactOptional()
        .describe("Certificate chain, PEM; read again when it changes"),
      keyFile: filePath(directory)
        .exactOptional()
        .describe("Private key, PEM; read together with the certificate"),
      minVersion: z
        .enum(["TLSv1.2", "TLSv1.3"])
        .exactOptional()
        .describe("The oldest TLS version that is accepted; TLSv1.2 when left out"),
      selfSigned: z
        .boolean()
        .exactOptional()
        .describe("A certificate made at start, for development only"),
      clientCertificates: clientCertificates(directory).exactOptional(),
    })
    .transform((tls, context): ServerTls => {
      const { certFile, keyFile, minVersion = "TLSv1.2", selfSigned = false } = tls;
      const named = certFile ?? keyFile ?? tls.minVersion;
      const asked = tls.clientCertificates && { clientCertificates: tls.clientCertificates };
      if (selfSigned && named === undefined) return { mode: "selfSigned", ...asked };
      if (!selfSigned && certFile !== undefined && keyFile !== undefined) {
        return { mode: "files", certFile, keyFile, minVersion, ...asked };
      }
      const message = selfSigned
        ? "has files or a version beside selfSigned: choose one"
        : `is not complete: ${TLS_CHOICES}`;
      context.issues.push({ code: "custom", message, input: tls });
      return z.NEVER;
    });
  const off = z.literal("off").transform((): ServerTls => ({ mode: "off" }));
  return z.union([mapping, off], {
    error: ({ input }) =>
      input === undefined ? `is missing: ${TLS_CHOICES}` : `is not valid: ${TLS_CHOICES}`,
  });
}

export function serverSection(directory: string) {
  return z
    .strictObject(
      {
        listen: listen()
          .prefault("0.0.0.0:8443")
          .describe("Address and port for clients; port 0 takes a free one"),
        tls: serverTls(directory).describe(
          "Certificate and key, or { selfSigned: true } for development, or off behind a mesh that does TLS",
        ),
        workers: z
          .int()
          .min(0)
          .max(512)
          .default(1)
          .describe("Threads that accept on the port; 0 is one per core"),
        trustedProxies: z
          .array(network())
          .default([])
          .describe(
            "Networks whose X-Forwarded-* headers are believed; the client is what X-Forwarded-For says",
          ),
        limits: serverLimits(),
        timeouts: z
          .strictObject({
            header: duration().prefault("10s").describe("Until the head of a request has arrived"),
            request: duration().prefault("5m").describe("Until the whole request has arrived"),
            keepAlive: duration()
              .prefault("65s")
              .describe("How long an idle connection stays open"),
          })
          .prefault({})
          .describe("How long a client may take"),
        drain: z
          .strictObject({
            delay: duration({ min: 0 })
              .prefault("5s")
              .describe("How long new requests are still served after readiness has failed"),
            timeout: duration({ min: 0 })
              .prefault("20s")
              .describe("How long what runs may go on after that"),
          })
          .prefault({})
          .describe("How Sallyport stops"),
      },
      {
        error: ({ code, input }) =>
          code === "invalid_type" && input === undefined
            ? `is missing, and server.tls has no default: ${TLS_CHOICES}`
            : undefined,
      },
    )
    .describe("The listener for clients");
}

function failures() {
  return z.int().min(1).max(1_000_000);
}

/** One address may fail as often as this many names: people behind one gateway share it. */
const NAMES_BEHIND_AN_ADDRESS = 10;

export function loginSection() {
  return z
    .strictObject({
      throttle: z
        .strictObject({
          attempts: failures()
            .default(5)
            .describe("Failures of one name from one address that lead to a ban"),
          within: duration().prefault("2m").describe("The time in which they are counted"),
          ban: duration().prefault("5m").describe("How long further attempts are refused"),
          address: z
            .strictObject({
              attempts: failures()
                .exactOptional()
                .describe("Failures that lead to a ban; ten times throttle.attempts when left out"),
              within: duration()
                .exactOptional()
                .describe("The time in which they are counted; throttle.within when left out"),
              ban: duration()
                .exactOptional()
                .describe("How long all attempts are refused; throttle.ban when left out"),
            })
            .prefault({})
            .describe("One address, or /64 of IPv6, over all names"),
          account: z
            .strictObject({
              attempts: failures()
                .default(100)
                .describe("Failures in a row after which strange addresses get three tries each"),
              within: duration().prefault("24h").describe("A row ends after so long without one"),
            })
            .prefault({})
            .describe("One name over all addresses"),
          global: z
            .strictObject({
              attempts: failures()
                .default(300)
                .describe("Failures of names from addresses that they never logged in from"),
              within: duration()
                .prefault("1m")
                .describe("The time in which so many are allowed; more wait for a moment"),
            })
            .prefault({})
            .describe("All names and addresses together"),
        })
        .transform(({ address, ...throttle }) => ({
          ...throttle,
          address: {
            attempts: address.attempts ?? throttle.attempts * NAMES_BEHIND_AN_ADDRESS,
            within: address.within ?? throttle.within,
            ban: address.ban ?? throttle.ban,
          },
        }))
        .prefault({})
        .describe("Slows the guessing of passwords"),
      hashing: z
        .strictObject({
          concurrency: z.int().min(1).max(64).default(2).describe("Threads that hash passwords"),
          queue: z.int().min(0).max(100_000).default(32).describe("Logins that may wait for them"),
        })
        .prefault({})
        .describe("What checking passwords may cost"),
    })
    .prefault({})
    .describe("POST /api/authenticate");
}

export function logSection() {
  return z
    .strictObject({
      level: z
        .enum(["debug", "info", "warn", "error"])
        .default("info")
        .describe("The least that is written"),
      format: z
        .enum(["json", "pretty", "auto"])
        .default("auto")
        .describe("auto is pretty on a terminal and json elsewhere"),
    })
    .prefault({})
    .describe("The log on standard output");
}
